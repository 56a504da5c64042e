package optim_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/train/optim"
)

// valid returns a Config with every setting.
func valid() optim.Config {
	return optim.Config{
		Solver: optim.Lion{Beta1: 0.8}, LearningRate: 0.01, WeightDecay: 0.1, ClipNorm: 1, ClipValue: 0.5,
		Schedule: optim.ScheduleConfig{Kind: "linear", WarmUp: 3, Decay: 9, Floor: 0.1},
		Plateau:  optim.PlateauConfig{Checks: 2, Factor: 0.5, Threshold: 0.01, Cooldown: 1, Floor: 0.2}, Average: 0.9,
	}
}

func TestConfigJSON(t *testing.T) {
	for text, want := range map[string]optim.Config{
		`{"learning_rate":0,"weight_decay":0,"schedule":{"warm_up":0,"decay":0,"floor":0}}`: {},
		`{"solver":{"kind":"lion","beta1":0.8},"learning_rate":0.01,"weight_decay":0.1,"clip_norm":1,"clip_value":0.5,` +
			`"schedule":{"kind":"linear","warm_up":3,"decay":9,"floor":0.1},` +
			`"plateau":{"checks":2,"factor":0.5,"threshold":0.01,"cooldown":1,"floor":0.2},"average":0.9}`: valid(),
	} {
		got, err := json.Marshal(want)
		if err != nil || string(got) != text {
			t.Errorf("got %s, %v, want %s", got, err, text)
		}
		var back optim.Config
		if err := json.Unmarshal([]byte(text), &back); err != nil || !reflect.DeepEqual(back, want) {
			t.Errorf("%s: got %+v, %v, want %+v", text, back, err, want)
		}
	}
	for name, c := range configs(t) {
		data, err := json.Marshal(c)
		var back optim.Config
		if err == nil {
			err = json.Unmarshal(data, &back)
		}
		if err != nil || !reflect.DeepEqual(back, c) {
			t.Errorf("%s: %s becomes %+v, %v, want %+v", name, data, back, err, c)
		}
	}
	for text, want := range map[string]string{
		`{"rate":1}`:                                          `unknown key "rate"`,
		`{"learning_rate":1,"learning_rate":2}`:               `"learning_rate" is given twice`,
		`{"Learning_Rate":1}`:                                 `unknown key "Learning_Rate"`,
		`{"learning_rate":"1"}`:                               "learning_rate",
		`{"schedule":{"warmup":1}}`:                           `unknown key "warmup"`,
		`{"plateau":{"patience":1}}`:                          `unknown key "patience"`,
		`{"solver":{"kind":"newton"}}`:                        `there are no solvers of kind "newton": use adamw, adam, sgd`,
		`{"solver":{"momentum":1}}`:                           "solvers must have a kind, one of adamw",
		`{"solver":{"kind":"adamw","momentum":0.9}}`:          `solvers of kind adamw: unknown key "momentum"`,
		`{"solver":{"kind":"sgd","momentum":0,"momentum":1}}`: `"momentum" in "solver" is given twice`,
		`{"solver":"adamw"}`:                                  "solvers: ",
	} {
		c := optim.Config{Average: 0.5}
		if err := json.Unmarshal([]byte(text), &c); err == nil || !strings.Contains(err.Error(), want) || !reflect.DeepEqual(c, optim.Config{Average: 0.5}) {
			t.Errorf("%s: got %+v, %v, want %q in the error", text, c, err, want)
		}
	}
	for _, rule := range []optim.Rule{AdaGrad{}, frugal{}, &optim.AdamW{}} {
		must.Refuse(json.Marshal(optim.Config{Solver: rule}))(t, "can't go to JSON: only adamw, adam")
	}
}

func TestConfigCheck(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	must.Do(t, valid().Check())
	must.Do(t, (optim.Config{LearningRate: 0.1}).Check())
	for _, c := range []struct {
		change func(c *optim.Config)
		want   string
	}{
		{func(c *optim.Config) { c.LearningRate = 0 }, "learning_rate must be above 0 and at most 10, got 0"},
		{func(c *optim.Config) { c.LearningRate = 11 }, "learning_rate must be above 0 and at most 10, got 11"},
		{func(c *optim.Config) { c.LearningRate = nan }, "learning_rate must be above 0 and at most 10, got NaN"},
		{func(c *optim.Config) { c.WeightDecay = -1 }, "weight_decay must be from 0 to 10, got -1"},
		{func(c *optim.Config) { c.ClipNorm = inf }, "clip_norm must be from 0 to 1e30, got +Inf"},
		{func(c *optim.Config) { c.ClipValue = -1 }, "clip_value must be from 0 to 1e30, got -1"},
		{func(c *optim.Config) { c.Average = 1 }, "average must be at least 0 and below 1, got 1"},
		{func(c *optim.Config) { c.Schedule.Kind = "step" }, `schedule.kind must be one of ` + strings.Join(names("schedule"), ", ") + `, got "step"; did you mean staircase?`},
		{func(c *optim.Config) { c.Schedule.WarmUp = -1 }, "schedule.warm_up must be from 0 to 1073741824, got -1"},
		{func(c *optim.Config) { c.Schedule.Decay = math.MaxInt }, fmt.Sprint("schedule.decay must be from 0 to 1073741824, got ", math.MaxInt)},
		{func(c *optim.Config) { c.Schedule.Decay = 0 }, "schedule.decay must be at least 1 for schedule.kind linear with schedule.warm_up 3, got 0"},
		{func(c *optim.Config) { c.Schedule = optim.ScheduleConfig{Kind: "restarts", WarmUp: 3, Decay: 3} }, "schedule.decay must be at least 4 for schedule.kind restarts with schedule.warm_up 3, got 3"},
		{func(c *optim.Config) { c.Schedule = optim.ScheduleConfig{Kind: "one-cycle", WarmUp: 3, Decay: 4} }, "schedule.decay must be at least 5 for schedule.kind one-cycle with schedule.warm_up 3, got 4"},
		{func(c *optim.Config) { c.Schedule.Floor = 2 }, "schedule.floor must be from 0 to 1, got 2"},
		{func(c *optim.Config) { c.Plateau.Checks = -1 }, "plateau.checks must be from 0 to 1073741824, got -1"},
		{func(c *optim.Config) { c.Plateau.Checks = 0 }, "plateau.checks must be above 0 if the plateau has other settings, got 0"},
		{func(c *optim.Config) { c.Plateau.Factor = 1 }, "plateau.factor must be at least 0 and below 1, got 1"},
		{func(c *optim.Config) { c.Plateau.Threshold = nan }, "plateau.threshold must be from -1e30 to 1e30, got NaN"},
		{func(c *optim.Config) { c.Plateau.Cooldown = -1 }, "plateau.cooldown must be from 0 to 1073741824, got -1"},
		{func(c *optim.Config) { c.Plateau.Floor = 2 }, "plateau.floor must be from 0 to 1, got 2"},
		{func(c *optim.Config) { c.Solver = optim.SGD{Nesterov: true} }, "solver: option Nesterov needs a momentum above 0, for example 0.9"},
		{func(c *optim.Config) { c.Solver = optim.AdamW{Beta2: 1} }, "solver: the decays of Adam and AdamW must be at least 0 and below 1, got 1"},
		{func(c *optim.Config) { c.Solver = optim.Muon{Momentum: 1} }, "solver: the decays of Muon must be at least 0 and below 1, got 1"},
		{func(c *optim.Config) { c.Solver = optim.Muon{Beta1: -1} }, "solver: the decays of Adam and AdamW must be at least 0 and below 1, got -1"},
		{func(c *optim.Config) { c.Solver = optim.Muon{LearningRate: 11} }, "solver: the learning_rate of muon must be from 0 to 10, got 11"},
		{func(c *optim.Config) { c.Solver = AdaGrad{} }, "solver: the Eps of AdaGrad must be above 0, got 0"},
	} {
		config := valid()
		c.change(&config)
		err := config.Check()
		if err == nil || err.Error() != c.want {
			t.Errorf("got %v, want %s", err, c.want)
			continue
		}
		var e *setting.Error
		path := c.want[:strings.IndexAny(c.want, " :")]
		if !errors.As(err, &e) || e.Paths()[0] != path {
			t.Errorf("%v is of type %T, want a *setting.Error about %s", err, err, path)
		}
		if _, _, _, err := config.New(); err == nil || err.Error() != "optim: "+c.want {
			t.Errorf("New: got %v, want optim: %s", err, c.want)
		}
	}
}

// In every valid Config, the factors of the schedule are from 0 to 1, and one of them is 1, unless a stair ends before
// the warm-up does.
func TestSchedulesReachTheirPeak(t *testing.T) {
	for kind := range optim.Choices()["schedule"].All {
		valid := 0
		for i := range 8 * 8 * 3 {
			c := optim.Config{LearningRate: 1, Schedule: optim.ScheduleConfig{Kind: kind, WarmUp: i % 8, Decay: i / 8 % 8, Floor: float64(i/64) / 2}}
			s, _, _, err := c.New()
			if err != nil {
				continue
			}
			valid++
			peak := 0.0
			for _, step := range []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 99, min(1<<40, math.MaxInt), math.MaxInt} {
				x := s.Schedule(step)
				if !(x >= 0 && x <= 1) {
					t.Errorf("%+v: the factor of step %d is %v, want one from 0 to 1", c.Schedule, step, x)
				}
				peak = max(peak, x)
			}
			if peak != 1 && !(kind == "staircase" && c.Schedule.Decay < c.Schedule.WarmUp) {
				t.Errorf("%+v: the largest factor is %v, want 1", c.Schedule, peak)
			}
		}
		if valid < 8 {
			t.Errorf("%s: only %d of the configurations are valid", kind, valid)
		}
	}
}

// TestConfigNew compares the Solver of a Config with one made by hand, bit by bit.
func TestConfigNew(t *testing.T) {
	plain := func(rule optim.Rule, schedule optim.Schedule) *optim.Solver {
		return &optim.Solver{Rule: rule, LearningRate: 0.01, WeightDecay: 0.1, ClipNorm: 0.5, ClipValue: 0.05, Schedule: schedule}
	}
	muon := func(rate float64, rest, muon optim.Rule) *optim.Solver {
		s := plain(rest, optim.WarmUp(3).Then(3, optim.Cosine(6, 0.1)))
		s.Groups = []optim.Group{{
			Match: func(name string, rank int) bool { return rank == 2 && strings.Contains(name, "blocks.") },
			Rule:  muon, LearningRate: rate, WeightDecay: 0.1,
		}}
		return s
	}
	up, cosine := optim.WarmUp(3), optim.WarmUp(3).Then(3, optim.Cosine(6, 0.1))
	decay := optim.ScheduleConfig{WarmUp: 3, Decay: 9, Floor: 0.1}
	kind := func(kind string) optim.ScheduleConfig {
		s := decay
		s.Kind = kind
		return s
	}
	for name, c := range map[string]struct {
		rule     optim.Rule
		schedule optim.ScheduleConfig
		want     *optim.Solver
	}{
		"nothing":             {nil, optim.ScheduleConfig{}, plain(optim.AdamW{}, nil)},
		"warm-up alone":       {nil, optim.ScheduleConfig{WarmUp: 3}, plain(nil, up)},
		"adamw":               {optim.AdamW{Beta2: 0.98}, decay, plain(optim.AdamW{Beta2: 0.98}, cosine)},
		"adam":                {optim.Adam{}, kind("cosine"), plain(optim.Adam{}, cosine)},
		"sgd":                 {optim.SGD{Momentum: 0.9, Nesterov: true}, decay, plain(optim.SGD{Momentum: 0.9, Nesterov: true}, cosine)},
		"lion":                {optim.Lion{Beta1: 0.5}, decay, plain(optim.Lion{Beta1: 0.5}, cosine)},
		"muon":                {optim.Muon{}, decay, muon(0.02, optim.AdamW{}, optim.Muon{OutIn: true})},
		"muon's fields":       {optim.Muon{LearningRate: 0.05, Beta1: 0.8, Beta2: 0.95, Momentum: 0.9, Iterations: 3}, decay, muon(0.05, optim.AdamW{Beta1: 0.8, Beta2: 0.95}, optim.Muon{Momentum: 0.9, Iterations: 3, OutIn: true})},
		"own":                 {AdaGrad{1e-8}, decay, plain(AdaGrad{1e-8}, cosine)},
		"constant":            {nil, kind("constant"), plain(nil, up)},
		"linear":              {nil, kind("linear"), plain(nil, up.Then(3, optim.Linear(6, 1, 0.1)))},
		"restarts":            {nil, kind("restarts"), plain(nil, up.Then(3, optim.CosineRestarts(6, 2, 0.1)))},
		"staircase":           {nil, kind("staircase"), plain(nil, up.Times(optim.Staircase(9, 0.1)))},
		"inverse-square-root": {nil, kind("inverse-square-root"), plain(nil, optim.InverseSquareRoot(3))},
		"one-cycle":           {nil, kind("one-cycle"), plain(nil, optim.OneCycle(9, 3, 1.0/25, 0.1))},
	} {
		config := optim.Config{Solver: c.rule, LearningRate: 0.01, WeightDecay: 0.1, ClipNorm: 0.5, ClipValue: 0.05, Schedule: c.schedule}
		got, plateau, average, err := config.New()
		if err != nil || plateau != nil || average != nil {
			t.Fatalf("%s: error %v, plateau %v, average %v; want nil for all three", name, err, plateau, average)
		}
		params, others := layersOf(tensor.Float32), layersOf(tensor.Float32)
		for number := range 25 {
			step(t, got, params, number)
			step(t, c.want, others, number)
			same(t, fmt.Sprintf("%s after step %d", name, number), params, others)
			if got.Rate != c.want.Rate {
				t.Fatalf("%s: the rate of step %d is %v, want %v", name, number, got.Rate, c.want.Rate)
			}
		}
	}
	solver, plateau, average, err := valid().New()
	if want := (&optim.Plateau{Factor: 0.5, Patience: 1, Threshold: 0.01, Cooldown: 1, Floor: 0.2}); err != nil || !reflect.DeepEqual(plateau, want) {
		t.Errorf("the plateau is %+v, want %+v; error %v", plateau, want, err)
	}
	if average == nil || average.Decay != 0.9 {
		t.Errorf("the average is %+v, want a Decay of 0.9", average)
	}
	before := solver.Schedule(2)
	for _, loss := range []float64{1, 1, 1} {
		plateau.Observe(loss)
	}
	if after := solver.Schedule(2); before != 1 || after != 0.5 {
		t.Errorf("two observations without improvement change the factor from %v to %v, want from 1 to 0.5", before, after)
	}
}

// names returns the names of the choices of a flag.
func names(flag string) (names []string) {
	for name := range optim.Choices()[flag].All {
		names = append(names, name)
	}
	return names
}

// TestChoices checks the tables of solvers and schedules. The default comes first.
func TestChoices(t *testing.T) {
	for flag, first := range map[string]string{"solver": "adamw", "schedule": "cosine"} {
		choice := optim.Choices()[flag]
		if got := names(flag); got[0] != first || len(got) != len(slices.Compact(slices.Sorted(slices.Values(got)))) {
			t.Errorf("the names of a %s are %s, want different ones with %s first", flag, got, first)
		}
		for name, about := range choice.All {
			if v, err := choice.Parse(name); err != nil || about == "" || choice.Text(v) != name {
				t.Errorf("%s %s, about %q: Parse returns %v with the text %q, error %v", flag, name, about, v, choice.Text(v), err)
			}
		}
	}
}

// TestZeroConfig checks that the zero Config describes NewAdamW(1e-3), and that every other Config needs a
// LearningRate.
func TestZeroConfig(t *testing.T) {
	got, plateau, average, err := optim.Config{}.New()
	if err != nil || plateau != nil || average != nil || got.Schedule(7) != 1 {
		t.Fatalf("solver %+v, plateau %v, average %v, error %v; want a solver with a constant rate only", got, plateau, average, err)
	}
	if got.Schedule = nil; !reflect.DeepEqual(got, optim.NewAdamW(1e-3)) {
		t.Errorf("got %+v, want NewAdamW(1e-3)", got)
	}
	must.Fail(t, optim.Config{Average: 0.9}.Check(), "learning_rate must be above 0")
}
