package train

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/heed-go/heed/internal/jsonkeys"
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

	// Of an *optim.Solver, and 0 otherwise: the learning rate of the last step, and the mean norm of the gradients
	// since the last check, before clipping.
	LearningRate, GradientNorm float64

	// Metrics are the means of the Problem's metrics, of training and validation: as train_accuracy and val_accuracy.
	Metrics map[string]float64
}

// String returns the line of an epoch in a log: the losses, then each metric.
func (c Check) String() string { return fmt.Sprintf("Epoch %d: %s", c.Epoch, c.values()) }

// values returns the check's values as a log has them.
func (c Check) values() string {
	s := c.both(c.TrainLoss, c.ValLoss, decimals)
	for _, name := range slices.Sorted(maps.Keys(c.Metrics)) {
		if metric, ok := strings.CutPrefix(name, "train_"); ok {
			s += fmt.Sprintf("; %s: %s", metric, c.both(c.Metrics[name], c.Metrics["val_"+metric], func(x float64) string { return fmt.Sprintf("%.3f", x) }))
		}
	}
	return s
}

// both returns what a value is for training and, if there is validation, for that.
func (c Check) both(training, validation float64, text func(float64) string) string {
	if !c.Validated {
		return "Train=" + text(training)
	}
	return fmt.Sprintf("Train=%s, Val=%s", text(training), text(validation))
}

// decimals returns a loss with 3 decimals, or more where 3 significant digits need them: 0.457, 0.000457.
func decimals(x float64) string {
	if size := math.Abs(x); size > 0 && size < 0.1 {
		if size < 1e-9 {
			return fmt.Sprintf("%.2e", x)
		}
		return fmt.Sprintf("%.*f", 2-int(math.Floor(math.Log10(size))), x)
	}
	return fmt.Sprintf("%.3f", x)
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

// MarshalJSON makes one object of epoch, step, learning_rate and gradient_norm unless they are 0, train_loss, val_loss
// if there is validation, and the metrics, each under its name. A number that isn't finite is a string, "NaN", "+Inf"
// or "-Inf".
func (c Check) MarshalJSON() ([]byte, error) {
	values := map[string]number{"epoch": number(c.Epoch), "step": number(c.Step)}
	for name, x := range map[string]float64{"learning_rate": c.LearningRate, "gradient_norm": c.GradientNorm} {
		if x != 0 {
			values[name] = number(x)
		}
	}
	for name, x := range c.named() {
		values[name] = number(x)
	}
	return json.Marshal(values)
}

// checkKey reports whether a Check may have a key in JSON: one of its own, or one of a metric.
func checkKey(key string) bool {
	switch key {
	case "epoch", "step", "learning_rate", "gradient_norm", "train_loss", "val_loss":
		return true
	}
	split, metric, found := strings.Cut(key, "_")
	return found && (split == "train" || split == "val") && !strings.EqualFold(metric, "loss")
}

// UnmarshalJSON reads what MarshalJSON writes. A key that is given twice is an error, and so is one that isn't a
// Check's, of a metric in training (train_) or of one in validation (val_).
func (c *Check) UnmarshalJSON(b []byte) error {
	if err := jsonkeys.Check(b, checkKey); err != nil {
		return err
	}
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
		case "learning_rate":
			c.LearningRate = x
		case "gradient_norm":
			c.GradientNorm = x
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
