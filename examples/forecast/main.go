// Forecast learns to continue a series of numbers: carbon dioxide in the air over Mauna Loa, month by month, two years
// ahead. It shows how to give a transformer numbers as inputs, without a vocabulary:
//
//	change = Decoder(growth·Wᵀ + b),  growth = each month minus the month before
//
// A linear layer replaces the embedding table. The head has one output per future month: the difference from now. The
// decoder is causal, so every month of a window is an example. The model sees changes and not levels, because later
// levels are higher than all levels in training.
//
// It trains on 1958 to 1981 and validates on 1982 to 1991. Then the model and three rules of thumb forecast two years
// from every month between December 1991 and December 1999. The program prints their mean absolute errors in parts per
// million. It draws some of the forecasts in runs/forecast.png, and writes a page about the training in
// runs/forecast.html. With --watch, it serves a live page while it trains.
//
//	go run ./examples/forecast --seed 2 --window 48 --watch localhost:8080
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/examples/internal/example"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/optim"
	"github.com/heed-go/heed/train/report"
)

const (
	ahead   = 24            // number of months to forecast
	learned = 24*12 - 2     // number of months for training: March 1958 to December 1981
	known   = learned + 120 // number of months for training and validation, to December 1991; forecasts are compared with the rest
)

func main() { example.Main(run) }

func run(w io.Writer, args []string) error {
	flags, seed := example.New("forecast")
	window := flags.Size("window", 36, 90, "months that the model sees")
	heads := flags.Size("heads", 4, 16, "heads per block, each 8 wide")
	epochs := flags.Size("epochs", 100, 1000, "maximum number of epochs")
	out := flags.String("out", filepath.Join("runs", "forecast.png"), "draw the picture in this `FILE`, and write the report beside it")
	watch := flags.String("watch", "", "serve a live page at this `ADDRESS`, such as localhost:8080")
	if err := flags.Parse(args); err != nil {
		return err
	}
	series, err := read(record)
	if err != nil {
		return err
	}
	params := example.Must(layers.NewParams(tensor.Float32, *seed))
	m := newModel(params, *heads)
	examples := example.Must(train.Tensors(windows(series[:learned], *window)))
	unseen := example.Must(train.Tensors(windows(series[learned:known], *window)))
	config := train.Config{
		BatchSize: 16, MaxEpochs: *epochs,
		Optimizer: optim.Config{LearningRate: 0.005, WeightDecay: 0.01},
		Stopping:  train.StoppingConfig{Patience: 10},
	}
	options := train.RunOptions{Seed: *seed, Log: w}
	live := report.NewLive(examples.Steps(config.BatchSize), config, options)
	options.OnStep, options.OnCheck = live.Step, live.Check
	if *watch != "" {
		listener, err := net.Listen("tcp", *watch)
		if err != nil {
			return err
		}
		defer listener.Close()
		page, err := live.Handler("Forecast", "Carbon dioxide in the air, two years ahead.")
		if err != nil {
			return err
		}
		go http.Serve(listener, page)
		fmt.Fprintf(w, "Live page: http://%s\n", listener.Addr())
	}
	result, err := train.Fit(context.Background(), train.Problem{
		Params: params, Loss: m.loss, Train: examples, Validation: unseen,
	}, config, options)
	if err != nil {
		return err
	}
	live.End(result.StoppedBecause)
	forecasts, err := m.forecast(series, *window)
	if err != nil {
		return err
	}
	decoder := rule{"the decoder", func(now, h int) float32 { return forecasts[now-known+1][h-1] }}
	rules := append(thumb(series), decoder)
	show(w, series, rules)
	if err := draw(*out, series, rules[1], decoder); err != nil {
		return err
	}
	fmt.Fprintf(w, "Forecasts of two years, and the measured numbers: %s\n", *out)
	run := report.Run{Title: "Forecast", About: "carbon dioxide in the air, two years ahead", Result: result, Config: config, Params: params.Count()}
	name := strings.TrimSuffix(*out, filepath.Ext(*out)) + ".html"
	if err := run.Save(name); err != nil {
		return err
	}
	fmt.Fprintf(w, "How training went: %s\n", name)
	return nil
}

// windows returns all windows of T months, with one month before and 24 after each window. growth, (N, T, 1), is each
// month minus the month before. change, (N, T, 24), is each of the 24 later months minus the month.
func windows(series []float32, length int) (growth, change *tensor.Dense) {
	n := len(series) - length - ahead
	var known, out []float32
	for first := 1; first <= n; first++ {
		for now := first; now < first+length; now++ {
			known = append(known, series[now]-series[now-1])
			for h := 1; h <= ahead; h++ {
				out = append(out, series[now+h]-series[now])
			}
		}
	}
	return tensor.New(tensor.WithShape(n, length, 1), tensor.WithBacking(known)), tensor.New(tensor.WithShape(n, length, ahead), tensor.WithBacking(out))
}

// model is a linear layer for the inputs, and a decoder.
type model struct {
	embed   *layers.Linear
	decoder *layers.Decoder
}

func newModel(p *layers.Params, heads int) model {
	dim := 8 * heads
	return model{
		embed: example.Must(layers.NewLinear(p.Scope("embed"), 1, dim, layers.LinearConfig{})),
		decoder: example.Must(layers.NewDecoder(p.Scope("decoder"), layers.ModelConfig{
			Dim: dim, Layers: 2, Outputs: ahead, Positions: layers.Rotary{},
			Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: heads}, Dropout: 0.2},
		})),
	}
}

// forward adds the model to a graph: (B, T, 1) -> (B, T, 24).
func (m model) forward(b *layers.Build, growth *G.Node) *G.Node {
	x := G.Must(m.embed.Forward(b, growth))               // (B, T, 1) -> (B, T, D)
	return G.Must(m.decoder.Forward(b, x, layers.Mask{})) // (B, T, D) -> (B, T, 24)
}

// loss adds the mean absolute error of a batch to a graph.
func (m model) loss(b *layers.Build, inputs G.Nodes) (layers.Loss, []train.Metric, error) {
	loss, err := layers.MeanAbsoluteError(b, m.forward(b, inputs[0]), inputs[1], nil)
	return loss, nil, err
}

// forecast returns the 24 forecasts from each month, beginning with the last known month.
func (m model) forecast(series []float32, length int) ([][ahead]float32, error) {
	growth, _ := windows(series[known-length-1:], length) // (N, T, 1)
	f, err := layers.NewFunction(func(b *layers.Build, g *G.ExprGraph) (inputs, outputs G.Nodes, err error) {
		x := G.NewTensor(g, tensor.Float32, 3, G.WithShape(growth.Shape()...), G.WithName("growth"))
		return G.Nodes{x}, G.Nodes{m.forward(b, x)}, nil
	})
	if err != nil {
		return nil, err
	}
	values, err := f.Call(growth)
	if err != nil {
		return nil, err
	}
	change := values[0].Data().([]float32) // (N, T, 24); only the last month of each window counts
	forecasts := make([][ahead]float32, growth.Shape()[0])
	for i := range forecasts {
		for h := range ahead {
			forecasts[i][h] = series[known-1+i] + change[(i*length+length-1)*ahead+h]
		}
	}
	return forecasts, nil
}
