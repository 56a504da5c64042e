package report_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"net/http/httptest"
	"strings"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/optim"
	"github.com/heed-go/heed/train/report"
)

// A program that calls train.Fit serves a live page during training, and writes a page about the run at the end.
func ExampleRun() {
	params, err := layers.NewParams(tensor.Float32, 1)
	check(err)
	line, err := layers.NewLinear(params, 1, 1, layers.LinearConfig{})
	check(err)
	x := []float32{-2, -1, 0, 1, 2, 3, 4, 5}
	y := make([]float32, len(x))
	for i := range x {
		y[i] = 3*x[i] - 1
	}
	points, err := train.Tensors(tensor.New(tensor.WithShape(8, 1), tensor.WithBacking(x)), tensor.New(tensor.WithShape(8, 1), tensor.WithBacking(y)))
	check(err)
	problem := train.Problem{
		Params: params,
		Loss: func(b *layers.Build, inputs G.Nodes) (layers.Loss, []train.Metric, error) {
			outputs, err := line.Forward(b, inputs[0]) // (B, 1) -> (B, 1)
			if err != nil {
				return layers.Loss{}, nil, err
			}
			loss, err := layers.MeanSquaredError(b, outputs, inputs[1], nil)
			return loss, nil, err
		},
		Train: points, Validation: points,
	}
	config := train.Config{BatchSize: 4, MaxEpochs: 30, Optimizer: optim.Config{LearningRate: 0.1, WeightDecay: 0.01}}
	var options train.RunOptions

	live := report.NewLive(problem.Train.Steps(config.BatchSize), config, options)
	options.OnStep, options.OnCheck = live.Step, live.Check
	handler, err := live.Handler("A line", "8 points")
	check(err)
	server := httptest.NewServer(handler) // usually http.ListenAndServe("localhost:8080", handler)
	defer server.Close()

	result, err := train.Fit(context.Background(), problem, config, options)
	check(err)
	live.End(result.StoppedBecause)

	run := &report.Run{Title: "A line", About: "a line through 8 points", Result: result, Config: config, Params: params.Count()}
	var page bytes.Buffer // usually a file
	check(run.Write(&page))
	for _, sentence := range []string{"A model of 2 parameters learned a line through 8 points.", "Training stopped because the limit of 30 epochs is reached"} {
		fmt.Println(strings.Contains(page.String(), sentence))
	}
	// Output:
	// true
	// true
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
