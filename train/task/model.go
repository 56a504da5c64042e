package task

import (
	"errors"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/rows"
	"github.com/heed-go/heed/layers"
)

// A Model answers inputs. Open returns the trained Model of a run folder. A Task, made by New, has the Model that it
// trains.
//
// Several goroutines may call its methods at once, but not while the parameters change, as in Train or Load. A call
// that finds no free graph makes one, and keeps it for later calls.
type Model struct {
	Config Config
	Params *layers.Params

	coder        data.Coder
	layout       data.Layout
	network      network
	classWeights []float64 // weights of the classes in the loss; nil means 1 for each
	free         freeList
}

// newModel makes the model that a configuration describes, with new weights. All its errors are *ConfigErrors.
func newModel(c Config) (*Model, error) {
	m := &Model{Config: c}
	err := m.Config.check(true)
	if err == nil {
		m.coder, err = data.NewCoder(c.Task)
	}
	if err == nil {
		m.layout = m.coder.Layout()
		err = m.Config.decide(m.layout)
	}
	if err == nil {
		m.Params, err = layers.NewParams(tensor.Float32, c.Seed)
	}
	if err == nil {
		m.network, err = kindOf(c.Task.Kind).network(m)
	}
	if err != nil {
		return nil, asConfigError(err)
	}
	return m, nil
}

// encode returns a batch that has only this input, and an Answer without Text: the fields that don't need the model.
func (m *Model) encode(input string) (data.Batch, Answer) {
	source, _ := m.coder.Tokenizers()
	ids, unknown, _ := rows.Encoded(source, input)
	b, err := m.coder.Batch([]data.Example{{Source: input}})
	if err != nil {
		unknown = unknown && source.Unknown() >= 0 || errors.As(err, new(*tokenizer.UnknownSymbolError))
		return b, Answer{Input: input, Unknown: unknown, Err: &InputError{input, err}}
	}
	return b, Answer{Input: input, Unknown: unknown && source.Unknown() >= 0, Cut: ids > m.layout.Len}
}
