package task

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/toy"
	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/optim"
)

// format is the version of config.json. This package reads and writes no other version.
const format = 4

// A Config holds all settings that determine the result of a run.
type Config struct {
	Format int       `json:"format"` // version of config.json; Named and Defaults set it
	Task   data.Rule `json:"task"`   // what to learn; for text, New sets the Alphabet or the Source
	Seed   uint64    `json:"seed"`   // seed of the initial weights, the data order and dropout

	// Spelled reports whether the rule has a Spell or a Read, which config.json can't hold. New sets it.
	Spelled bool `json:"spelled,omitempty"`

	Data data.Settings `json:"data"`

	From From `json:"from,omitzero"` // folder whose weights are the initial weights; see StartFrom

	// Tune says which parameters are trained, if there is a From: all, which empty means; head, the last layer, which a
	// linear model solves without epochs; last:N, the layers after the last block and the last N blocks; or lora, a
	// low-rank adapter as LowRank says, with the head. Other parameters need no gradients, and the run's folder doesn't
	// have them: see Open.
	Tune    string         `json:"tune,omitempty"`
	LowRank layers.LowRank `json:"low_rank,omitzero"`

	// Model configures the layers. The task's kind decides which model they form: an Encoder (tagging and embed), a
	// SequenceClassifier (classification and regression), an EncoderDecoder (seq2seq) or a Decoder (text). If Vocab,
	// Outputs or Positions are zero, New sets them. For rows of a file, it also sets Dim, Layers and Heads if they are
	// zero. Positions become Rotary for seq2seq and for rows of a file, and otherwise Learned.
	Model layers.ModelConfig `json:"model"`

	// Head says how models with one answer per text make one vector of the states of its tokens.
	Head HeadConfig `json:"head,omitzero"`

	DecoderLayers int `json:"decoder_layers,omitempty"` // for seq2seq: blocks of the decoder; 0 means Model.Layers, as in the encoder

	// Mix makes the answers of the model a mixture of those of the network and of a linear model, which Train fits
	// before the first epoch. The linear model reads the words and the characters of the sources and, if there is a
	// From, the vectors of that model. They learn apart. Then Train chooses their weights and a temperature on the
	// validation rows. Mix is for classification, regression and tagging with rows of a file, and their default. If
	// there are very many rows and classes, New sets it to false.
	Mix bool `json:"mix,omitempty"`

	Training Training `json:"training"`

	archive []byte // small files of the published model that the run began from: see publishedStart.archive
}

// HeadConfig describes what follows the layers in models with one answer per text.
type HeadConfig struct {
	Pooling   layers.Pooling `json:"pooling,omitzero"`   // their mean if zero
	Pad       *int           `json:"pad,omitzero"`       // see layers.SequenceClassifierConfig
	Normalize bool           `json:"normalize,omitzero"` // for kind embed: divide the vector by its length
}

// From names a run or a published model. Its weights are the initial weights of this run.
type From struct {
	Dir    string `json:"dir"`              // folder; empty for new weights
	Base   string `json:"base,omitempty"`   // folder of the model that Dir is based on, if Dir lacks weights: see OpenBase
	SHA256 string `json:"sha256,omitempty"` // checksum of the weights, to detect changes; New sets it

	// Absolute has the absolute paths of a relative Dir and of a relative Base. New sets it.
	Absolute struct {
		Dir  string `json:"dir,omitempty"`
		Base string `json:"base,omitempty"`
	} `json:"absolute,omitzero"`
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
	if c.fromRows() || c.published() {
		return c.Training.BatchSize
	}
	return validationSize
}

// longest is the greatest number of symbols of a source or an answer.
const longest = 1 << 16

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
	if maxLen < 0 || maxLen > longest {
		return Config{}, setting.Errorf("%s must be from 0 to %d, got %d", setting.Path("task.max_len"), longest, maxLen)
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
		Format: format, Task: rule, Seed: 1,
		Data:  data.Settings{Validation: 1000},
		Model: layers.ModelConfig{Dim: 32, Layers: 2, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 4}}},
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
	c.Mix = c.Kind().linear != nil
}

// tuned changes the defaults for some rules, so that they are learned better or faster.
var tuned = map[string]func(c *Config){
	"copy":  func(c *Config) { c.Training.StepsPerEpoch, c.Training.Optimizer.Schedule.Decay = 50, 300 },
	"sort":  func(c *Config) { c.Model.Dim, c.Training.Optimizer.Schedule.Decay = 48, 1400 },
	"add":   func(c *Config) { c.Training.Optimizer.Schedule.Decay, c.Training.Stopping.Patience = 2000, 6 },
	"dates": func(c *Config) { c.Training.MaxEpochs = 10 },
}

// decide sets the model's settings that follow from the data. It returns an error if they already have other values.
func (c *Config) decide(l data.Layout) error {
	m, length := &c.Model, max(l.Len, l.TargetLen)
	for _, n := range []struct {
		name  setting.Path
		field *int
		want  int
	}{{"model.vocab", &m.Vocab, l.Tokens}, {"model.outputs", &m.Outputs, l.Classes}, {"model.segments", &m.Segments, l.Segments}} {
		if c.opened() || c.published() && n.field != &m.Outputs { // the folder has said it
			continue
		}
		if *n.field = cmp.Or(*n.field, n.want); *n.field != n.want {
			return setting.Errorf("%s must be %d for this task, or 0 to choose it, got %d", n.name, n.want, *n.field)
		}
	}
	if m.Positions == nil {
		m.Positions = layers.Learned{MaxLen: length}
		if c.Kind().Sequences || c.fromRows() {
			// Few sources are as long as the longest, so a Learned table's last positions would hardly be trained.
			// Rotary positions depend only on distances.
			m.Positions = layers.Rotary{}
		}
	}
	if p, ok := m.Positions.(layers.Learned); ok && p.MaxLen == 0 {
		p.MaxLen = length
		m.Positions = p
	}
	if p, ok := m.Positions.(layers.Learned); ok && (p.MaxLen < length || p.MaxLen > 2*longest) {
		return setting.Errorf("%s must be from %d, the length of the task's sequences, to %d, got %d", setting.Path("model.positions.max_len"), length, 2*longest, p.MaxLen)
	}
	if t := &c.Training; t.MicroBatches == 0 {
		switch {
		case c.Kind().Embeds:
			t.MicroBatches = 1
		case c.Kind().Rows && c.published() && c.tunesOwnWeights():
			t.MicroBatches = 2
		default:
			t.MicroBatches = 4
		}
		for t.BatchSize%t.MicroBatches != 0 {
			t.MicroBatches /= 2
		}
	}
	return nil
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

// asConfigError returns err as a *ConfigError, wrapping it if necessary.
func asConfigError(err error) *ConfigError {
	var already *ConfigError
	if errors.As(err, &already) {
		return already
	}
	return setting.Errorf("%w", err)
}

// A ConfigError reports a wrong setting of a Config. It names the setting by its path in config.json, such as
// model.dim. Its method Message can give settings other names.
type ConfigError = setting.Error
