package model

import (
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
	known  map[string][]float32 // scores of some sources
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
