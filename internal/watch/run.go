// Package watch follows a training run: how far it has come, how fast it goes, when it may end, and its losses, in
// memory that doesn't grow with the run. It shows them on a live page.
package watch

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

// A Run is what is known of a training run. Training tells it of steps and checks, and any goroutine may ask.
type Run struct {
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

// New returns a Run of that plan, which begins now.
func New(p Plan) *Run { return newRun(p, time.Now) }

func newRun(p Plan, now func() time.Time) *Run {
	if p.CheckEvery == 0 {
		p.CheckEvery = p.Steps
	}
	return &Run{plan: p, now: now, began: now(), best: -1, version: 1, ended: make(chan struct{})}
}

// Step takes note of a training step, counted from 0 in each epoch.
func (r *Run) Step(epoch, step int, loss float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.version++
	r.taken = epoch*r.plan.Steps + step + 1
	now, of := r.now(), sums{n: 1, loss: loss}
	if !r.last.IsZero() { // how long the first step takes says nothing: it builds graphs
		of.timed, of.seconds = 1, now.Sub(r.last).Seconds()
	}
	r.last = now
	r.steps.add(of, 1)
	r.recent.add(of, math.Exp(-of.seconds/10))
	r.curve.add(r.taken, of)
}

// Checked takes note of the checks so far, one or more, which it keeps, and of which is the best, -1 for none: after a
// check, or before the first step of a run that goes on.
func (r *Run) Checked(history []train.Check, best int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.version++
	r.checked++
	r.history, r.best = history, best
	if r.last.IsZero() {
		r.taken = history[len(history)-1].Step
		return
	}
	now := r.now()
	r.checks.add(sums{timed: 1, seconds: now.Sub(r.last).Seconds()}, 1)
	r.last = now
}

// End takes note that the run has ended, and why. It is called once, after all steps and checks.
func (r *Run) End(because string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.version++
	r.because = because
	close(r.ended)
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
func (r *Run) Now() Now {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := Now{EpochLeft: -1, RunLeft: r.left()}
	if r.taken > 0 {
		n.Epoch = (r.taken - 1) / r.plan.Steps
		n.Step = r.taken - n.Epoch*r.plan.Steps
	}
	if r.recent.n > 0 {
		n.Loss = r.recent.mean()
	}
	if n.Rate = r.recent.rate(); n.Rate > 0 {
		n.EpochLeft = seconds(float64(r.plan.Steps-n.Step) / n.Rate)
	}
	return n
}

// left returns how long the run is still to take, or -1.
func (r *Run) left() time.Duration {
	p, left := r.plan, time.Duration(-1)
	to := p.Epochs * p.Steps
	if p.MaxSteps > 0 && (to == 0 || p.MaxSteps < to) {
		to = p.MaxSteps
	}
	if rate := r.steps.rate(); to > 0 && rate > 0 {
		took := float64(max(0, to-r.taken)) / rate
		if checks := r.checks.rate(); checks > 0 {
			took += float64(max(0, to/p.CheckEvery-r.taken/p.CheckEvery)) / checks
		}
		left = seconds(took)
	}
	if p.MaxTime > 0 {
		limit := max(0, p.MaxTime-r.now().Sub(r.began))
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
func (r *Run) Losses(n int) []float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	points := r.curve.whole()
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
