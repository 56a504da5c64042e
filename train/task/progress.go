package task

import (
	"fmt"
	"io"
	"time"

	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/train"
)

// bestOf has stopping observe the checks that are new to it, and returns the best one, or -1.
func bestOf(history []train.Check, stopping *train.EarlyStopping) int {
	for _, check := range history[stopping.Checks:] {
		stopping.Observe(stopping.Monitored(check))
	}
	if !stopping.Improved {
		return -1
	}
	return stopping.BestCheck
}

// foretell returns an onStep that says once how long training takes: by what some steps have taken, when there have
// been enough of them for all widths of rows.
func (t *Task) foretell(log io.Writer, onStep func(epoch, step int, loss float64) bool) func(epoch, step int, loss float64) bool {
	var start time.Time // when the first step was over, which builds graphs
	steps, said := -1, false
	return func(epoch, step int, loss float64) bool {
		if steps++; steps == 0 {
			start = time.Now()
		}
		if taken := time.Since(start); steps >= 20 && taken > 10*time.Second && !said {
			said = true
			each := taken / time.Duration(steps) * time.Duration(t.Config.Training.StepsPerEpoch)
			most := ""
			if n := t.Config.Training.MaxEpochs - epoch; t.Config.Training.MaxEpochs > 0 && n > 1 {
				most = fmt.Sprintf(", %s for the %d to come at most", text.Seconds((time.Duration(n) * each).Seconds()), n)
			}
			fmt.Fprintf(log, "Time: about %s an epoch%s, and some for validation\n", text.Seconds(each.Seconds()), most)
		}
		return onStep != nil && onStep(epoch, step, loss)
	}
}
