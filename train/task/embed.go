package task

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/internal/table"
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
	return newEmbedder(m, net), nil
}

// newEmbedder returns the network of a model that pools the states of an encoder without a head.
func newEmbedder(m *Model, net *layers.Encoder) embedder {
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
	}}}
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
// other texts, except for rounding. A model of masked text embeds texts, too: a vector is the mean of the states before
// its head.
//
// The error is an *InputError if the model doesn't embed texts, or if it can't read one of them. When ctx is done,
// Embed returns ctx.Err().
func (m *Model) Embed(ctx context.Context, texts []string) ([][]float32, int, error) {
	if f, ok := m.network.(filler); ok {
		m = f.embeds
	}
	if !m.Config.Kind().Embeds {
		return nil, 0, &InputError{strings.Join(texts[:min(1, len(texts))], ""), fmt.Errorf("the model %s is of kind %s, and only models of kind %s embed texts", m.Config.Task.Name, m.Config.Task.Kind, data.KindEmbed)}
	}
	vectors, rows, tokens := make([][]float32, len(texts)), make([]query, len(texts)), 0
	for i, text := range texts {
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		b, encoded := m.encode(m.prompt + text)
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

// SetPrompt chooses the text that Embed puts before each text, by its name in the folder's
// config_sentence_transformers.json, such as query. An empty name stands for no text. SetPrompt returns a *ConfigError
// if there is no such name. Don't call it at the same time as Embed.
func (m *Model) SetPrompt(name string) error {
	var prompts map[string]string
	if m.published != nil {
		prompts = m.published.model.Prompts
	}
	text, ok := prompts[name]
	if !ok && name != "" {
		return setting.Errorf("%s must be one of the model's prompts, %q, got %q", setting.Path("prompt_name"), slices.Sorted(maps.Keys(prompts)), name)
	}
	m.prompt = text
	return nil
}

// EmbedFile embeds a column of a file of rows: see data.Settings, of which m.Config.Data has the Columns, the Header
// and the Encoding. It calls do with the texts and the vectors of some thousand rows at a time, in the order of the
// rows. It returns an error at a bad row, so that no vector is missing, and the errors of Embed and of do.
func (m *Model) EmbedFile(ctx context.Context, file string, do func(texts []string, vectors [][]float32) error) error {
	s := &m.Config.Data
	records, err := table.Open(file, table.Options{Columns: s.Columns, Known: []table.Column{textColumn}, Header: s.Header, Encoding: s.Encoding})
	if err != nil {
		return err
	}
	defer records.Close()
	for done := false; !done; {
		var texts []string
		for bytes := 0; len(texts) < fileBatch && bytes < fileBytes && !done; {
			_, _, err := records.Read()
			if done = err == io.EOF; err != nil && !done {
				return fmt.Errorf("%s, %w", file, err)
			}
			if !done {
				texts = append(texts, records.Wanted()[0])
				bytes += len(texts[len(texts)-1])
			}
		}
		vectors, _, err := m.Embed(ctx, texts)
		if err == nil {
			err = do(texts, vectors)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
