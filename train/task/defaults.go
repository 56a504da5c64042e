package task

import (
	"cmp"
	"slices"
	"strings"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/toy"
	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/model"
	"github.com/heed-go/heed/train/optim"
)

// Names returns the names of all tasks that Named knows. The first is the default.
func Names() []string {
	names := toy.Names()
	for _, k := range kinds {
		names = append(names, string(k.about().name))
	}
	return names
}

// Named returns the Defaults of one of Heed's own tasks: a rule that toy.Named knows, or a task that has the name of a
// kind and needs a file. The argument maxLen is the greatest length of a source. For text, it is the number of
// characters or tokens that the model sees at once. If maxLen is 0, the task's own length is used; for rows of a file,
// New chooses it.
func Named(name string, maxLen int) (Config, error) {
	if maxLen < 0 || maxLen > model.Longest {
		return Config{}, setting.Errorf("%s must be from 0 to %d, got %d", setting.Path("task.max_len"), model.Longest, maxLen)
	}
	if k := kindOf(data.Kind(name)).about(); k.name != "" {
		return Defaults(data.Rule{Name: name, About: k.help, Kind: k.name, MaxLen: cmp.Or(maxLen, k.maxLen)}), nil
	}
	if !slices.Contains(toy.Names(), name) {
		return Config{}, setting.Errorf("%s must be one of %s, got %q%s", setting.Path("task"), strings.Join(Names(), ", "), name, text.DidYouMean(name, Names()))
	}
	rule, err := toy.Named(name, maxLen)
	if err != nil {
		return Config{}, setting.Errorf("%w (%s)", err, setting.Path("task.max_len"))
	}
	return Defaults(rule), nil
}

// Defaults returns good settings for a rule of this kind. If the rule has no Sample and its kind isn't text, the
// settings are for rows of a file.
func Defaults(rule data.Rule) Config {
	c := Config{
		Config: model.Config{
			Format: model.Format, Task: rule, Seed: 1,
			Data:  data.Settings{Validation: 1000},
			Model: layers.ModelConfig{Dim: 32, Layers: 2, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 4}}},
		},
		Training: Training{StepsPerEpoch: 100, Config: train.Config{
			BatchSize: 64, Stopping: train.StoppingConfig{Patience: 3},
			Optimizer: optim.Config{
				Solver: optim.AdamW{Beta2: 0.98}, LearningRate: 3e-3, WeightDecay: 0.01, ClipNorm: 1,
				Schedule: optim.ScheduleConfig{WarmUp: 100, Decay: 800, Floor: 0.1},
			},
		}},
	}
	k := kindOf(rule.Kind)
	k.defaults(&c)
	if tune := tuned[rule.Name]; tune != nil {
		tune(&c)
	}
	if rule.Sample == nil && k.about().format != nil {
		rowDefaults(k.about(), &c)
	}
	return c
}

// rowDefaults sets good values for rows of a file. It leaves sizes and durations to New.
func rowDefaults(k facts, c *Config) {
	c.Model = layers.ModelConfig{Dropout: 0.1, Block: layers.BlockConfig{
		Dropout: 0.1, Attention: layers.AttentionConfig{Dropout: 0.1}, FeedForward: layers.FeedForwardConfig{Dropout: 0.1},
	}}
	if k.small {
		c.Model.EmbeddingInit = layers.Normal(0.02)
	}
	c.Data.Validation = -1
	c.Training = Training{Config: train.Config{
		MaxEpochs: -1, CheckEvery: -1, Stopping: train.StoppingConfig{Patience: -1, MinDelta: -1},
		Optimizer: optim.Config{
			Solver: optim.AdamW{Beta2: 0.98}, LearningRate: cmp.Or(k.rate, 1e-3), WeightDecay: 0.01, ClipNorm: 1,
			Schedule: optim.ScheduleConfig{WarmUp: -1, Decay: -1, Floor: 0.02},
		},
	}}
	c.Training.LabelSmoothing, c.Mix = k.smoothing, k.linear != nil
}

// tuned changes the defaults for some rules, so that they are learned better or faster.
var tuned = map[string]func(c *Config){
	"copy":  func(c *Config) { c.Training.StepsPerEpoch, c.Training.Optimizer.Schedule.Decay = 50, 300 },
	"sort":  func(c *Config) { c.Model.Dim, c.Training.Optimizer.Schedule.Decay = 48, 1400 },
	"add":   func(c *Config) { c.Training.Optimizer.Schedule.Decay, c.Training.Stopping.Patience = 2000, 6 },
	"dates": func(c *Config) { c.Training.MaxEpochs = 10 },
}
