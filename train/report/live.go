package report

import (
	"cmp"
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/heed-go/heed/train"
)

// A Live follows a training run: its progress, its speed, the time left and its losses. Its memory doesn't grow with
// the number of steps. Training calls Step and Check. Several goroutines may call its methods at the same time.
type Live struct {
	perEpoch int // steps per epoch
	config   train.Config
	options  train.RunOptions
	began    time.Time

	mu      sync.Mutex
	last    time.Time // end of the last step or check; zero before the first step
	taken   int       // steps taken, over all epochs
	steps   sums      // steps of this call
	recent  sums      // steps of this call; their weights fade within about ten seconds
	checks  sums      // checks of this call
	curve   curve
	history []train.Check
	best    int    // index in history, or -1 if no check improved
	because string // the reason why the run ended; empty before the end

	version, checked int // version counts all changes, checked the changes of history

	watchers []*http.ResponseController // clients that read events, the oldest first

	ended chan struct{} // closed when the run has ended
}

// NewLive returns a Live for a run that starts now. The argument steps is the number of steps per epoch: see
// train.Dataset.Steps. If it is below 1, it counts as 1. The limits in c and call determine the latest end of the run.
// c.Stopping decides which check is the best.
func NewLive(steps int, c train.Config, options train.RunOptions) *Live {
	return &Live{perEpoch: max(steps, 1), config: c, options: options, began: time.Now(), best: -1, version: 1, ended: make(chan struct{})}
}

// Step records a training step and returns false. The argument step is counted from 0 in each epoch. Use it as
// train.RunOptions.OnStep.
func (l *Live) Step(epoch, step int, loss float64) (stop bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.version++
	l.taken = epoch*l.perEpoch + step + 1
	now, one := time.Now(), sums{n: 1, loss: loss}
	if !l.last.IsZero() { // the first step also builds graphs, so its time isn't counted
		one.timed, one.seconds = 1, now.Sub(l.last).Seconds()
	}
	l.last = now
	l.steps.add(one, 1)
	l.recent.add(one, math.Exp(-one.seconds/10))
	l.curve.add(l.taken, one)
	return false
}

// Check records the history of checks and returns false and nil. Use it as train.RunOptions.OnCheck. Check keeps the
// slice, and finds the best check with c.Stopping. If Fit resumes, it calls Check before the first step.
func (l *Live) Check(history []train.Check, _ bool) (stop bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.version++
	l.checked++
	l.history, l.best = history, l.config.Stopping.BestOf(history)
	if l.last.IsZero() {
		if n := len(history); n > 0 {
			l.taken = history[n-1].Step
		}
		return false, nil
	}
	now := time.Now()
	l.checks.add(sums{timed: 1, seconds: now.Sub(l.last).Seconds()}, 1)
	l.last = now
	return false, nil
}

// End records that the run has ended, and the reason. Call it after all steps and checks. Only the first call counts.
func (l *Live) End(because string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.because != "" {
		return
	}
	l.version++
	l.because = cmp.Or(because, "no reason was given")
	close(l.ended)
}

// left returns the maximum number of seconds until the run ends, including checks. It returns -1 if the time is unknown
// or the run has no limit.
func (l *Live) left() float64 {
	c, call, left := l.config, l.options, -1.0
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
		limit := max(0, call.MaxTime-time.Since(l.began)).Seconds()
		if left < 0 || limit < left {
			left = limit
		}
	}
	return left
}

// losses divides the steps so far into up to n parts, and returns the mean loss of each.
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
