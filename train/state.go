package train

import (
	"cmp"
	"fmt"
	"time"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train/optim"
)

// fit is the state of one call of Fit.
type fit struct {
	Problem
	Config
	RunOptions
	solver  *optim.Solver  // RunOptions.Solver, or nil if its state can't be saved
	plateau *optim.Plateau // nil if there is none
	average *optim.Average // nil if there is none

	team       *team
	plan       *plan
	train      *trainer
	validation *validation // nil if there is none

	step     int    // number of steps taken
	sound    int    // value of step when checkFinite last returned no error
	since    window // steps since the last check
	stopping EarlyStopping
	history  []Check

	kept   []*layers.Param   // parameters whose values change, or that a resumed run has frozen since they changed
	best   []*tensor.Dense   // values of kept that Fit leaves
	frozen map[string]string // checksums of the other parameters' values, by name, if there is a Checkpoint

	asked   error     // a pause, if a callback of this process asked to stop
	unsaved bool      // the checkpoint is out of date
	savedAt time.Time // time of the last checkpoint, or of the start
}

// microSize returns the number of examples in a micro-batch.
func (f *fit) microSize() int { return f.BatchSize / max(f.MicroBatches, 1) }

// values returns copies of the values of f.kept, for restore.
func (f *fit) values() (values []*tensor.Dense) {
	for _, q := range f.kept {
		values = append(values, q.Value.Clone().(*tensor.Dense))
	}
	return values
}

// restore sets f.kept to the result of a call of values.
func (f *fit) restore(values []*tensor.Dense) error {
	for i, q := range f.kept {
		if v := values[i]; q.Value.Dtype() != v.Dtype() || !q.Value.Shape().Eq(v.Shape()) {
			return fmt.Errorf("train: restoring the kept parameters: parameter %q must be %s, got %s: callbacks may change its numbers, but not its tensor", q.Name, describe(v), describe(q.Value))
		}
	}
	for i, q := range f.kept {
		copy(q.Value.Raw, values[i].Raw)
	}
	return nil
}

// restoreBest restores the values that Fit leaves. Before the first check, these are the averages, if there are any.
func (f *fit) restoreBest() error {
	switch {
	case len(f.history) > 0:
		return f.restore(f.best)
	case f.average != nil && f.step > 0:
		return f.average.Swap(f.train.model)
	}
	return nil
}

// averaged calls do. If there is an Average, the parameters have its values during the call.
func (f *fit) averaged(do func() error) error {
	if f.average == nil {
		return do()
	}
	if err := f.average.Swap(f.train.model); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	return cmp.Or(do(), f.average.Swap(f.train.model))
}
