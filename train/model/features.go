package model

import (
	"context"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/linear"
)

// A featurer is a network whose output is a vector of each source or, if each symbol has an answer, of each symbol:
// what the head of another network reads.
type featurer struct{ embedder }

// newFeaturer returns a model with the parameters of m whose network is a featurer.
func newFeaturer(m *Model) *Model {
	f := &Model{Config: m.Config, Params: m.Params, Progress: m.Progress, Coder: m.Coder, layout: m.layout}
	f.Network = featurer{embedder{reader{f, m.features}}}
	return f
}

func (f featurer) predictor(s batchShape) (predictor, error) {
	dim := f.Config.Model.Dim
	return f.chooser(f, s, func(output []float32, q *query) {
		var vectors []float32 // of the answers
		for p := range min(len(q.ids), len(output)/dim) {
			if q.targets == nil || q.targets[p] != data.Ignore {
				vectors = append(vectors, output[p*dim:][:dim]...)
			}
		}
		q.choices = []choice{{vector: vectors}}
	})
}

// textVectors returns the vectors of the texts of sources, (texts, Dim): see beside.Vectors. A text that the model
// can't read has zeros.
func (m *Model) textVectors(ctx context.Context, sources linear.Rows, starts []int) ([]float32, error) {
	f, dim := newFeaturer(m), m.Config.Model.Dim
	var queries []query
	for i := range sources.N {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		some, _ := f.symbols(sources.Text(i)) // none if the model can't read the text
		for _, q := range some {
			q.place = i
			queries = append(queries, q)
		}
	}
	if err := f.choose(ctx, queries, 1); err != nil {
		return nil, err
	}
	vectors := make([]float32, starts[sources.N]*dim)
	for _, q := range queries {
		copy(vectors[(starts[q.place]+q.first)*dim:starts[q.place+1]*dim], q.choices[0].vector)
	}
	return vectors, nil
}
