package train_test

import (
	"context"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/heap"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
)

// TestFitFreesItsGraphs fits again and again: memory stays where it was.
func TestFitFreesItsGraphs(t *testing.T) {
	p, err := layers.NewParams(tensor.Float32, 1)
	if err != nil {
		t.Fatal(err)
	}
	l, err := layers.NewLinear(p, 256, 256, layers.LinearConfig{})
	if err != nil {
		t.Fatal(err)
	}
	batch := func(int, int) (train.Batch, error) {
		return train.Batch{
			Values: []*tensor.Dense{tensor.New(tensor.WithShape(2, 256), tensor.Of(tensor.Float32)), tensor.New(tensor.WithShape(2), tensor.Of(tensor.Int))},
			Weight: 2,
		}, nil
	}
	problem := train.Problem{
		Params: p,
		Loss: func(b *layers.Build, g *G.ExprGraph, size int) (*G.Node, G.Nodes, error) {
			x := G.NewMatrix(g, tensor.Float32, G.WithShape(size, 256), G.WithName("x"))
			y := G.NewVector(g, tensor.Int, G.WithShape(size), G.WithName("y"))
			logits, err := l.Forward(b, x)
			if err != nil {
				return nil, nil, err
			}
			loss, err := layers.CrossEntropy(b, logits, y, layers.CrossEntropyOptions{})
			return loss, G.Nodes{x, y}, err
		},
		BatchSize: 2, Steps: 1, Train: batch,
		ValidationSize: 2, ValidationSteps: 1, Validation: func(i int) (train.Batch, error) { return batch(0, i) },
	}
	fit := func() {
		if _, err := train.Fit(context.Background(), problem, train.Config{Stopping: train.Stopping{Patience: 1}, MaxEpochs: 1, Solver: train.NewAdamW(1e-3)}); err != nil {
			t.Fatal(err)
		}
	}
	fit()
	before := heap.InUse()
	const rounds = 20
	for range rounds {
		fit()
	}
	if grown := heap.InUse() - before; grown > rounds*256*256 { // a fourth of the weights' gradient
		t.Errorf("%d fits left %d bytes", rounds, grown)
	}
}
