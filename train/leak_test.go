package train_test

import (
	"testing"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/memory"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/optim"
)

// TestFitFreesItsGraphs checks that memory doesn't grow over many calls of Fit.
func TestFitFreesItsGraphs(t *testing.T) {
	p := must.Get(layers.NewParams(tensor.Float32, 1))(t)
	l := must.Get(layers.NewLinear(p, 256, 256, layers.LinearConfig{}))(t)
	data := must.Get(train.Tensors(tensor.New(tensor.WithShape(2, 256), tensor.Of(tensor.Float32)), tensor.New(tensor.WithShape(2), tensor.Of(tensor.Int))))(t)
	problem := train.Problem{
		Params: p,
		Loss:   entropy(l.Forward),
		Train:  data, Validation: data,
	}
	fit := func() {
		fitted(t, problem, train.Config{BatchSize: 2, Stopping: train.StoppingConfig{Patience: 1}, MaxEpochs: 1}, train.RunOptions{Solver: optim.NewAdamW(1e-3)})
	}
	fit()
	before := memory.HeapInUse()
	const rounds = 20
	for range rounds {
		fit()
	}
	if grown := memory.HeapInUse() - before; grown > rounds*256*256 { // a quarter of the bytes of the weights' gradient, per call
		t.Errorf("after %d calls of Fit, the heap has grown by %d bytes, want at most %d", rounds, grown, rounds*256*256)
	}
}
