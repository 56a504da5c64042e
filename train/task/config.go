package task

import (
	"cmp"
	"fmt"
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

// A Config holds all settings that determine the result of a run.
type Config struct {
	model.Config
	Training Training `json:"training"`
}

// Training has the settings of training. For rows of a file, an epoch is one pass over them. If BatchSize or
// StepsPerEpoch is 0, or MaxEpochs or the schedule's WarmUp or Decay is negative, New chooses a value from the number
// of rows. Conversations are like rows. For a text that a published model learns, New makes an epoch as long as the
// text: its steps read as many tokens. If MicroBatches is 0, New sets it to the largest of 4, 2 and 1 that divides
// BatchSize, but not to 4 if a published model's own weights learn from rows, because each partial sum of gradients is
// as large as the model. For embed, New sets MicroBatches to 1, because only the texts of the same micro-batch are
// negatives.
//
// For rows of a file, New also replaces negative values of three more settings. CheckEvery becomes a tenth of an epoch
// if an epoch has more than 2,000 steps, and otherwise 0. Stopping.Patience becomes 50 if New set CheckEvery to a tenth
// of an epoch, and otherwise 5. Stopping.MinDelta becomes 0.0001 if a loss is monitored, and otherwise 0. For
// conversations with validation, a negative Patience becomes 2, and MinDelta then 0.01.
//
// For classification of rows with validation, if Stopping has neither a Monitor nor a Mode, New sets the Monitor to
// val_accuracy. If labels are rare, it becomes val_macro_f1: if the most frequent label has more than 90 % of the
// training rows, or the rarest less than a tenth of an even share. Then the thresholds of Stopping also are for this
// value.
//
// Stopping.Monitor may also be a metric of one label of a file, such as val_recall[fraud]: see train.ClassMetrics. If
// Stopping.Mode is empty, New sets it to the direction in which the monitored metric improves.
type Training struct {
	train.Config

	StepsPerEpoch  int     `json:"steps_per_epoch"`           // batches per epoch
	LabelSmoothing float64 `json:"label_smoothing,omitempty"` // see layers.CrossEntropyOptions; not used in validation
	Loss           string  `json:"loss,omitempty"`            // for regression: "squared" or "huber", which is linear beyond one standard deviation; empty means "squared"; for embed: "contrastive" or "cosine"; empty means that the columns decide
	Temperature    float64 `json:"temperature,omitempty"`     // for embed: divides the cosines in the loss contrastive; 0 means 0.05
	ClassWeights   string  `json:"class_weights,omitempty"`   // for labels and tags of a file: "balanced" weighs rare classes up; empty means equal weights
}

// validationSize is the number of examples in a validation batch, except for rows of a file and for published models.
const validationSize = 250

// validationSize returns the number of examples in a validation batch.
func (c *Config) validationSize() int {
	if c.FromRows() || c.Published() {
		return c.Training.BatchSize
	}
	return validationSize
}

// Names returns the names of all tasks that Named knows. The first is the default.
func Names() []string {
	names := toy.Names()
	for _, k := range everyKind {
		names = append(names, string(k.about().Name))
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
	if k := kindOf(data.Kind(name)).about(); k.Name != "" {
		return Defaults(data.Rule{Name: name, About: k.About, Kind: k.Name, MaxLen: cmp.Or(maxLen, k.maxLen)}), nil
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
	if rule.Sample == nil && k.about().Rows {
		rowDefaults(&c)
	}
	return c
}

// rowDefaults sets good values for rows of a file. It leaves sizes and durations to New.
func rowDefaults(c *Config) {
	c.Model = layers.ModelConfig{Dropout: 0.1, Block: layers.BlockConfig{
		Dropout: 0.1, Attention: layers.AttentionConfig{Dropout: 0.1}, FeedForward: layers.FeedForwardConfig{Dropout: 0.1},
	}}
	c.Data.Validation = -1
	c.Training = Training{Config: train.Config{
		MaxEpochs: -1, CheckEvery: -1, Stopping: train.StoppingConfig{Patience: -1, MinDelta: -1},
		Optimizer: optim.Config{
			Solver: optim.AdamW{Beta2: 0.98}, LearningRate: 1e-3, WeightDecay: 0.01, ClipNorm: 1,
			Schedule: optim.ScheduleConfig{WarmUp: -1, Decay: -1, Floor: 0.02},
		},
	}}
	c.Training.LabelSmoothing = c.Kind().smoothing
	c.Mix = kindOf(c.Task.Kind).about().Linear
}

// tuned changes the defaults for some rules, so that they are learned better or faster.
var tuned = map[string]func(c *Config){
	"copy":  func(c *Config) { c.Training.StepsPerEpoch, c.Training.Optimizer.Schedule.Decay = 50, 300 },
	"sort":  func(c *Config) { c.Model.Dim, c.Training.Optimizer.Schedule.Decay = 48, 1400 },
	"add":   func(c *Config) { c.Training.Optimizer.Schedule.Decay, c.Training.Stopping.Patience = 2000, 6 },
	"dates": func(c *Config) { c.Training.MaxEpochs = 10 },
}

// divide sets the number of micro-batches, if it is 0.
func (c *Config) divide() {
	t := &c.Training
	if t.MicroBatches > 0 {
		return
	}
	switch {
	case c.Kind().Embeds:
		t.MicroBatches = 1
	case c.Kind().Rows && c.Published() && c.Tune != model.TuneHead && c.Tune != model.TuneLoRA:
		t.MicroBatches = 2
	default:
		t.MicroBatches = 4
	}
	for t.BatchSize%t.MicroBatches != 0 {
		t.MicroBatches /= 2
	}
}

// maxMemory limits the bytes that leastMemory may return. A larger value is probably a mistake in the settings.
const maxMemory = 8 << 30

// checkMemory returns an error if training needs more than maxMemory by the lowest estimate: an error is better than
// being killed. It runs before the parameters are made. Later, train.Fit estimates the memory from its graphs, and
// compares it with the memory that is free.
func (c *Config) checkMemory(l data.Layout) error {
	need, what := c.leastMemory(l)
	if need <= maxMemory {
		return nil
	}
	return setting.Errorf("training would need at least %.3g GiB of memory, for %s; at most %d GiB are allowed: reduce %s, %s, %s, %s or %s, or increase %s",
		need/(1<<30), what, maxMemory>>30,
		setting.Path("model.dim"), setting.Path("model.block.feed_forward.hidden"), setting.Path("model.layers"), setting.Path("task.max_len"), setting.Path("training.batch_size"), setting.Path("training.micro_batches"))
}

// leastMemory returns a low estimate of the bytes that training needs with one worker, whatever the solver, and
// describes what needs them.
func (c *Config) leastMemory(l data.Layout) (bytes float64, what string) {
	// All numbers are floating-point: products of integers could overflow.
	a, f := c.Model.Block.Attention, c.Model.Block.FeedForward
	dim, blocks, classes, length := float64(c.Model.Dim), float64(c.Model.Layers), float64(max(l.Tokens, l.Classes)), float64(max(l.Len, l.TargetLen))
	if l.TargetTokens > 0 { // a decoder too
		blocks += cmp.Or(float64(c.DecoderLayers), blocks)
	}
	hidden := float64(cmp.Or(f.Hidden, 4*c.Model.Dim))
	width, _ := a.HeadWidth(c.Model.Dim)
	heads := float64(a.Heads) * float64(max(width, a.ValueDim)) // total width
	params := blocks*(4*dim*heads+2*dim*hidden) + (2*classes+length)*dim
	// For one micro-batch, training keeps about half of the values that all blocks compute, because Buffers reuse
	// memory. Validation uses the same memory, and keeps only the values of one block at a time.
	train, validate := float64(c.Training.BatchSize/c.Training.MicroBatches)*length, float64(min(c.validationSize(), c.Data.Validation))*length
	values := max(train*(blocks*(4*dim+6*heads+2*hidden)+2*classes)/2, validate*(3*dim+max(hidden, 3*heads, 2*classes)))
	what = fmt.Sprintf("%.3g parameters and batches of %.3g tokens", params, max(train, validate))
	if _, ok := c.Model.Positions.(layers.RelativeBias); ok {
		// Each score of each head has a bias, in training and in validation. Each block also has the gradients of the
		// biases.
		values += (blocks + 2) * float64(a.Heads) * length * length
		what += fmt.Sprintf(", with a bias for each of %.3g scores", float64(a.Heads)*length*length)
	}
	return 4 * (3*params + values), what // each parameter has a value, a best value and a gradient
}

// A ConfigError reports a wrong setting of a Config. It names the setting by its path in config.json, such as
// model.dim. Its method Message can give settings other names.
type ConfigError = setting.Error
