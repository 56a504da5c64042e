package optim_test

import (
	"math"
	"testing"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/train/optim"
)

// The average of n weights is their mean if Decay is nearly 1, however few they are.
func TestAverage(t *testing.T) {
	for k := range 6 {
		dtype, decay := []tensor.Dtype{tensor.Float32, tensor.Float64}[k%2], []float64{0, 0.9, 0.999999}[k/2]
		params := newModel(dtype)
		average, solver := &optim.Average{Decay: decay}, optim.NewAdamW(0.1)
		must.Fail(t, average.Swap(valueGrads(params)), "call Update")
		var want [][]float64
		for number := range 20 {
			step(t, solver, params, number)
			for _, p := range params {
				p.grad = nil // Update must not read it
			}
			must.Do(t, average.Update(valueGrads(params)))
			for i, p := range params {
				if number == 0 {
					want = append(want, numbers(p.value))
					continue
				}
				for k, w := range numbers(p.value) {
					earlier := 0.0 // total of the shares before, relative to the last
					for n := range number {
						earlier += math.Pow(decay, float64(n+1))
					}
					want[i][k] = (earlier*want[i][k] + w) / (earlier + 1)
				}
			}
			if number == 10 { // resume from the values
				average = &optim.Average{Decay: decay, Updates: average.Updates, Values: average.Values}
			}
		}
		tol := map[tensor.Dtype]float64{tensor.Float32: 1e-6, tensor.Float64: 1e-14}[dtype]
		if decay > 0.9 { // 1 − Decay has few digits
			tol = max(tol, 1e-9)
		}
		weights := [][]float64{numbers(params[0].value), numbers(params[1].value)}
		for range 2 { // the second time after a Swap
			for i, p := range params {
				near(t, "average", average.Values[i], want[i], tol)
				near(t, "weight", p.value, weights[i], tol)
			}
			must.Do(t, average.Swap(valueGrads(params)))
			want, weights = weights, want
		}
	}
}

func TestAverageErrors(t *testing.T) {
	params := newModel(tensor.Float64)
	update := func(want string, a optim.Average, params ...*parameter) {
		t.Helper()
		must.Fail(t, a.Update(valueGrads(params)), want)
	}
	update("Decay must be at least 0 and below 1, for example 0.999, got 1", optim.Average{Decay: 1}, params...)
	with := func(values ...*tensor.Dense) optim.Average { return optim.Average{Decay: 0.9, Values: values} }
	update("has 1 parameters, got 2", with(params[0].value), params...)
	update("the average of parameter 0 (matrix) is float64 of (4), its value is float64 of (2, 3)", with(params[1].value, params[0].value), params...)
	ints := &parameter{"ints", tensor.New(tensor.WithShape(4), tensor.Of(tensor.Int)), nil}
	update("the value of parameter 0 (ints) must be a float32 or float64 tensor", optim.Average{}, ints)
}
