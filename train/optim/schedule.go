package optim

import (
	"cmp"
	"math"

	"github.com/heed-go/heed/internal/choices"
	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/internal/text"
)

// A Schedule returns the factor of the learning rate for a step, counted from 0. This package's schedules treat
// negative steps as step 0. If an argument is out of range, such as a floor above 1, the Schedule returns NaN for every
// step, and the Solver's first step returns an error.
type Schedule func(step int) float64

// checked returns a Schedule like s that treats negative steps as step 0. If a factor isn't in [0, limit], the Schedule
// returns NaN.
func checked(s Schedule, limit float64, factors ...float64) Schedule {
	for _, x := range factors {
		if !(x >= 0 && x <= limit) {
			return constant(math.NaN())
		}
	}
	return func(step int) float64 { return s(max(step, 0)) }
}

// constant returns a Schedule that is factor at every step.
func constant(factor float64) Schedule { return func(int) float64 { return factor } }

// WarmUp(n) rises linearly from 1/n at step 0 to 1 at step n − 1, and stays there.
func WarmUp(steps int) Schedule {
	return checked(func(step int) float64 {
		if step >= steps {
			return 1
		}
		return float64(step+1) / float64(steps)
	}, 1)
}

// Linear(n, start, end) changes linearly from start at step 0 to end at step n, and stays there. The arguments start
// and end must be from 0 to 1e30.
func Linear(steps int, start, end float64) Schedule {
	return checked(func(step int) float64 {
		if step >= steps {
			return end
		}
		return start + (end-start)*float64(step)/float64(steps)
	}, largest, start, end)
}

// Cosine(n, floor) falls from 1 at step 0 to floor at step n along half a cosine, and stays there (Loshchilov and
// Hutter, 2016). The argument floor must be from 0 to 1.
func Cosine(steps int, floor float64) Schedule {
	return checked(func(step int) float64 {
		if step >= steps {
			return floor
		}
		return floor + (1-floor)*(1+math.Cos(math.Pi*(float64(step)/float64(steps))))/2
	}, 1, floor)
}

// CosineRestarts(n, growth, floor) falls like Cosine and jumps back to 1, again and again (Loshchilov and Hutter,
// 2016). The first fall takes n steps, the second n·growth, the third n·growth². If n or growth is below 1, it counts
// as 1.
func CosineRestarts(steps, growth int, floor float64) Schedule {
	return checked(func(step int) float64 {
		length := max(steps, 1)
		if growth > 1 {
			for step >= length {
				step -= length
				if length > math.MaxInt/growth {
					length = math.MaxInt // no run is that long
				} else {
					length *= growth
				}
			}
		}
		return Cosine(length, floor)(step % length)
	}, 1, floor)
}

// Staircase(n, factor) starts at 1. At the steps n, 2·n, 3·n and so on, it is multiplied by factor, which must be from
// 0 to 1. If n is below 1, it counts as 1.
func Staircase(every int, factor float64) Schedule {
	return checked(func(step int) float64 { return math.Pow(factor, float64(step/max(every, 1))) }, 1, factor)
}

// InverseSquareRoot(n) rises linearly from 1/n at step 0 to 1 at step n − 1, then falls in proportion to 1/√(step + 1)
// (Vaswani et al., 2017, §5.3). If n is below 1, it counts as 1.
func InverseSquareRoot(steps int) Schedule {
	return checked(func(step int) float64 {
		count, peak := float64(step)+1, float64(max(steps, 1))
		return min(count/peak, math.Sqrt(peak/count))
	}, 1)
}

// OneCycle(n, peak, start, end) rises from start at step 0 to 1 at step peak, along half a cosine. Then it falls along
// another half to end at step n − 1, and stays there (Smith and Topin, 2017). The arguments start and end must be from
// 0 to 1, and n must be at least peak + 2, so that the peak comes before the end. A negative peak counts as 0.
// PyTorch's defaults are a start of 1/25, an end of 4e-6 and a peak at 0.3 of the steps. Unlike PyTorch, OneCycle
// doesn't change the momentum.
func OneCycle(steps, peak int, start, end float64) Schedule {
	peak = max(peak, 0)
	if steps < 2 || steps-2 < peak {
		return constant(math.NaN())
	}
	up, down := Cosine(peak, 0), Cosine(steps-1-peak, end)
	return checked(func(step int) float64 {
		if step < peak {
			return 1 - (1-start)*up(step)
		}
		return down(step - peak)
	}, 1, start, end)
}

// Then returns a schedule: s.Then(n, next) follows s before step n. From step n on, it follows next, which counts from
// 0 again. If next(0) is out of range, the schedule returns next(0) from the beginning, so that the Solver's first step
// fails.
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

// Every returns a slower schedule: s.Every(n) counts n steps, such as an epoch, as one step of s. If n is below 1, it
// counts as 1.
func (s Schedule) Every(steps int) Schedule {
	return checked(func(step int) float64 { return s(step / max(steps, 1)) }, 1)
}

// A ScheduleConfig describes a Schedule: the rate rises over the first WarmUp steps and then changes according to Kind.
// The zero value leaves the rate constant.
type ScheduleConfig struct {
	Kind   string  `json:"kind,omitzero"` // cosine, constant, linear, restarts, staircase, inverse-square-root or one-cycle; empty means cosine
	WarmUp int     `json:"warm_up"`       // steps until the rate reaches its peak
	Decay  int     `json:"decay"`         // step at which the rate reaches the Floor, or the length of a stair; with 0, a cosine stays at its peak
	Floor  float64 `json:"floor"`         // factor of the peak rate after Decay, or from one stair to the next; from 0 to 1
}

// schedules lists the kinds of schedules, the default first.
var schedules = choices.Table[scheduling]{
	{Name: "cosine", About: "falls along half a cosine to the floor", Value: scheduling{schedule: func(s ScheduleConfig) Schedule {
		if s.Decay == 0 {
			return WarmUp(s.WarmUp)
		}
		return WarmUp(s.WarmUp).Then(s.WarmUp, Cosine(s.Decay-s.WarmUp, s.Floor))
	}}},
	{Name: "constant", About: "stays at the peak", Value: scheduling{schedule: func(s ScheduleConfig) Schedule {
		return WarmUp(s.WarmUp)
	}}},
	{Name: "linear", About: "falls in a straight line to the floor", Value: scheduling{least: func(int) int { return 1 }, schedule: func(s ScheduleConfig) Schedule {
		return WarmUp(s.WarmUp).Then(s.WarmUp, Linear(s.Decay-s.WarmUp, 1, s.Floor))
	}}},
	{Name: "restarts", About: "falls like cosine, then starts again from the peak, each time twice as long", Value: scheduling{least: func(warmUp int) int { return warmUp + 1 }, schedule: func(s ScheduleConfig) Schedule {
		return WarmUp(s.WarmUp).Then(s.WarmUp, CosineRestarts(s.Decay-s.WarmUp, 2, s.Floor))
	}}},
	{Name: "staircase", About: "is multiplied by the floor at each multiple of decay", Value: scheduling{least: func(int) int { return 1 }, schedule: func(s ScheduleConfig) Schedule {
		return WarmUp(s.WarmUp).Times(Staircase(s.Decay, s.Floor))
	}}},
	{Name: "inverse-square-root", About: "falls like 1/√step", Value: scheduling{schedule: func(s ScheduleConfig) Schedule {
		return InverseSquareRoot(s.WarmUp)
	}}},
	{Name: "one-cycle", About: "rises from 1/25 and falls to the floor, both along half a cosine", Value: scheduling{least: func(warmUp int) int { return warmUp + 2 }, schedule: func(s ScheduleConfig) Schedule {
		return OneCycle(s.Decay, s.WarmUp, 1.0/25, s.Floor)
	}}},
}

// A scheduling makes a Schedule of one kind.
type scheduling struct {
	schedule func(s ScheduleConfig) Schedule
	least    func(warmUp int) int // smallest valid Decay; nil means 0
}

var scheduleChoice = choices.Choice{
	All:   schedules.All(),
	Parse: func(text string) (any, error) { return text, nil }, // check returns an error for an unknown name
	Text:  func(v any) string { return ScheduleConfig{Kind: v.(string)}.kind() },
}

// kind returns the Kind, or the default if it is empty.
func (s ScheduleConfig) kind() string { return cmp.Or(s.Kind, schedules[0].Name) }

// check returns an error if Kind is unknown, or if Decay or WarmUp is invalid for this Kind.
func (s ScheduleConfig) check() error {
	made, ok := schedules.Get(s.kind())
	switch {
	case !ok:
		return setting.Errorf("%s must be one of %s, got %.100q%s", setting.Path("kind"), schedules, s.Kind, text.DidYouMean(s.Kind, schedules.Names()))
	case made.least != nil && s.Decay < made.least(s.WarmUp):
		return setting.Errorf("%s must be at least %d for %s %s with %s %d, got %d",
			setting.Path("decay"), made.least(s.WarmUp), setting.Path("kind"), s.Kind, setting.Path("warm_up"), s.WarmUp, s.Decay)
	}
	return nil
}

// schedule returns the Schedule.
func (s ScheduleConfig) schedule() Schedule {
	made, _ := schedules.Get(s.kind()) // check has found the kind
	return made.schedule(s)
}
