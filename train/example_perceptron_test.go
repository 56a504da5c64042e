package train_test

import (
	"context"
	"errors"
	"fmt"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/optim"
)

// A perceptron from Gorgonia's own ops learns exclusive or. Only its weights use Heed: as parameters, so that Fit
// trains them and keeps the best.
func ExampleFit_perceptron() {
	params, err := layers.NewParams(tensor.Float64, 1)
	check(err)
	hidden, err1 := params.New("hidden", layers.Init{}, 3, 8)
	out, err2 := params.New("out", layers.Init{}, 8, 1)
	check(errors.Join(err1, err2))
	questions := tensor.New(tensor.WithShape(4, 3), tensor.WithBacking([]float64{0, 0, 1, 0, 1, 1, 1, 0, 1, 1, 1, 1})) // the third input is always 1, for a bias
	answers := tensor.New(tensor.WithShape(4, 1), tensor.WithBacking([]float64{0, 1, 1, 0}))
	known, err := train.Tensors(questions, answers)
	check(err)
	result, err := train.Fit(context.Background(), train.Problem{
		Params: params, Train: known,
		Loss: func(b *layers.Build, inputs G.Nodes) (layers.Loss, []train.Metric, error) {
			w1, err := b.Bind(inputs[0].Graph(), hidden)
			if err != nil {
				return layers.Loss{}, nil, err
			}
			w2, err := b.Bind(inputs[0].Graph(), out)
			if err != nil {
				return layers.Loss{}, nil, err
			}
			h := G.Must(G.Tanh(G.Must(G.Mul(inputs[0], w1)))) // (B, 3) x (3, 8) -> (B, 8)
			y := G.Must(G.Mul(h, w2))                         // (B, 8) x (8, 1) -> (B, 1)
			mean, err := G.Mean(G.Must(G.Square(G.Must(G.Sub(y, inputs[1])))))
			return layers.Loss{Mean: mean}, nil, err
		},
	}, train.Config{
		BatchSize: 4, MaxEpochs: 2000,
		Optimizer: optim.Config{LearningRate: 0.02, WeightDecay: 0.01},
		Stopping:  train.StoppingConfig{StoppingThreshold: new(0.001)},
	}, train.RunOptions{})
	check(err)
	fmt.Println("stopped early:", result.StoppedEarly)
	// Output:
	// stopped early: true
}
