package train

import (
	"fmt"
	"io"
)

// LoopConfig has the options of StopEarly. The zero LoopConfig will do.
type LoopConfig struct {
	MaxEpochs int       // epochs at most; 0 for 20
	Log       io.Writer // gets a line for every epoch, and one when training stops early; nil for none

	// OnEpoch, if set, is called after every epoch with the history so far and whether the last epoch is the best: the
	// parameters are worth keeping then. An error ends training.
	OnEpoch func(history []Check, best bool) error
}

// StopEarly calls train and then validate, which return the losses of an epoch, until the validation loss has failed to
// improve patience times in a row. It is Fit's early stopping for training of any other kind.
//
// A patience of 0 or less stops at the first epoch that is no improvement, as one of 1 does. A loss that isn't finite
// is no improvement. Training ends also at an error, which is returned; the result is nil if no epoch was done.
func StopEarly(train, validate func() (float64, error), patience int, c LoopConfig) (*Result, error) {
	switch {
	case c.MaxEpochs < 0:
		return nil, fmt.Errorf("train: MaxEpochs must be at least 0, got %d", c.MaxEpochs)
	case c.MaxEpochs == 0:
		c.MaxEpochs = 20
	}
	stopping := NewEarlyStopping(max(patience, 1))
	var history []Check
	var err error
	for err == nil && len(history) < c.MaxEpochs && !stopping.Stopped() {
		e := Check{Epoch: len(history), Validated: true}
		if e.TrainLoss, err = train(); err != nil {
			break
		}
		if e.ValLoss, err = validate(); err != nil {
			break
		}
		history = append(history, e)
		best, _ := stopping.Observe(e.ValLoss)
		logCheck(c.Log, e, stopping)
		if c.OnEpoch != nil {
			err = c.OnEpoch(history, best)
		}
	}
	if len(history) == 0 {
		return nil, err
	}
	return stopping.result(history, err), err
}
