package task

import (
	"cmp"
	"slices"
	"strings"

	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/optim"
)

// Solving says how parameters step. Its zero value is AdamW with the learning rate, the weight decay and the clipping
// that Training has, and a rate that rises and then falls along a cosine.
type Solving struct {
	Solver    string  `json:"solver,omitempty"`     // adamw, also where it is empty, adam, sgd, lion or muon
	Beta1     float64 `json:"beta1,omitempty"`      // of adamw, adam and lion: decay of the running mean of the gradient; 0 is 0.9
	Beta2     float64 `json:"beta2,omitempty"`      // of adamw and adam: decay of that of its square, and of lion's mean; 0 is 0.98, of lion 0.99
	Momentum  float64 `json:"momentum,omitempty"`   // of sgd
	Nesterov  bool    `json:"nesterov,omitempty"`   // of sgd
	MuonRate  float64 `json:"muon_rate,omitempty"`  // peak learning rate of the blocks' matrices, which muon steps; 0 is 0.02. AdamW steps the rest
	ClipValue float64 `json:"clip_value,omitempty"` // clip each number of the gradient to ±this value, after Clip has scaled it; 0 for any

	// Schedule is cosine, also where it is empty, constant, linear, restarts, staircase, inverse-square-root or
	// one-cycle. All rise over the first WarmUp steps. Cosine and linear then fall to the Floor, which they reach at
	// the step Decay; so does restarts, which begins again from the peak there and takes twice as long each time.
	// Staircase is multiplied by Floor after every Decay steps. One-cycle rises from 1/25 and reaches the Floor at the
	// step Decay.
	Schedule string `json:"schedule,omitempty"`

	Plateau       int     `json:"plateau,omitempty"`        // checks without improvement after which the rate is lowered; 0 for never
	PlateauFactor float64 `json:"plateau_factor,omitempty"` // what it is then multiplied by; 0 is 0.1

	Average float64 `json:"average,omitempty"` // decay of an average of the weights, which is validated and saved; 0 for none
}

var (
	solvers   = []string{"adamw", "adam", "sgd", "lion", "muon"}
	schedules = []string{"cosine", "constant", "linear", "restarts", "staircase", "inverse-square-root", "one-cycle"}
)

// checkSolving checks what doesn't fit together; the ranges of numbers are checked with those of the other settings.
func (t *Training) checkSolving() error {
	if t.Solver != "" && !slices.Contains(solvers, t.Solver) {
		return configErrorf("%s must be one of %s, got %q", setting("training.solver"), strings.Join(solvers, ", "), t.Solver)
	}
	if t.Schedule != "" && !slices.Contains(schedules, t.Schedule) {
		return configErrorf("%s must be one of %s, got %q", setting("training.schedule"), strings.Join(schedules, ", "), t.Schedule)
	}
	switch {
	case (t.Beta1 > 0 || t.Beta2 > 0) && t.Solver == "sgd":
		return configErrorf("%s sgd has no %s and %s, got %v and %v", setting("training.solver"), setting("training.beta1"), setting("training.beta2"), t.Beta1, t.Beta2)
	case t.Momentum > 0 && t.Solver != "sgd":
		return configErrorf("%s is for %s sgd alone, got %q", setting("training.momentum"), setting("training.solver"), cmp.Or(t.Solver, solvers[0]))
	case t.Nesterov && t.Momentum == 0:
		return configErrorf("%s needs a %s, as 0.9", setting("training.nesterov"), setting("training.momentum"))
	case t.MuonRate > 0 && t.Solver != "muon":
		return configErrorf("%s is for %s muon alone, got %q", setting("training.muon_rate"), setting("training.solver"), cmp.Or(t.Solver, solvers[0]))
	case t.PlateauFactor > 0 && t.Plateau == 0:
		return configErrorf("%s needs a %s, as 2", setting("training.plateau_factor"), setting("training.plateau"))
	case slices.Contains([]string{"linear", "restarts", "staircase", "one-cycle"}, t.Schedule) && t.Decay == 0:
		return configErrorf("%s must be above 0 for %s %s, got 0", setting("training.decay"), setting("training.schedule"), t.Schedule)
	case (t.Schedule == "restarts" || t.Schedule == "one-cycle") && t.Decay <= t.WarmUp:
		return configErrorf("%s must be above %s for %s %s, got %d and %d", setting("training.decay"), setting("training.warm_up"), setting("training.schedule"), t.Schedule, t.Decay, t.WarmUp)
	}
	return nil
}

// schedule returns the learning rate's, but for a plateau.
func (t *Training) schedule() optim.Schedule {
	up := optim.WarmUp(t.WarmUp)
	switch t.Schedule {
	case "linear":
		return up.Then(t.WarmUp, optim.Linear(t.Decay-t.WarmUp, 1, t.Floor))
	case "restarts":
		return up.Then(t.WarmUp, optim.CosineRestarts(t.Decay-t.WarmUp, 2, t.Floor))
	case "staircase":
		return up.Times(optim.Staircase(t.Decay, t.Floor))
	case "inverse-square-root":
		return optim.InverseSquareRoot(t.WarmUp)
	case "one-cycle":
		return optim.OneCycle(t.Decay, t.WarmUp, 1.0/25, t.Floor)
	}
	if t.Decay == 0 || t.Schedule == "constant" {
		return up
	}
	return optim.WarmUpCosine(t.WarmUp, t.Decay, t.Floor)
}

// solve gives a train.Config what steps the parameters.
func (t *Training) solve(c *train.Config) {
	s := &optim.Solver{
		Rule: optim.AdamW{Beta1: t.Beta1, Beta2: cmp.Or(t.Beta2, 0.98)}, LearningRate: t.Rate, WeightDecay: t.WeightDecay,
		ClipNorm: t.Clip, ClipValue: t.ClipValue, Schedule: t.schedule(),
	}
	switch t.Solver {
	case "adam":
		s.Rule = optim.Adam{Beta1: t.Beta1, Beta2: cmp.Or(t.Beta2, 0.98)}
	case "sgd":
		s.Rule = optim.SGD{Momentum: t.Momentum, Nesterov: t.Nesterov}
	case "lion":
		s.Rule = optim.Lion{Beta1: t.Beta1, Beta2: t.Beta2}
	case "muon":
		s.Groups = []optim.Group{{
			Match: func(name string, rank int) bool { return rank == 2 && strings.Contains(name, "blocks.") },
			Rule:  optim.Muon{OutIn: true}, LearningRate: cmp.Or(t.MuonRate, 0.02), WeightDecay: t.WeightDecay,
		}}
	}
	if t.Plateau > 0 {
		c.Plateau = &optim.Plateau{Patience: t.Plateau - 1, Factor: t.PlateauFactor, Higher: t.Mode == "max"}
		s.Schedule = s.Schedule.Times(c.Plateau.Schedule)
	}
	if t.Average > 0 {
		c.Average = &optim.Average{Decay: t.Average}
	}
	c.Solver = s
}
