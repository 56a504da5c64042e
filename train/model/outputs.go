package model

import (
	"context"
	"slices"

	"github.com/heed-go/heed/internal/logit"
)

// An Output is what a network and a linear model compute for an input, before their answers are mixed: the scores of
// each answer, (answers, classes), or a number. An output that wasn't wanted is nil.
type Output struct {
	Input           int // index of the input
	Network, Linear []float32
}

// Outputs asks the network and the linear model about inputs, unless they have the weight 0 in the mixture. An answer
// with an Err has no output. Other answers have only what doesn't depend on the model, until Mix completes them.
func (m *Model) Outputs(ctx context.Context, inputs []string, x logit.Mixture) ([]Answer, []Output, error) {
	answers, rows, err := m.read(ctx, inputs, query{keep: true, mixture: x}, 1)
	if err != nil {
		return nil, nil, err
	}
	outputs := make([]Output, len(rows))
	for i, q := range rows {
		outputs[i] = Output{q.place, q.output, q.linear}
	}
	return answers, outputs, nil
}

// Mix completes the answers that Outputs returned, by mixing the outputs. PredictAll takes the same options.
func (m *Model) Mix(answers []Answer, outputs []Output, x logit.Mixture, options PredictOptions) error {
	if err := options.check(m); err != nil {
		return err
	}
	rows := make([]query, len(outputs))
	for i, o := range outputs {
		rows[i] = query{place: o.Input, output: slices.Clone(o.Network), linear: o.Linear, top: options.choices()}
		rows[i].choices = m.Network.(mixer).mixed(rows[i], x)
	}
	return m.answer(answers, rows, options)
}
