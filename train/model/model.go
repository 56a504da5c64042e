package model

import (
	"cmp"
	"errors"
	"math"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/memory"
	"github.com/heed-go/heed/internal/oov"
	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/layers"
)

// A Model answers inputs. Open returns the trained Model of a run folder, or a published model. A Task, made by New,
// has the Model that it trains.
//
// Several goroutines may call its methods at once, but not while the parameters change, as in Train or Load. A call
// that finds no free graph makes one, and keeps it for later calls.
type Model struct {
	Config Config
	Params *layers.Params

	// Progress, if set, is called while the model reads many inputs in one call, also before and after training. Its
	// arguments are the number of inputs that the model has read, and of all inputs of the call. The calls come one at
	// a time, on any goroutine.
	Progress func(read, inputs int)

	// Note, if set, is called with notes about how files are read, where that may surprise.
	Note func(note string)

	coder    data.Coder
	layout   data.Layout
	network  network
	linear   *Linear // the linear model beside the network; nil if there is none
	noLinear error   // why there is no linear model, if the run had one
	mixture  Mixture // of the network's answers and those of the linear model
	free     freeList

	published *publishedStart // the folder of the published model that this one is or began as; otherwise nil
	adapter   *layers.Adapter // for a Tune of lora, while the run trains; an opened model has it in its Params
	prompt    string          // Embed puts it before each text

	int8 bool // the weights become int8 while they are loaded

	// features returns what the head of the network reads, one vector per answer; nil if a linear model can't replace
	// the head.
	features func(b *layers.Build, inputs G.Nodes) (*G.Node, error)

	// table has the embedding of each id, (Tokens, Dim), if the network's function forward accepts embeddings
	// (B, Len, Dim) in place of ids. Otherwise it is nil.
	table *layers.Param
}

// New makes a model with new weights, for training. It checks the configuration, and completes it with what follows
// from the data. All its errors are *ConfigErrors. If check isn't nil, New calls it before it makes the weights.
func New(c Config, check func(c *Config, l data.Layout) error) (*Model, error) {
	m, err := newModel(c)
	if err == nil && check != nil {
		err = check(&m.Config, m.layout)
	}
	if err == nil {
		err = m.build()
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}

// Coder returns what makes batches of the model's examples.
func (m *Model) Coder() data.Coder { return m.coder }

// Network returns the layers, for training.
func (m *Model) Network() Network { return m.network }

// Linear returns the linear model beside the network, or nil if there is none. Then the error says why, if the run had
// one.
func (m *Model) Linear() (*Linear, error) { return m.linear, m.noLinear }

// Mixture says how the network and the linear model answer together.
func (m *Model) Mixture() Mixture { return m.mixture }

// SetLinear sets the linear model beside the network. SetMixture says how they answer together.
func (m *Model) SetLinear(l *Linear)  { m.linear = l }
func (m *Model) SetMixture(x Mixture) { m.mixture = x }

// HasFeatures reports whether a linear model can replace the head of the network.
func (m *Model) HasFeatures() bool { return m.features != nil }

// newModel returns the model that a configuration describes, without parameters. It checks the configuration. All its
// errors are *ConfigErrors.
func newModel(c Config) (*Model, error) {
	m := &Model{Config: c}
	err := m.Config.Check(true)
	if err == nil {
		m.coder, err = data.NewCoder(c.Task)
	}
	if err == nil {
		m.layout = m.coder.Layout()
		err = m.Config.Decide(m.layout)
	}
	if err != nil {
		return nil, setting.As(err)
	}
	return m, nil
}

// build makes the network and its parameters. Without Params, they get new values. It returns a *ConfigError if the
// parameters need more memory than there is.
func (m *Model) build() (err error) {
	size := 4.0 // bytes of a parameter
	if m.int8 {
		size = 1
	}
	if least := size * m.Config.leastParams(m.layout); least > float64(memory.Free()) {
		return setting.Errorf("the model needs at least %s of memory, but only %s is free: reduce %s or %s",
			text.Bytes(int(min(least, math.MaxInt/2))), text.Bytes(memory.Free()), setting.Path("model.dim"), setting.Path("model.layers"))
	}
	if m.Params == nil {
		m.Params, err = layers.NewParams(tensor.Float32, m.Config.Seed)
	}
	if err == nil {
		m.network, err = m.Config.head().network(m)
	}
	if err != nil {
		return setting.As(err)
	}
	return nil
}

// leastParams returns a lower bound of the number of parameters: the embedding, two projections of each attention and
// two of each feed-forward layer.
func (c *Config) leastParams(l data.Layout) float64 {
	// All numbers are floating-point: products of integers could overflow.
	a, dim, blocks := c.Model.Block.Attention, float64(c.Model.Dim), float64(c.Model.Layers)
	if l.TargetTokens > 0 { // a decoder too
		blocks += cmp.Or(float64(c.DecoderLayers), blocks)
	}
	width := cmp.Or(a.HeadDim, c.Model.Dim/a.Heads)
	heads := float64(a.Heads) * float64(width+cmp.Or(a.ValueDim, width))
	hidden := float64(cmp.Or(c.Model.Block.FeedForward.Hidden, 4*c.Model.Dim))
	return dim * (blocks*(heads+2*hidden) + float64(l.Tokens))
}

// encode returns a batch that has only this input, and an Answer without Text: the fields that don't need the model.
func (m *Model) encode(input string) (data.Batch, Answer) {
	source, _ := m.coder.Tokenizers()
	if m.Config.Published() {
		source = m.Config.Task.SourceTokenizer() // counts special tokens, too
	}
	ids, some, _ := oov.Count(source, input)
	unknown := oov.Strange(source, ids, some)
	b, err := m.coder.Batch([]data.Example{{Source: input}})
	if err != nil {
		unknown = unknown && source.Unknown() >= 0 || errors.As(err, new(*tokenizer.UnknownSymbolError))
		return b, Answer{Input: input, Unknown: unknown, Err: &InputError{input, err}}
	}
	return b, Answer{Input: input, Unknown: unknown && source.Unknown() >= 0, Cut: ids > m.layout.Len}
}
