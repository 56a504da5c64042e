package task

import (
	"fmt"
	"io"
	"time"

	"github.com/heed-go/heed/internal/text"
)

// foretell returns a function to call after each step, with the time of all steps so far. Once, after at least 5 steps
// and 3 seconds, this function writes an estimate of the time per epoch, of the time to the first check if that comes
// before the end of an epoch, and of the time left.
func (t *Task) foretell(log io.Writer) func(epoch, step int, all spent) {
	c, said := t.Config.Training, false
	return func(epoch, step int, all spent) {
		if all.steps < 5 || all.time < 3*time.Second || said {
			return
		}
		said = true
		about := func(steps int) string {
			return text.Seconds(all.time.Seconds() / float64(all.steps) * float64(steps))
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
