// Package beside has the linear model that stands beside a network: it is compared with the network, and their answers
// are mixed. It is a model of the words and the characters of the sources and, if the run began from another model, of
// that model's vectors.
package beside

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/linear"
	"github.com/heed-go/heed/internal/runfolder"
)

// A Model is the linear model beside a network.
type Model struct {
	*linear.Model
	Values  map[string]float64 // on the validation rows, by the names of the kind's metrics
	Vectors Vectors            // nil if the Width is 0

	Thresholds []float64 // of labels that don't exclude each other: the least probability of each in an answer

	// Transitions say how much likelier a tag is after another one than elsewhere, as logarithms of shape
	// (classes+1, classes): row 0 is for the first symbol of a source, row j+1 for symbols after tag j. With them, the
	// tags of a source are a linear chain (Lafferty, McCallum and Pereira, 2001): a sequence of tags has the sum of its
	// symbols' scores and of its transitions. Without them, symbols have their tags independently.
	Transitions []float64

	Held  string               // how good its answers to training rows are that it hasn't seen, in a line of text; empty if not known
	known map[string][]float32 // scores of some sources
}

// Vectors makes vectors of the texts of sources, (texts, Width). The texts of source i have the numbers from starts[i]
// to starts[i+1]-1.
type Vectors func(ctx context.Context, sources linear.Rows, starts []int) ([]float32, error)

// Texts returns the texts that a model reads of the sources of a rule: the sources or, for tagging, each symbol of them
// with its neighbours. The texts of source i have the numbers from starts[i] to starts[i+1]-1. If vectors isn't nil, it
// makes the texts' vectors.
func Texts(ctx context.Context, r *data.Rule, sources linear.Rows, vectors Vectors) (texts linear.Rows, starts []int, err error) {
	texts, starts = sources, make([]int, sources.N+1)
	if r.Kind == data.KindTagging {
		var symbols []string // of all sources
		var owners []int32   // number of the source of each symbol
		for i := range sources.N {
			text := sources.Text(i)
			tokens, _, _ := r.Tagged(text) // sources with an error have no symbols
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
	if vectors != nil {
		texts.Vectors, err = vectors(ctx, sources, starts)
	}
	return texts, starts, err
}

// SourceScores returns the scores of each source of a rule, (texts, classes) or one number.
func (b *Model) SourceScores(ctx context.Context, r *data.Rule, sources linear.Rows) ([][]float32, error) {
	parts := make([][]float32, sources.N)
	var others []int // the sources whose scores aren't known
	for i := range parts {
		known, ok := b.known[sources.Text(i)]
		if parts[i] = known; !ok {
			others = append(others, i)
		}
	}
	texts, starts, err := Texts(ctx, r, linear.Rows{N: len(others), Text: func(k int) string { return sources.Text(others[k]) }}, b.Vectors)
	if err != nil {
		return nil, err
	}
	scores, each := b.ScoresOf(texts), b.Outputs()
	b.chainScores(scores, starts)
	for k, i := range others {
		parts[i] = scores[starts[k]*each : starts[k+1]*each]
	}
	return parts, nil
}

// Remember keeps the scores of the sources of examples. The texts of source i have the numbers from starts[i].
func (b *Model) Remember(example func(i int) data.Example, scores []float32, starts []int) {
	each := b.Outputs()
	if b.known == nil {
		b.known = map[string][]float32{}
	}
	for i := range len(starts) - 1 {
		b.known[example(i).Source] = scores[starts[i]*each : starts[i+1]*each]
	}
}

// About describes the model in words.
func (b *Model) About() string {
	if b.Width() > 0 {
		return "a linear model of words, characters and the vectors of the model that the run began from"
	}
	return "a linear model of words and characters"
}

// Keys in the metadata of a linear model. Their texts are the fields Values, Thresholds and Transitions as JSON. The
// last two may be missing.
const valuesKey, thresholdsKey, transitionsKey = "heed.values", "heed.thresholds", "heed.transitions"

// Metadata returns the metadata for the model's file.
func (b *Model) Metadata() map[string]string {
	values, _ := json.Marshal(b.Values) // finite, so there is no error
	metadata := map[string]string{valuesKey: string(values)}
	for key, numbers := range map[string][]float64{thresholdsKey: b.Thresholds, transitionsKey: b.Transitions} {
		if numbers != nil {
			text, _ := json.Marshal(numbers)
			metadata[key] = string(text)
		}
	}
	return metadata
}

// Read reads the linear model in the folder of the run with this id, without the function that makes its vectors. The
// run's model makes vectors with this width, or none if it is 0. If there is no linear model, the error wraps
// fs.ErrNotExist.
func Read(f runfolder.Folder, id string, width int) (*Model, error) {
	b := &Model{}
	file, size, err := f.Open(runfolder.BaselineFile)
	if err == nil {
		defer file.Close()
		tensors, metadata, failed := runfolder.ReadBaseline(file, size, id)
		if err = failed; err == nil {
			b.Model, err = linear.FromTensors(tensors)
		}
		if err == nil && b.Width() > 0 && b.Width() != width {
			err = fmt.Errorf("it is for vectors of %d numbers, which this run's model doesn't make", b.Width())
		}
		if err == nil {
			err = json.Unmarshal([]byte(metadata[valuesKey]), &b.Values)
		}
		if thresholds, ok := metadata[thresholdsKey]; ok && err == nil {
			err = json.Unmarshal([]byte(thresholds), &b.Thresholds)
		}
		if err == nil && b.Thresholds != nil && len(b.Thresholds) != b.Outputs() {
			err = fmt.Errorf("it has %d thresholds for %d labels", len(b.Thresholds), b.Outputs())
		}
		if transitions, ok := metadata[transitionsKey]; ok && err == nil {
			err = b.readTransitions(transitions)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Path(runfolder.BaselineFile), err)
	}
	return b, nil
}
