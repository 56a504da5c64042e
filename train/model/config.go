package model

import (
	"slices"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/layers/pretrained"
	"github.com/heed-go/heed/train/score"
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

	From From `json:"from,omitzero"` // the model that this one begins from; zero for new weights

	// Model configures the layers. The task's kind decides which model they form: an Encoder (tagging and embed), a
	// SequenceClassifier (classification, multilabel and regression), an EncoderDecoder (seq2seq) or a Decoder (text).
	// If Vocab, Outputs or Positions are zero, task.New sets them. For rows of a file, it also sets Dim, Layers and
	// Heads if they are zero. Positions become Rotary for seq2seq and for rows of a file, and otherwise Learned.
	Model layers.ModelConfig `json:"model"`

	// Head says how models with one answer per text make one vector of the states of its tokens.
	Head HeadConfig `json:"head,omitzero"`

	DecoderLayers int `json:"decoder_layers,omitempty"` // for seq2seq: blocks of the decoder; 0 means Model.Layers, as in the encoder

	// Mix mixes the answers of the network with the answers of a linear model: see Model.Mixture. The linear model
	// reads the words and the characters of the sources and, if there is a From, the vectors of that model. The two
	// learn apart. Mix is for classification, multilabel, regression and tagging with rows of a file, and their
	// default. If there are very many rows and classes, task.New sets it to false.
	Mix bool `json:"mix,omitempty"`

	Archive []byte `json:"-"` // small files of the published model that the run began from, as a zip file
}

// HeadConfig describes what follows the layers in models with one answer per text.
type HeadConfig struct {
	Pooling   layers.Pooling `json:"pooling,omitzero"`   // their mean if zero
	Pad       *int           `json:"pad,omitzero"`       // see layers.SequenceClassifierConfig, also for Decoder
	Normalize bool           `json:"normalize,omitzero"` // for kind embed: divide the vector by its length

	Dense *pretrained.DenseConfig `json:"dense,omitzero"` // for kind embed: a layer after Pooling; nil for none

	Decoder *layers.RereadConfig `json:"decoder,omitzero"`
}

// classifier returns the configuration of a network with one answer per text.
func (c Config) classifier() layers.SequenceClassifierConfig {
	return layers.SequenceClassifierConfig{Model: c.Model, Pooling: c.Head.Pooling, Pad: c.Head.Pad, Decoder: c.Head.Decoder}
}

// From names a run or a published model, whose weights are the initial weights of this run, and says which of them are
// trained.
type From struct {
	Dir    string `json:"dir"`              // folder; empty for new weights
	Base   string `json:"base,omitempty"`   // folder of the model that Dir is based on, if Dir lacks weights: see OpenBase
	SHA256 string `json:"sha256,omitempty"` // checksum of the weights, to detect changes; task.New sets it

	// Absolute has the absolute paths of a relative Dir and of a relative Base. task.New sets it.
	Absolute struct {
		Dir  string `json:"dir,omitempty"`
		Base string `json:"base,omitempty"`
	} `json:"absolute,omitzero"`

	// Tune says which parameters are trained: all, which empty means; head, the last layer, which a linear model solves
	// without epochs; last:N, the layers after the last block and the last N blocks; or lora, a low-rank adapter as
	// LowRank says, with the head. Other parameters need no gradients, and the folder of the run doesn't have them.
	Tune    string         `json:"tune,omitempty"`
	LowRank layers.LowRank `json:"low_rank,omitzero"`
}

// Longest is the greatest number of symbols of a source or an answer.
const Longest = 1 << 16

// Published reports whether the model has the tokenizer of a published model.
func (c *Config) Published() bool { return c.Task.Published != (data.Published{}) }

// Opened reports whether the model is a published one that hasn't been trained here.
func (c *Config) Opened() bool { return c.Published() && c.Data.File == "" }

// Drawn reports whether the task's rule draws its examples, as Heed's toy rules and your own rules do. A task of kind
// text, or with the name of a kind, learns from a file.
func (c *Config) Drawn() bool {
	f := c.about()
	texts, named := f.kind != "" && !f.rows, headOf(data.Kind(c.Task.Name)).about().kind != ""
	return c.Data.File == "" && !c.Opened() && !texts && !named
}

// FromRows reports whether the task learns from the rows of a file.
func (c *Config) FromRows() bool { return c.Data.File != "" && c.about().rows }

// hasLinear reports whether a linear model stands beside the model.
func (c *Config) hasLinear() bool { return c.FromRows() && c.about().linear }

// chats reports whether a text model learned what the assistant writes in conversations. task.New sets Data.Columns to
// data.ChatKey if the file has conversations: see data.TextFiles.Chats.
func (c *Config) chats() bool {
	return c.Published() && c.Task.Kind == data.KindText && slices.Equal(c.Data.Columns, []string{data.ChatKey})
}

// A ConfigError reports a wrong setting of a Config. It names the setting by its path in config.json, such as
// model.dim. Its method Message can give settings other names.
type ConfigError = setting.Error

// EntityTags returns the text of each tag of a file. It returns nil if the tags aren't made for entities: see
// score.Entities.
func (c *Config) EntityTags() []string {
	if !c.FromRows() || c.Task.Target == nil {
		return nil
	}
	tags := make([]string, c.Task.Target.Len())
	var found score.Entities
	for id := range tags {
		tags[id], _ = c.Task.Target.Decode([]int{id})
		if id != c.Task.Target.Unknown() {
			found.Add(nil, tags[id:id+1])
		}
	}
	if found.Others > 0 || found.Total().Rows == 0 {
		return nil
	}
	return tags
}

// Tokenizers returns the tokenizers of the task that have files of their own. Published tokenizers are in the archive.
func (c *Config) Tokenizers() (list []tokenizer.Tokenizer) {
	for i, t := range []tokenizer.Tokenizer{c.Task.Source, c.Task.Target} {
		if t != nil && !(c.Published() && (i == 0 || c.about().decoder)) {
			list = append(list, t)
		}
	}
	return list
}

// MoveTo takes the paths of the data files and of From from other. The checksums stay: the content must be the same.
func (c *Config) MoveTo(other Config) {
	d := other.Data
	c.From.Dir, c.From.Base, c.From.Absolute = other.From.Dir, other.From.Base, other.From.Absolute
	c.Data.File, c.Data.MoreFiles, c.Data.TargetFile = d.File, d.MoreFiles, d.TargetFile
	c.Data.ValidationFile, c.Data.ValidationTargetFile = d.ValidationFile, d.ValidationTargetFile
}
