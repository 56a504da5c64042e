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
		train, validation int
		want              string
	}{
		{"training", rows, 1, "train: this takes about "},
		{"validation", 1, rows, "train: this takes about "},
		{"neither", 1, 1, "stopped here"},
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
			of := func(rows int) train.Dataset {
				return train.Dataset{Len: 1, Batch: func([]int) (train.Batch, error) {
					x := tensor.New(tensor.WithShape(rows, 1), tensor.Of(tensor.Float32))
					y := tensor.New(tensor.WithShape(rows), tensor.Of(tensor.Int))
					return train.Batch{Values: []*tensor.Dense{x, y}, Weight: 1}, nil
				}}
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
				Train: of(test.train), Validation: of(test.validation), BatchSize: 1,
			}, train.Config{MaxEpochs: 1, OnCheck: func([]train.Check, bool) (bool, error) { return false, errors.New("stopped here") }})
			if err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Fatalf("%v, want an error that begins with %q", err, test.want)
			}
			if test.train+test.validation > 2 && !strings.Contains(err.Error(), "choose smaller batches, more MicroBatches, fewer Workers or a smaller model") {
				t.Errorf("%v says nothing of what to change", err)
			}
		})
	}
}
