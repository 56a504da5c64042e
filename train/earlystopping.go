package train

// EarlyStopping decides when to stop: once the validation loss has failed to improve Patience times in a row. Only a
// loss below the best so far is an improvement; an equal one isn't, nor is NaN. Lower is better.
//
// Its fields can be saved and restored. Make one with NewEarlyStopping, or set Patience: the zero value never stops.
type EarlyStopping struct {
	Patience int // how many epochs without improvement to stop at; 0 never stops

	Epochs    int     // how many losses it has observed
	BestEpoch int     // the epoch, counted from 0, of the lowest loss; meaningless before one improved
	Best      float64 // the lowest loss
	Waited    int     // epochs since then
	Improved  bool    // whether any epoch has improved: false until the first loss that isn't NaN
}

// NewEarlyStopping returns an EarlyStopping with that patience.
func NewEarlyStopping(patience int) *EarlyStopping { return &EarlyStopping{Patience: patience} }

// Observe takes the validation loss of the next epoch. It says whether that is the best so far, in which case the
// parameters are worth keeping, and whether to stop.
func (e *EarlyStopping) Observe(loss float64) (improved, stop bool) {
	epoch := e.Epochs
	e.Epochs++
	if loss == loss && (!e.Improved || loss < e.Best) {
		e.Best, e.BestEpoch, e.Waited, e.Improved = loss, epoch, 0, true
		return true, false
	}
	e.Waited++
	return false, e.Stopped()
}

// Stopped says whether the last Observe said to stop.
func (e *EarlyStopping) Stopped() bool { return e.Patience > 0 && e.Waited >= e.Patience }
