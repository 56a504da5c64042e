package decode_test

import (
	"fmt"
	"slices"
	"testing"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/layers/decode"
)

// newInt8Decoder is newDecoder with int8 weights.
func newInt8Decoder(t testing.TB, c layers.ModelConfig) *layers.Decoder {
	t.Helper()
	p := must.Get(layers.NewParams(tensor.Float32, 5))(t)
	d := must.Get(layers.NewDecoder(p, c))(t)
	must.Do(t, p.Quantize())
	return d
}

// TestInt8 compares steps of a session with int8 weights with applying the same model to the whole sequence. Sequences
// of a batch get the same bits as alone.
func TestInt8(t *testing.T) {
	for name, config := range sessionConfigs() {
		t.Run(name, func(t *testing.T) {
			d := newInt8Decoder(t, config)
			full := wholeDecoder(t, d, layers.Mask{})
			alone, batch := newSession(t, d, decode.Config{Capacity: sessionCapacity}), newSession(t, d, decode.Config{Batch: 8, Capacity: sessionCapacity})
			var sequences [8][]int
			for step := range 5 {
				tokens := make([][]int, 8)
				for i := range tokens {
					for range 1 + (i+step)%3 {
						tokens[i] = append(tokens[i], (i*i+len(sequences[i])+len(tokens[i])*step)%sessionVocab)
					}
					if room := sessionCapacity - len(sequences[i]); len(tokens[i]) > room {
						tokens[i] = tokens[i][:room]
					}
				}
				logits := must.Get(batch.Step(tokens))(t)
				for i := range sequences {
					if len(tokens[i]) == 0 {
						continue
					}
					sequences[i] = append(sequences[i], tokens[i]...)
					wantLogits(t, fmt.Sprintf("step %d, sequence %d", step, i), logits[i:i+1], [][]float64{full(sequences[i])}, 2e-4)
				}
			}
			for i, sequence := range sequences {
				alone.Reset()
				batch.Reset()
				tokens := make([][]int, 8)
				for j := range tokens {
					tokens[j] = sequences[(i+j)%8]
				}
				together := slices.Clone(must.Get(batch.Step(tokens))(t)[0])
				if got := must.Get(alone.Step([][]int{sequence}))(t)[0]; !slices.Equal(got, together) {
					t.Errorf("sequence %d has the logits %v alone and %v in a batch", i, got, together)
				}
			}
		})
	}
}
