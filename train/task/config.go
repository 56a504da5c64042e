package task

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/optim"
)

// format is the version of config.json that this package writes, and the only one that it reads.
const format = 4

// A Config is all that decides a run.
type Config struct {
	Format int       `json:"format"` // that of this package
	Task   data.Rule `json:"task"`   // what to learn; of text, New finds the Alphabet or the Source
	Seed   uint64    `json:"seed"`   // of initial weights, data order and dropout

	// Spelled says that the task has functions that its data alone don't tell: a Spell or a Read. New sets it.
	Spelled bool `json:"spelled,omitempty"`

	Data Data `json:"data"`

	From From `json:"from,omitzero"` // a run to begin with the weights of; see StartFrom

	// Model is that of the layers: of an Encoder, a SequenceClassifier, an EncoderDecoder or a Decoder, by the task's
	// kind. New sets what the data decide where it is zero: Vocab, Outputs, and Positions, which are Learned, but
	// Rotary for pairs and for the rows of a file; of these also Dim, Layers and Heads.
	Model layers.ModelConfig `json:"model"`

	DecoderLayers int `json:"decoder_layers,omitempty"` // of pairs: blocks of the decoder; those of Model, which are the encoder's, if 0

	Training Training `json:"training"`
}

// Data says what is learned from. The tasks seq2seq, classification and tagging have a File of rows, each a source and
// an answer. Several rows of one source are several right answers.
//
// A file of rows is TSV, which has no quoting, or CSV as RFC 4180 has it, separated by commas or semicolons. The ending
// of its name says which: .tsv, .tab and .txt, or .csv; under other names its first line does. It is UTF-8, or UTF-16
// with a byte-order mark, and a row has at most 4 MiB. Empty lines are no rows. Bad rows, which lack a column or whose
// column is empty or no text, are left out and counted; more than one in a hundred is an error.
type Data struct {
	File   string `json:"file,omitempty"`   // to learn: text, or rows
	SHA256 string `json:"sha256,omitempty"` // of the file, to tell if it changes; New finds it

	// TargetFile has the answers where File has sources alone: line n of either is a row, whole lines without
	// quoting. The files must have equally many lines.
	TargetFile string `json:"target_file,omitempty"`

	// ValidationFile has the rows to validate on, and ValidationTargetFile their answers where there is a TargetFile.
	// Without them, rows of File validate: all those of one source in ten at most, chosen by a hash that Seed decides.
	ValidationFile       string `json:"validation_file,omitempty"`
	ValidationTargetFile string `json:"validation_target_file,omitempty"`
	ValidationSHA256     string `json:"validation_sha256,omitempty"`

	// Columns are those of sources and of answers, each by its name in the header or by its number from 1. Empty takes
	// those with usual names, such as source and target, or else the first two.
	Columns []string `json:"columns,omitempty"`

	// SourceUnits and TargetUnits are what sources and answers are made of; New guesses what is empty. Of labels there
	// are SourceUnits alone, and of text too, which may be tokenizer.BPE, or empty for characters. Where both are
	// tokenizer.BPE, there is one vocabulary, whose table embeds sources and answers and is the head's weight.
	SourceUnits tokenizer.Units `json:"source_units,omitempty"`
	TargetUnits tokenizer.Units `json:"target_units,omitempty"`

	// Tokenizers has the SHA-256 of the run folder's tokenizer, or of that of sources and that of answers; New finds
	// it.
	Tokenizers []string `json:"tokenizers_sha256,omitempty"`

	VocabSize int `json:"vocab_size,omitempty"` // ids that a tokenizer of tokenizer.BPE has at most; 0 has New find how many there is enough text for

	// Validation is how many examples to validate on, 0 for none: of text and of a ValidationFile, at most; of held-out
	// rows, about so many sources. New makes less than 0 all rows of a ValidationFile, or else 1,000.
	Validation int `json:"validation"`
}

// Training says how to train. If the rows of a file are learned, an epoch is a pass over them, and New chooses by their
// number where BatchSize or StepsPerEpoch is 0, or the WarmUp and Decay of the schedule or MaxEpochs are negative. New
// makes MicroBatches, where it is 0, the first of 4, 2 and 1 that divides BatchSize.
type Training struct {
	train.Config

	StepsPerEpoch  int     `json:"steps_per_epoch"`           // batches in an epoch
	LabelSmoothing float64 `json:"label_smoothing,omitempty"` // see layers.CrossEntropyOptions; in training alone
	ClassWeights   string  `json:"class_weights,omitempty"`   // of labels and tags of a file: balanced has all of them count for the same; else empty
}

const (
	longest        = 1 << 16 // the most symbols that a source or an answer may have
	mostValidation = 1 << 24 // the most examples to validate on
)

// Names returns the name of every task that Named knows. The first one is the default.
func Names() []string {
	names := data.Names()
	for _, k := range everyKind {
		names = append(names, string(k.about().Name))
	}
	return names
}

// Named returns the Defaults of one of Heed's own tasks: a rule that data.Named knows, or text, seq2seq,
// classification or tagging, which need a file. maxLen is the longest source or, for text, the number of characters
// that a model sees at once. 0 takes the task's own length; for rows of a file, New finds what they need.
func Named(name string, maxLen int) (Config, error) {
	if maxLen < 0 || maxLen > longest {
		return Config{}, setting.Errorf("%s must be from 0 to %d, got %d", setting.Path("task.max_len"), longest, maxLen)
	}
	if k := kindOf(data.Kind(name)).about(); k.Name != "" {
		return Defaults(data.Rule{Name: name, About: k.About, Kind: k.Name, MaxLen: cmp.Or(maxLen, k.maxLen)}), nil
	}
	if !slices.Contains(data.Names(), name) {
		return Config{}, setting.Errorf("%s must be one of %s, got %q", setting.Path("task"), strings.Join(Names(), ", "), name)
	}
	rule, err := data.Named(name, maxLen)
	if err != nil {
		return Config{}, setting.Errorf("%w (%s)", err, setting.Path("task.max_len"))
	}
	return Defaults(rule), nil
}

// Defaults returns settings that a rule of this kind is learned well with. One without a Sample, but of text, is to be
// learned from the rows of a file.
func Defaults(rule data.Rule) Config {
	c := Config{
		Format: format, Task: rule, Seed: 1,
		Data:  Data{Validation: 1000},
		Model: layers.ModelConfig{Dim: 32, Layers: 2, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 4}}},
		Training: Training{StepsPerEpoch: 100, Config: train.Config{
			BatchSize: 64, Stopping: train.Stopping{Patience: 3},
			Optimizer: optim.Config{
				Solver: optim.AdamW{Beta2: 0.98}, LearningRate: 3e-3, WeightDecay: 0.01, ClipNorm: 1,
				Schedule: optim.Scheduling{WarmUp: 100, Decay: 800, Floor: 0.1},
			},
		}},
	}
	k := kindOf(rule.Kind)
	k.defaults(&c)
	if tune := tuned[rule.Name]; tune != nil {
		tune(&c)
	}
	if rule.Sample == nil && k.about().Columns != nil {
		rowDefaults(&c)
	}
	return c
}

// rowDefaults sets what the rows of a file are learned well with, and leaves the rest to New.
func rowDefaults(c *Config) {
	c.Model = layers.ModelConfig{Dropout: 0.1, Block: layers.BlockConfig{
		Dropout: 0.1, Attention: layers.AttentionConfig{Dropout: 0.1}, FeedForward: layers.FeedForwardConfig{Dropout: 0.1},
	}}
	c.Data.Validation = -1
	c.Training = Training{Config: train.Config{
		MaxEpochs: -1, Stopping: train.Stopping{Patience: 5},
		Optimizer: optim.Config{
			Solver: optim.AdamW{Beta2: 0.98}, LearningRate: 1e-3, WeightDecay: 0.01, ClipNorm: 1,
			Schedule: optim.Scheduling{WarmUp: -1, Decay: -1, Floor: 0.02},
		},
	}}
	c.Training.LabelSmoothing = c.Kind().smoothing
}

// tuned is what some rules are learned better or faster with than others of their kind.
var tuned = map[string]func(c *Config){
	"copy":  func(c *Config) { c.Training.StepsPerEpoch, c.Training.Optimizer.Schedule.Decay = 50, 300 },
	"sort":  func(c *Config) { c.Model.Dim, c.Training.Optimizer.Schedule.Decay = 48, 1400 },
	"add":   func(c *Config) { c.Training.Optimizer.Schedule.Decay, c.Training.Stopping.Patience = 2000, 6 },
	"dates": func(c *Config) { c.Training.MaxEpochs = 10 },
}

// decide sets what the data decide of the model's configuration. It is an error if that says otherwise, or if training
// would need absurdly much memory: it is better to say so than to be killed for it.
func (c *Config) decide(l data.Layout) error {
	m, length := &c.Model, max(l.Len, l.TargetLen)
	for _, n := range []struct {
		name  setting.Path
		field *int
		want  int
	}{{"model.vocab", &m.Vocab, l.Tokens}, {"model.outputs", &m.Outputs, l.Classes}} {
		if *n.field = cmp.Or(*n.field, n.want); *n.field != n.want {
			return setting.Errorf("%s must be %d, as the task has it, or 0 for that, got %d", n.name, n.want, *n.field)
		}
	}
	if m.Positions == nil {
		m.Positions = layers.Learned{MaxLen: length}
		if c.Kind().Sequences || c.fromRows() {
			// Distances, not places: few sources are as long as the longest, and a row for each of the last positions
			// would hardly be trained.
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
		for t.MicroBatches = 4; t.BatchSize%t.MicroBatches != 0; t.MicroBatches /= 2 {
		}
	}
	return c.checkMemory(l)
}

// maxMemory is the most that training may need at the least, in bytes: more is taken for a mistake.
const maxMemory = 8 << 30

// checkMemory refuses what needs more than maxMemory at the least, before there are parameters. How much memory
// training takes, and whether there is that much, is estimated in train.Fit alone, from its graphs.
func (c *Config) checkMemory(l data.Layout) error {
	need, what := c.leastMemory(l)
	if need <= maxMemory {
		return nil
	}
	return setting.Errorf("training would need at least %.3g GiB of memory, for %s; at most %d GiB are allowed: choose a smaller %s, %s, %s, %s or %s, or more %s",
		need/(1<<30), what, maxMemory>>30,
		setting.Path("model.dim"), setting.Path("model.block.feed_forward.hidden"), setting.Path("model.layers"), setting.Path("task.max_len"), setting.Path("training.batch_size"), setting.Path("training.micro_batches"))
}

// leastMemory returns about how many bytes training needs at least, with one worker and any solver, and says for what.
func (c *Config) leastMemory(l data.Layout) (bytes float64, what string) {
	// Numbers are floating-point here, as their products could overflow.
	a, f := c.Model.Block.Attention, c.Model.Block.FeedForward
	dim, blocks, classes, length := float64(c.Model.Dim), float64(c.Model.Layers), float64(max(l.Tokens, l.Classes)), float64(max(l.Len, l.TargetLen))
	if l.TargetTokens > 0 { // an encoder's and a decoder's
		blocks += cmp.Or(float64(c.DecoderLayers), blocks)
	}
	hidden := float64(cmp.Or(f.Hidden, 4*c.Model.Dim))
	heads := float64(a.Heads) * float64(max(cmp.Or(a.HeadDim, c.Model.Dim/a.Heads), a.ValueDim)) // their width together
	params := blocks*(4*dim*heads+2*dim*hidden) + (2*classes+length)*dim
	// Training keeps about half of what every block computes, of one micro-batch, as Buffers use memory again;
	// validation has the same memory, and keeps no more than one block needs at once.
	train, validate := float64(c.Training.BatchSize/c.Training.MicroBatches)*length, float64(min(c.validationSize(), c.Data.Validation))*length
	values := max(train*(blocks*(4*dim+6*heads+2*hidden)+2*classes)/2, validate*(3*dim+max(hidden, 3*heads, 2*classes)))
	what = fmt.Sprintf("%.3g parameters and batches of %.3g tokens", params, max(train, validate))
	if _, ok := c.Model.Positions.(layers.RelativeBias); ok {
		// Of every score, of all heads: to train and to validate, and each block has their gradients.
		values += (blocks + 2) * float64(a.Heads) * length * length
		what += fmt.Sprintf(", with a bias for each of %.3g scores", float64(a.Heads)*length*length)
	}
	return 4 * (3*params + values), what // of a parameter there are the value, the best value and the gradient
}
