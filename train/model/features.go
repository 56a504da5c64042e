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
	f := &Model{Config: m.Config, Params: m.Params, Progress: m.Progress, coder: m.coder, layout: m.layout}
	f.network = featurer{embedder{reader{f, m.features}}}
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

// textVectors returns the vectors of the texts of sources, (texts, Dim): see linearTexts. A text that the model doesn't
// read, because its source is too long, has zeros.
func (m *Model) textVectors(ctx context.Context, sources linear.Rows, starts []int) ([]float32, error) {
	f, dim := newFeaturer(m), m.Config.Model.Dim
	var queries []query
	for i := range sources.N {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		b, err := f.coder.Batch([]data.Example{{Source: sources.Text(i)}})
		if err == nil {
			q := f.query(b)
			q.place = i
			queries = append(queries, q)
		}
	}
	if err := f.choose(ctx, queries, 1); err != nil {
		return nil, err
	}
	vectors := make([]float32, starts[sources.N]*dim)
	for _, q := range queries {
		copy(vectors[starts[q.place]*dim:starts[q.place+1]*dim], q.choices[0].vector)
	}
	return vectors, nil
}

// LinearTexts returns the texts that the linear model reads: the sources or, if each symbol has an answer, each symbol
// of them with its neighbours. The texts of source i have the numbers from starts[i] to starts[i+1]-1. If begun isn't
// nil, it makes the texts' vectors.
func (c *Config) LinearTexts(ctx context.Context, sources linear.Rows, begun *Model) (texts linear.Rows, starts []int, err error) {
	texts, starts = sources, make([]int, sources.N+1)
	if c.Kind().Aligned {
		var symbols []string // of all sources
		var owners []int32   // number of the source of each symbol
		for i := range sources.N {
			text := sources.Text(i)
			tokens, _, _ := c.Task.Tagged(text) // sources with an error have no symbols
			for _, t := range tokens {
				symbols, owners = append(symbols, text[t.Start:t.End]), append(owners, int32(i))
			}
			starts[i+1] = len(symbols)
		}
		texts = linear.Rows{N: len(symbols), Text: func(k int) string {
			i := owners[k]
			return linear.Neighbours(symbols[starts[i]:starts[i+1]], k-starts[i])
		}}
	} else {
		for i := range starts {
			starts[i] = i
		}
	}
	if begun != nil {
		texts.Vectors, err = begun.textVectors(ctx, sources, starts)
	}
	return texts, starts, err
}

// linearScores returns the baseline's scores of each source, (texts, classes) or one number.
func (m *Model) linearScores(ctx context.Context, sources linear.Rows) ([][]float32, error) {
	parts := make([][]float32, sources.N)
	var others []int // the sources whose scores aren't known
	for i := range parts {
		known, ok := m.linear.known[sources.Text(i)]
		if parts[i] = known; !ok {
			others = append(others, i)
		}
	}
	texts, starts, err := m.Config.LinearTexts(ctx, linear.Rows{N: len(others), Text: func(k int) string { return sources.Text(others[k]) }}, m.linear.Begun)
	if err != nil {
		return nil, err
	}
	scores, each := m.linear.ScoresOf(texts, 0), m.linear.Outputs()
	for k, i := range others {
		parts[i] = scores[starts[k]*each : starts[k+1]*each]
	}
	return parts, nil
}
