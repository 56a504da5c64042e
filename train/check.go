package train

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// A Check is a look at how training goes, and a line of the history: at the end of an epoch, or after so many steps as
// the Config's CheckEvery says.
//
// Losses are means over batches, weighted by their Weights: of training, over the batches since the last check.
type Check struct {
	Epoch     int     // the one under way, or that has just ended, counted from 0
	Step      int     // how many have been taken, over all epochs
	TrainLoss float64 // while the parameters changed
	ValLoss   float64 // 0 where there is no validation
	Validated bool    // there is validation

	// Metrics are the means of the Problem's metrics, of training and validation: as train_accuracy and val_accuracy.
	Metrics map[string]float64
}

// String returns the line of an epoch in a log: the losses, then each metric.
func (c Check) String() string { return fmt.Sprintf("Epoch %d: %s", c.Epoch, c.values()) }

// values returns the check's values as a log has them.
func (c Check) values() string {
	s := c.both(c.TrainLoss, c.ValLoss)
	for _, name := range slices.Sorted(maps.Keys(c.Metrics)) {
		if metric, ok := strings.CutPrefix(name, "train_"); ok {
			s += fmt.Sprintf("; %s: %s", metric, c.both(c.Metrics[name], c.Metrics["val_"+metric]))
		}
	}
	return s
}

// both returns what a value is for training and, if there is validation, for that.
func (c Check) both(training, validation float64) string {
	if !c.Validated {
		return fmt.Sprintf("Train=%.3f", training)
	}
	return fmt.Sprintf("Train=%.3f, Val=%.3f", training, validation)
}

// named returns the check's values by their names.
func (c Check) named() map[string]float64 {
	values := map[string]float64{"train_loss": c.TrainLoss}
	if c.Validated {
		values["val_loss"] = c.ValLoss
	}
	maps.Copy(values, c.Metrics)
	return values
}

// MarshalJSON makes one object of epoch, step, train_loss, val_loss if there is validation, and the metrics, each under
// its name. A number that isn't finite is a string, "NaN", "+Inf" or "-Inf".
func (c Check) MarshalJSON() ([]byte, error) {
	values := map[string]number{"epoch": number(c.Epoch), "step": number(c.Step)}
	for name, x := range c.named() {
		values[name] = number(x)
	}
	return json.Marshal(values)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (c *Check) UnmarshalJSON(b []byte) error {
	values := map[string]number{}
	if err := json.Unmarshal(b, &values); err != nil {
		return err
	}
	*c = Check{}
	for name, x := range values {
		switch x := float64(x); name {
		case "epoch":
			c.Epoch = int(x)
		case "step":
			c.Step = int(x)
		case "train_loss":
			c.TrainLoss = x
		case "val_loss":
			c.ValLoss, c.Validated = x, true
		default:
			if c.Metrics == nil {
				c.Metrics = map[string]float64{}
			}
			c.Metrics[name] = x
		}
	}
	return nil
}

// logCheck writes the line of a check that s has observed, and one if that is where to stop. w may be nil.
func logCheck(w io.Writer, c Check, s *EarlyStopping) {
	if w == nil {
		return
	}
	at, lower := fmt.Sprintf("Epoch %d", c.Epoch), fmt.Sprintf("epoch %d", c.Epoch)
	if s.steps {
		at, lower = fmt.Sprintf("Step %d", c.Step), fmt.Sprintf("step %d", c.Step)
	}
	fmt.Fprintf(w, "%s: %s\n", at, c.values())
	if s.Stopped() {
		fmt.Fprintf(w, "Early stopping at %s\n", lower)
	}
}
