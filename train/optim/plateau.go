package optim

import (
	"cmp"
	"fmt"
	"math"

	"github.com/heed-go/heed/internal/setting"
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
	Factor    float64 // each reduction multiplies the rate by Factor; below 1; 0 means 0.1
	Patience  int     // number of consecutive observations that may bring no improvement; one more reduces the rate, as in PyTorch
	Threshold float64 // smallest improvement that counts, as a share of the best metric's magnitude; 0 means 1e-4; if below 0, every improvement counts
	Higher    bool    // higher is better, for example for an accuracy
	Cooldown  int     // number of observations after a reduction that don't count as bad
	Floor     float64 // smallest factor that Schedule returns; at most 1

	Best       float64 // best metric so far
	Improved   bool    // Best is set
	Bad        int     // number of observations since the last improvement, reduction or cooldown
	Cooling    int     // number of observations left in the cooldown
	Reductions int
}

// mostCount is the upper limit of each setting that counts steps or observations.
const mostCount = 1 << 30

// check returns an error if a number is out of range. The error uses the setting's name in JSON.
func (p *Plateau) check() error {
	if err := cmp.Or(
		setting.In("factor", p.Factor, p.Factor >= 0 && p.Factor < 1, "at least 0 and below 1"),
		setting.In("threshold", p.Threshold, p.Threshold >= -largest && p.Threshold <= largest, "from -1e30 to 1e30"),
		setting.In("floor", p.Floor, p.Floor >= 0 && p.Floor <= 1, "from 0 to 1"),
		setting.Between("cooldown", p.Cooldown, 0, mostCount),
	); err != nil {
		return err
	}
	if p.Patience < 0 || p.Bad < 0 || p.Cooling < 0 || p.Reductions < 0 || math.IsNaN(p.Best) || math.IsInf(p.Best, 0) {
		return fmt.Errorf("a Plateau's counts must be at least 0 and its Best finite, got %+v", *p)
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

// Schedule returns the current factor of the learning rate; it ignores the step. If a field is out of range, it returns
// NaN, and the Solver's next step returns an error.
func (p *Plateau) Schedule(int) float64 {
	if p.check() != nil {
		return math.NaN()
	}
	return max(math.Pow(cmp.Or(p.Factor, 0.1), float64(p.Reductions)), p.Floor)
}
