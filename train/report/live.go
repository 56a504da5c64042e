package report

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heed-go/heed/train"
)

// A Plan is what a run is to do.
type Plan struct {
	Steps      int           // of an epoch
	Epochs     int           // at most; 0 for no limit
	CheckEvery int           // steps from one check to the next; 0 for those of an epoch
	MaxSteps   int           // of all epochs; 0 for no limit
	MaxTime    time.Duration // of this training; 0 for no limit
}

// A Live follows a training run: how far it has come, how fast it goes, when it may end, and its losses, in memory that
// doesn't grow with the run. Training tells it of steps and checks, and any goroutine may ask.
type Live struct {
	plan  Plan
	now   func() time.Time
	began time.Time

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

	version, checked int // rise when anything changes, and when history does

	ended    chan struct{} // closed then
	watchers atomic.Int32
}

// NewLive returns a Live for a run with that plan, which begins now.
func NewLive(p Plan) *Live { return newLive(p, time.Now) }

func newLive(p Plan, now func() time.Time) *Live {
	if p.CheckEvery == 0 {
		p.CheckEvery = p.Steps
	}
	return &Live{plan: p, now: now, began: now(), best: -1, version: 1, ended: make(chan struct{})}
}

// Step takes note of a training step, counted from 0 in each epoch.
func (l *Live) Step(epoch, step int, loss float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.version++
	l.taken = epoch*l.plan.Steps + step + 1
	now, of := l.now(), sums{n: 1, loss: loss}
	if !l.last.IsZero() { // how long the first step takes says nothing: it builds graphs
		of.timed, of.seconds = 1, now.Sub(l.last).Seconds()
	}
	l.last = now
	l.steps.add(of, 1)
	l.recent.add(of, math.Exp(-of.seconds/10))
	l.curve.add(l.taken, of)
}

// Checked takes note of the checks so far, one or more, which it keeps, and of which is the best, -1 for none: after a
// check, or before the first step of a run that goes on.
func (l *Live) Checked(history []train.Check, best int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.version++
	l.checked++
	l.history, l.best = history, best
	if l.last.IsZero() {
		l.taken = history[len(history)-1].Step
		return
	}
	now := l.now()
	l.checks.add(sums{timed: 1, seconds: now.Sub(l.last).Seconds()}, 1)
	l.last = now
}

// End takes note that the run has ended, and why. It is called once, after all steps and checks.
func (l *Live) End(because string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.version++
	l.because = because
	close(l.ended)
}

// A Now is where a run stands.
type Now struct {
	Epoch, Step int     // the epoch under way, from 0, and how many of its steps have been taken
	Loss        float64 // of the last steps
	Rate        float64 // steps a second, of the last steps; 0 where it isn't known yet

	// EpochLeft and RunLeft are how long the epoch's steps and the whole run, with its checks, are still to take: at
	// most, where it may stop early. They are below 0 where that isn't known, or the run has no end.
	EpochLeft, RunLeft time.Duration
}

// Now returns where the run stands.
func (l *Live) Now() Now {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := Now{EpochLeft: -1, RunLeft: l.left()}
	if l.taken > 0 {
		n.Epoch = (l.taken - 1) / l.plan.Steps
		n.Step = l.taken - n.Epoch*l.plan.Steps
	}
	if l.recent.n > 0 {
		n.Loss = l.recent.mean()
	}
	if n.Rate = l.recent.rate(); n.Rate > 0 {
		n.EpochLeft = seconds(float64(l.plan.Steps-n.Step) / n.Rate)
	}
	return n
}

// left returns how long the run is still to take, or -1.
func (l *Live) left() time.Duration {
	p, left := l.plan, time.Duration(-1)
	to := p.Epochs * p.Steps
	if p.MaxSteps > 0 && (to == 0 || p.MaxSteps < to) {
		to = p.MaxSteps
	}
	if rate := l.steps.rate(); to > 0 && rate > 0 {
		took := float64(max(0, to-l.taken)) / rate
		if checks := l.checks.rate(); checks > 0 {
			took += float64(max(0, to/p.CheckEvery-l.taken/p.CheckEvery)) / checks
		}
		left = seconds(took)
	}
	if p.MaxTime > 0 {
		limit := max(0, p.MaxTime-l.now().Sub(l.began))
		if left < 0 || limit < left {
			left = limit
		}
	}
	return left
}

func seconds(s float64) time.Duration {
	return time.Duration(min(s*float64(time.Second), math.MaxInt64/2))
}

// Losses returns the losses of this training's steps, in as many parts of it as n, or fewer: the mean of each.
func (l *Live) Losses(n int) []float64 {
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
