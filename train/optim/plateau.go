package optim

import (
	"cmp"
	"fmt"
	"math"
)

// A Plateau lowers the learning rate when a metric, as the validation loss, stops improving. Give its Schedule to the
// Solver and it the metric, after each epoch:
//
//	plateau := &optim.Plateau{Patience: 2}
//	solver.Schedule = plateau.Schedule
//	…
//	plateau.Observe(loss)
//
// All of its fields go to JSON and back: with them it goes on as if it had never stopped.
type Plateau struct {
	Factor    float64 // what a reduction multiplies the rate by, below 1: 0 is 0.1
	Patience  int     // observations in a row without improvement that pass, as in PyTorch: the next one reduces
	Threshold float64 // the share of the best's magnitude by which a better one has to be better: 0 is 1e-4; below 0, none
	Higher    bool    // higher is better, as of accuracies
	Cooldown  int     // observations after a reduction that aren't counted
	Floor     float64 // the least that the rate is multiplied by, at most 1

	Best       float64 // metric so far
	Improved   bool    // there is a best one
	Bad        int     // observations since then, not counting those of a cooldown
	Cooling    int     // observations until the cooldown is over
	Reductions int
}

// Check returns an error if a number can't be. Fit calls it before the first step; a Schedule of such numbers is NaN,
// which the Solver's first step says.
func (p *Plateau) Check() error {
	switch {
	case !(p.Factor >= 0 && p.Factor < 1):
		return fmt.Errorf("optim: a Plateau's Factor must be above 0 and below 1, or 0 for 0.1, got %v", p.Factor)
	case !(p.Floor >= 0 && p.Floor <= 1):
		return fmt.Errorf("optim: a Plateau's Floor must be from 0 to 1, got %v", p.Floor)
	case p.Patience < 0 || p.Cooldown < 0:
		return fmt.Errorf("optim: a Plateau's Patience and Cooldown must be at least 0, got %d and %d", p.Patience, p.Cooldown)
	case math.IsNaN(p.Threshold) || math.IsInf(p.Threshold, 0):
		return fmt.Errorf("optim: a Plateau's Threshold must be finite, got %v", p.Threshold)
	case p.Bad < 0 || p.Cooling < 0 || p.Reductions < 0 || math.IsNaN(p.Best) || math.IsInf(p.Best, 0):
		return fmt.Errorf("optim: what a Plateau has observed must be finite and its counts at least 0, got a Best of %v, and %d, %d and %d", p.Best, p.Bad, p.Cooling, p.Reductions)
	}
	return nil
}

// Observe takes the next value of the metric. One that isn't finite is no improvement.
func (p *Plateau) Observe(metric float64) {
	if p.better(metric) {
		p.Best, p.Improved, p.Bad = metric, true, 0
	} else {
		p.Bad++
	}
	if p.Cooling > 0 {
		p.Cooling--
		p.Bad = 0
	}
	if p.Bad > p.Patience {
		p.Reductions++
		p.Bad, p.Cooling = 0, p.Cooldown
	}
}

func (p *Plateau) better(metric float64) bool {
	if math.IsNaN(metric) || math.IsInf(metric, 0) {
		return false
	}
	if !p.Improved {
		return true
	}
	margin := max(cmp.Or(p.Threshold, 1e-4), 0) * math.Abs(p.Best)
	if p.Higher {
		return metric > p.Best+margin
	}
	return metric < p.Best-margin
}

// Schedule returns what to multiply the learning rate by now, whatever the step: NaN if Check returns an error.
func (p *Plateau) Schedule(int) float64 {
	if p.Check() != nil {
		return math.NaN()
	}
	return max(math.Pow(cmp.Or(p.Factor, 0.1), float64(p.Reductions)), p.Floor)
}
