package report

import (
	"cmp"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heed-go/heed/train"
)

// A Live follows a training run: how far it has come, how fast it goes, when it may end, and its losses, in memory that
// doesn't grow with the number of steps. Training tells it of steps and checks. Any goroutine may call its methods.
type Live struct {
	perEpoch int // steps of an epoch
	config   train.Config
	call     train.Call
	now      func() time.Time
	began    time.Time

	mu      sync.Mutex
	last    time.Time // when the last step or check was over; zero before the first step
	taken   int       // steps of all epochs
	steps   sums      // of this training
	recent  sums      // of this training, fading over some ten seconds
	checks  sums      // of this training
	curve   curve
	history []train.Check
	best    int    // in history; -1 for none
	because string // why the run has ended; empty before

	version, checked int // version rises with every change, checked with every change of history

	ended    chan struct{} // closed when the run has ended
	watchers atomic.Int32
}

// NewLive returns a Live for a run that begins now. The argument steps is the number of steps in an epoch, at least 1.
// The limits of the Config and the Call say when the run ends at the latest. The Config's Stopping says which check is
// the best.
func NewLive(steps int, c train.Config, call train.Call) *Live {
	return newLive(steps, c, call, time.Now)
}

func newLive(steps int, c train.Config, call train.Call, now func() time.Time) *Live {
	return &Live{
		perEpoch: steps, config: c, call: call, now: now, began: now(), best: -1, version: 1,
		ended: make(chan struct{}),
	}
}

// Step takes note of a training step, counted from 0 in each epoch, and returns false. It is for train.Call's OnStep.
func (l *Live) Step(epoch, step int, loss float64) (stop bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.version++
	l.taken = epoch*l.perEpoch + step + 1
	now, one := l.now(), sums{n: 1, loss: loss}
	if !l.last.IsZero() { // the time of the first step says nothing: it builds graphs
		one.timed, one.seconds = 1, now.Sub(l.last).Seconds()
	}
	l.last = now
	l.steps.add(one, 1)
	l.recent.add(one, math.Exp(-one.seconds/10))
	l.curve.add(l.taken, one)
	return false
}

// Check takes note of the checks so far, at least one, and returns false and nil. It is for train.Call's OnCheck,
// which Fit calls after a check, and before the first step if it resumes. Check keeps the history, and finds the best
// check itself.
func (l *Live) Check(history []train.Check, _ bool) (stop bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.version++
	l.checked++
	l.history, l.best = history, l.config.Stopping.BestOf(history)
	if l.last.IsZero() {
		l.taken = history[len(history)-1].Step
		return false, nil
	}
	now := l.now()
	l.checks.add(sums{timed: 1, seconds: now.Sub(l.last).Seconds()}, 1)
	l.last = now
	return false, nil
}

// End takes note that the run has ended, and why. Call it once, after all steps and checks.
func (l *Live) End(because string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.version++
	l.because = because
	close(l.ended)
}

// left returns the most seconds that the run will still take, with its checks, or -1 if the time isn't known or the run
// has no limit.
func (l *Live) left() float64 {
	c, call, left := l.config, l.call, -1.0
	end := c.MaxEpochs * l.perEpoch
	if call.MaxSteps > 0 && (end == 0 || call.MaxSteps < end) {
		end = call.MaxSteps
	}
	if rate := l.steps.rate(); end > 0 && rate > 0 {
		left = float64(max(0, end-l.taken)) / rate
		if checks := l.checks.rate(); checks > 0 {
			every := cmp.Or(c.CheckEvery, l.perEpoch)
			left += float64(max(0, end/every-l.taken/every)) / checks
		}
	}
	if call.MaxTime > 0 {
		limit := max(0, call.MaxTime-l.now().Sub(l.began)).Seconds()
		if left < 0 || limit < left {
			left = limit
		}
	}
	return left
}

// losses divides this training into n parts, or fewer, and returns the mean loss of each.
func (l *Live) losses(n int) []float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	points := l.curve.whole()
	losses := make([]float64, min(n, len(points)))
	for i := range losses {
		var part sums
		for _, p := range points[i*len(points)/len(losses) : (i+1)*len(points)/len(losses)] {
			part.add(p.sums, 1)
		}
		losses[i] = part.mean()
	}
	return losses
}
