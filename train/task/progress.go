package task

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/heed-go/heed/internal/text"
)

// foretell returns a function to call after each step, with the time of the step, or with 0 for the first step. Once,
// after at least 5 more steps and 3 seconds, this function writes an estimate of the time per epoch, of the time to the
// first check if that comes before the end of an epoch, and of the time left. Steps that take more than three times the
// median don't count: they build graphs for other buckets.
func (t *Task) foretell(log io.Writer) func(epoch, step int, taken time.Duration) {
	c, written := t.Config.Training, false
	var times []time.Duration
	var total time.Duration
	return func(epoch, step int, taken time.Duration) {
		if written || taken == 0 {
			return
		}
		times, total = append(times, taken), total+taken
		if len(times) < 5 || total < 3*time.Second {
			return
		}
		written = true
		slices.Sort(times)
		usual, sum := 0, 0.0
		for ; usual < len(times) && times[usual] <= 3*times[len(times)/2]; usual++ {
			sum += times[usual].Seconds()
		}
		about := func(steps int) string {
			return text.Seconds(sum / float64(usual) * float64(steps))
		}
		fmt.Fprintf(log, "Time: about %s per epoch", about(c.StepsPerEpoch))
		if left := c.CheckEvery - epoch*c.StepsPerEpoch - step - 1; left > 0 && c.CheckEvery < c.StepsPerEpoch {
			fmt.Fprintf(log, ", %s to the first check", about(left))
		}
		if n := c.MaxEpochs - epoch; c.MaxEpochs > 0 && n > 1 {
			fmt.Fprintf(log, ", at most %s for the next %d epochs", about(n*c.StepsPerEpoch), n)
		}
		fmt.Fprintln(log, ", without validation")
	}
}
