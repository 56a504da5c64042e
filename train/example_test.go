package train_test

import (
	"context"
	"fmt"
	"log"
	"math/rand/v2"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
)

// Fit takes anything that builds a loss: here a linear layer that is to tell which of two numbers is the larger.
func ExampleFit() {
	params, err := layers.NewParams(tensor.Float32, 1)
	if err != nil {
		log.Fatal(err)
	}
	linear, err := layers.NewLinear(params, 2, 2, layers.LinearConfig{})
	if err != nil {
		log.Fatal(err)
	}
	batch := func(seed uint64, size int) (train.Batch, error) {
		rng := rand.New(rand.NewPCG(1, seed))
		x, y := make([]float32, 2*size), make([]int, size)
		for i := range size {
			x[2*i], x[2*i+1] = rng.Float32(), rng.Float32()
			if x[2*i+1] > x[2*i] {
				y[i] = 1
			}
		}
		return train.Batch{Values: []*tensor.Dense{
			tensor.New(tensor.WithShape(size, 2), tensor.WithBacking(x)),
			tensor.New(tensor.WithShape(size), tensor.WithBacking(y)),
		}, Weight: float64(size)}, nil
	}
	result, err := train.Fit(context.Background(), train.Problem{
		Params: params,
		Loss: func(b *layers.Build, g *G.ExprGraph, size int) (*G.Node, G.Nodes, error) {
			x := G.NewMatrix(g, tensor.Float32, G.WithShape(size, 2), G.WithName("x"))
			y := G.NewVector(g, tensor.Int, G.WithShape(size), G.WithName("y"))
			logits, err := linear.Forward(b, x)
			if err != nil {
				return nil, nil, err
			}
			loss, err := layers.CrossEntropy(b, logits, y, layers.CrossEntropyOptions{})
			return loss, G.Nodes{x, y}, err
		},
		BatchSize: 32, Steps: 50,
		Train:          func(epoch, step int) (train.Batch, error) { return batch(uint64(100+epoch*50+step), 32) },
		ValidationSize: 200, ValidationSteps: 1,
		Validation: func(i int) (train.Batch, error) { return batch(uint64(i), 200) },
	}, train.Config{Stopping: train.Stopping{Patience: 2}, MaxEpochs: 20, Solver: train.NewAdamW(0.1)})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("learned:", result.Best.ValLoss < result.History[0].ValLoss/2)
	// Output:
	// learned: true
}
