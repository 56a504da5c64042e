package model

import (
	"cmp"
	"math"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/memory"
	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/layers"
)

func init() {
	heads = []head{textHead{}, maskHead{}, sequenceHead{}, tagHead{}, labelsHead{}, numberHead{}, labelHead{}, spanHead{}, vectorHead{}} // vectorHead is last: see its published
}

// New makes a model with new weights, for training. It checks the configuration, and completes it with what follows
// from the data. All its errors are *ConfigErrors. If check isn't nil, New calls it before it makes the weights.
func New(c *Config, check func(l data.Layout) error) (*Model, error) {
	m, err := newModel(c)
	if err == nil && check != nil {
		err = check(m.layout)
	}
	if err == nil {
		err = m.build()
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}

// newModel returns the model that a configuration describes, without parameters. It checks the configuration. All its
// errors are *ConfigErrors.
func newModel(c *Config) (*Model, error) {
	m := &Model{Config: c}
	err := m.Config.Check(true)
	if err == nil {
		m.Coder, err = data.NewCoder(c.Task)
	}
	if err == nil {
		m.layout = m.Coder.Layout()
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
		m.Network, err = headOf(m.Config.Task.Kind).network(m)
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
	a, dim, blocks := c.Model.Block.Attention, float64(c.Model.Dim), float64(cmp.Or(c.Model.Shared, c.Model.Layers))
	if l.TargetTokens > 0 { // a decoder too
		blocks += cmp.Or(float64(c.DecoderLayers), blocks)
	}
	width := cmp.Or(a.HeadDim, c.Model.Dim/a.Heads)
	heads := float64(a.Heads) * float64(width+cmp.Or(a.ValueDim, width))
	if l := a.Latent; l != nil { // of queries, keys and values, only the latent vectors need to be as wide as the model
		heads += float64(l.Rank) - float64(a.Heads)*float64(width)
	}
	hidden, _ := c.Model.HiddenWidths()
	return dim*blocks*(heads+2*hidden) + float64(c.Model.EmbeddingWidth())*float64(l.Tokens)
}
