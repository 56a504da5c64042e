package train_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
)

// What the machine can't hold is refused before the first step, and before any of it is asked for.
func TestFitRefusesWhatMemoryCantHold(t *testing.T) {
	if math.MaxInt == math.MaxInt32 {
		t.Skip("no shape is so large here")
	}
	const rows, classes = 1 << 20, 1 << 18 // a TiB of float32
	for _, test := range []struct {
		name              string
		train, validation []int // the rows of each example, which are its bucket
		large             bool
	}{
		{"training", []int{rows}, []int{1}, true},
		{"a bucket to train on", []int{1, 2, rows, 3}, []int{1}, true},
		{"validation", []int{1}, []int{rows}, true},
		{"a bucket to validate on", []int{1}, []int{1, rows, 2}, true},
		{"neither", []int{1, 2}, []int{2, 1}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, err := layers.NewParams(tensor.Float32, 1)
			if err != nil {
				t.Fatal(err)
			}
			head, err := layers.NewLinear(p, 1, classes, layers.LinearConfig{})
			if err != nil {
				t.Fatal(err)
			}
			of := func(rows []int) train.Dataset {
				return train.Dataset{
					Len: len(rows), Bucket: func(example int) int { return rows[example] },
					Batch: func(examples []int) (train.Batch, error) {
						n := rows[examples[0]]
						x := tensor.New(tensor.WithShape(n, 1), tensor.Of(tensor.Float32))
						y := tensor.New(tensor.WithShape(n), tensor.Of(tensor.Int))
						return train.Batch{Values: []*tensor.Dense{x, y}, Weight: 1}, nil
					},
				}
			}
			_, err = train.Fit(t.Context(), train.Problem{
				Params: p,
				Loss: func(b *layers.Build, in G.Nodes) (*G.Node, []train.Metric, error) {
					logits, err := head.Forward(b, in[0])
					if err != nil {
						return nil, nil, err
					}
					loss, err := layers.CrossEntropy(b, logits, in[1], layers.CrossEntropyOptions{})
					return loss, nil, err
				},
				Train: of(test.train), Validation: of(test.validation),
			}, train.Config{BatchSize: 1, MaxEpochs: 1}, train.Call{OnCheck: func([]train.Check, bool) (bool, error) { return false, errors.New("stopped here") }})
			want := "stopped here"
			if test.large {
				want = "choose smaller batches, more MicroBatches, fewer Workers or a smaller model"
			}
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want an error that says %q", err, want)
			}
		})
	}
}
