package pretrained

import (
	"math"
	"slices"

	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/layers/decode"
)

// An architecture maps the config.json of one model_type to a Config, and the names of its tensors to parameters.
type architecture struct {
	class    string // the class that a config.json without architectures means
	causal   bool   // tokens attend only to themselves and to earlier tokens
	prefix   string // of the names of tensors, except those of heads; files may leave it out
	further  bool   // files may have blocks after the last one, which aren't used
	encoder  bool   // the encoder of a model for sequences opens alone, as the model without a head
	defaults string // values of missing keys, as JSON; a key whose default is null may be left out

	ownPretraining bool // models whose class ends in ForPreTraining have a head that doesn't open, and open without it

	aliases map[string]string // other names of keys, which come before these keys

	model      layers.ModelConfig              // settings that all models have, with the head for "text" or "mask"
	classifier layers.SequenceClassifierConfig // settings of all classifiers, without the Model
	config     func(k *keys, c *Config)        // copies the other settings

	// names says which tensors of a file hold the parameters of layers. An element has a layer's scope, its name in the
	// file and possibly an option, with spaces between them. {i} stands for the number of a block. Several scopes are
	// joined with a plus sign, as in attention.query+key+value; a bar separates several names in files. The first
	// element for a layer counts. {e} stands for the number of an expert, whose weights are one of several matrices of
	// a parameter. The name of one parameter, such as head.bias, may stand in place of a scope; the name in the file is
	// then complete, too.
	//
	// The options are transposed (the file has the transposed matrix), plus1 (our weight is the file's plus 1), skip2
	// (two rows of the file aren't used), heads (a joined tensor has a group of rows for each head), row (the file has
	// a matrix with one row, or lacks it) and stacked (the file has the transposed matrices of all experts in one
	// tensor; if it is joined, rows of the parameters alternate).
	names []string
	heads map[string][]string // for each Head except "states", more names, without the prefix
}

// Config describes a published model: the model and how it is used.
type Config struct {
	Type   string // model_type in config.json, such as llama
	Folder string // folder of config.json: ".", or a folder that modules.json names, such as 0_Transformer

	// Head says what the model computes: "text" (logits of the next token), "mask" (logits of masked tokens), "classes"
	// (logits of a sequence's classes), "tags" (logits of each token's tags), "spans" (for each token, a logit that an
	// answer starts there, and one that it ends there), "sequence" (logits of the next token of an answer to a source)
	// or "states" (the states after the last norm).
	Head string

	Causal     bool                             // tokens attend only to themselves and to earlier tokens
	Model      layers.ModelConfig               // for "classes", the same as Classifier.Model
	Classifier *layers.SequenceClassifierConfig // for "classes"; otherwise nil
	Sequence   *layers.EncoderDecoderConfig     // for "sequence", without its Model, which is the field Model; otherwise nil
	MaxLen     int                              // largest number of tokens of an input, and of an answer; 2²⁴ for no limit
	Start, Pad int                              // the ids of the first token of a text and of padding; −1 for none
	End        []int                            // ids that end a text
	Labels     []string                         // for "classes" and "tags", their names
	Sigmoid    bool                             // for "classes" with one label: a score is the logistic function of its logit
	Several    bool                             // for "classes": a text may have several labels; the score of each is the logistic function of its logit
	Thresholds []float64                        // with Several: the least score of a text with the label, 0.5 if nil; only heed writes it

	// For text and sequences, how generation_config.json chooses tokens. If there is no such file, config.json may have
	// its members.
	Sampler     decode.Sampler
	Search      decode.BeamOptions // without End and RepetitionPenalty, which are above; for text, only its Rules
	MinLen      int                // like Search.MinTokens, counting the tokens of the prompt too; 0 if the file has min_new_tokens
	AnswerStart int                // for sequences, the id of the token in front of an answer; −1 if no file says it
	AnswerLen   int                // for sequences, like Search.MaxTokens, counting the AnswerStart too; 0 if the file doesn't say

	// For embeddings, from modules.json and the files that it names. For sequences, config.json has the Prompts.
	Pooling   layers.Pooling
	Dense     *DenseConfig      // a layer after pooling; nil for none
	Normalize bool              // divide an embedding by its length
	Prompts   map[string]string // texts to put in front, by their purpose
	Prompt    string            // the name of the prompt for texts without a purpose; empty for none

	Similarity string // how embeddings are compared, such as cosine or dot; empty if the folder doesn't say so

	tasks map[string]*keys // for sequences: see For
	dense string           // folder of the Dense
}

// A DenseConfig describes a linear layer that maps embeddings to another width. Its parameters have the scope dense.
type DenseConfig struct {
	Width      int                `json:"width"`
	NoBias     bool               `json:"no_bias,omitzero"`
	Activation *layers.Activation `json:"activation,omitempty"` // nil for none
}

// States returns the configuration of the same model without its head. Its Head is "states".
func (c Config) States() Config {
	m := &c.Model
	if m.Tied && m.EmbeddingScale == 0 {
		m.EmbeddingScale = math.Sqrt(float64(m.EmbeddingWidth()))
	}
	m.Outputs, m.NoBias, m.Tied, m.TiedBias, m.Transform, m.LogitSoftcap, m.HeadScale = 0, false, false, false, nil, 0, 0
	c.Head, c.Classifier, c.Sequence = "states", nil, nil
	if c.Causal {
		c.windows(func(w **layers.Window) {
			left := -1
			if *w != nil {
				left = (*w).Left
			}
			*w = &layers.Window{Left: left}
		})
	}
	return c
}

// changed returns a copy of a model's settings with a change.
func changed(m layers.ModelConfig, change func(m *layers.ModelConfig)) layers.ModelConfig {
	change(&m)
	return m
}

// parts returns the settings of the model, and of its blocks' attention and feed-forward layers.
func (c *Config) parts() (*layers.ModelConfig, *layers.AttentionConfig, *layers.FeedForwardConfig) {
	b := &c.Model.Block
	return &c.Model, &b.Attention, &b.FeedForward
}

// windows changes the windows of all blocks.
func (c *Config) windows(change func(w **layers.Window)) {
	m := &c.Model
	change(&m.Block.Attention.Window)
	m.Variants = slices.Clone(m.Variants)
	for i := range m.Variants {
		change(&m.Variants[i].Window)
	}
}
