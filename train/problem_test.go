package train_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
)

// TestFitNumbersOfItsOwn adds to the loss the mean square of numbers that aren't inputs.
func TestFitNumbersOfItsOwn(t *testing.T) {
	start := []float32{1, 2, 3, 4}
	other := must.Get(layers.NewParams(tensor.Float32, 1))(t)
	for _, c := range []struct {
		name    string
		params  func(p train.Problem) *layers.Params // Params that have the numbers; nil if they are a plain node
		fixed   bool
		want    string // part of the error; empty if there is none
		trained bool
	}{
		{"a parameter", func(p train.Problem) *layers.Params { return p.Params }, false, "", true},
		{"a fixed parameter", func(p train.Problem) *layers.Params { return p.Params }, true, "", false},
		{"a parameter of other Params", func(train.Problem) *layers.Params { return other }, false, `"numbers", which is neither an input of Loss nor a parameter`, false},
		{"a fixed parameter of other Params", func(train.Problem) *layers.Params { return other.Scope("fixed") }, true, "", false},
		{"a node", nil, false, `"numbers", which is neither`, false},
		{"a fixed node", nil, true, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := digits(t, 1)
			numbers := &layers.Param{Name: "numbers", Value: tensor.New(tensor.WithShape(4), tensor.Of(tensor.Float32))}
			if c.params != nil {
				numbers = must.Get(c.params(p).New("numbers", layers.Init{}, 4))(t)
			}
			copy(numbers.Value.Float32s(), start)
			afterLoss(&p, func(b *layers.Build, inputs G.Nodes, loss *layers.Loss) {
				n, g := (*G.Node)(nil), inputs[0].Graph()
				if c.params == nil {
					n = G.NewVector(g, tensor.Float32, G.WithName("numbers"), G.WithShape(4), G.WithValue(numbers.Value))
				} else {
					n = G.Must(b.Bind(g, numbers))
				}
				if c.fixed {
					b.Fixed = append(b.Fixed, n)
				}
				loss.Mean = G.Must(G.Add(loss.Mean, G.Must(G.Mean(G.Must(G.Square(n))))))
			})
			wantError(t, "Fit", failure(train.Fit(context.Background(), p, train.Config{BatchSize: 16, MaxEpochs: 2}, train.RunOptions{})), c.want)
			if trained := !slices.Equal(numbers.Value.Float32s(), start); trained != c.trained {
				t.Errorf("the numbers are %v (trained: %t, want %t)", numbers.Value, trained, c.trained)
			}
		})
	}
}

// TestFitComputesNoGradientOfInputs checks that no gradient of a training graph is without a reader, such as a gradient
// of the inputs, although inputs and targets are float32.
func TestFitComputesNoGradientOfInputs(t *testing.T) {
	params := must.Get(layers.NewParams(tensor.Float32, 1))(t)
	linear := must.Get(layers.NewLinear(params, 3, 1, layers.LinearConfig{NoBias: true}))(t)
	var g *G.ExprGraph
	p := train.Problem{
		Params: params,
		Loss: func(b *layers.Build, inputs G.Nodes) (layers.Loss, []train.Metric, error) {
			g = inputs[0].Graph()
			y, err := linear.Forward(b, inputs[0])
			if err != nil {
				return layers.Loss{}, nil, err
			}
			loss, err := layers.MeanSquaredError(b, y, inputs[1], nil)
			return loss, nil, err
		},
		Train: must.Get(train.Tensors(tensor.New(tensor.WithShape(2, 3), tensor.WithBacking([]float32{1, 2, 3, 4, 5, 6})),
			tensor.New(tensor.WithShape(2, 1), tensor.WithBacking([]float32{1, 2}))))(t),
	}
	must.Get(train.Fit(context.Background(), p, train.Config{BatchSize: 2, MaxEpochs: 1}, train.RunOptions{}))(t)
	var results G.Nodes
	for _, n := range g.AllNodes() {
		if g.To(n.ID()).Len() == 0 && n.Type() != nil { // the node of a gorgonia.Read has no type
			results = append(results, n)
		}
	}
	if len(results) != 1 || !slices.Equal(results[0].Shape(), []int{1, 3}) {
		t.Errorf("nobody reads %v, want only the gradient of the weight", results)
	}
}

func TestFitErrors(t *testing.T) {
	counts := func(count float64) func(p *train.Problem, _ *setup) {
		return func(p *train.Problem, _ *setup) { *p = counted(*p, func([]int) float32 { return float32(count) }) }
	}
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		change func(*train.Problem, *setup)
		want   string
	}{
		"no end":              {func(_ *train.Problem, c *setup) { c.MaxEpochs = 0 }, "no end"},
		"nothing to train on": {func(p *train.Problem, _ *setup) { p.Train.Len = 0 }, "Train needs a Len of 1 example or more, got 0"},
		"no order":            {func(p *train.Problem, _ *setup) { p.Train.Order = 3 }, "Order of Shuffled, InOrder or Fresh, got 3"},
		"buckets that are fresh": {func(p *train.Problem, _ *setup) {
			p.Train.Order, p.Train.Bucket = train.Fresh, func(int) int { return 0 }
		}, "Train can't have a Bucket"},
		"resume nothing": {func(_ *train.Problem, c *setup) { c.Resume = true }, "Checkpoint"},
		"checkpoint of another solver": {func(_ *train.Problem, c *setup) {
			c.Checkpoint, c.Solver = "x", G.NewVanillaSolver()
		}, "*optim.Solver"},
		"batch fails": {func(p *train.Problem, _ *setup) {
			p.Train.Batch = func([]int) ([]*tensor.Dense, error) { return nil, broken }
		}, "broken"},
		"too few values": {func(p *train.Problem, _ *setup) {
			p.Train.Batch = func([]int) ([]*tensor.Dense, error) { return nil, nil }
		}, "it has no tensors"},
		"a value is nil": {func(p *train.Problem, _ *setup) {
			p.Train = changed(p.Train, func(_ []int, values []*tensor.Dense) { values[1] = nil })
		}, "batch of epoch 0, step 0: value 1 is nil or an empty tensor"},
		"wrong shape": {func(p *train.Problem, _ *setup) {
			p.Validation = changed(p.Validation, func(_ []int, values []*tensor.Dense) {
				values[0] = tensor.New(tensor.WithShape(3, 5), tensor.Of(tensor.Float32))
			})
		}, "(3, 5)"},
		"no target counts":         {func(p *train.Problem, _ *setup) { p.Train = ignored(p.Train, 0) }, "train: epoch 0, step 0: no target of the batch counts: the Count of its loss is 0: leave out"},
		"a negative Count":         {counts(-1), "train: epoch 0, step 0: the Count of the loss must be at least 0 and finite, got -1"},
		"a Count that is NaN":      {counts(nan), "at least 0 and finite, got NaN"},
		"an infinite Count":        {counts(inf), "at least 0 and finite, got +Inf"},
		"no target to validate on": {func(p *train.Problem, _ *setup) { p.Validation = ignored(p.Validation, 0) }, "train: no target counts in validation: the Count of the loss is 0 in every batch"},
		"a negative Count in validation": {func(p *train.Problem, c *setup) {
			c.CheckEvery = 1
			*p = counted(*p, func(examples []int) float32 { return float32(16 - examples[0]) })
		}, "validation batch 1 of epoch 0: the Count of the loss must be at least 0 and finite, got -34"},
		"a Count that isn't a scalar": {func(p *train.Problem, _ *setup) {
			afterLoss(p, func(_ *layers.Build, inputs G.Nodes, loss *layers.Loss) { loss.Count = inputs[0] })
		}, "the Count of the loss must be a scalar node in the graph of the inputs, or nil"},
		"a Count only in training": {func(p *train.Problem, _ *setup) {
			afterLoss(p, func(b *layers.Build, _ G.Nodes, loss *layers.Loss) {
				if !b.Training {
					loss.Count = nil
				}
			})
		}, "every graph of the loss must have a Count, or none"},
		"a Count that is an int": {func(p *train.Problem, _ *setup) {
			afterLoss(p, func(_ *layers.Build, inputs G.Nodes, loss *layers.Loss) {
				loss.Count = G.NewScalar(inputs[0].Graph(), tensor.Int, G.WithName("count"), G.WithValue(3))
			})
		}, "a loss, its Count or a metric must be a float32 or float64, got int"},
		"callback fails": {func(_ *train.Problem, c *setup) {
			c.OnCheck = func([]train.Check, bool) (bool, error) { return false, broken }
		}, "broken"},
		"folder missing": {func(_ *train.Problem, c *setup) {
			c.Checkpoint = filepath.Join(t.TempDir(), "missing", "c")
		}, "missing"},
		"a loss without parameters": {func(p *train.Problem, _ *setup) {
			p.Loss = func(_ *layers.Build, inputs G.Nodes) (layers.Loss, []train.Metric, error) {
				mean, err := G.Sum(inputs[0])
				return layers.Loss{Mean: mean}, nil, err
			}
		}, "no parameter"},
		"a loss whose parameters are frozen": {func(p *train.Problem, _ *setup) {
			must.Do(t, p.Params.Freeze("up", "down"))
		}, "all parameters of the loss are frozen, so there is nothing to train: leave one of them unfrozen, or compute the loss with Evaluate"},
		"a target that isn't a class": {func(p *train.Problem, _ *setup) {
			p.Train = changed(p.Train, func(_ []int, values []*tensor.Dense) { values[1].Data().([]int)[3] = 4 })
		}, "train: epoch 0, step 0: cross-entropy: target 4 at position 3 isn't one of 4 classes"},
		"a target that isn't a class in validation": {func(p *train.Problem, _ *setup) {
			p.Validation = changed(p.Validation, func(_ []int, values []*tensor.Dense) { values[1].Data().([]int)[3] = 4 })
		}, "train: validation batch 0 of epoch 0: cross-entropy: target 4 at position 3 isn't one of 4 classes"},
		"a loss of another graph": {func(p *train.Problem, _ *setup) {
			p.Loss = func(b *layers.Build, inputs G.Nodes) (layers.Loss, []train.Metric, error) {
				return layers.Loss{Mean: G.NewScalar(G.NewGraph(), tensor.Float32)}, nil, nil
			}
		}, "a scalar node in the graph of the inputs"},
		"an input made by Loss": {func(p *train.Problem, _ *setup) {
			beforeLoss(p, func(_ *layers.Build, inputs G.Nodes) {
				inputs[0] = G.NewMatrix(inputs[0].Graph(), tensor.Float32, G.WithShape(inputs[0].Shape()...), G.WithName("mine"))
			})
		}, `the loss reads "mine", which has no value: use the inputs`},
		"a parameter that is bound and not used": {func(p *train.Problem, _ *setup) {
			w := must.Get(p.Params.New("w", layers.Zeros(), 1))(t)
			beforeLoss(p, func(b *layers.Build, inputs G.Nodes) { G.Must(b.Bind(inputs[0].Graph(), w)) })
		}, "the loss must depend on every parameter that it binds"},
	} {
		t.Run(name, func(t *testing.T) {
			p, config := digits(t, 1), setup{train.Config{BatchSize: 16, MaxEpochs: 1}, train.RunOptions{}}
			c.change(&p, &config)
			wantError(t, "Fit", failure(train.Fit(context.Background(), p, config.Config, config.RunOptions)), c.want)
		})
	}
}
