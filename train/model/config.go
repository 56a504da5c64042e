package model

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/layers"
)

// Format is the version of config.json. Heed reads and writes no other version.
const Format = 5

// A Config holds the settings of a model that answers. A run's config.json has those of its training, too.
type Config struct {
	Format int       `json:"format"` // version of config.json
	Task   data.Rule `json:"task"`   // what was learned
	Seed   uint64    `json:"seed"`   // seed of the initial weights, the data order and dropout

	// Spelled reports whether the rule has a Spell or a Read, which config.json can't hold.
	Spelled bool `json:"spelled,omitempty"`

	Data data.Settings `json:"data"`

	From From `json:"from,omitzero"` // folder whose weights are the initial weights

	// Tune says which parameters are trained, if there is a From: all, which empty means; head, the last layer, which a
	// linear model solves without epochs; last:N, the layers after the last block and the last N blocks; or lora, a
	// low-rank adapter as LowRank says, with the head. Other parameters need no gradients, and the run's folder doesn't
	// have them: see Open.
	Tune    string         `json:"tune,omitempty"`
	LowRank layers.LowRank `json:"low_rank,omitzero"`

	// Model configures the layers. The task's kind decides which model they form: an Encoder (tagging and embed), a
	// SequenceClassifier (classification and regression), an EncoderDecoder (seq2seq) or a Decoder (text). If Vocab,
	// Outputs or Positions are zero, task.New sets them. For rows of a file, it also sets Dim, Layers and Heads if they
	// are zero. Positions become Rotary for seq2seq and for rows of a file, and otherwise Learned.
	Model layers.ModelConfig `json:"model"`

	// Head says how models with one answer per text make one vector of the states of its tokens.
	Head HeadConfig `json:"head,omitzero"`

	DecoderLayers int `json:"decoder_layers,omitempty"` // for seq2seq: blocks of the decoder; 0 means Model.Layers, as in the encoder

	// Mix makes the answers of the model a mixture of those of the network and of a linear model: see Mixture. The
	// linear model reads the words and the characters of the sources and, if there is a From, the vectors of that
	// model. The two learn apart. Mix is for classification, regression and tagging with rows of a file, and their
	// default. If there are very many rows and classes, task.New sets it to false.
	Mix bool `json:"mix,omitempty"`

	Archive []byte `json:"-"` // small files of the published model that the run began from, as a zip file
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
	SHA256 string `json:"sha256,omitempty"` // checksum of the weights, to detect changes; task.New sets it

	// Absolute has the absolute paths of a relative Dir and of a relative Base. task.New sets it.
	Absolute struct {
		Dir  string `json:"dir,omitempty"`
		Base string `json:"base,omitempty"`
	} `json:"absolute,omitzero"`
}

// Longest is the greatest number of symbols of a source or an answer.
const Longest = 1 << 16

// Published reports whether the model has the tokenizer of a published model.
func (c *Config) Published() bool { return c.Task.Published != (data.Published{}) }

// Opened reports whether the model is a published one that hasn't been trained here.
func (c *Config) Opened() bool { return c.Published() && c.Data.File == "" }

// Drawn reports whether the task's rule draws its examples, as Heed's toy rules and your own rules do.
func (c *Config) Drawn() bool {
	return c.Task.Sample != nil || c.Data.File == "" && !c.NeedsFile() && !c.Opened()
}

// FromRows reports whether the task learns from the rows of a file.
func (c *Config) FromRows() bool { return c.Data.File != "" && KindOf(c.Task.Kind).Rows }

// NeedsFile reports whether the task can learn only from a file: it is of kind text or is named after a kind.
func (c *Config) NeedsFile() bool {
	if c.Opened() {
		return false
	}
	k := KindOf(c.Task.Kind)
	return k.Name != "" && !k.Rows || KindOf(data.Kind(c.Task.Name)).Name != ""
}

// HasLinear reports whether a linear model stands beside the model.
func (c *Config) HasLinear() bool { return c.FromRows() && KindOf(c.Task.Kind).Linear }

// Chats reports whether a text model learned what the assistant writes in conversations. task.New sets Data.Columns to
// data.ChatKey if the file has conversations: see data.TextFiles.Chats.
func (c *Config) Chats() bool {
	return c.Published() && c.Task.Kind == data.KindText && slices.Equal(c.Data.Columns, []string{data.ChatKey})
}

// CutsStart reports whether the model ignores the beginning of an input that is too long, and not its end: for text, or
// if the tokenizer of a published model says so.
func (c *Config) CutsStart() bool {
	p, published := c.Task.Source.(*tokenizer.Pipeline)
	return c.Kind().Generates || published && p.CutsStart()
}

// Check returns a *ConfigError if a setting is wrong. If decided is false, settings that task.New chooses from the rows
// of a file may still be 0 or negative.
func (c *Config) Check(decided bool) error {
	if c.Format != Format {
		return setting.Errorf("%s must be %d, got %d", setting.Path("format"), Format, c.Format)
	}
	if err := c.checkUnits(); err != nil {
		return err
	}
	one, longest := 1, Longest
	if c.Opened() {
		longest = math.MaxInt
	}
	if (c.FromRows() || c.Published()) && !decided {
		one = 0
	}
	m := &c.Model
	a, f := &m.Block.Attention, &m.Block.FeedForward
	if err := cmp.Or(
		setting.Between("task.max_len", c.Task.MaxLen, one, longest),
		setting.Between("task.max_answer", c.Task.MaxAnswer, 0, longest),
		setting.Between("model.dim", m.Dim, one, 1<<14),
		setting.Between("model.layers", m.Layers, one, 128),
		setting.Between("decoder_layers", c.DecoderLayers, 0, 128),
		setting.Between("model.block.feed_forward.hidden", f.Hidden, 0, 1<<16),
		setting.Between("model.block.attention.heads", a.Heads, one, 1<<10),
		setting.Between("model.block.attention.key_value_heads", a.KeyValueHeads, 0, 1<<10),
		setting.Between("model.block.attention.head_dim", a.HeadDim, 0, 1<<14),
		setting.Between("model.block.attention.value_dim", a.ValueDim, 0, 1<<14),
	); err != nil {
		return err
	}
	if c.DecoderLayers > 0 && !c.Kind().Sequences {
		return setting.Errorf("%s is for models with an encoder and a decoder, not for the task %s", setting.Path("decoder_layers"), c.Task.Name)
	}
	share := func(path setting.Path, x float64) error {
		return setting.In(path, x, x >= 0 && x < 1, "at least 0 and below 1")
	}
	if err := cmp.Or(
		share("model.dropout", m.Dropout),
		share("model.block.dropout", m.Block.Dropout),
		share("model.block.attention.dropout", a.Dropout),
		share("model.block.feed_forward.dropout", f.Dropout),
	); err != nil {
		return err
	}
	if _, whole := a.HeadWidth(m.Dim); !whole {
		return setting.Errorf("%s must be a multiple of %s, got %d and %d", setting.Path("model.dim"), setting.Path("model.block.attention.heads"), m.Dim, a.Heads)
	}
	return c.checkTune()
}

// checkUnits checks what tells how sources and answers are divided.
func (c *Config) checkUnits() error {
	d, k := &c.Data, c.Kind()
	switch {
	case d.TargetUnits != "" && !k.AnswerUnits:
		return setting.Errorf("%s %s can't have %s: its answers aren't split into units", setting.Path("task"), c.Task.Name, setting.Path("data.target_units"))
	case c.Task.Pairs && !k.Pairs:
		return setting.Errorf("%s can't be set: a task of kind %s learns one text per row", setting.Path("task.pairs"), c.Task.Kind)
	case c.Mix && !c.HasLinear():
		return setting.Errorf("%s is for classification, regression and tagging with the rows of a file, not for the task %s", setting.Path("mix"), c.Task.Name)
	}
	for i, units := range []tokenizer.Units{d.SourceUnits, d.TargetUnits} {
		known := strings.Split(k.units, ", ")
		if i == 0 && c.Published() {
			known = []string{string(tokenizer.Published)}
		}
		if i == 1 { // an answer is written, and words don't keep its spaces
			known = slices.DeleteFunc(known, func(name string) bool { return name == string(tokenizer.Words) })
		}
		if units != "" && !slices.Contains(known, string(units)) {
			return setting.Errorf("%s must be one of %s for the task %s, got %q%s", []setting.Path{"data.source_units", "data.target_units"}[i], strings.Join(known, ", "), c.Task.Name, units, text.DidYouMean(string(units), known))
		}
	}
	return nil
}

// Decide sets the model's settings that follow from the data. It returns an error if they already have other values.
func (c *Config) Decide(l data.Layout) error {
	m, length := &c.Model, max(l.Len, l.TargetLen)
	for _, n := range []struct {
		name  setting.Path
		field *int
		want  int
	}{{"model.vocab", &m.Vocab, l.Tokens}, {"model.outputs", &m.Outputs, l.Classes}, {"model.segments", &m.Segments, l.Segments}} {
		if c.Opened() || c.Published() && n.field != &m.Outputs { // the folder has said it
			continue
		}
		if *n.field = cmp.Or(*n.field, n.want); *n.field != n.want {
			return setting.Errorf("%s must be %d for this task, or 0 to choose it, got %d", n.name, n.want, *n.field)
		}
	}
	if m.Positions == nil {
		m.Positions = layers.Learned{MaxLen: length}
		if c.Kind().Sequences || c.FromRows() {
			// Few sources are as long as the longest, so a Learned table's last positions would hardly be trained.
			// Rotary positions depend only on distances.
			m.Positions = layers.Rotary{}
		}
	}
	if p, ok := m.Positions.(layers.Learned); ok && p.MaxLen == 0 {
		p.MaxLen = length
		m.Positions = p
	}
	if p, ok := m.Positions.(layers.Learned); ok && (p.MaxLen < length || p.MaxLen > 2*Longest) {
		return setting.Errorf("%s must be from %d, the length of the task's sequences, to %d, got %d", setting.Path("model.positions.max_len"), length, 2*Longest, p.MaxLen)
	}
	return nil
}

// A ConfigError reports a wrong setting of a Config. It names the setting by its path in config.json, such as
// model.dim. Its method Message can give settings other names.
type ConfigError = setting.Error
