package model

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/layers/pretrained"
)

// A head says how the models of one kind of task answer. Each has its own file.
type head interface {
	about() facts
	network(m *Model) (network, error) // makes the layers of a model, with its Params
	suit(m *pretrained.Config) error   // gives a published model this head; the blocks stay

	// published completes the rule of a published model. It returns false if the model is for another head.
	published(m *pretrained.Config, r *data.Rule) bool

	// describe adds to a Description what only models with this head have.
	describe(c *Config, d *Description)
}

// facts are what models with a head are like. The rest of this package asks them.
type facts struct {
	kind data.Kind
	use  string // command of heed that asks such models

	rows    bool // they answer the rows of a file; otherwise they read a text
	pairs   bool // a source may be two texts: see data.Rule.Pairs
	aligned bool // each symbol of a source has one symbol in the answer
	causal  bool // no position sees a later one: they generate text, and batches have no lengths
	decoder bool // a decoder writes answers of any length
	windows bool // an input is read in its data.Windows; so are inputs of published models for tags
	masks   bool // a source has masks, which an answer fills
	vectors bool // they have no answers, but vectors
	linear  bool // a linear model beside the network can give the answers, too

	top     int    // greatest PredictOptions.Top
	units   string // allowed units of the sources of a file, separated by commas
	answers string // allowed units of its answers, without words, which don't keep spaces; empty if an answer isn't split
}

// heads has the head of each kind of task: see build.go, so that nothing here needs what a head computes.
var heads []head

// headOf returns the head for a kind of task. For an unknown kind, it returns one without facts.
func headOf(kind data.Kind) head {
	if i := slices.IndexFunc(heads, func(h head) bool { return h.about().kind == kind }); i >= 0 {
		return heads[i]
	}
	return bare{}
}

// about returns the facts of the configuration's head.
func (c *Config) about() facts { return headOf(c.Task.Kind).about() }

// bare has what most heads have.
type bare struct{}

func (bare) about() facts { return facts{} }

func (bare) network(m *Model) (network, error) {
	return nil, fmt.Errorf("there are no models of kind %.100q", m.Config.Task.Kind)
}

func (bare) suit(m *pretrained.Config) error {
	*m = m.States()
	return nil
}

func (bare) published(*pretrained.Config, *data.Rule) bool { return false }

func (bare) describe(*Config, *Description) {}

// A Description says what a model does. Programs print it or compare with it, and needn't know the kinds of tasks.
type Description struct {
	Use string // command of heed that asks the model: predict, generate, chat or embed

	// Why the model can't generate text, embed texts, answer inputs or answer the rows of a file, rank documents,
	// choose among labels that it hasn't learned, or explain an answer by words; nil if it can.
	Generate, Embed, Predict, Rows, Rank, Labels, Explain error

	Top, Beam int    // greatest values of PredictOptions
	Cut       string // part of an input that the model ignores if it is too long: "the beginning" or "the end"
	Units     string // units that an answer may be split into, separated by commas; empty for a label or a number

	Parts    []string // names of the two texts of an input, if it is a pair
	Entities []string // values of PredictOptions.Entities; nil if the model has no use for it
	Columns  []string // fields of an Answer besides its text that have a column of their own in a file of rows
	NoAnswer bool     // PredictOptions may have NoAnswer

	// Schema has the JSON schema of the fields of an Answer that not all models have, or that differ.
	Schema map[string]any
}

// Describe describes the models of a configuration.
func (c *Config) Describe() Description {
	f := c.about()
	d := Description{Use: f.use, Parts: []string{"First text", "Second text"}, Top: f.top, Beam: 1, Cut: "the end", Units: f.answers, Schema: map[string]any{"answer": map[string]any{"type": "string"}}}
	if p, published := c.Task.Source.(*tokenizer.Pipeline); f.causal || published && p.CutsStart() {
		d.Cut = "the beginning"
	}
	if c.chats() {
		d.Use = "chat"
	}
	cannot := func(can bool, why string) error {
		if can {
			return nil
		}
		return fmt.Errorf("the model is for the task %s, %s: use heed %s", c.taskName(), why, d.Use)
	}
	d.Generate = cannot(f.causal, "and only text models generate text")
	d.Embed = cannot(f.vectors || f.masks, "and only models of kind embed or mlm embed texts")
	d.Predict = cannot(!f.vectors, "which has no answers")
	d.Rows = cannot(f.rows, "and can't answer the rows of a file")
	d.Rank = cannot(false, "and only models that score two texts rank documents")
	d.Labels = cannot(false, "and only models of inference, which have a label that begins with entail, choose among other labels")
	d.Explain = cannot(false, "and only labels of whole texts are explained by words")
	if f.decoder {
		d.Beam = MaxBeam
	}
	headOf(c.Task.Kind).describe(c, &d)
	if c.Head.Decoder != nil && d.Explain == nil {
		d.Explain = errors.New("a classifier whose decoder reads the text again isn't explained by words: use heed attention to see what it attends to")
	}
	return d
}

// taskName returns the name of the task in errors. A published model's rule has its model_type as a name.
func (c *Config) taskName() string {
	if c.Opened() {
		return string(c.Task.Kind)
	}
	return c.Task.Name
}

// MaxBeam is the greatest Beam of PredictOptions.
const MaxBeam = 1 << 10

// unlimited is the top of heads that choose among the classes once.
const unlimited = math.MaxInt
