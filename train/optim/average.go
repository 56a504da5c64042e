package optim

import (
	"fmt"
	"slices"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
)

// An Average is the exponential moving average of a model's weights (Polyak and Juditsky, 1992), which often does
// better than the weights themselves. Update it after every step; Swap it in to validate, to save or to predict, and
// out again:
//
//	average := &optim.Average{Decay: 0.999}
//	…
//	err = solver.Step(model)
//	err = average.Update(model)
//	…
//	err = average.Swap(model) // the model has the averages
//	…
//	err = average.Swap(model) // and its weights again
//
// It looks at values, never at gradients. It goes by the parameter's place in the slice, as a Solver does.
type Average struct {
	Decay float64 // share of the average that an update keeps, from 0 to below 1

	// Values are the averages, one for each parameter; nil before the first Update, which copies the weights. With them
	// an Average goes on as if it had never stopped. While swapped in, they are the weights.
	Values []*tensor.Dense
}

// Check returns an error if the Decay can't be. Update, Swap and Fit call it.
func (a *Average) Check() error {
	if !(a.Decay >= 0 && a.Decay < 1) {
		return fmt.Errorf("optim: an Average's Decay must be from 0 to below 1, as 0.999, got %v", a.Decay)
	}
	return nil
}

// Update moves each average towards the weight, by 1 − Decay of the distance.
func (a *Average) Update(model []G.ValueGrad) error {
	weights, err := a.weights(model)
	if err != nil {
		return err
	}
	if a.Values == nil {
		for _, w := range weights {
			a.Values = append(a.Values, w.Clone().(*tensor.Dense))
		}
		return nil
	}
	for i, w := range weights {
		if w.Dtype() == tensor.Float32 {
			kernel.Approach(0, a.Values[i].Float32s(), w.Float32s(), 1-a.Decay)
		} else {
			kernel.Approach(0, a.Values[i].Float64s(), w.Float64s(), 1-a.Decay)
		}
	}
	return nil
}

// Swap exchanges the numbers of the averages and of the weights, in their places. It needs an Update before.
func (a *Average) Swap(model []G.ValueGrad) error {
	weights, err := a.weights(model)
	if err != nil {
		return err
	}
	if a.Values == nil {
		return fmt.Errorf("optim: nothing has been averaged yet: call Update after a step")
	}
	for i, w := range weights {
		if w.Dtype() == tensor.Float32 {
			swap(a.Values[i].Float32s(), w.Float32s())
		} else {
			swap(a.Values[i].Float64s(), w.Float64s())
		}
	}
	return nil
}

func swap[F kernel.Float](x, y []F) {
	for i, v := range x {
		x[i], y[i] = y[i], v
	}
}

// weights returns the model's values, checked against the averages.
func (a *Average) weights(model []G.ValueGrad) ([]*tensor.Dense, error) {
	if err := a.Check(); err != nil {
		return nil, err
	}
	if a.Values != nil && len(a.Values) != len(model) {
		return nil, fmt.Errorf("optim: this Average is of %d parameters, got %d: make one for each model", len(a.Values), len(model))
	}
	weights := make([]*tensor.Dense, len(model))
	for i := range model {
		w, err := weight(model, i)
		if err != nil {
			return nil, err
		}
		if a.Values != nil {
			if v := a.Values[i]; v.Dtype() != w.Dtype() || !slices.Equal(v.Shape(), w.Shape()) {
				return nil, fmt.Errorf("optim: the average of parameter %s is %s, its value %s: keep the parameters in one order", label(model, i), describe(v), describe(w))
			}
		}
		weights[i] = w
	}
	return weights, nil
}
