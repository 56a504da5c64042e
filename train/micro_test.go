package train_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/heap"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
)

// unevenDigits is digits in micro-batches, with examples that don't count: of the first of 8, none does.
func unevenDigits(t *testing.T, micro int, dropout float64) train.Problem {
	t.Helper()
	p := digitsWith(t, 1, dropout)
	p.MicroBatches = micro
	whole := p.Train
	p.Train = func(epoch, step int) (train.Batch, error) {
		b, err := whole(epoch, step)
		b.Weight, b.Weights = 0, make([]float64, p.BatchSize)
		targets := b.Values[1].Data().([]int)
		for i := range targets {
			if i < 2 || (i+step)%3 == 0 {
				targets[i] = layers.Ignore
				continue
			}
			b.Weights[i] = 1
			b.Weight++
		}
		return b, err
	}
	return p
}

func TestWorkersChangeNoBit(t *testing.T) {
	for _, solver := range []func() G.Solver{
		func() G.Solver { return train.NewAdamW(0.02) },
		func() G.Solver { return G.NewAdamSolver(G.WithLearnRate(0.02)) },
	} {
		for _, micro := range []int{1, 2, 4, 8, 16} {
			fit := func(workers, procs int) ([]train.Epoch, [][]float32) {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
				p := unevenDigits(t, micro, 0.1)
				r, err := train.Fit(context.Background(), p, train.Config{MaxEpochs: 2, Seed: 5, Solver: solver(), Workers: workers})
				if err != nil {
					t.Fatal(err)
				}
				return r.History, values(p.Params)
			}
			wantHistory, want := fit(1, 1)
			for _, c := range []struct{ workers, procs int }{{1, 2}, {2, 1}, {2, 2}, {3, 2}, {4, 2}, {4, 5}, {8, 2}, {16, 2}, {100, 2}, {0, 1}, {0, 2}, {0, 3}} {
				history, got := fit(c.workers, c.procs)
				if !same(got, want) || history[1] != wantHistory[1] {
					t.Errorf("%T, %d micro-batches: %d workers on %d processors leave other parameters than one on one", solver(), micro, c.workers, c.procs)
				}
			}
		}
	}
}

// A number that is no power of two is divided, too.
func TestMicroBatchesOfAnyNumber(t *testing.T) {
	for _, micro := range []int{3, 5, 6, 7} {
		var want [][]float32
		for workers := 1; workers <= micro; workers++ {
			p := digits(t, 1)
			p.BatchSize, p.MicroBatches, p.Steps = 2*micro, micro, 5
			whole := p.Train
			p.Train = func(epoch, step int) (train.Batch, error) {
				b, err := whole(epoch, step)
				for i, v := range b.Values {
					part, err := v.Slice(tensor.S(0, 2*micro))
					if err != nil {
						return b, err
					}
					b.Values[i] = part.(*tensor.Dense)
				}
				return b, err
			}
			if _, err := train.Fit(context.Background(), p, train.Config{MaxEpochs: 1, Workers: workers}); err != nil {
				t.Fatal(err)
			}
			if got := values(p.Params); want == nil {
				want = got
			} else if !same(got, want) {
				t.Errorf("%d micro-batches: %d workers leave other parameters than one", micro, workers)
			}
		}
	}
}

// Without dropout the number of micro-batches changes the rounding alone.
func TestMicroBatchesAreTheirMean(t *testing.T) {
	fit := func(micro int) ([][]float32, train.Epoch) {
		p := unevenDigits(t, micro, 0)
		r, err := train.Fit(context.Background(), p, train.Config{MaxEpochs: 1, Solver: train.NewAdamW(0.01)})
		if err != nil {
			t.Fatal(err)
		}
		return values(p.Params), r.History[0]
	}
	want, epoch := fit(1)
	for _, micro := range []int{2, 4, 8, 16} {
		got, e := fit(micro)
		if math.Abs(e.TrainLoss-epoch.TrainLoss) > 1e-6 || math.Abs(e.ValLoss-epoch.ValLoss) > 1e-5 {
			t.Errorf("%d micro-batches: the losses are %v, want %v", micro, e, epoch)
		}
		for i := range want {
			for j, w := range want[i] {
				if math.Abs(float64(got[i][j]-w)) > 1e-4 {
					t.Fatalf("%d micro-batches: parameter %d, element %d is %v, want %v", micro, i, j, got[i][j], w)
				}
			}
		}
	}
}

func TestMicroBatchesDropDifferently(t *testing.T) {
	fit := func(micro int) [][]float32 {
		p := unevenDigits(t, micro, 0.5)
		if _, err := train.Fit(context.Background(), p, train.Config{MaxEpochs: 1}); err != nil {
			t.Fatal(err)
		}
		return values(p.Params)
	}
	if same(fit(2), fit(4)) {
		t.Error("what a micro-batch drops doesn't follow its number")
	}
}

// A run that was begun by one worker, interrupted in an epoch and resumed by four, is the run that never was.
func TestMicroBatchesResume(t *testing.T) {
	whole := unevenDigits(t, 4, 0.1)
	want, err := train.Fit(context.Background(), whole, train.Config{MaxEpochs: 4, Seed: 7, Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	c := train.Config{MaxEpochs: 4, Seed: 7, Checkpoint: filepath.Join(t.TempDir(), "c"), Workers: 1}
	ctx, cancel := context.WithCancel(context.Background())
	c.OnStep = func(epoch, step int, _ float64) {
		if epoch == 2 && step == 11 {
			cancel()
		}
	}
	if _, err := train.Fit(ctx, unevenDigits(t, 4, 0.1), c); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	c.Resume, c.Workers, c.OnStep = true, 4, nil
	p := unevenDigits(t, 4, 0.1)
	got, err := train.Fit(context.Background(), p, c)
	if err != nil {
		t.Fatal(err)
	}
	if got.Best != want.Best || !same(values(p.Params), values(whole.Params)) {
		t.Error("the resumed run left other parameters")
	}
}

// A step of another number of micro-batches rounds and drops differently: a run goes on with the number that it began
// with.
func TestMicroBatchesResumeChanged(t *testing.T) {
	c := train.Config{MaxEpochs: 1, Checkpoint: filepath.Join(t.TempDir(), "c")}
	p := digits(t, 1)
	p.MicroBatches = 2
	if _, err := train.Fit(t.Context(), p, c); err != nil {
		t.Fatal(err)
	}
	c.Resume, c.MaxEpochs = true, 2
	for _, m := range []int{0, 1, 4} {
		p := digits(t, 1)
		p.MicroBatches = m
		_, err := train.Fit(t.Context(), p, c)
		if want := fmt.Sprintf("take 2 micro-batches, not %d", max(m, 1)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d micro-batches: %v, want %q in it", m, err, want)
		}
	}
}

func TestMicroBatchErrors(t *testing.T) {
	weights := func(change func(b *train.Batch)) func(p *train.Problem) {
		return func(p *train.Problem) {
			whole := p.Train
			p.Train = func(epoch, step int) (train.Batch, error) {
				b, err := whole(epoch, step)
				change(&b)
				return b, err
			}
		}
	}
	for _, c := range []struct {
		name   string
		change func(p *train.Problem)
		want   string
	}{
		{"no divisor", func(p *train.Problem) { p.MicroBatches = 5 }, "MicroBatches must divide BatchSize, got 5 and 16"},
		{"more than examples", func(p *train.Problem) { p.MicroBatches = 32 }, "MicroBatches must divide BatchSize"},
		{"below 0", func(p *train.Problem) { p.MicroBatches = -1 }, "MicroBatches must divide BatchSize"},
		{"too few weights", weights(func(b *train.Batch) { b.Weights = b.Weights[1:] }), "each of its 16 examples, got 15"},
		{"a negative weight", weights(func(b *train.Batch) { b.Weights[3] = -1 }), "got -1 for example 3"},
		{"a weight that is no number", weights(func(b *train.Batch) { b.Weights[4] = math.NaN() }), "got NaN for example 4"},
		{"weights that are another sum", weights(func(b *train.Batch) { b.Weight++ }), "add up to its Weight"},
		{"nothing counts", weights(func(b *train.Batch) { b.Weight, b.Weights = 0, make([]float64, 16) }), "above 0"},
		{"too few values", weights(func(b *train.Batch) { b.Values = b.Values[1:] }), "2 inputs, the batch 1 values"},
		{"a value of another size", weights(func(b *train.Batch) {
			b.Values[0] = tensor.New(tensor.WithShape(15, 4), tensor.Of(tensor.Float32))
		}), `input "x" must be float32 of shape (16, 4), cut for 4 micro-batches, or (4, 4), the same for each; got float32 of shape (15, 4)`},
		{"a value of another dtype", weights(func(b *train.Batch) { b.Values[0] = b.Values[1] }), "got int of shape (16)"},
		{"a target of the second worker that is none", weights(func(b *train.Batch) { b.Values[1].Data().([]int)[7] = 4 }), "epoch 0, step 0: micro-batch 1: "},
		{"a loss that isn't finite", weights(func(b *train.Batch) { b.Values[0].Data().([]float32)[59] = float32(math.NaN()) }), "the training loss is NaN at epoch 0, step 0"},
		{"other parameters each time", func(p *train.Problem) {
			loss, calls := p.Loss, 0
			p.Loss = func(b *layers.Build, g *G.ExprGraph, size int) (*G.Node, G.Nodes, error) {
				if calls++; calls == 2 {
					for _, q := range slices.Backward(p.Params.All()) {
						if _, err := b.Bind(g, q); err != nil {
							return nil, nil, err
						}
					}
				}
				return loss(b, g, size)
			}
		}, "the same parameters in the same order"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := unevenDigits(t, 4, 0.1)
			c.change(&p)
			before := runtime.NumGoroutine()
			_, err := train.Fit(context.Background(), p, train.Config{MaxEpochs: 1, Workers: 2})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want it to say %q", err, c.want)
			}
			if after := runtime.NumGoroutine(); after > before+runtime.GOMAXPROCS(0) { // the kernels' helpers stay
				t.Errorf("%d goroutines, %d before", after, before)
			}
		})
	}
	if _, err := train.Fit(context.Background(), digits(t, 1), train.Config{MaxEpochs: 1, Workers: -1}); err == nil || !strings.Contains(err.Error(), "Workers") {
		t.Errorf("Workers -1: got %v", err)
	}
}

// A value of the shape that its input has in a micro-batch's graph goes to every micro-batch.
func TestMicroBatchesShareValues(t *testing.T) {
	fit := func(micro int) float64 {
		p := digitsWith(t, 1, 0)
		p.MicroBatches = micro
		loss := p.Loss
		p.Loss = func(b *layers.Build, g *G.ExprGraph, size int) (*G.Node, G.Nodes, error) {
			l, inputs, err := loss(b, g, size)
			if err != nil {
				return nil, nil, err
			}
			add := G.NewVector(g, tensor.Float32, G.WithShape(3), G.WithName("add"))
			l, err = G.Add(l, G.Must(G.Sum(add)))
			return l, append(inputs, add), err
		}
		added := func(b train.Batch, err error) (train.Batch, error) {
			b.Values = append(b.Values, tensor.New(tensor.WithBacking([]float32{1, 2, 3})))
			return b, err
		}
		batch, validation := p.Train, p.Validation
		p.Train = func(epoch, step int) (train.Batch, error) { return added(batch(epoch, step)) }
		p.Validation = func(i int) (train.Batch, error) { return added(validation(i)) }
		r, err := train.Fit(context.Background(), p, train.Config{MaxEpochs: 1})
		if err != nil {
			t.Fatal(err)
		}
		return r.Best.TrainLoss
	}
	if one, four := fit(1), fit(4); one < 6 || math.Abs(one-four) > 1e-5 {
		t.Errorf("the loss is %v with one micro-batch, %v with four", one, four)
	}
}

// Two fits at once, each of several workers.
func TestMicroBatchesSideBySide(t *testing.T) {
	var wg sync.WaitGroup
	got := make([][][]float32, 2)
	for i := range got {
		p := unevenDigits(t, 4, 0.1)
		wg.Go(func() {
			if _, err := train.Fit(context.Background(), p, train.Config{MaxEpochs: 1, Workers: 2}); err != nil {
				t.Error(err)
			}
			got[i] = values(p.Params)
		})
	}
	wg.Wait()
	if !same(got[0], got[1]) {
		t.Error("two fits at once disturbed each other")
	}
}

// gpt is a small decoder on random tokens.
func gpt(tb testing.TB, batch, micro, dim, blocks int) train.Problem {
	tb.Helper()
	const length, vocab = 64, 65
	params, err := layers.NewParams(tensor.Float32, 1)
	if err != nil {
		tb.Fatal(err)
	}
	model, err := layers.NewDecoder(params, layers.ModelConfig{
		Vocab: vocab, Dim: dim, Layers: blocks, Positions: layers.Learned{MaxLen: length},
		Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 4}},
	})
	if err != nil {
		tb.Fatal(err)
	}
	tokens := func(size, from int) *tensor.Dense {
		ids := make([]int, size*length)
		for i := range ids {
			ids[i] = (i*i + from*i) % vocab
		}
		return tensor.New(tensor.WithShape(size, length), tensor.WithBacking(ids))
	}
	step := train.Batch{Values: []*tensor.Dense{tokens(batch, 1), tokens(batch, 2)}, Weight: float64(batch)}
	one := train.Batch{Values: []*tensor.Dense{tokens(1, 1), tokens(1, 2)}, Weight: 1}
	return train.Problem{
		Params: params,
		Loss: func(b *layers.Build, g *G.ExprGraph, size int) (*G.Node, G.Nodes, error) {
			x := G.NewMatrix(g, tensor.Int, G.WithShape(size, length), G.WithName("x"))
			y := G.NewMatrix(g, tensor.Int, G.WithShape(size, length), G.WithName("y"))
			logits, err := model.Forward(b, x, layers.Mask{})
			if err != nil {
				return nil, nil, err
			}
			loss, err := layers.CrossEntropy(b, logits, y, layers.CrossEntropyOptions{})
			return loss, G.Nodes{x, y}, err
		},
		BatchSize: batch, Steps: 2, MicroBatches: micro,
		Train:          func(int, int) (train.Batch, error) { return step, nil },
		ValidationSize: 1, ValidationSteps: 1,
		Validation: func(int) (train.Batch, error) { return one, nil },
	}
}

// One worker needs for four micro-batches hardly more memory than for one.
func TestMicroBatchesBoundMemory(t *testing.T) {
	held := func(batch, micro int) float64 {
		p := gpt(t, batch, micro, 64, 2)
		before := heap.InUse()
		var during uint64
		_, err := train.Fit(context.Background(), p, train.Config{MaxEpochs: 1, Workers: 1, OnStep: func(_, step int, _ float64) {
			if step == 1 {
				during = uint64(heap.InUse())
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		return float64(during) - float64(before)
	}
	held(12, 1)
	if one, four := held(12, 1), held(48, 4); four > 1.1*one {
		t.Errorf("a step of 4 micro-batches holds %.3g bytes, one of a single one %.3g", four, one)
	}
}

func BenchmarkStep(b *testing.B) {
	for _, c := range []struct{ batch, micro, workers int }{{12, 1, 1}, {12, 2, 1}, {12, 2, 2}, {48, 4, 1}, {48, 4, 2}} {
		b.Run(fmt.Sprintf("batch=%d/micro=%d/workers=%d", c.batch, c.micro, c.workers), func(b *testing.B) {
			p := gpt(b, c.batch, c.micro, 128, 4)
			p.Steps = b.N + 1
			_, err := train.Fit(context.Background(), p, train.Config{MaxEpochs: 1, Workers: c.workers, OnStep: func(_, step int, _ float64) {
				if step == 0 {
					b.ResetTimer()
				}
			}})
			if err != nil {
				b.Fatal(err)
			}
		})
	}
}
