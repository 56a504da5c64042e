package report

import (
	"math"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heed-go/heed/train"
)

// alike reports whether two states show the same progress.
func alike(a, b state) bool {
	near := func(a, b float64) bool { return math.Abs(a-b) < 1e-3 }
	return a.Epoch == b.Epoch && a.Step == b.Step && near(a.loss, b.loss) && near(a.Rate, b.Rate) && near(a.EpochLeft, b.EpochLeft) && near(a.CheckLeft, b.CheckLeft) && near(a.RunLeft, b.RunLeft)
}

func TestState(t *testing.T) {
	const step, check = 0.1, 3.0 // seconds
	for _, c := range []struct {
		name    string
		steps   int // steps per epoch
		config  train.Config
		options train.RunOptions
		epochs  int // complete epochs, each with a check
		more    int // steps taken in the next epoch
		want    state
	}{
		{"nothing yet", 10, train.Config{MaxEpochs: 4}, train.RunOptions{}, 0, 0, state{EpochLeft: -1, RunLeft: -1}},
		{"the first step", 10, train.Config{MaxEpochs: 4}, train.RunOptions{}, 0, 1, state{Step: 1, loss: 2, EpochLeft: -1, RunLeft: -1}},
		{"before a check", 10, train.Config{MaxEpochs: 4}, train.RunOptions{}, 0, 4, state{Step: 4, loss: 2, Rate: 10, EpochLeft: 6 * step, RunLeft: 36 * step}},
		{"with checks to come", 10, train.Config{MaxEpochs: 4}, train.RunOptions{}, 2, 4, state{Epoch: 2, Step: 4, loss: 2, Rate: 10, EpochLeft: 6 * step, RunLeft: 16*step + 2*check}},
		{"no end", 10, train.Config{}, train.RunOptions{}, 2, 4, state{Epoch: 2, Step: 4, loss: 2, Rate: 10, EpochLeft: 6 * step, RunLeft: -1}},
		{"steps to end it", 10, train.Config{MaxEpochs: 4}, train.RunOptions{MaxSteps: 26}, 2, 4, state{Epoch: 2, Step: 4, loss: 2, Rate: 10, EpochLeft: 6 * step, RunLeft: 2 * step}},
		{"time to end it", 10, train.Config{}, train.RunOptions{MaxTime: 9 * time.Second}, 2, 4, state{Epoch: 2, Step: 4, loss: 2, Rate: 10, EpochLeft: 6 * step, RunLeft: 9 - 24*step - 2*check}},
		{"checks within an epoch", 10, train.Config{MaxEpochs: 4, CheckEvery: 5}, train.RunOptions{}, 2, 4, state{Epoch: 2, Step: 4, loss: 2, Rate: 10, EpochLeft: 6 * step, CheckLeft: 1 * step, RunLeft: 16*step + 4*check}},
		{"done", 10, train.Config{MaxEpochs: 2}, train.RunOptions{}, 2, 0, state{Epoch: 1, Step: 10, loss: 2, Rate: 10}},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := NewLive(c.steps, c.config, c.options)
			for i := range c.epochs*c.steps + c.more {
				time.Sleep(step * 1e9)
				r.Step(i/c.steps, i%c.steps, 2)
				if i+1 <= c.epochs*c.steps && (i+1)%c.steps == 0 {
					time.Sleep(check * 1e9)
					r.Check(make([]train.Check, i/c.steps+1), true)
				}
			}
			if got := r.state(); !alike(got, c.want) {
				t.Errorf("%s: state %+v, want %+v", c.name, got, c.want)
			}
		})
	}
}

// A resumed run knows its step. It has no times before it has measured them.
func TestStateOfAResumedRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewLive(10, train.Config{MaxEpochs: 4}, train.RunOptions{})
		time.Sleep(time.Hour)
		r.Check([]train.Check{{Step: 10}, {Step: 20}}, true)
		if got, want := r.state(), (state{Epoch: 1, Step: 10, EpochLeft: -1, RunLeft: -1}); !alike(got, want) {
			t.Errorf("before the first step, the state is %+v, want %+v", got, want)
		}
		time.Sleep(time.Hour)
		r.Step(2, 0, 3)
		time.Sleep(time.Second)
		r.Step(2, 1, 3)
		if got, want := r.state(), (state{Epoch: 2, Step: 2, loss: 3, Rate: 1, EpochLeft: 8, RunLeft: 18}); !alike(got, want) {
			t.Errorf("after two steps, the state is %+v, want %+v", got, want)
		}
	})
}

// The rate is the rate of the last steps, not the mean over all steps.
func TestRateOfLastSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewLive(10000, train.Config{}, train.RunOptions{})
		for i := range 1100 {
			time.Sleep(time.Duration(10+1000*(i/1000)) * time.Millisecond)
			r.Step(0, i, 1)
		}
		if got := r.state().Rate; got < 0.98 || got > 1.1 {
			t.Errorf("got %.3f steps per second, want about 1", got)
		}
	})
}

// A curve has a limited number of points. Each point has the mean loss of its steps.
func TestCurveOfAMillionSteps(t *testing.T) {
	r := NewLive(1000, train.Config{}, train.RunOptions{})
	const steps = 1_000_000
	for i := range steps {
		r.Step(i/1000, i%1000, float64(i))
	}
	points := r.curve.whole()
	if n := len(points); n < maxPoints/2-1 || n > maxPoints || cap(r.curve.points) > 2*maxPoints {
		t.Fatalf("the curve has %d points and a capacity of %d, want from %d to %d points", n, cap(r.curve.points), maxPoints/2-1, maxPoints)
	}
	from := 0
	for _, p := range points {
		if want := float64(from+p.x-1) / 2; int(p.n) != p.x-from || math.Abs(p.mean()-want) > 1e-6*want {
			t.Fatalf("the point for steps %d to %d counts %v steps and has a mean of %v, want a mean of %v", from, p.x, p.n, p.mean(), want)
		}
		from = p.x
	}
	if from < steps*99/100 {
		t.Errorf("the curve ends at step %d of %d, want at least 99 %% of the steps", from, steps)
	}
	losses := r.losses(5)
	for i, loss := range losses {
		if want := float64(2*i+1) / 10 * steps; math.Abs(loss-want) > 0.01*steps {
			t.Errorf("part %d of 5 has a mean loss of %.0f, want about %.0f", i, loss, want)
		}
	}
	if n := len(NewLive(1, train.Config{}, train.RunOptions{}).losses(5)); n != 0 {
		t.Errorf("without steps there are %d losses, want 0", n)
	}
}

// No number of steps, no limit and no order of calls makes a Live panic.
func TestLiveEdges(t *testing.T) {
	edges := []int{0, 1, -1, math.MaxInt, math.MinInt}
	for i := range len(edges) * len(edges) * len(edges) * len(edges) {
		draw := func() int {
			x := edges[i%len(edges)]
			i /= len(edges)
			return x
		}
		steps, config, call := draw(), train.Config{CheckEvery: draw(), MaxEpochs: draw()}, train.RunOptions{MaxSteps: draw()}
		l := NewLive(steps, config, call)
		l.Check(nil, false)
		for _, x := range edges {
			l.Step(x, x, math.Inf(x))
			l.Check([]train.Check{{Epoch: x, Step: x}}, false)
			if got := l.Line(80, true); !strings.HasPrefix(got, "Epoch ") {
				t.Fatalf("with %d steps per epoch, %+v and %+v, the line is %q, want one that begins with the epoch", steps, config, call, got)
			}
		}
	}
}

// End may be called again, and without a reason: the first reason stays, and the run has ended.
func TestLiveEnd(t *testing.T) {
	for first, want := range map[string]string{"a limit": "a limit", "": "no reason was given"} {
		l := NewLive(1, train.Config{}, train.RunOptions{})
		l.End(first)
		l.End("another")
		if got := l.state().Ended; got != want {
			t.Errorf("after End(%q) and End again, the reason is %q, want %q", first, got, want)
		}
		l.events(httptest.NewRecorder(), httptest.NewRequest("GET", "/events", nil)) // returns, because the run has ended
	}
}
