package train

import (
	"fmt"
	"math"
	"strings"

	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/internal/text"
)

// Stopping says when training ends by itself, and which parameters it leaves. It is plain data, and goes to JSON and
// back. The zero value stops at nothing but a value that isn't finite.
//
// A check is one look at the monitored value: a call of Observe; in Fit, the end of an epoch or, with CheckEvery, of so
// many steps.
type Stopping struct {
	// Monitor is the name of the value to look at: train_loss, val_loss or a metric of either, as val_accuracy. One
	// that isn't there is an error. The empty string stands for val_loss or, without validation, for train_loss.
	Monitor string `json:"monitor,omitempty"`

	// Mode is "min" if lower values are better and "max" if higher ones are. It may be left empty for a loss, whose
	// name ends in "loss", which means "min". Nothing is guessed for another name: an empty Mode is an error there.
	Mode string `json:"mode,omitempty"`

	// Patience is how many checks in a row without improvement to stop at; 0 never stops for that.
	Patience int `json:"patience"`

	// An improvement is better than the best value by more than MinDelta. With RelativeDelta, MinDelta is a part of the
	// best value's size: 0.01 asks for more than one percent.
	MinDelta      float64 `json:"min_delta,omitempty"`
	RelativeDelta bool    `json:"relative_delta,omitempty"`

	// Baseline is a value to improve on by MinDelta as well, or patience goes on running out: without an improvement on
	// it, training ends after Patience checks. The best parameters are kept whatever the Baseline is.
	Baseline *float64 `json:"baseline,omitempty"`

	// FirstEpoch is the first check that counts, from 0. Those before it are neither an improvement nor a reason to
	// stop.
	FirstEpoch int `json:"first_epoch,omitempty"`

	// KeepLast leaves the parameters of the last check. Otherwise they are those of the best one, whether or not
	// patience ran out.
	KeepLast bool `json:"keep_last,omitempty"`

	// AllowNonFinite goes on at a monitored value that is NaN or infinite. Such a value is never an improvement.
	AllowNonFinite bool `json:"allow_non_finite,omitempty"`

	StoppingThreshold   *float64 `json:"stopping_threshold,omitempty"`   // stop at a value as good as this, or better
	DivergenceThreshold *float64 `json:"divergence_threshold,omitempty"` // stop at a value worse than this
}

// check returns an error if a setting is impossible. The error names it by its path in JSON.
func (s Stopping) check() error {
	for _, n := range []struct {
		path setting.Path
		got  int
	}{{"patience", s.Patience}, {"first_epoch", s.FirstEpoch}} {
		if n.got < 0 || n.got > mostCount {
			return setting.Errorf("%s must be from 0 to %d, got %d", n.path, mostCount, n.got)
		}
	}
	if !(s.MinDelta >= 0 && s.MinDelta <= largest) {
		return setting.Errorf("%s must be from 0 to 1e30, got %v", setting.Path("min_delta"), s.MinDelta)
	}
	for _, x := range []struct {
		path setting.Path
		got  *float64
	}{{"baseline", s.Baseline}, {"stopping_threshold", s.StoppingThreshold}, {"divergence_threshold", s.DivergenceThreshold}} {
		if x.got != nil && !(math.Abs(*x.got) <= largest) {
			return setting.Errorf("%s must be from -1e30 to 1e30, got %v", x.path, *x.got)
		}
	}
	switch mode := setting.Path("mode"); {
	case s.Mode != "" && s.Mode != "min" && s.Mode != "max":
		return setting.Errorf("%s must be min or max, got %q", mode, s.Mode)
	case s.Mode == "" && !strings.HasSuffix(s.monitor(), "loss"):
		return setting.Errorf("%s must be max, if more of %s is better, or min", mode, s.Monitor)
	}
	return nil
}

// largest is the largest size of a number in a Stopping.
const largest = 1e30

// monitor returns the name of the monitored value.
func (s Stopping) monitor() string {
	if s.Monitor == "" {
		return "val_loss"
	}
	return s.Monitor
}

// Monitored returns the value of a check to look at. Where there is no such value it is 0.
func (s Stopping) Monitored(c Check) float64 {
	if s.Monitor == "" && !c.Validated {
		return c.TrainLoss
	}
	return c.named()[s.monitor()]
}

// BestOf returns the place in a history of the check with the best value, or -1 if none has been an improvement.
func (s Stopping) BestOf(history []Check) int {
	e := EarlyStopping{Stopping: s}
	for _, c := range history {
		e.Observe(s.Monitored(c))
	}
	if !e.Improved {
		return -1
	}
	return e.BestCheck
}

// sign is what values are multiplied by so that lower ones are better.
func (s Stopping) sign() float64 {
	if s.Mode == "max" {
		return -1
	}
	return 1
}

// beats reports whether a value is an improvement on a finite other one.
func (s Stopping) beats(value, other float64) bool {
	delta := s.MinDelta
	if s.RelativeDelta {
		delta *= math.Abs(other)
	}
	return s.sign()*value+delta < s.sign()*other
}

// EarlyStopping decides when to stop, value by value. Equal values are no improvement, nor is a value that isn't
// finite.
//
// Its fields can be saved and restored, as JSON too. Make one with NewEarlyStopping, or set the Stopping.
type EarlyStopping struct {
	Stopping

	Checks    int     // how many values it has observed
	BestCheck int     // the check, counted from 0, of the best value; meaningless before one improved
	Best      float64 // the best value
	Waited    int     // checks since the last improvement, on the Baseline too if there is one
	Improved  bool    // whether any value has been an improvement
	Last      float64 // the last value

	steps bool // a check is of so many steps, not of an epoch
}

// check returns an error if the options can't be, or what it has observed.
func (e *EarlyStopping) check() error {
	if err := e.Stopping.check(); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	if e.Checks < 0 || e.Checks == math.MaxInt || e.Waited < 0 || e.Waited > e.Checks || e.BestCheck < 0 || e.BestCheck > max(e.Checks-1, 0) || e.Improved && !finite(e.Best) {
		return fmt.Errorf("train: an EarlyStopping can't have observed %d checks, the best of them number %d, %v, and waited for %d since", e.Checks, e.BestCheck, e.Best, e.Waited)
	}
	return nil
}

// NewEarlyStopping returns an EarlyStopping on a loss with that patience; 0 never stops. A loss that isn't finite
// doesn't stop it.
func NewEarlyStopping(patience int) *EarlyStopping {
	return &EarlyStopping{Stopping: Stopping{Patience: patience, AllowNonFinite: true}}
}

// Observe takes the monitored value of the next check. It reports whether that is the best so far, in which case the
// parameters are worth keeping, and whether to stop. Options that can't be, such as no Mode where one is needed, stop
// at once, and Because says what is wrong with them.
func (e *EarlyStopping) Observe(value float64) (improved, stop bool) {
	check := e.Checks
	e.Checks++
	e.Last = value
	if check < e.FirstEpoch || e.check() != nil {
		return false, e.Stopped()
	}
	improved = finite(value) && (!e.Improved || e.beats(value, e.Best))
	e.Waited++
	if improved {
		e.Best, e.BestCheck, e.Improved = value, check, true
		if e.Baseline == nil || e.beats(value, *e.Baseline) {
			e.Waited = 0
		}
	}
	return improved, e.Stopped()
}

// Stopped reports whether the last Observe said to stop.
func (e *EarlyStopping) Stopped() bool { return e.Because() != "" }

// Because returns why to stop, in words, or the empty string where there is no reason to.
func (e *EarlyStopping) Because() string {
	if err := e.check(); err != nil {
		return err.Error()
	}
	if e.Checks == 0 || e.Checks <= e.FirstEpoch {
		return ""
	}
	name, sign := e.monitor(), e.sign()
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
	waited, what := e.checks(e.Waited), e.unit()
	switch {
	case !e.Improved:
		return fmt.Sprintf("%s was nothing to improve on for %s: it is %v", name, waited, e.Last)
	case e.Baseline != nil && !e.beats(e.Best, *e.Baseline):
		return fmt.Sprintf("%s has not improved on the baseline, %.4g, for %s: the best is %.4g, of %s %d", name, *e.Baseline, waited, e.Best, what, e.BestCheck)
	}
	return fmt.Sprintf("%s has not improved for %s: the best is %.4g, of %s %d", name, waited, e.Best, what, e.BestCheck)
}

// kept returns the check whose parameters are to be kept so far: the last one where none was an improvement yet.
func (e *EarlyStopping) kept() int {
	if e.KeepLast || !e.Improved {
		return e.Checks - 1
	}
	return e.BestCheck
}

// result returns how training went. There may be no check yet where it ended at an error or a limit.
func (e *EarlyStopping) result(history []Check, err error) *Result {
	r := &Result{History: history, StoppedBecause: e.Because()}
	if len(history) > 0 {
		r.Best = history[e.kept()]
	}
	r.StoppedEarly = r.StoppedBecause != ""
	switch {
	case r.StoppedEarly:
	case err != nil:
		r.StoppedBecause = err.Error()
	case e.steps:
		r.StoppedBecause = fmt.Sprintf("it was to take %s at most", text.Count(history[len(history)-1].Step, "step"))
	default:
		r.StoppedBecause = fmt.Sprintf("it was to take %s at most", e.checks(len(history)))
	}
	return r
}

// unit is what a check is of.
func (e *EarlyStopping) unit() string {
	if e.steps {
		return "check"
	}
	return "epoch"
}

// checks is a number of checks in words.
func (e *EarlyStopping) checks(n int) string { return text.Count(n, e.unit()) }
