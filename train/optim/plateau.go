package optim

import (
	"cmp"
	"fmt"
	"math"
)

// A Plateau lowers the learning rate when a metric, such as the validation loss, stops improving. Give its Schedule to
// the Solver, and give it the metric after each epoch:
//
//	plateau := &optim.Plateau{Patience: 2}
//	solver.Schedule = plateau.Schedule
//	…
//	plateau.Observe(loss)
//
// All its fields go to JSON and back, so a saved Plateau can resume.
type Plateau struct {
	Factor    float64 // a reduction multiplies the rate by it; below 1; 0 means 0.1
	Patience  int     // observations in a row without improvement to tolerate; the next one reduces the rate, as in PyTorch
	Threshold float64 // smallest improvement that counts, as a share of the best metric's magnitude; 0 means 1e-4, below 0 means any
	Higher    bool    // higher is better, for example for an accuracy
	Cooldown  int     // observations after a reduction that don't count as bad
	Floor     float64 // smallest factor of all reductions together; at most 1

	Best       float64 // best metric so far
	Improved   bool    // Best is set
	Bad        int     // observations since the best one or the last reduction, without the cooldown's
	Cooling    int     // observations left in the cooldown
	Reductions int
}

// Check returns an error if a number is out of range. Fit calls it before the first step. Without Fit, Schedule returns
// NaN for such numbers, and the Solver's first step returns an error.
func (p *Plateau) Check() error {
	switch {
	case !(p.Factor >= 0 && p.Factor < 1):
		return fmt.Errorf("optim: a Plateau's Factor must be at least 0 and below 1 (0 means 0.1), got %v", p.Factor)
	case !(p.Floor >= 0 && p.Floor <= 1):
		return fmt.Errorf("optim: a Plateau's Floor must be from 0 to 1, got %v", p.Floor)
	case p.Patience < 0 || p.Cooldown < 0:
		return fmt.Errorf("optim: a Plateau's Patience and Cooldown must be at least 0, got %d and %d", p.Patience, p.Cooldown)
	case math.IsNaN(p.Threshold) || math.IsInf(p.Threshold, 0):
		return fmt.Errorf("optim: a Plateau's Threshold must be finite, got %v", p.Threshold)
	case p.Bad < 0 || p.Cooling < 0 || p.Reductions < 0 || math.IsNaN(p.Best) || math.IsInf(p.Best, 0):
		return fmt.Errorf("optim: a Plateau's Best must be finite and its counts at least 0, got Best %v, Bad %d, Cooling %d and Reductions %d", p.Best, p.Bad, p.Cooling, p.Reductions)
	}
	return nil
}

// Observe takes the next value of the metric. NaN and infinities count as no improvement.
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

// Schedule returns the current factor of the learning rate; it ignores the step. It returns NaN if Check returns an
// error.
func (p *Plateau) Schedule(int) float64 {
	if p.Check() != nil {
		return math.NaN()
	}
	return max(math.Pow(cmp.Or(p.Factor, 0.1), float64(p.Reductions)), p.Floor)
}
