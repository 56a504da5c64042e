package train_test

import (
	"context"
	"errors"
	"fmt"
	"math"

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

// A forecaster uses attention over the last 16 values of a series to predict the next value. It trains with the squared
// error, and stops when the mean absolute error over later values, which it isn't trained on, no longer falls.
func ExampleFit_forecaster() {
	params, err := layers.NewParams(tensor.Float32, 1)
	check(err)
	embed, err1 := layers.NewLinear(params.Scope("embed"), 1, 16, layers.LinearConfig{})
	model, err2 := layers.NewSequenceClassifier(params, layers.SequenceClassifierConfig{
		Model: layers.ModelConfig{Dim: 16, Layers: 1, Outputs: 1, Positions: layers.Learned{MaxLen: 16}},
	})
	check(errors.Join(err1, err2))
	series := func(from, n int) train.Dataset { // the sum of two waves
		x, y := make([]float32, 0, 16*n), make([]float32, n)
		wave := func(t int) float32 { return float32(math.Sin(0.3*float64(t)) + 0.5*math.Sin(0.71*float64(t))) }
		for i := range n {
			for t := range 16 {
				x = append(x, wave(from+i+t))
			}
			y[i] = wave(from + i + 16)
		}
		d, err := train.Tensors(tensor.New(tensor.WithShape(n, 16, 1), tensor.WithBacking(x)), tensor.New(tensor.WithShape(n, 1), tensor.WithBacking(y)))
		check(err)
		return d
	}
	result, err := train.Fit(context.Background(), train.Problem{
		Params: params, Train: series(0, 500), Validation: series(600, 100),
		Loss: func(b *layers.Build, inputs G.Nodes) (layers.Loss, []train.Metric, error) {
			x, err := embed.Forward(b, inputs[0]) // (B, 16, 1) -> (B, 16, 16)
			if err != nil {
				return layers.Loss{}, nil, err
			}
			y, err := model.Forward(b, x, layers.Mask{}) // (B, 16, 16) -> (B, 1)
			if err != nil {
				return layers.Loss{}, nil, err
			}
			absolute, err := train.MeanAbsoluteError(b, y, inputs[1], nil)
			if err != nil {
				return layers.Loss{}, nil, err
			}
			loss, err := layers.MeanSquaredError(b, y, inputs[1], nil)
			return loss, []train.Metric{absolute}, err
		},
	}, train.Config{
		BatchSize: 50, MaxEpochs: 100,
		Optimizer: optim.Config{LearningRate: 0.005, WeightDecay: 0.01},
		Stopping:  train.StoppingConfig{Monitor: "val_mean_absolute_error", Mode: "min", Patience: 5},
	}, train.RunOptions{})
	check(err)
	off := result.Best.Metrics["val_mean_absolute_error"]
	fmt.Printf("stopped early: %t; off by less than 0.03: %t\n", result.StoppedEarly, off < 0.03)
	// Output:
	// stopped early: true; off by less than 0.03: true
}
