package task

import (
	"fmt"
	"io"
	"time"

	"github.com/heed-go/heed/internal/text"
)

// foretell returns a function to call after each step. Once, after at least 20 steps and 10 seconds, this function
// writes an estimate of the time per epoch and of the time left.
func (t *Task) foretell(log io.Writer) func(epoch int) {
	var start time.Time // end of the first step, which is slow because it builds graphs
	steps, said := -1, false
	return func(epoch int) {
		if steps++; steps == 0 {
			start = time.Now()
		}
		taken := time.Since(start)
		if steps < 20 || taken <= 10*time.Second || said {
			return
		}
		said = true
		each := taken / time.Duration(steps) * time.Duration(t.Config.Training.StepsPerEpoch)
		most := ""
		if n := t.Config.Training.MaxEpochs - epoch; t.Config.Training.MaxEpochs > 0 && n > 1 {
			most = fmt.Sprintf(", at most %s for the next %d epochs", text.Seconds((time.Duration(n) * each).Seconds()), n)
		}
		fmt.Fprintf(log, "Time: about %s per epoch%s, without validation\n", text.Seconds(each.Seconds()), most)
	}
}
