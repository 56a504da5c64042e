package train

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"

	"github.com/heed-go/heed/internal/jsonkeys"
	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/internal/text"
)

// A StoppingConfig says when training ends by itself, and which parameters are kept. It is plain data that can be
// stored as JSON. The zero StoppingConfig stops only when the monitored value is NaN or infinite.
//
// Each call of EarlyStopping.Observe is a check. Fit makes a check at the end of each epoch, or after every CheckEvery
// steps.
type StoppingConfig struct {
	// Monitor is the name of the monitored value: train_loss, val_loss or a name in Check.Metrics, such as
	// val_accuracy. Fit returns an error if there is no such value. If Monitor is empty, Fit uses val_loss or, without
	// validation data, train_loss.
	Monitor string `json:"monitor,omitempty"`

	// Mode is "min" if lower values are better, and "max" if higher values are better. If Monitor is empty or ends in
	// "loss", an empty Mode means "min". For other names an empty Mode is an error.
	Mode string `json:"mode,omitempty"`

	// Patience is the number of successive checks without improvement after which training stops. 0 means no limit.
	Patience int `json:"patience"`

	// A value is an improvement if it is better than the best value by more than MinDelta. With RelativeDelta, it must
	// be better by more than MinDelta times the size of the best value: 0.01 means one percent.
	MinDelta      float64 `json:"min_delta,omitempty"`
	RelativeDelta bool    `json:"relative_delta,omitempty"`

	// Baseline, if set, is a value that must also be beaten by more than MinDelta. Until then, improvements don't
	// restart the count of checks for Patience. The best parameters are kept whether or not they beat the Baseline.
	Baseline *float64 `json:"baseline,omitempty"`

	// FirstCheck is the number of the first check that counts, from 0. Earlier checks are never improvements, and
	// training doesn't stop at them.
	FirstCheck int `json:"first_epoch,omitempty"`

	// KeepLast keeps the parameters of the last check. Otherwise the parameters of the best check are kept, whether or
	// not patience ran out.
	KeepLast bool `json:"keep_last,omitempty"`

	// AllowNonFinite continues training if the monitored value is NaN or infinite. Such a value is never an
	// improvement.
	AllowNonFinite bool `json:"allow_non_finite,omitempty"`

	StoppingThreshold   *float64 `json:"stopping_threshold,omitempty"`   // stop if the value is this good or better
	DivergenceThreshold *float64 `json:"divergence_threshold,omitempty"` // stop if the value is worse than this
}

// check returns an error if a setting is invalid. The error names the setting by its path in JSON.
func (s StoppingConfig) check() error {
	limit := func(path setting.Path, got *float64) error {
		x := *cmp.Or(got, new(0.0))
		return setting.In(path, x, math.Abs(x) <= largest, "from -1e30 to 1e30")
	}
	if err := cmp.Or(
		setting.Between("patience", s.Patience, 0, mostCount),
		setting.Between("first_epoch", s.FirstCheck, 0, mostCount),
		setting.In("min_delta", s.MinDelta, s.MinDelta >= 0 && s.MinDelta <= largest, "from 0 to 1e30"),
		limit("baseline", s.Baseline),
		limit("stopping_threshold", s.StoppingThreshold),
		limit("divergence_threshold", s.DivergenceThreshold),
	); err != nil {
		return err
	}
	switch mode := setting.Path("mode"); {
	case s.Mode != "" && s.Mode != "min" && s.Mode != "max":
		return setting.Errorf("%s must be min or max, got %q", mode, s.Mode)
	case s.Mode == "" && !strings.HasSuffix(s.monitor(), "loss"):
		return setting.Errorf("%s must be max if a higher %s is better, or min if a lower one is", mode, s.Monitor)
	}
	return nil
}

const (
	largest   = 1e30    // limit for the size of numbers in a StoppingConfig
	mostCount = 1 << 30 // limit for the counts in a Config, except MicroBatches
)

// monitor returns the name of the monitored value.
func (s StoppingConfig) monitor() string {
	return cmp.Or(s.Monitor, "val_loss")
}

// monitored returns the monitored value of a check, or 0 if the check has no such value.
func (s StoppingConfig) monitored(c Check) float64 {
	if s.Monitor == "" && !c.Validated {
		return c.TrainLoss
	}
	return c.named()[s.monitor()]
}

// BestOf returns the index of the best check in history, or -1 if no check is an improvement.
func (s StoppingConfig) BestOf(history []Check) int {
	e := EarlyStopping{StoppingConfig: s}
	for _, c := range history {
		e.Observe(s.monitored(c))
	}
	if !e.Improved {
		return -1
	}
	return e.BestCheck
}

// sign returns the factor for values that makes lower values better.
func (s StoppingConfig) sign() float64 {
	if s.Mode == "max" {
		return -1
	}
	return 1
}

// beats reports whether value is an improvement on other, which must be finite.
func (s StoppingConfig) beats(value, other float64) bool {
	delta := s.MinDelta
	if s.RelativeDelta {
		delta *= math.Abs(other)
	}
	return s.sign()*value+delta < s.sign()*other
}

// EarlyStopping decides when to stop, one value at a time. A value that equals the best one, or that isn't finite, is
// no improvement.
//
// Make an EarlyStopping by setting its StoppingConfig. Its fields can be saved and restored, also as JSON.
type EarlyStopping struct {
	StoppingConfig

	Checks    int     // number of values observed
	BestCheck int     // number of the check with the best value, from 0; only valid if Improved
	Best      float64 // best value; only valid if Improved
	Waited    int     // checks since the last improvement that also beats the Baseline, if there is one
	Improved  bool    // whether any value was an improvement
	Last      float64 // last value

	steps bool // whether Fit checks after CheckEvery steps, not after each epoch
}

// check returns an error if a setting is invalid or the counts contradict each other.
func (e *EarlyStopping) check() error {
	if err := e.StoppingConfig.check(); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	if e.Checks < 0 || e.Checks == math.MaxInt || e.Waited < 0 || e.Waited > e.Checks || e.BestCheck < 0 || e.BestCheck > max(e.Checks-1, 0) || e.Improved && !finite(e.Best) {
		return fmt.Errorf("train: an EarlyStopping can't have Checks %d, BestCheck %d, Best %v and Waited %d", e.Checks, e.BestCheck, e.Best, e.Waited)
	}
	return nil
}

// Observe records the monitored value of the next check. improved reports whether the value is the best so far, so that
// its parameters should be kept. stop reports whether training should stop. If a setting is invalid, stop is true and
// Because returns the error.
func (e *EarlyStopping) Observe(value float64) (improved, stop bool) {
	check := e.Checks
	e.Checks++
	e.Last = value
	if check < e.FirstCheck || e.check() != nil {
		return false, e.stopped()
	}
	improved = finite(value) && (!e.Improved || e.beats(value, e.Best))
	e.Waited++
	if improved {
		e.Best, e.BestCheck, e.Improved = value, check, true
		if e.Baseline == nil || e.beats(value, *e.Baseline) {
			e.Waited = 0
		}
	}
	return improved, e.stopped()
}

// stopped reports whether the last Observe said to stop.
func (e *EarlyStopping) stopped() bool { return e.Because() != "" }

// Because returns the reason to stop, in words, or the empty string if there is none.
func (e *EarlyStopping) Because() string {
	if err := e.check(); err != nil {
		return err.Error()
	}
	if e.Checks == 0 || e.Checks <= e.FirstCheck {
		return ""
	}
	name, sign := text.EscapeExcept(e.monitor(), ""), e.sign()
	switch reach, diverge := e.StoppingThreshold, e.DivergenceThreshold; {
	case !e.AllowNonFinite && !finite(e.Last):
		return fmt.Sprintf("%s is %v", name, e.Last)
	case reach != nil && sign*e.Last <= sign**reach:
		return fmt.Sprintf("%s is %.4g and has reached the stopping threshold, %.4g", name, e.Last, *reach)
	case diverge != nil && sign*e.Last > sign**diverge:
		return fmt.Sprintf("%s is %.4g, worse than the divergence threshold, %.4g", name, e.Last, *diverge)
	case e.Patience == 0 || e.Waited < e.Patience:
		return ""
	}
	what := e.unit()
	waited := text.Count(e.Waited, what)
	switch {
	case !e.Improved:
		return fmt.Sprintf("%s has not been finite for %s: it is %v", name, waited, e.Last)
	case e.Baseline != nil && !e.beats(e.Best, *e.Baseline):
		return fmt.Sprintf("%s has not improved on the baseline, %.4g, for %s: the best is %.4g, of %s %d", name, *e.Baseline, waited, e.Best, what, e.BestCheck)
	}
	return fmt.Sprintf("%s has not improved for %s: the best is %.4g, of %s %d", name, waited, e.Best, what, e.BestCheck)
}

// kept returns the index of the check whose parameters Fit keeps: the best check. With KeepLast, or without an
// improvement, it is the last check.
func (e *EarlyStopping) kept() int {
	if e.KeepLast || !e.Improved {
		return e.Checks - 1
	}
	return e.BestCheck
}

// unit returns the word for a check in messages.
func (e *EarlyStopping) unit() string {
	if e.steps {
		return "check"
	}
	return "epoch"
}

// place returns a check's epoch in words, or its step if Fit checks after CheckEvery steps.
func (e *EarlyStopping) place(c Check) string {
	if e.steps {
		return fmt.Sprint("Step ", c.Step)
	}
	return fmt.Sprint("Epoch ", c.Epoch)
}

// plainState is an EarlyStopping without methods. In numericState, Best and Last replace the fields of the same names.
type (
	plainState   EarlyStopping
	numericState struct {
		plainState
		Best, Last number
	}
)

// MarshalJSON encodes a value that isn't finite as a string: "NaN", "+Inf" or "-Inf".
func (e EarlyStopping) MarshalJSON() ([]byte, error) {
	return json.Marshal(numericState{plainState(e), number(e.Best), number(e.Last)})
}

// stateKeys are the keys of an EarlyStopping in JSON.
var stateKeys = func() map[string]bool {
	keys := map[string]bool{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[EarlyStopping]()) {
		if f.IsExported() && !f.Anonymous {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			keys[cmp.Or(name, f.Name)] = true
		}
	}
	return keys
}()

// UnmarshalJSON decodes the output of MarshalJSON. It returns an error if a key is unknown, repeated or in the wrong
// case.
func (e *EarlyStopping) UnmarshalJSON(b []byte) error {
	if err := jsonkeys.Check(b, func(key string) bool { return stateKeys[key] }); err != nil {
		return err
	}
	var n numericState
	if err := json.Unmarshal(b, &n); err != nil {
		return err
	}
	*e = EarlyStopping(n.plainState)
	e.Best, e.Last = float64(n.Best), float64(n.Last)
	return nil
}
