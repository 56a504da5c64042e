package model

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/linear"
	"github.com/heed-go/heed/internal/runfolder"
)

// A Linear is the linear model that is compared with a network, and whose answers are mixed with those of the network:
// a model of the words and the characters of the sources and, if the run began from another model, of that model's
// vectors.
type Linear struct {
	*linear.Model
	Values map[string]float64   // on the validation rows, by the names of the kind's metrics
	Begun  *Model               // makes the vectors; nil if the Model's Width is 0
	Held   string               // how good its answers to training rows are that it hasn't seen, in a line of text; empty if not known
	known  map[string][]float32 // scores of some sources
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

// Remember keeps the scores of the sources of examples. The texts of source i have the numbers from starts[i].
func (b *Linear) Remember(example func(i int) data.Example, scores []float32, starts []int) {
	each := b.Outputs()
	if b.known == nil {
		b.known = map[string][]float32{}
	}
	for i := range len(starts) - 1 {
		b.known[example(i).Source] = scores[starts[i]*each : starts[i+1]*each]
	}
}

// About describes the model in words.
func (b *Linear) About() string {
	if b.Width() > 0 {
		return "a linear model of words, characters and the vectors of the model that the run began from"
	}
	return "a linear model of words and characters"
}

// valuesKey is the key in the metadata of a linear model. Its text is the field Values as JSON.
const valuesKey = "heed.values"

// Metadata returns the metadata for the model's file.
func (b *Linear) Metadata() map[string]string {
	values, _ := json.Marshal(b.Values) // finite, so there is no error
	return map[string]string{valuesKey: string(values)}
}

// ReadLinear reads the linear model in the folder of the run with this id, without the model that makes its vectors. If
// there is none, the error wraps fs.ErrNotExist.
func (c *Config) ReadLinear(f runfolder.Folder, id string) (*Linear, error) {
	b := &Linear{}
	file, size, err := f.Open(runfolder.BaselineFile)
	if err == nil {
		defer file.Close()
		tensors, metadata, failed := runfolder.ReadBaseline(file, size, id)
		if err = failed; err == nil {
			b.Model, err = linear.FromTensors(tensors)
		}
		if err == nil && b.Width() > 0 && (b.Width() != c.Model.Dim || !c.needsBase()) {
			err = fmt.Errorf("it is for vectors of %d numbers, which this run's model doesn't make", b.Width())
		}
		if err == nil {
			err = json.Unmarshal([]byte(metadata[valuesKey]), &b.Values)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Path(runfolder.BaselineFile), err)
	}
	return b, nil
}

// needsBase reports whether a model with this configuration needs the one that it began from.
func (c *Config) needsBase() bool {
	return c.Partial() || c.From.Dir != "" && c.Mix && c.HasLinear()
}
