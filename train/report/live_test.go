package report

import (
	"math"
	"testing"
	"time"

	"github.com/heed-go/heed/train"
)

// clock is a time that stands still until it is told to go on.
type clock struct{ at time.Time }

func (c *clock) now() time.Time         { return c.at }
func (c *clock) pass(d time.Duration)   { c.at = c.at.Add(d) }
func (c *clock) start(p Plan) *Live     { return newLive(p, c.now) }
func near(got, want time.Duration) bool { return (got - want).Abs() < time.Millisecond }

func TestNow(t *testing.T) {
	step, check := 100*time.Millisecond, 3*time.Second
	for _, c := range []struct {
		name   string
		plan   Plan
		epochs int // taken, each with a check
		steps  int // taken then
		want   Now
	}{
		{"nothing yet", Plan{Steps: 10, Epochs: 4}, 0, 0, Now{EpochLeft: -1, RunLeft: -1}},
		{"the first step", Plan{Steps: 10, Epochs: 4}, 0, 1, Now{Step: 1, Loss: 2, EpochLeft: -1, RunLeft: -1}},
		{"before a check", Plan{Steps: 10, Epochs: 4}, 0, 4, Now{Step: 4, Loss: 2, Rate: 10, EpochLeft: 6 * step, RunLeft: 36 * step}},
		{"with checks to come", Plan{Steps: 10, Epochs: 4}, 2, 4, Now{Epoch: 2, Step: 4, Loss: 2, Rate: 10, EpochLeft: 6 * step, RunLeft: 16*step + 2*check}},
		{"no end", Plan{Steps: 10}, 2, 4, Now{Epoch: 2, Step: 4, Loss: 2, Rate: 10, EpochLeft: 6 * step, RunLeft: -1}},
		{"steps to end it", Plan{Steps: 10, Epochs: 4, MaxSteps: 26}, 2, 4, Now{Epoch: 2, Step: 4, Loss: 2, Rate: 10, EpochLeft: 6 * step, RunLeft: 2 * step}},
		{"time to end it", Plan{Steps: 10, MaxTime: 9 * time.Second}, 2, 4, Now{Epoch: 2, Step: 4, Loss: 2, Rate: 10, EpochLeft: 6 * step, RunLeft: 9*time.Second - 24*step - 2*check}},
		{"checks within an epoch", Plan{Steps: 10, Epochs: 4, CheckEvery: 5}, 2, 4, Now{Epoch: 2, Step: 4, Loss: 2, Rate: 10, EpochLeft: 6 * step, RunLeft: 16*step + 4*check}},
		{"done", Plan{Steps: 10, Epochs: 2}, 2, 0, Now{Epoch: 1, Step: 10, Loss: 2, Rate: 10}},
	} {
		clock := &clock{time.Unix(1e9, 0)}
		r := clock.start(c.plan)
		for i := range c.epochs*c.plan.Steps + c.steps {
			clock.pass(step)
			r.Step(i/c.plan.Steps, i%c.plan.Steps, 2)
			if i+1 <= c.epochs*c.plan.Steps && (i+1)%c.plan.Steps == 0 {
				clock.pass(check)
				r.Checked(make([]train.Check, i/c.plan.Steps+1), 0)
			}
		}
		got := r.Now()
		if got.Epoch != c.want.Epoch || got.Step != c.want.Step || math.Abs(got.Loss-c.want.Loss) > 1e-9 || math.Abs(got.Rate-c.want.Rate) > 1e-6 ||
			!near(got.EpochLeft, c.want.EpochLeft) || !near(got.RunLeft, c.want.RunLeft) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// A run that goes on knows where it is, and says nothing of times that it hasn't measured.
func TestNowOfARunThatGoesOn(t *testing.T) {
	clock := &clock{time.Unix(1e9, 0)}
	r := clock.start(Plan{Steps: 10, Epochs: 4})
	clock.pass(time.Hour)
	r.Checked([]train.Check{{Step: 10}, {Step: 20}}, 1)
	if got, want := r.Now(), (Now{Epoch: 1, Step: 10, EpochLeft: -1, RunLeft: -1}); got != want {
		t.Errorf("at first %+v, want %+v", got, want)
	}
	clock.pass(time.Hour)
	r.Step(2, 0, 3)
	clock.pass(time.Second)
	r.Step(2, 1, 3)
	if got, want := r.Now(), (Now{Epoch: 2, Step: 2, Loss: 3, Rate: 1, EpochLeft: 8 * time.Second, RunLeft: 18 * time.Second}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// The rate is that of late.
func TestRateOfLate(t *testing.T) {
	clock := &clock{time.Unix(1e9, 0)}
	r := clock.start(Plan{Steps: 10000})
	for i := range 1100 {
		clock.pass(10 * time.Millisecond)
		if i >= 1000 {
			clock.pass(time.Second)
		}
		r.Step(0, i, 1)
	}
	if got := r.Now().Rate; got < 0.98 || got > 1.1 {
		t.Errorf("%.3f steps a second, want about 1", got)
	}
}

// However many steps there are, a curve has few points, which say what the steps did.
func TestCurveOfAMillionSteps(t *testing.T) {
	r := NewLive(Plan{Steps: 1000})
	const steps = 1_000_000
	for i := range steps {
		r.Step(i/1000, i%1000, float64(i))
	}
	points := r.curve.whole()
	if n := len(points); n < maxPoints/2-1 || n > maxPoints || cap(r.curve.points) > 2*maxPoints {
		t.Fatalf("%d points of a capacity of %d", n, cap(r.curve.points))
	}
	from := 0
	for _, p := range points {
		if want := float64(from+p.x-1) / 2; int(p.n) != p.x-from || math.Abs(p.mean()-want) > 1e-6*want {
			t.Fatalf("a point of steps %d to %d is of %v steps with a mean of %v, want %v", from, p.x, p.n, p.mean(), want)
		}
		from = p.x
	}
	if from < steps*99/100 {
		t.Errorf("the curve ends at step %d of %d", from, steps)
	}
	losses := r.Losses(5)
	for i, loss := range losses {
		if want := float64(2*i+1) / 10 * steps; math.Abs(loss-want) > 0.01*steps {
			t.Errorf("part %d of 5 has a mean of %.0f, want about %.0f", i, loss, want)
		}
	}
	if n := len(NewLive(Plan{Steps: 1}).Losses(5)); n != 0 {
		t.Errorf("%d losses of no steps", n)
	}
}
