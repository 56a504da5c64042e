package ops

import (
	"fmt"
	"slices"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
)

var distanceNames = map[kernel.Distance]string{
	kernel.SquaredError: "mean squared error", kernel.AbsoluteError: "mean absolute error", kernel.HuberError: "huber error",
	kernel.BinaryCrossEntropy: "binary cross-entropy", kernel.RightSide: "binary accuracy",
}

// MeanDistance returns the weighted mean of the distances between outputs and targets, as a scalar. Outputs and targets
// have the same shape, with at least one axis. Weights are nil, or their shape consists of the first one or more axes
// of the outputs. A weight applies to all numbers at its position. Numbers with weight 0 are not read. If all weights
// are 0, MeanDistance returns 0. When the graph runs, a negative, infinite or NaN weight is an error, and so is a
// target of binary cross-entropy outside [0, 1]. The argument delta is the parameter of kernel.HuberError.
//
// Outputs have a gradient. Targets have a gradient, except for binary cross-entropy. Weights have none.
func MeanDistance(e *Env, d kernel.Distance, delta float64, outputs, targets, weights *G.Node) (*G.Node, error) {
	if err := checkDistance(distanceNames[d], outputs, targets, weights); err != nil {
		return nil, err
	}
	return byDtype(outputs, meanDistance[float32], meanDistance[float64])(e, d, delta, outputs, targets, weights)
}

// SumDistance returns two sums over all numbers: the weighted distances, and the weights. MeanDistance returns their
// quotient. Both sums are scalars of dtype float64, without a gradient. HuberError isn't supported.
func SumDistance(e *Env, d kernel.Distance, outputs, targets, weights *G.Node) (sum, weight *G.Node, err error) {
	if err := checkDistance(distanceNames[d], outputs, targets, weights); err != nil {
		return nil, nil, err
	}
	return byDtype(outputs, sumDistance[float32], sumDistance[float64])(e, d, outputs, targets, weights)
}

func checkDistance(name string, outputs, targets, weights *G.Node) error {
	if err := CheckFloat(name, "the outputs", outputs); err != nil {
		return err
	}
	if err := sameDtype(name, "the targets", targets, "the outputs", outputs); err != nil {
		return err
	}
	s := outputs.Shape()
	if len(s) < 1 {
		return fmt.Errorf("%s: the outputs must have at least one axis, got a scalar", name)
	}
	if err := hasShape(name, "the targets", targets, s...); err != nil {
		return err
	}
	if weights == nil {
		return nil
	}
	if err := sameDtype(name, "the weights", weights, "the outputs", outputs); err != nil {
		return err
	}
	if ws := weights.Shape(); len(ws) < 1 || len(ws) > len(s) || !slices.Equal(ws, s[:len(ws)]) {
		return fmt.Errorf("%s: the weights must have the shape of the outputs, %v, or its first axes, got %v", name, s, ws)
	}
	return nil
}

// A distanceSum adds up the distances of n numbers. Each position has width numbers (the field width).
type distanceSum[F kernel.Float] struct {
	d        kernel.Distance
	delta    float64
	n, width int
	w        *weighting[F]
	parts    []float64
}

func newDistanceSum[F kernel.Float](d kernel.Distance, delta float64, outputs, weights *G.Node) *distanceSum[F] {
	n, positions := outputs.Shape().TotalSize(), 1
	if weights != nil {
		positions = weights.Shape().TotalSize()
	}
	if n == 0 || positions == 0 { // apply reports empty inputs
		positions = 1
	}
	return &distanceSum[F]{d: d, delta: delta, n: n, width: n / positions, w: newWeighting[F](positions), parts: make([]float64, kernel.DistanceTasks(n))}
}

// read reads the inputs (outputs, targets and, if given, weights) and returns the weighted sum of the distances.
func (s *distanceSum[F]) read(cores int, values []G.Value) (float64, error) {
	x, t, err := s.inputs(values)
	if err != nil {
		return 0, err
	}
	return kernel.SumDistances(cores, s.parts, s.d, s.delta, x, t, s.w.values, s.width), nil
}

// inputs returns the outputs and the targets, and reads the weights.
func (s *distanceSum[F]) inputs(values []G.Value) (x, t []F, err error) {
	x, t = read2[F](values, s.n, s.n)
	if err := s.w.read(optional(values, 2)); err != nil {
		return nil, nil, err
	}
	if s.d == kernel.BinaryCrossEntropy || s.d == kernel.RightSide {
		err = checkChances(t, s.w.values, s.width)
	}
	return x, t, err
}

// sumVector returns a vector of n sums of dtype float64, without a gradient. When the graph runs, the sums start at 0,
// and add is called for each output x whose weight w isn't 0, with its target t. The name stands for add: with the same
// name, add must be the same. Inputs and errors are the same as in SumDistance.
func sumVector(e *Env, name string, d kernel.Distance, outputs, targets, weights *G.Node, n int, add func(sums []float64, x, t, w float64)) (*G.Node, error) {
	if err := checkDistance(name, outputs, targets, weights); err != nil {
		return nil, err
	}
	inputs := G.Nodes{outputs, targets}
	if weights != nil {
		inputs = append(inputs, weights)
	}
	fill := byDtype(outputs, sumsOf[float32], sumsOf[float64])(d, outputs, weights, add)
	return e.apply(newOp(fmt.Sprint(name, outputs.Shape()), tensor.Shape{n}, fill), inputs...)
}

func sumsOf[F kernel.Float](d kernel.Distance, outputs, weights *G.Node, add func(sums []float64, x, t, w float64)) func(sums []float64, values []G.Value) error {
	s := newDistanceSum[F](d, 0, outputs, weights)
	return func(sums []float64, values []G.Value) error {
		x, t, err := s.inputs(values)
		clear(sums)
		for i := range x {
			if w := s.w.values[i/s.width]; w != 0 {
				add(sums, float64(x[i]), float64(t[i]), float64(w))
			}
		}
		return err
	}
}

func sumDistance[F kernel.Float](e *Env, d kernel.Distance, outputs, targets, weights *G.Node) (sum, weight *G.Node, err error) {
	inputs := G.Nodes{outputs, targets}
	if weights != nil {
		inputs = append(inputs, weights)
	}
	s := newDistanceSum[F](d, 0, outputs, weights)
	return pair(e, fmt.Sprintf("%s sums%v", distanceNames[d], outputs.Shape()), inputs, func(values []G.Value) (sum, weight float64, err error) {
		sum, err = s.read(e.Cores, values)
		return sum, s.w.total(s.width), err
	})
}

func meanDistance[F kernel.Float](e *Env, d kernel.Distance, delta float64, outputs, targets, weights *G.Node) (*G.Node, error) {
	shape := outputs.Shape()
	inputs := G.Nodes{outputs, targets}
	diff := []bool{true, d != kernel.BinaryCrossEntropy}
	if weights != nil {
		inputs, diff = append(inputs, weights), append(diff, false)
	}
	s := newDistanceSum[F](d, delta, outputs, weights)

	attrs := fmt.Sprint(shape)
	if d == kernel.HuberError {
		attrs += fmt.Sprintf(" from %v", delta)
	}
	o := &op{
		name: distanceNames[d] + attrs, shape: tensor.ScalarShape(), out: dtypeOf[F](), diff: diff,
		run: func(values []G.Value) (G.Value, error) {
			sum, err := s.read(e.Cores, values)
			if err != nil {
				return nil, err
			}
			return scalar(F(s.w.mean(sum, s.width))), nil
		},
	}
	o.grad = func(nodes G.Nodes, out, g *G.Node) (G.Nodes, error) {
		// by returns the derivative with respect to x. It also serves the targets: where they have a gradient, the
		// distance is symmetric in x and t.
		by := func(what string, x, t *G.Node) (*G.Node, error) {
			o := newOp(distanceNames[d]+what+attrs, shape, func(dx []F, values []G.Value) error {
				x, t, g := read3[F](values, s.n, s.n, 1)
				kernel.DistanceGrad(e.Cores, dx, d, delta, x, t, s.w.gradient(g[0]), s.width)
				return nil
			})
			return e.apply(o, x, t, g, out) // out, the loss, must run first: it fills s
		}
		grads := make(G.Nodes, len(nodes))
		var err error
		if grads[0], err = by(".doutputs", nodes[0], nodes[1]); err != nil {
			return nil, err
		}
		if diff[1] {
			grads[1], err = by(".dtargets", nodes[1], nodes[0])
		}
		return grads, err
	}
	return e.apply(o, inputs...)
}

// checkChances checks that targets are from 0 to 1. It skips targets with weight 0.
func checkChances[F kernel.Float](targets, weights []F, width int) error {
	for i, t := range targets {
		if !(t >= 0 && t <= 1) && weights[i/width] != 0 {
			return fmt.Errorf("target %d is %v: a target is the probability of the answer yes, from 0 to 1", i, t)
		}
	}
	return nil
}
