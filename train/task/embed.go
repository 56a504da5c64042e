package task

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
)

// embedding makes a vector of each source.
type embedding struct{ common }

var embedKind = embedding{common{Kind{Name: data.KindEmbed, About: "a vector of each text", Embeds: true, Unit: "texts"}}}

func (embedding) network(m *Model) (network, error) {
	net, err := layers.NewEncoder(m.Params, m.Config.Model)
	if err != nil {
		return nil, err
	}
	m.table = net.Embedding.Weight
	head := m.Config.Head
	return embedder{reader{m, func(b *layers.Build, inputs G.Nodes) (*G.Node, error) {
		x, err := net.Forward(b, inputs[0], layers.Mask{KeyLengths: inputs[1]}) // (B, Len, Dim)
		if err == nil {
			x, err = layers.Pool(b, x, inputs[1], head.Pooling) // -> (B, Dim)
		}
		if err == nil && head.Normalize {
			x, err = layers.Normalize(b, x)
		}
		return x, err
	}}}, nil
}

// An embedder is a network whose output is one vector per row.
type embedder struct{ reader }

func (embedder) targets(data.Batch) ([]*tensor.Dense, float64) { return nil, 0 }

func (embedder) loss(*layers.Build, *G.Node, G.Nodes) (*G.Node, []train.Metric, error) {
	return nil, nil, errors.New("models that embed texts can't be trained yet")
}

func (e embedder) predictor(s batchShape) (predictor, error) {
	return e.chooser(e, s, func(output []float32, _ query) []choice { return []choice{{vector: slices.Clone(output)}} })
}

func (embedder) answer(choice) (string, *float64, error) { return "", nil, nil }

// Embed returns a vector of each text, and the number of tokens that the model read. As the model's folder says, it
// puts the default prompt before each text, cuts long texts, pools the states and normalises the vectors. Like
// PredictAll, Embed computes batches of texts with similar lengths, on all processors; a vector doesn't depend on the
// other texts, except for rounding.
//
// The error is an *InputError if the model doesn't embed texts, or if it can't read one of them. When ctx is done,
// Embed returns ctx.Err().
func (m *Model) Embed(ctx context.Context, texts []string) ([][]float32, int, error) {
	if !m.Config.Kind().Embeds {
		return nil, 0, &InputError{strings.Join(texts[:min(1, len(texts))], ""), fmt.Errorf("the model %s is of kind %s, and only models of kind %s embed texts", m.Config.Task.Name, m.Config.Task.Kind, data.KindEmbed)}
	}
	vectors, rows, tokens := make([][]float32, len(texts)), make([]query, len(texts)), 0
	for i, text := range texts {
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		b, encoded := m.encode(m.Prompts()[m.published.model.Prompt] + text)
		if encoded.Err != nil {
			return nil, 0, encoded.Err
		}
		rows[i] = query{ids: b.Inputs[:b.Lengths[0]], place: i}
		tokens += b.Lengths[0]
	}
	if err := m.choose(ctx, rows, 1); err != nil {
		return nil, 0, err
	}
	for _, q := range rows {
		vectors[q.place] = q.choices[0].vector
	}
	return vectors, tokens, nil
}

// Prompts returns the texts that a published model for embeddings puts before a text, by their names, such as query.
// Embed adds only the default prompt, if the folder names one. Callers must not change the map.
func (m *Model) Prompts() map[string]string {
	if m.published == nil {
		return nil
	}
	return m.published.model.Prompts
}
