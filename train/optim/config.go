package optim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/heed-go/heed/internal/choices"
	"github.com/heed-go/heed/internal/setting"
)

// A Config describes a Solver and, optionally, a Plateau and an Average. It is plain data and can be saved as JSON. The
// zero value describes the Solver of NewAdamW(1e-3). In every other Config, LearningRate must be set.
type Config struct {
	// Solver is the Rule; nil means AdamW{}. With Muon, the matrices whose names contain "blocks." step by Muon and all
	// other parameters by AdamW. A rule of your own works, but can't go to JSON.
	Solver Rule `json:"solver,omitzero"`

	LearningRate float64        `json:"learning_rate"`       // peak rate, which the Schedule multiplies; above 0 and at most 10
	WeightDecay  float64        `json:"weight_decay"`        // for tensors of rank 2 and more, from 0 to 10; the Rule says how it applies
	ClipNorm     float64        `json:"clip_norm,omitzero"`  // largest joint norm of all gradients; 0: no limit
	ClipValue    float64        `json:"clip_value,omitzero"` // largest absolute value of a gradient element, after ClipNorm; 0: no limit
	Schedule     ScheduleConfig `json:"schedule"`
	Plateau      PlateauConfig  `json:"plateau,omitzero"`
	Average      float64        `json:"average,omitzero"` // Decay of the Average, below 1; 0: no Average
}

// A PlateauConfig describes a Plateau; the zero value means no Plateau. Threshold, Cooldown and Floor are the Plateau's
// fields.
type PlateauConfig struct {
	Checks    int     `json:"checks,omitzero"` // number of consecutive observations without improvement that lower the rate; 0: never lower it
	Factor    float64 `json:"factor,omitzero"` // each reduction multiplies the rate by Factor; below 1; 0 means 0.1
	Threshold float64 `json:"threshold,omitzero"`
	Cooldown  int     `json:"cooldown,omitzero"`
	Floor     float64 `json:"floor,omitzero"`
}

// Check returns an error if a setting is invalid. The error names the setting by its path in JSON, such as
// schedule.decay.
func (c Config) Check() error {
	c = c.orDefault()
	s, p := c.Schedule, c.Plateau
	if err := cmp.Or(
		setting.In("learning_rate", c.LearningRate, c.LearningRate > 0 && c.LearningRate <= 10, "above 0 and at most 10"),
		setting.In("weight_decay", c.WeightDecay, c.WeightDecay >= 0 && c.WeightDecay <= 10, "from 0 to 10"),
		setting.In("clip_norm", c.ClipNorm, inRange(c.ClipNorm), "from 0 to 1e30"),
		setting.In("clip_value", c.ClipValue, inRange(c.ClipValue), "from 0 to 1e30"),
		setting.In("schedule.floor", s.Floor, s.Floor >= 0 && s.Floor <= 1, "from 0 to 1"),
		setting.In("average", c.Average, c.Average >= 0 && c.Average < 1, "at least 0 and below 1"),
		setting.Between("schedule.warm_up", s.WarmUp, 0, mostCount),
		setting.Between("schedule.decay", s.Decay, 0, mostCount),
		setting.Between("plateau.checks", p.Checks, 0, mostCount),
	); err != nil {
		return err
	}
	if err := p.plateau().check(); err != nil {
		return setting.Within("plateau", err)
	}
	if p.Checks == 0 && p != (PlateauConfig{}) {
		return setting.Errorf("%s must be above 0 if the plateau has other settings, got 0", setting.Path("plateau.checks"))
	}
	if err := s.check(); err != nil {
		return setting.Within("schedule", err)
	}
	if err := c.checkSolver(); err != nil {
		return setting.Errorf("%s: %w", setting.Path("solver"), err)
	}
	return nil
}

// orDefault returns c or, if c is the zero value, the Config of NewAdamW(1e-3).
func (c Config) orDefault() Config {
	if c.Solver == nil && c == (Config{}) {
		c.LearningRate, c.WeightDecay = 1e-3, 0.01
	}
	return c
}

// plateau returns the Plateau that p describes.
func (p PlateauConfig) plateau() *Plateau {
	return &Plateau{Factor: p.Factor, Patience: max(p.Checks-1, 0), Threshold: p.Threshold, Cooldown: p.Cooldown, Floor: p.Floor}
}

// checkSolver checks the constants of all rules.
func (c Config) checkSolver() error {
	if m, ok := c.Solver.(Muon); ok && !(m.LearningRate >= 0 && m.LearningRate <= 10) {
		return fmt.Errorf("the learning_rate of muon must be from 0 to 10, got %v", m.LearningRate)
	}
	rule, groups := c.rules()
	err := rule.Check(2)
	for _, g := range groups {
		err = cmp.Or(err, g.Rule.Check(2))
	}
	return err
}

// rules returns the Solver's rule, and the groups of parameters with another rule.
func (c Config) rules() (Rule, []Group) {
	m, ok := c.Solver.(Muon)
	if !ok {
		return cmp.Or(c.Solver, Rule(AdamW{})), nil
	}
	blocks := Group{
		Match: func(name string, rank int) bool { return rank == 2 && strings.Contains(name, "blocks.") },
		Rule:  Muon{Momentum: m.Momentum, Iterations: m.Iterations, OutIn: true}, LearningRate: cmp.Or(m.LearningRate, 0.02), WeightDecay: c.WeightDecay,
	}
	return AdamW{Beta1: m.Beta1, Beta2: m.Beta2}, []Group{blocks}
}

// New returns the Solver, Plateau and Average that c describes, or the error of Check. The Plateau and the Average are
// nil if c has none. The Solver's Schedule includes the Plateau's. If higher metrics are better, set the Plateau's
// Higher.
func (c Config) New() (*Solver, *Plateau, *Average, error) {
	if err := c.Check(); err != nil {
		return nil, nil, nil, fmt.Errorf("optim: %w", err)
	}
	c = c.orDefault()
	s := &Solver{LearningRate: c.LearningRate, WeightDecay: c.WeightDecay, ClipNorm: c.ClipNorm, ClipValue: c.ClipValue, Schedule: c.Schedule.schedule()}
	s.Rule, s.Groups = c.rules()
	var plateau *Plateau
	if c.Plateau.Checks > 0 {
		plateau = c.Plateau.plateau()
		s.Schedule = s.Schedule.Times(plateau.Schedule)
	}
	var average *Average
	if c.Average > 0 {
		average = &Average{Decay: c.Average}
	}
	return s, plateau, average, nil
}

// Choices returns the tables of this package that the flags of the command heed choose from, by the names of the flags.
func Choices() map[string]choices.Choice {
	return map[string]choices.Choice{"solver": rules.Choice(), "schedule": scheduleChoice}
}

// ruleJSON is a Rule that goes to JSON and back.
type ruleJSON struct{ Rule }

func (r ruleJSON) MarshalJSON() ([]byte, error) { return rules.Marshal(r.Rule) }

func (r *ruleJSON) UnmarshalJSON(data []byte) (err error) {
	r.Rule, err = rules.Unmarshal(data)
	return err
}

// MarshalJSON returns the configuration as JSON, in which the solver has a kind, such as "adamw". It returns an error
// if Solver isn't a rule of this package.
func (c Config) MarshalJSON() ([]byte, error) {
	type plain Config
	return json.Marshal(struct {
		Solver ruleJSON `json:"solver,omitzero"` // hides the Solver of plain
		plain
	}{ruleJSON{c.Solver}, plain(c)})
}

// UnmarshalJSON sets the configuration from JSON. It returns an error for an unknown field or kind.
func (c *Config) UnmarshalJSON(data []byte) error {
	type plain Config
	var fields struct {
		Solver ruleJSON `json:"solver"`
		plain
	}
	if err := choices.Decode(data, &fields); err != nil {
		return fmt.Errorf("an optimizer's configuration: %w", err)
	}
	*c = Config(fields.plain)
	c.Solver = fields.Solver.Rule
	return nil
}
