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
// target of binary cross-entropy outside [0, 1]. The argument delta is the parameter of kernel.HuberError. The count is
// the sum of the weights of all numbers, by which the mean divides: a scalar of dtype float64, without a gradient,
// which depends only on the weights.
//
// Outputs have a gradient. Targets have a gradient, except for binary cross-entropy. Weights have none.
func MeanDistance(e *Env, d kernel.Distance, delta float64, outputs, targets, weights *G.Node) (mean, count *G.Node, err error) {
	if err := checkDistance(distanceNames[d], outputs, targets, weights); err != nil {
		return nil, nil, err
	}
	if mean, err = ByDtype(outputs, meanDistance[float32], meanDistance[float64])(e, d, delta, outputs, targets, weights); err != nil {
		return nil, nil, err
	}
	count, err = ByDtype(outputs, countNumbers[float32], countNumbers[float64])(e, d, outputs, targets, weights)
	return mean, count, err
}

// countNumbers returns the sum of the weights that MeanDistance gives to the numbers.
func countNumbers[F kernel.Float](e *Env, d kernel.Distance, outputs, targets, weights *G.Node) (*G.Node, error) {
	s, read := newDistanceSum[F](d, 0, outputs, weights), 0
	o := newScalar(fmt.Sprintf("%s count%v(%t)", distanceNames[d], outputs.Shape(), weights != nil), func(values []G.Value) float64 {
		s.w.read(values, read)
		return s.w.total(s.width)
	})
	o.layer = distanceNames[d]
	if weights == nil { // each is 1; the op needs an input nevertheless
		weights, o.after, read = targets, 1, 1
	}
	return e.apply(o, weights)
}

// SumDistance returns two sums over all numbers: the weighted distances, and the weights. MeanDistance returns their
// quotient. Both sums are scalars of dtype float64, without a gradient. HuberError isn't supported.
func SumDistance(e *Env, d kernel.Distance, outputs, targets, weights *G.Node) (sum, weight *G.Node, err error) {
	if err := checkDistance(distanceNames[d], outputs, targets, weights); err != nil {
		return nil, nil, err
	}
	return ByDtype(outputs, sumDistance[float32], sumDistance[float64])(e, d, outputs, targets, weights)
}

func checkDistance(name string, outputs, targets, weights *G.Node) error {
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
func (s *distanceSum[F]) read(cores int, values []G.Value) float64 {
	x, t := s.inputs(values)
	return kernel.SumDistances(cores, s.parts, s.d, s.delta, x, t, s.w.values, s.width)
}

// inputs returns the outputs and the targets, and reads the weights.
func (s *distanceSum[F]) inputs(values []G.Value) (x, t []F) {
	x, t = read2[F](values, s.n, s.n)
	s.w.read(values, 2)
	if s.d == kernel.BinaryCrossEntropy || s.d == kernel.RightSide {
		for i, t := range t {
			if !(t >= 0 && t <= 1) && s.w.values[i/s.width] != 0 {
				fail("target %d is %v: a target is the probability of the answer yes, from 0 to 1", i, t)
			}
		}
	}
	return x, t
}

// sumVector returns a vector of n sums of dtype float64, without a gradient. When the graph runs, the sums start at 0,
// and add is called for each output x whose weight w isn't 0, in order, with its number i and its target t. The name
// stands for add: with the same name, add must be the same. Inputs and errors are the same as in SumDistance.
func sumVector(e *Env, name string, d kernel.Distance, outputs, targets, weights *G.Node, n int, add func(sums []float64, i int, x, t, w float64)) (*G.Node, error) {
	if err := checkDistance(name, outputs, targets, weights); err != nil {
		return nil, err
	}
	fill := ByDtype(outputs, sumsOf[float32], sumsOf[float64])(d, outputs, weights, add)
	return e.apply(newOp(fmt.Sprint(name, outputs.Shape()), tensor.Shape{n}, fill), outputs, targets, weights)
}

func sumsOf[F kernel.Float](d kernel.Distance, outputs, weights *G.Node, add func(sums []float64, i int, x, t, w float64)) func(sums []float64, values []G.Value) {
	s := newDistanceSum[F](d, 0, outputs, weights)
	return func(sums []float64, values []G.Value) {
		x, t := s.inputs(values)
		clear(sums)
		for i := range x {
			if w := s.w.values[i/s.width]; w != 0 {
				add(sums, i, float64(x[i]), float64(t[i]), float64(w))
			}
		}
	}
}

func sumDistance[F kernel.Float](e *Env, d kernel.Distance, outputs, targets, weights *G.Node) (sum, weight *G.Node, err error) {
	s := newDistanceSum[F](d, 0, outputs, weights)
	return pair(e, fmt.Sprintf("%s sums%v", distanceNames[d], outputs.Shape()), G.Nodes{outputs, targets, weights}, func(values []G.Value) (sum, weight float64) {
		sum = s.read(e.Cores, values)
		return sum, s.w.total(s.width)
	})
}

func meanDistance[F kernel.Float](e *Env, d kernel.Distance, delta float64, outputs, targets, weights *G.Node) (*G.Node, error) {
	shape := outputs.Shape()
	s := newDistanceSum[F](d, delta, outputs, weights)

	attrs := fmt.Sprint(shape)
	if d == kernel.HuberError {
		attrs += fmt.Sprintf(" from %v", delta)
	}
	o := newScalar(distanceNames[d]+attrs, func(values []G.Value) F { return F(s.w.mean(s.read(e.Cores, values), s.width)) })
	if o.wrt = 2; d == kernel.BinaryCrossEntropy {
		o.wrt = 1
	}
	o.grad = func(nodes G.Nodes, out, g *G.Node) (G.Nodes, error) {
		// by returns the derivative with respect to x. It also serves the targets: where they have a gradient, the
		// distance is symmetric in x and t.
		by := func(what string, x, t *G.Node) (*G.Node, error) {
			o := newOp(distanceNames[d]+what+attrs, shape, func(dx []F, values []G.Value) {
				x, t, g := read3[F](values, s.n, s.n, 1)
				kernel.DistanceGrad(e.Cores, dx, d, delta, x, t, s.w.gradient(g[0]), s.width)
			})
			return e.apply(o, x, t, g, out) // out, the loss, must run first: it fills s
		}
		grads := make(G.Nodes, o.wrt)
		for i, what := range []string{".doutputs", ".dtargets"}[:o.wrt] {
			if e.wants(nodes[i]) {
				var err error
				if grads[i], err = by(what, nodes[i], nodes[1-i]); err != nil {
					return nil, err
				}
			}
		}
		return grads, nil
	}
	return e.apply(o, outputs, targets, weights)
}
