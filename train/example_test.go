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
	"github.com/heed-go/heed/train/optim"
)

// Fit trains anything that builds a loss. Here a linear layer learns which of two numbers is larger.
func ExampleFit() {
	params, err := layers.NewParams(tensor.Float32, 1)
	check(err)
	linear, err := layers.NewLinear(params, 2, 2, layers.LinearConfig{})
	check(err)
	rng := rand.New(rand.NewPCG(1, 1))
	pairs := func(n int) train.Dataset {
		x, y := make([]float32, 2*n), make([]int, n)
		for i := range n {
			x[2*i], x[2*i+1] = rng.Float32(), rng.Float32()
			if x[2*i+1] > x[2*i] {
				y[i] = 1
			}
		}
		d, err := train.Tensors(tensor.New(tensor.WithShape(n, 2), tensor.WithBacking(x)), tensor.New(tensor.WithShape(n), tensor.WithBacking(y)))
		check(err)
		return d
	}
	result, err := train.Fit(context.Background(), train.Problem{
		Params: params,
		Loss: func(b *layers.Build, inputs G.Nodes) (layers.Loss, []train.Metric, error) {
			logits, err := linear.Forward(b, inputs[0]) // (B, 2) -> (B, 2)
			if err != nil {
				return layers.Loss{}, nil, err
			}
			loss, err := layers.CrossEntropy(b, logits, inputs[1], layers.CrossEntropyOptions{})
			return loss, nil, err
		},
		Train: pairs(1000), Validation: pairs(200),
	}, train.Config{
		BatchSize: 32, MaxEpochs: 20,
		Optimizer: optim.Config{LearningRate: 0.1, WeightDecay: 0.01},
		Stopping:  train.StoppingConfig{Patience: 2},
	}, train.RunOptions{})
	check(err)
	fmt.Println("learned:", result.Best.ValLoss < result.History[0].ValLoss/2)
	// Output:
	// learned: true
}

// check ends an example if there is an error.
func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
