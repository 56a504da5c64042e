package optim

import (
	"fmt"
	"math"
	"slices"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
)

// An Average is the exponential moving average of a model's weights (Polyak and Juditsky, 1992), which often predicts
// better than the weights themselves. Call Update after every step. Call Swap before you validate, save or predict, and
// again afterwards:
//
//	average := &optim.Average{Decay: 0.999}
//	…
//	err = solver.Step(model)
//	err = average.Update(model)
//	…
//	err = average.Swap(model) // the model has the averages
//	…
//	err = average.Swap(model) // the model has its weights again
//
// In the average of n updates, the last weights have the share (1 − Decay)/(1 − Decayⁿ). All other weights count Decay
// times as much as the weights after them. Adam has the same divisor: with it, the shares of few weights add up to 1,
// too. If Decay is 0.999, the first 100 weights have about the same share.
//
// It reads values only, not gradients. Like a Solver, it identifies a parameter by its index in the slice.
type Average struct {
	Decay float64 // at least 0 and below 1; an average of about 1/(1 − Decay) weights

	// Updates is the number of updates, and Values holds one average per parameter; it is nil before the first Update.
	// To resume, save and restore both. While the model has the averages, Values holds the weights.
	Updates int
	Values  []*tensor.Dense
}

// Update adds the weights to the averages.
func (a *Average) Update(model []G.ValueGrad) error {
	weights, err := a.weights(model)
	if err != nil {
		return err
	}
	a.Updates++
	if a.Values == nil {
		for _, w := range weights {
			a.Values = append(a.Values, w.Clone().(*tensor.Dense))
		}
		return nil
	}
	share := (1 - a.Decay) / (1 - math.Pow(a.Decay, float64(a.Updates)))
	for i, w := range weights {
		if w.Dtype() == tensor.Float32 {
			kernel.Approach(0, a.Values[i].Float32s(), w.Float32s(), share)
		} else {
			kernel.Approach(0, a.Values[i].Float64s(), w.Float64s(), share)
		}
	}
	return nil
}

// Swap exchanges the averages and the weights in place. It returns an error before the first Update.
func (a *Average) Swap(model []G.ValueGrad) error {
	weights, err := a.weights(model)
	if err != nil {
		return err
	}
	if a.Values == nil {
		return fmt.Errorf("optim: there is no average yet: call Update after a step")
	}
	var kept [1 << 12]byte // a part of the average; a copy of the whole would be garbage at each check
	for i, w := range weights {
		average, weight := a.Values[i].Raw, w.Raw
		for len(average) > 0 {
			n := copy(kept[:], average)
			copy(average, weight[:n])
			copy(weight, kept[:n])
			average, weight = average[n:], weight[n:]
		}
	}
	return nil
}

// weights returns the model's values after checking them against the averages.
func (a *Average) weights(model []G.ValueGrad) ([]*tensor.Dense, error) {
	if !(a.Decay >= 0 && a.Decay < 1) {
		return nil, fmt.Errorf("optim: an Average's Decay must be at least 0 and below 1, for example 0.999, got %v", a.Decay)
	}
	if a.Values != nil && len(a.Values) != len(model) {
		return nil, fmt.Errorf("optim: this Average has %d parameters, got %d: make one Average for each model", len(a.Values), len(model))
	}
	weights := make([]*tensor.Dense, len(model))
	for i := range model {
		w, err := weight(model, i)
		if err != nil {
			return nil, err
		}
		if a.Values != nil {
			if v := a.Values[i]; v.Dtype() != w.Dtype() || !slices.Equal(v.Shape(), w.Shape()) {
				return nil, fmt.Errorf("optim: the average of parameter %s is %s, its value is %s: keep the parameters in the same order", label(model, i), describe(v), describe(w))
			}
		}
		weights[i] = w
	}
	return weights, nil
}
