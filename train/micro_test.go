package train_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/memory"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/optim"
)

// unevenDigits is digits with some examples that don't count, such as examples 0 and 1 of every 16.
func unevenDigits(t *testing.T, dropout float64) train.Problem {
	t.Helper()
	p := digitsWith(t, 1, dropout)
	p.Train = changed(p.Train, func(examples []int, values []*tensor.Dense) {
		targets := values[1].Data().([]int)
		for i, e := range examples {
			if e%16 < 2 || e%16+e/16%3 == 0 {
				targets[i] = layers.Ignore
			}
		}
	})
	return p
}

func TestWorkersChangeNoBit(t *testing.T) {
	for i, solver := range []func() G.Solver{
		func() G.Solver { return optim.NewAdamW(0.02) },
		func() G.Solver { return G.NewAdamSolver(G.WithLearnRate(0.02)) },
	} {
		for _, micro := range []int{1, 2, 3, 4, 5, 6, 7, 8, 16} {
			if testing.Short() && micro != 1 && micro != 4 && micro != 5 {
				continue
			}
			if i > 0 && micro != 4 { // the same code works for each solver
				continue
			}
			fit := func(workers, procs int) ([]train.Check, [][]float32) {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
				p, batch := unevenDigits(t, 0.1), 16
				if batch%micro > 0 { // the last step is short, and so is its last micro-batch
					batch, p.Train.Len = 2*micro, 11*micro
				}
				p.Loss = added(p.Loss, func(_ *layers.Build, inputs G.Nodes, loss *G.Node) (*G.Node, []train.Metric) {
					columns := G.Must(G.Sum(inputs[0], 0)) // a vector of rounded sums
					return loss, []train.Metric{{Name: "columns", Sum: columns, Value: func(sums []float64) float64 { return sums[1] / sums[0] }}}
				})
				r := fitted(t, p, train.Config{BatchSize: batch, MicroBatches: micro, MaxEpochs: 2}, train.RunOptions{Seed: 5, Solver: solver(), Workers: workers})
				return r.History, values(p.Params)
			}
			wantHistory, want := fit(1, 1)
			for _, c := range []struct{ workers, procs int }{{1, 2}, {2, 1}, {2, 2}, {3, 2}, {4, 5}, {100, 2}, {0, 1}, {0, 3}} {
				history, got := fit(c.workers, c.procs)
				if !same(got, want) || !reflect.DeepEqual(history, wantHistory) {
					t.Errorf("%T, %d micro-batches: %d workers on %d processors give other results than one worker on one processor", solver(), micro, c.workers, c.procs)
				}
			}
		}
	}
}

// The gradients of a step are added up in a binary tree, which splits n micro-batches at the largest power of two below
// n. Several processes, each with a part of the tree, then get the same bits.
func TestGradientsAreATree(t *testing.T) {
	const width = 100
	var tree func(parts [][]float32) []float32
	tree = func(parts [][]float32) []float32 {
		if len(parts) == 1 {
			return parts[0]
		}
		half := 1
		for 2*half < len(parts) {
			half *= 2
		}
		a, b := tree(parts[:half]), tree(parts[half:])
		sum := make([]float32, width)
		for i := range sum {
			sum[i] = a[i] + b[i]
		}
		return sum
	}
	for micro := 2; micro <= 9; micro++ {
		x, parts := make([]float32, micro*width), make([][]float32, micro)
		rng := rand.New(rand.NewPCG(1, uint64(micro)))
		for i := range x {
			x[i] = float32(rng.NormFloat64())
			parts[i/width] = append(parts[i/width], x[i]*float32(1/float64(micro)))
		}
		want := tree(parts)
		for workers := 1; workers <= micro; workers++ {
			data := must.Get(train.Tensors(tensor.New(tensor.WithShape(micro, width), tensor.WithBacking(x))))(t)
			data.Order = train.InOrder
			params := must.Get(layers.NewParams(tensor.Float32, 1))(t)
			w := must.Get(params.New("w", layers.Zeros(), 1, width))(t)
			p := train.Problem{Params: params, Train: data, Loss: func(b *layers.Build, inputs G.Nodes) (layers.Loss, []train.Metric, error) {
				n, err := b.Bind(inputs[0].Graph(), w)
				if err != nil {
					return layers.Loss{}, nil, err
				}
				return layers.Loss{Mean: G.Must(G.Sum(G.Must(G.HadamardProd(n, inputs[0]))))}, nil, nil // the gradient is the input
			}}
			solver := &optim.Solver{Rule: optim.SGD{}, LearningRate: 1}
			fitted(t, p, train.Config{BatchSize: micro, MicroBatches: micro, MaxEpochs: 1}, train.RunOptions{Workers: workers, Solver: solver})
			for i, got := range w.Value.Float32s() {
				if got != -want[i] {
					t.Fatalf("%d micro-batches, %d workers: the gradient is %v at element %d, want %v", micro, workers, -got, i, want[i])
				}
			}
		}
	}
}

// If nothing counts in a micro-batch, its loss and its gradient may be NaN. Fit ignores both.
func TestMicroBatchOfNothing(t *testing.T) {
	p := unevenDigits(t, 0)
	p.Loss = added(p.Loss, func(_ *layers.Build, inputs G.Nodes, loss *G.Node) (*G.Node, []train.Metric) {
		loss = G.Must(G.Mul(loss, inputs[2]))
		return loss, []train.Metric{{Name: "perplexity", Sum: loss, Of: math.Exp}}
	})
	var nothing int
	p.Validation.Len = 0
	p.Train = changed(p.Train, func(examples []int, values []*tensor.Dense) {
		if examples[0]%16 == 4 {
			nothing++
			for i := range examples {
				values[1].Data().([]int)[i] = layers.Ignore
			}
		}
	})
	plain := p
	var want [][]float32
	for _, scale := range []float32{0, float32(math.NaN()), float32(math.Inf(1))} {
		for _, workers := range []int{1, 2, 4} {
			for _, q := range p.Params.All() {
				q.Value.Memset(float32(0.1))
			}
			p := withInput(plain, func(examples []int) float32 {
				if examples[0]%16 == 4 {
					return scale
				}
				return 1
			})
			r, err := train.Fit(t.Context(), p, train.Config{BatchSize: 16, MicroBatches: 4, CheckEvery: 3}, train.RunOptions{MaxSteps: 3, Workers: workers, Solver: G.NewVanillaSolver(G.WithLearnRate(0.1))})
			if err != nil {
				t.Fatalf("loss times %v, %d workers: %v", scale, workers, err)
			}
			if c := r.Best; c.Metrics["train_perplexity"] != math.Exp(c.TrainLoss) {
				t.Errorf("loss times %v, %d workers: got %v, want the perplexity of its loss", scale, workers, c)
			}
			if got := values(p.Params); want == nil {
				want = got
			} else if !same(got, want) {
				t.Errorf("loss times %v, %d workers: got parameters %v, want %v", scale, workers, got, want)
			}
		}
	}
	if nothing == 0 {
		t.Error("no micro-batch was without targets that count")
	}
}

func TestMicroBatchesDropDifferently(t *testing.T) {
	fit := func(micro int) [][]float32 {
		p := unevenDigits(t, 0.5)
		fitted(t, p, train.Config{BatchSize: 16, MicroBatches: micro, MaxEpochs: 1}, train.RunOptions{})
		return values(p.Params)
	}
	if same(fit(2), fit(4)) {
		t.Error("with dropout, 2 and 4 micro-batches give the same parameters")
	}
}

func TestMicroBatchErrors(t *testing.T) {
	second := func(change func(values []*tensor.Dense)) func(p *train.Problem) { // change the second micro-batch
		return func(p *train.Problem) {
			p.Train = changed(p.Train, func(examples []int, values []*tensor.Dense) {
				if examples[0]%16 == 4 {
					change(values)
				}
			})
		}
	}
	metrics := func(add func(b *layers.Build, loss *G.Node) []train.Metric) func(p *train.Problem) {
		return func(p *train.Problem) {
			p.Loss = added(p.Loss, func(b *layers.Build, _ G.Nodes, loss *G.Node) (*G.Node, []train.Metric) { return loss, add(b, loss) })
		}
	}
	for _, c := range []struct {
		name   string
		change func(p *train.Problem)
		want   string
	}{
		{"a negative Count", func(p *train.Problem) {
			*p = counted(*p, func(examples []int) float32 { return float32(3 - examples[0]%16) })
		}, "epoch 0, step 0: micro-batch 1: the Count of the loss must be at least 0 and finite, got -1"},
		{"nothing counts", func(p *train.Problem) { p.Train = ignored(p.Train, 0) }, "epoch 0, step 0: no target of the batch counts"},
		{"a value of another dtype", second(func(values []*tensor.Dense) { values[0] = values[1] }), "epoch 0, step 0: micro-batch 1: "},
		{"a target of the second worker that isn't a class", second(func(values []*tensor.Dense) { values[1].Data().([]int)[3] = 4 }), "epoch 0, step 0: micro-batch 1: "},
		{"a loss that isn't finite", second(func(values []*tensor.Dense) { values[0].Data().([]float32)[11] = float32(math.NaN()) }), "the training loss is NaN at epoch 0, step 0"},
		{"other parameters each time", func(p *train.Problem) {
			calls := 0
			p.Validation.Len = 0
			beforeLoss(p, func(b *layers.Build, inputs G.Nodes) {
				if calls++; calls == 2 {
					for _, q := range slices.Backward(p.Params.All()) {
						G.Must(b.Bind(inputs[0].Graph(), q))
					}
				}
			})
		}, "the same parameters in the same order"},
		{"another metric in validation", metrics(func(b *layers.Build, loss *G.Node) []train.Metric {
			return []train.Metric{{Name: fmt.Sprint("m", b.Training), Sum: loss}}
		}), "the same metrics in the same order"},
		{"no metric in validation", metrics(func(b *layers.Build, loss *G.Node) []train.Metric {
			if b.Training {
				return []train.Metric{{Name: "perplexity", Sum: loss, Of: math.Exp}}
			}
			return nil
		}), "the same metrics in the same order"},
		{"a metric of another scale in validation", metrics(func(b *layers.Build, loss *G.Node) []train.Metric {
			m := train.Metric{Name: "m", Sum: loss}
			if !b.Training {
				m.Of = math.Sqrt
			}
			return []train.Metric{m}
		}), "the same metrics in the same order"},
		{"a node with the name of the share", func(p *train.Problem) {
			beforeLoss(p, func(b *layers.Build, inputs G.Nodes) {
				b.Fixed = append(b.Fixed, G.NewScalar(inputs[0].Graph(), tensor.Float32, G.WithName("share of the step"), G.WithValue(float32(1))))
			})
		}, `the graph has a node named "share of the step", which Fit adds`},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := unevenDigits(t, 0.1)
			c.change(&p)
			before := runtime.NumGoroutine()
			wantError(t, "Fit", failure(train.Fit(context.Background(), p, train.Config{BatchSize: 16, MicroBatches: 4, MaxEpochs: 1}, train.RunOptions{Workers: 2})), c.want)
			wantGoroutines(t, "Fit", before+runtime.GOMAXPROCS(0)) // the kernels' goroutines stay
		})
	}
	wantError(t, "Fit", failure(train.Fit(t.Context(), digits(t, 1), train.Config{BatchSize: 16, MicroBatches: 4, MaxEpochs: 1}, train.RunOptions{Workers: -1})), "train: workers must be at least 0, got -1")
}

// Two calls of Fit at the same time, each with several workers, don't disturb each other.
func TestMicroBatchesSideBySide(t *testing.T) {
	var wg sync.WaitGroup
	got := make([][][]float32, 2)
	for i := range got {
		p := unevenDigits(t, 0.1)
		wg.Go(func() {
			if _, err := train.Fit(context.Background(), p, train.Config{BatchSize: 16, MicroBatches: 4, MaxEpochs: 1}, train.RunOptions{Workers: 2}); err != nil {
				t.Error(err)
			}
			got[i] = values(p.Params)
		})
	}
	wg.Wait()
	if !same(got[0], got[1]) {
		t.Error("two calls of Fit at the same time give different parameters")
	}
}

// gpt is a small decoder trained on random tokens. The sequences have 64 tokens or, in turn, the given lengths.
func gpt(tb testing.TB, batch, dim, blocks int, lengths ...int) train.Problem {
	tb.Helper()
	const vocab = 65
	if lengths == nil {
		lengths = []int{64}
	}
	params := must.Get(layers.NewParams(tensor.Float32, 1))(tb)
	model := must.Get(layers.NewDecoder(params, layers.ModelConfig{
		Vocab: vocab, Dim: dim, Layers: blocks, Positions: layers.Rotary{},
		Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 4}},
	}))(tb)
	tokens := func(size, length, from int) *tensor.Dense {
		ids := make([]int, size*length)
		for i := range ids {
			ids[i] = (i*i + from*i) % vocab
		}
		return tensor.New(tensor.WithShape(size, length), tensor.WithBacking(ids))
	}
	return train.Problem{
		Params: params,
		Loss:   entropy(func(b *layers.Build, x *G.Node) (*G.Node, error) { return model.Forward(b, x, layers.Mask{}) }),
		Train: train.Dataset{
			Len: 2 * len(lengths) * batch,
			Batch: func(examples []int) ([]*tensor.Dense, error) {
				n, length := len(examples), lengths[examples[0]%len(lengths)]
				return []*tensor.Dense{tokens(n, length, 1), tokens(n, length, 2)}, nil
			},
			Bucket: func(example int) int { return example % len(lengths) },
		},
	}
}

// With one worker, four micro-batches need hardly more memory than one.
func TestMicroBatchesBoundMemory(t *testing.T) {
	testseed.Slow(t)
	held(t, gpt(t, 12, 64, 2), 12, 1)
	if one, four := held(t, gpt(t, 12, 64, 2), 12, 1), held(t, gpt(t, 48, 64, 2), 48, 4); four > 1.15*one {
		t.Errorf("with 4 micro-batches training holds %.3g bytes, want at most 1.15 times the %.3g bytes with one", four, one)
	}
}

// Graphs for several lengths share their memory, and so do the graphs for validation. The longest length determines the
// size of the memory.
func TestLengthsShareMemory(t *testing.T) {
	testseed.Slow(t)
	longest := held(t, gpt(t, 24, 64, 2, 64), 24, 1)
	if bytes := held(t, gpt(t, 24, 64, 2, 16, 32, 64, 48, 24), 24, 1); bytes > 1.15*longest {
		t.Errorf("with five lengths training holds %.3g bytes, want at most 1.15 times the %.3g bytes with only the longest", bytes, longest)
	}
	p := gpt(t, 24, 64, 2, 64)
	p.Validation = p.Train
	if both := held(t, p, 24, 1); both > 1.15*longest {
		t.Errorf("with validation training holds %.3g bytes, want at most 1.15 times the %.3g bytes without", both, longest)
	}
}

// held returns the bytes that training holds after its second epoch, including that epoch's validation.
func held(t *testing.T, p train.Problem, batch, micro int) float64 {
	t.Helper()
	before := memory.HeapInUse()
	var after int
	fitted(t, p, train.Config{BatchSize: batch, MicroBatches: micro, MaxEpochs: 2}, train.RunOptions{Workers: 1, OnCheck: func([]train.Check, bool) (bool, error) {
		after = memory.HeapInUse()
		return false, nil
	}})
	return float64(after - before)
}
