package train

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/heed-go/heed/internal/jsonkeys"
	"github.com/heed-go/heed/internal/text"
)

// A Check is one entry of the training history. Fit makes a check at the end of each epoch, or after every CheckEvery
// steps.
//
// TrainLoss is the mean over the training batches since the last check, and ValLoss the mean over all validation
// batches. Both are means over all targets that count: see layers.Loss.
type Check struct {
	Epoch     int     // epoch of the last step, counted from 0
	Step      int     // number of steps taken, over all epochs
	TrainLoss float64 // computed while the parameters changed
	ValLoss   float64 // 0 if there is no validation data
	Validated bool    // whether there is validation data

	// LearningRate is the learning rate of the last step. GradientNorm is the mean norm of the gradients since the last
	// check, before clipping. Both are 0 if the solver isn't an *optim.Solver.
	LearningRate, GradientNorm float64

	// Metrics holds the training and validation means of the Problem's metrics, under names such as train_accuracy and
	// val_accuracy.
	Metrics map[string]float64
}

// String returns the line of an epoch in a log: the losses and then the metrics.
func (c Check) String() string { return fmt.Sprintf("Epoch %d: %s", c.Epoch, c.values()) }

// values returns the losses and metrics as text for a log.
func (c Check) values() string {
	s := c.both(c.TrainLoss, c.ValLoss, decimals)
	for _, name := range slices.Sorted(maps.Keys(c.Metrics)) {
		if metric, ok := strings.CutPrefix(name, "train_"); ok {
			s += fmt.Sprintf("; %s: %s", text.EscapeExcept(metric, ""), c.both(c.Metrics[name], c.Metrics["val_"+metric], func(x float64) string { return fmt.Sprintf("%.3f", x) }))
		}
	}
	return s
}

// both returns the training value as text and, if there is validation data, the validation value.
func (c Check) both(training, validation float64, format func(float64) string) string {
	if !c.Validated {
		return "Train=" + format(training)
	}
	return fmt.Sprintf("Train=%s, Val=%s", format(training), format(validation))
}

// decimals formats a loss with 3 decimals, or with more if 3 significant digits need them: 0.457, 0.000457.
func decimals(x float64) string {
	if size := math.Abs(x); size > 0 && size < 0.1 {
		if size < 1e-9 {
			return fmt.Sprintf("%.2e", x)
		}
		return fmt.Sprintf("%.*f", 2-int(math.Floor(math.Log10(size))), x)
	}
	return fmt.Sprintf("%.3f", x)
}

// named returns the losses and metrics by their names.
func (c Check) named() map[string]float64 {
	values := map[string]float64{"train_loss": c.TrainLoss}
	if c.Validated {
		values["val_loss"] = c.ValLoss
	}
	maps.Copy(values, c.Metrics)
	return values
}

// MarshalJSON encodes the check as one object with the keys epoch, step, train_loss and the names of the metrics. It
// adds val_loss if there is validation data, and learning_rate and gradient_norm unless they are 0. A number that isn't
// finite becomes a string: "NaN", "+Inf" or "-Inf".
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

// checkFields are the keys of a Check's fields in JSON.
var checkFields = []string{"epoch", "step", "learning_rate", "gradient_norm", "train_loss", "val_loss"}

// checkKey reports whether key can be in the JSON of a Check: the key of a field, or the name of a metric.
func checkKey(key string) bool {
	if slices.Contains(checkFields, key) {
		return true
	}
	split, metric, found := strings.Cut(key, "_")
	return found && (split == "train" || split == "val") && !strings.EqualFold(metric, "loss")
}

// UnmarshalJSON decodes the output of MarshalJSON. It returns an error if a key is repeated, or is neither a key of
// MarshalJSON nor a name that starts with train_ or val_.
func (c *Check) UnmarshalJSON(b []byte) error {
	if err := jsonkeys.Check(b, checkKey); err != nil {
		return err
	}
	values := map[string]number{}
	if err := json.Unmarshal(b, &values); err != nil {
		return err
	}
	*c = Check{
		Epoch: int(values["epoch"]), Step: int(values["step"]), TrainLoss: float64(values["train_loss"]), ValLoss: float64(values["val_loss"]),
		LearningRate: float64(values["learning_rate"]), GradientNorm: float64(values["gradient_norm"]),
	}
	_, c.Validated = values["val_loss"]
	for name, x := range values {
		if !slices.Contains(checkFields, name) {
			if c.Metrics == nil {
				c.Metrics = map[string]float64{}
			}
			c.Metrics[name] = float64(x)
		}
	}
	return nil
}
