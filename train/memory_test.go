package train_test

import (
	"errors"
	"math"
	"testing"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/memory"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/optim"
)

// If training needs more memory than the machine has, Fit returns an error before it allocates the memory.
func TestFitRefusesWhatMemoryCantHold(t *testing.T) {
	if math.MaxInt == math.MaxInt32 {
		t.Skip("shapes can't be that large on this machine")
	}
	const rows, classes = 1 << 20, 1 << 18 // together 1 TiB of float32
	for _, test := range []struct {
		name              string
		train, validation []int // number of rows of each example; also its bucket
		large             bool
	}{
		{"training", []int{rows}, []int{1}, true},
		{"a training bucket", []int{1, 2, rows, 3}, []int{1}, true},
		{"validation", []int{1}, []int{rows}, true},
		{"a validation bucket", []int{1}, []int{1, rows, 2}, true},
		{"neither", []int{1, 2}, []int{2, 1}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := must.Get(layers.NewParams(tensor.Float32, 1))(t)
			head := must.Get(layers.NewLinear(p, 1, classes, layers.LinearConfig{}))(t)
			dataset := func(rows []int) train.Dataset {
				return train.Dataset{
					Len: len(rows), Bucket: func(example int) int { return rows[example] },
					Batch: func(examples []int) ([]*tensor.Dense, error) {
						n := rows[examples[0]]
						x := tensor.New(tensor.WithShape(n, 1), tensor.Of(tensor.Float32))
						y := tensor.New(tensor.WithShape(n), tensor.Of(tensor.Int))
						return []*tensor.Dense{x, y}, nil
					},
				}
			}
			_, err := train.Fit(t.Context(), train.Problem{
				Params: p,
				Loss:   entropy(head.Forward),
				Train:  dataset(test.train), Validation: dataset(test.validation),
			}, train.Config{BatchSize: 1, MaxEpochs: 1}, train.RunOptions{OnCheck: func([]train.Check, bool) (bool, error) { return false, errors.New("stopped here") }})
			want := "stopped here"
			if test.large {
				want = "choose smaller batches, more MicroBatches, fewer Workers or a smaller model"
			}
			wantError(t, "Fit", err, want)
		})
	}
}

// TestFitFreesItsGraphs checks that memory doesn't grow over many calls of Fit.
func TestFitFreesItsGraphs(t *testing.T) {
	p := must.Get(layers.NewParams(tensor.Float32, 1))(t)
	l := must.Get(layers.NewLinear(p, 256, 256, layers.LinearConfig{}))(t)
	data := must.Get(train.Tensors(tensor.New(tensor.WithShape(2, 256), tensor.Of(tensor.Float32)), tensor.New(tensor.WithShape(2), tensor.Of(tensor.Int))))(t)
	problem := train.Problem{
		Params: p,
		Loss:   entropy(l.Forward),
		Train:  data, Validation: data,
	}
	fit := func() {
		fitted(t, problem, train.Config{BatchSize: 2, Stopping: train.StoppingConfig{Patience: 1}, MaxEpochs: 1}, train.RunOptions{Solver: optim.NewAdamW(1e-3)})
	}
	fit()
	before := memory.HeapInUse()
	const rounds = 20
	for range rounds {
		fit()
	}
	if grown := memory.HeapInUse() - before; grown > rounds*256*256 { // a quarter of the bytes of the weights' gradient, per call
		t.Errorf("after %d calls of Fit, the heap has grown by %d bytes, want at most %d", rounds, grown, rounds*256*256)
	}
}
