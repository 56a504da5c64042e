package train

import (
	"fmt"
	"slices"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
	"github.com/heed-go/heed/train/optim"
)

// watched lists the tensors that checkFinite checks for each parameter that the solver updates.
var watched = [...]string{"parameter", "the average of parameter", "the solver's memory of parameter"}

// checkFinite returns a *NonFiniteError, the same in all processes, if a step has made one of the watched tensors NaN
// or infinite. The loss may be finite nevertheless, for example if no batch uses the element any more.
func (f *fit) checkFinite() error {
	if f.sound == f.step {
		return nil
	}
	memories, err := f.train.states(f.solver, f.train.part())
	found, err := f.team.agree([]float64{float64(f.firstNotFinite(memories))}, err)
	if err != nil {
		return fmt.Errorf("train: %w", err)
	}
	first, end := slices.Min(found), float64(len(watched)*len(f.train.learnables)) // each process has only its part of the memories
	switch {
	case first == end:
		f.sound = f.step
		return nil
	case !(first >= 0 && first < end):
		return f.team.broken(fmt.Errorf("a process sends %v as the number of a tensor", first))
	}
	i, last := int(first), f.step-1
	return &NonFiniteError{Epoch: last / f.plan.steps, Step: last % f.plan.steps, Value: watched[i%len(watched)] + " " + f.train.learnables[i/len(watched)].Name()}
}

// firstNotFinite returns the number of the first watched tensor that isn't finite, counted over all parameters. If
// there is none, it returns the number of watched tensors.
func (f *fit) firstNotFinite(memories [][]optim.Memory) int {
	learnables, cost := f.train.learnables, 0
	for _, n := range learnables {
		cost += n.Shape().TotalSize()
	}
	wild := make([]bool, len(watched)*len(learnables))
	kernel.Spread(0, len(learnables), cost, func(i int) {
		w := wild[len(watched)*i:][:len(watched)]
		w[0] = !allFinite(learnables[i].Value().(*tensor.Dense)) // Bind binds tensors only
		w[1] = f.average != nil && !allFinite(f.average.Values[i])
		w[2] = slices.ContainsFunc(memories[i], func(m optim.Memory) bool { return !allFinite(m.Value) })
	})
	if i := slices.Index(wild, true); i >= 0 {
		return i
	}
	return len(wild)
}

// allFinite reports whether all elements are finite. Their sum of squares is fast to compute, but may overflow in
// float64.
func allFinite(t *tensor.Dense) bool {
	var sum float64
	if t.Dtype() == tensor.Float32 {
		sum = kernel.SumSquares(t.Float32s())
	} else {
		sum = kernel.SumSquares(t.Float64s())
	}
	return finite(sum) || notFinite(t.Data()) < 0
}

// notFinite returns the index of the first number that is NaN or infinite, or -1.
func notFinite(data any) int {
	switch values := data.(type) {
	case []float32:
		return slices.IndexFunc(values, func(x float32) bool { return x-x != 0 })
	case []float64:
		return slices.IndexFunc(values, func(x float64) bool { return x-x != 0 })
	}
	return -1
}
