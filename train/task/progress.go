package task

import (
	"fmt"
	"io"
	"time"

	"github.com/heed-go/heed/internal/text"
)

// foretell returns a function to call after each step of an epoch. It writes once how long training takes: by what some
// steps have taken, when there have been enough of them for all widths of rows.
func (t *Task) foretell(log io.Writer) func(epoch int) {
	var start time.Time // when the first step was over, which builds graphs
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
			most = fmt.Sprintf(", %s for the %d to come at most", text.Seconds((time.Duration(n) * each).Seconds()), n)
		}
		fmt.Fprintf(log, "Time: about %s an epoch%s, and some for validation\n", text.Seconds(each.Seconds()), most)
	}
}
