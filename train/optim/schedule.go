package optim

import (
	"cmp"
	"math"

	"github.com/heed-go/heed/internal/kinds"
	"github.com/heed-go/heed/internal/setting"
)

// A Schedule returns what to multiply the learning rate of a step by. Steps are counted from 0; the functions of this
// package take those below 0 for step 0. Given a number that can't be, as a floor above 1, they return a Schedule that
// is NaN throughout: the Solver's first step is then an error.
type Schedule func(step int) float64

// checked returns s with steps below 0 as step 0, or a Schedule of NaN if a factor isn't from 0 to most.
func checked(s Schedule, most float64, factors ...float64) Schedule {
	for _, x := range factors {
		if !(x >= 0 && x <= most) {
			return constant(math.NaN())
		}
	}
	return func(step int) float64 { return s(max(step, 0)) }
}

// constant is factor throughout.
func constant(factor float64) Schedule { return func(int) float64 { return factor } }

// WarmUp rises linearly from 1/steps to 1 over the first steps, and stays there.
func WarmUp(steps int) Schedule {
	return checked(func(step int) float64 {
		if step >= steps {
			return 1
		}
		return float64(step+1) / float64(steps)
	}, 1)
}

// Linear goes straight from one factor, from 0 to 1e30, to another, which it reaches after steps and keeps.
func Linear(steps int, from, to float64) Schedule {
	return checked(func(step int) float64 {
		if step >= steps {
			return to
		}
		return from + (to-from)*float64(step)/float64(steps)
	}, largest, from, to)
}

// Cosine falls from 1 along half a cosine to floor, from 0 to 1, which it reaches after steps and keeps (Loshchilov and
// Hutter, 2016).
func Cosine(steps int, floor float64) Schedule {
	return checked(func(step int) float64 {
		if step >= steps {
			return floor
		}
		return floor + (1-floor)*(1+math.Cos(math.Pi*(float64(step)/float64(steps))))/2
	}, 1, floor)
}

// WarmUpCosine rises as WarmUp does, then falls as Cosine does, to floor at total steps.
func WarmUpCosine(steps, total int, floor float64) Schedule {
	steps = max(steps, 0)
	return WarmUp(steps).Then(steps, Cosine(max(total, 0)-steps, floor))
}

// CosineRestarts falls as Cosine does and jumps back to 1, again and again (Loshchilov and Hutter, 2016). The first
// fall takes steps, each further one growth times the one before. Either below 1 is 1.
func CosineRestarts(steps, growth int, floor float64) Schedule {
	return checked(func(step int) float64 {
		length := max(steps, 1)
		if growth > 1 {
			for step >= length {
				step -= length
				if length > math.MaxInt/growth {
					length = math.MaxInt // a fall that no run sees the end of
				} else {
					length *= growth
				}
			}
		}
		return Cosine(length, floor)(step % length)
	}, 1, floor)
}

// Staircase is multiplied by factor, from 0 to 1, after every so many steps. Fewer than 1 are 1.
func Staircase(every int, factor float64) Schedule {
	return checked(func(step int) float64 { return math.Pow(factor, float64(step/max(every, 1))) }, 1, factor)
}

// InverseSquareRoot rises linearly to 1 over the first steps, then falls as 1/√step (Vaswani et al., 2017, §5.3). Fewer
// than 1 are 1.
func InverseSquareRoot(steps int) Schedule {
	return checked(func(step int) float64 {
		at, peak := float64(step)+1, float64(max(steps, 1))
		return min(at/peak, math.Sqrt(peak/at))
	}, 1)
}

// OneCycle rises along half a cosine from the factor start to 1, at the step peak, and falls along another to end,
// which the last of all steps has, and keeps it (Smith and Topin, 2017). Both factors are from 0 to 1. PyTorch's
// defaults are a start of 1/25, an end of 4e-6 and a peak at 0.3 of the steps. The rate alone goes round: momentum
// stays.
func OneCycle(steps, peak int, start, end float64) Schedule {
	steps, peak = max(steps, 0), max(peak, 0)
	up, down := Cosine(peak, 0), Cosine(steps-1-peak, end)
	return checked(func(step int) float64 {
		if step < peak {
			return 1 - (1-start)*up(step)
		}
		return down(step - peak)
	}, 1, start, end)
}

// Then returns the schedule that is s for so many steps and afterwards next, which counts its steps from there. If next
// begins with a number that can't be, so does the schedule.
func (s Schedule) Then(steps int, next Schedule) Schedule {
	steps = max(steps, 0)
	return checked(func(step int) float64 {
		if step >= steps {
			return next(step - steps)
		}
		if first := next(0); !inRange(first) {
			return first
		}
		return s(step)
	}, 1)
}

// Times returns the product of two schedules.
func (s Schedule) Times(other Schedule) Schedule {
	return checked(func(step int) float64 { return s(step) * other(step) }, 1)
}

// Every returns the schedule in units of so many steps, as an epoch has: it stays the same within each. Fewer than 1
// are 1.
func (s Schedule) Every(steps int) Schedule {
	return checked(func(step int) float64 { return s(step / max(steps, 1)) }, 1)
}

// Scheduling describes a Schedule: a rate that rises over the first WarmUp steps and then changes as the Kind says. Its
// zero value leaves the rate as it is.
type Scheduling struct {
	Kind   string  `json:"kind,omitzero"` // cosine, constant, linear, restarts, staircase, inverse-square-root or one-cycle; cosine if empty
	WarmUp int     `json:"warm_up"`       // steps until the rate is at its peak
	Decay  int     `json:"decay"`         // step at which it is at the Floor, or the length of a stair; 0 keeps a cosine at its peak
	Floor  float64 `json:"floor"`         // multiple of the rate after the Decay, or of one stair over the one before; from 0 to 1
}

// schedules are the schedules that have a name, the default first.
var schedules = kinds.Table[scheduling]{
	{Name: "cosine", About: "falls along half a cosine to the floor", Value: scheduling{schedule: func(s Scheduling) Schedule {
		if s.Decay == 0 {
			return WarmUp(s.WarmUp)
		}
		return WarmUpCosine(s.WarmUp, s.Decay, s.Floor)
	}}},
	{Name: "constant", About: "stays at the peak", Value: scheduling{schedule: func(s Scheduling) Schedule {
		return WarmUp(s.WarmUp)
	}}},
	{Name: "linear", About: "falls in a straight line to the floor", Value: scheduling{decays: true, schedule: func(s Scheduling) Schedule {
		return WarmUp(s.WarmUp).Then(s.WarmUp, Linear(s.Decay-s.WarmUp, 1, s.Floor))
	}}},
	{Name: "restarts", About: "falls like cosine, then starts again from the peak, each time twice as long", Value: scheduling{decays: true, falls: true, schedule: func(s Scheduling) Schedule {
		return WarmUp(s.WarmUp).Then(s.WarmUp, CosineRestarts(s.Decay-s.WarmUp, 2, s.Floor))
	}}},
	{Name: "staircase", About: "is multiplied by the floor after every decay steps", Value: scheduling{decays: true, schedule: func(s Scheduling) Schedule {
		return WarmUp(s.WarmUp).Times(Staircase(s.Decay, s.Floor))
	}}},
	{Name: "inverse-square-root", About: "falls like 1/√step", Value: scheduling{schedule: func(s Scheduling) Schedule {
		return InverseSquareRoot(s.WarmUp)
	}}},
	{Name: "one-cycle", About: "rises from 1/25 and falls to the floor, both along half a cosine", Value: scheduling{decays: true, falls: true, schedule: func(s Scheduling) Schedule {
		return OneCycle(s.Decay, s.WarmUp, 1.0/25, s.Floor)
	}}},
}

// A scheduling is what the name of a schedule stands for.
type scheduling struct {
	schedule func(s Scheduling) Schedule
	decays   bool // the Decay must be above 0
	falls    bool // the Decay must be above the WarmUp
}

func init() {
	kinds.Choices["schedule"] = kinds.Choice{
		All:   schedules.All(),
		Parse: func(text string) (any, error) { return text, nil }, // which check looks at
		Text:  func(v any) string { return Scheduling{Kind: v.(string)}.kind() },
	}
}

// kind returns the name of the schedule.
func (s Scheduling) kind() string { return cmp.Or(s.Kind, schedules[0].Name) }

// check checks the name, and what the schedule of that name needs.
func (s Scheduling) check() error {
	made, ok := schedules.Get(s.kind())
	switch {
	case !ok:
		return setting.Errorf("%s must be one of %s, got %.100q", setting.Path("kind"), schedules, s.Kind)
	case made.decays && s.Decay == 0:
		return setting.Errorf("%s must be above 0 for %s %s, got 0", setting.Path("decay"), setting.Path("kind"), s.Kind)
	case made.falls && s.Decay <= s.WarmUp:
		return setting.Errorf("%s must be above %s for %s %s, got %d and %d", setting.Path("decay"), setting.Path("warm_up"), setting.Path("kind"), s.Kind, s.Decay, s.WarmUp)
	}
	return nil
}

// schedule returns the Schedule.
func (s Scheduling) schedule() Schedule {
	made, _ := schedules.Get(s.kind()) // as check has found
	return made.schedule(s)
}
