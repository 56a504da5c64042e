package train_test

import (
	"math"
	"math/rand/v2"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/optim"
)

// unequal returns problems whose examples, the rows of tensors, count differently. Their losses are by name.
func unequal(t *testing.T) map[string]train.Problem {
	const n = 16
	rng := rand.New(rand.NewPCG(1, 1))
	x, targets, weights := make([]float32, n*4), make([]int, n), make([]float32, n)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	for i := range n { // later examples count more
		targets[i], weights[i] = rng.IntN(4), float32(i*i)/8
		if i < 3 || i == 5 {
			targets[i] = layers.Ignore
		}
		if i > 8 {
			targets[i] = 3
		}
	}
	data := must.Get(train.Tensors(tensor.New(tensor.WithShape(n, 4), tensor.WithBacking(x)), tensor.New(tensor.WithShape(n), tensor.WithBacking(targets)),
		tensor.New(tensor.WithShape(n), tensor.WithBacking(weights)), tensor.New(tensor.WithShape(n, 4), tensor.WithBacking(x[:n*4]))))(t)
	problems := map[string]train.Problem{}
	for name, loss := range map[string]func(b *layers.Build, y *G.Node, in G.Nodes) (layers.Loss, error){
		"targets that are ignored": func(b *layers.Build, y *G.Node, in G.Nodes) (layers.Loss, error) {
			return layers.CrossEntropy(b, y, in[1], layers.CrossEntropyOptions{})
		},
		"weights of positions": func(b *layers.Build, y *G.Node, in G.Nodes) (layers.Loss, error) {
			return layers.CrossEntropy(b, y, in[1], layers.CrossEntropyOptions{Weights: in[2]})
		},
		"weights of classes": func(b *layers.Build, y *G.Node, in G.Nodes) (layers.Loss, error) {
			return layers.CrossEntropy(b, y, in[1], layers.CrossEntropyOptions{ClassWeights: []float64{0, 1, 0.5, 7}})
		},
		"weights of numbers": func(b *layers.Build, y *G.Node, in G.Nodes) (layers.Loss, error) {
			return layers.MeanSquaredError(b, y, in[3], in[2])
		},
		"numbers": func(b *layers.Build, y *G.Node, in G.Nodes) (layers.Loss, error) {
			return layers.HuberError(b, y, in[3], nil, 0.5)
		},
		"examples of a plain mean": func(b *layers.Build, y *G.Node, in G.Nodes) (layers.Loss, error) {
			mean, err := G.Mean(G.Must(G.Square(y)))
			return layers.Loss{Mean: mean}, err
		},
		"a loss with a term": func(b *layers.Build, y *G.Node, in G.Nodes) (layers.Loss, error) {
			loss, err := layers.CrossEntropy(b, y, in[1], layers.CrossEntropyOptions{Weights: in[2]})
			if err == nil {
				loss.Mean, err = G.Add(loss.Mean, G.Must(G.Mean(G.Must(G.Square(b.Learnables()[0])))))
			}
			return loss, err
		},
	} {
		params := must.Get(layers.NewParams(tensor.Float32, 1))(t)
		linear := must.Get(layers.NewLinear(params, 4, 4, layers.LinearConfig{}))(t)
		problems[name] = train.Problem{Params: params, Train: data, Validation: data, Loss: func(b *layers.Build, in G.Nodes) (layers.Loss, []train.Metric, error) {
			y, err := linear.Forward(b, in[0])
			if err != nil {
				return layers.Loss{}, nil, err
			}
			l, err := loss(b, y, in)
			return l, []train.Metric{{Name: "same", Sum: l.Mean}}, err
		}}
	}
	return problems
}

// The gradient of a step is the mean over the targets that count, however many micro-batches compute it.
func TestStepIsTheMeanOfItsTargets(t *testing.T) {
	for name := range unequal(t) {
		fit := func(batch, micro int) ([][]float32, train.Check) {
			p := unequal(t)[name]
			p.Train.Order, p.Validation.Len = train.InOrder, 0
			r := fitted(t, p, train.Config{BatchSize: batch, MicroBatches: micro, MaxEpochs: 1}, train.RunOptions{Solver: &optim.Solver{Rule: optim.SGD{}, LearningRate: 1}})
			return values(p.Params), r.History[0]
		}
		want, whole := fit(16, 1)
		for _, c := range []struct{ batch, micro int }{{16, 2}, {16, 4}, {16, 8}, {18, 3}, {22, 2}} { // also with a last micro-batch of fewer examples
			got, check := fit(c.batch, c.micro)
			if d := distance(got, want); d > 1e-6 {
				t.Errorf("%s, %d micro-batches: gradients differ by %v from those of one", name, c.micro, d)
			}
			if math.Abs(check.TrainLoss-whole.TrainLoss) > 1e-6 || math.Abs(check.Metrics["train_same"]-check.TrainLoss) > 1e-12 {
				t.Errorf("%s, %d micro-batches: the loss is %v, want %v", name, c.micro, check, whole)
			}
		}
	}
}

// The validation loss is the mean over the targets that count, however large the batches are.
func TestValidationIsTheMeanOfItsTargets(t *testing.T) {
	for name, p := range unequal(t) {
		losses := map[int]float64{}
		for _, p.ValidationSize = range []int{16, 5, 1} {
			got := must.Get(train.Evaluate(t.Context(), p))(t)
			losses[p.ValidationSize] = got["val_loss"]
			if want := losses[16]; math.Abs(got["val_loss"]-want) > 1e-6 || math.Abs(got["val_same"]-want) > 1e-6 {
				t.Errorf("%s: with batches of %d, the loss is %v and its metric %v, want %v", name, p.ValidationSize, got["val_loss"], got["val_same"], want)
			}
		}
	}
}

// distance returns the largest difference between two elements.
func distance(a, b [][]float32) (d float64) {
	for i := range a {
		for j := range a[i] {
			d = max(d, math.Abs(float64(a[i][j]-b[i][j])))
		}
	}
	return d
}

// A Count may be computed by layers that share memory with the loss. Neither the weights of a step nor its gradient
// change then.
func TestCountWithBuffers(t *testing.T) {
	fit := func(computed bool) [][]float32 {
		p := unevenDigits(t, 0.1)
		if computed {
			afterLoss(&p, func(b *layers.Build, in G.Nodes, loss *layers.Loss) {
				ones := G.Must(layers.ReLU.Forward(b, G.Must(layers.GELU.Forward(b, in[0]))))
				zero := G.Must(G.Reshape(G.Must(G.HadamardProd(G.Must(G.Sum(ones)), G.NewConstant(float32(0)))), tensor.Shape{1}))
				count, err := layers.MeanSquaredError(b, zero, zero, nil)
				if err != nil {
					panic(err) // t.Fatal is only for the goroutine of the test
				}
				loss.Count = G.Must(G.Mul(loss.Count, count.Count)) // times 1
			})
		}
		fitted(t, p, train.Config{BatchSize: 16, MicroBatches: 4, MaxEpochs: 1}, train.RunOptions{Workers: 2})
		return values(p.Params)
	}
	if !same(fit(true), fit(false)) {
		t.Error("with a Count that layers compute, training gives other parameters")
	}
}
