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
	kernel.BinaryCrossEntropy: "binary cross-entropy",
}

// MeanDistance returns the weighted mean of the distances of outputs from targets: a scalar. Both have one shape, of
// one axis or more; weights are nil or have its first axes, one or more, and each counts for all numbers at its
// position. What has a weight of 0 is not read, and with all of them 0 the mean is 0. A weight that is negative,
// infinite or NaN is an error when the graph runs, and so is a target of binary cross-entropy that isn't from 0 to 1.
// delta is that of kernel.HuberError.
//
// Outputs have a gradient, and so have the targets of errors. Weights have none, and neither have the targets of binary
// cross-entropy.
func MeanDistance(e *Env, d kernel.Distance, delta float64, outputs, targets, weights *G.Node) (*G.Node, error) {
	name := distanceNames[d]
	if err := CheckFloat(name, "the outputs", outputs); err != nil {
		return nil, err
	}
	if err := sameDtype(name, "the targets", targets, "the outputs", outputs); err != nil {
		return nil, err
	}
	s := outputs.Shape()
	if len(s) < 1 {
		return nil, fmt.Errorf("%s: the outputs must have at least one axis, got a scalar", name)
	}
	if err := hasShape(name, "the targets", targets, s...); err != nil {
		return nil, err
	}
	if weights != nil {
		if err := sameDtype(name, "the weights", weights, "the outputs", outputs); err != nil {
			return nil, err
		}
		if ws := weights.Shape(); len(ws) < 1 || len(ws) > len(s) || !slices.Equal(ws, s[:len(ws)]) {
			return nil, fmt.Errorf("%s: the weights must have the shape of the outputs, %v, or its first axes, got %v", name, s, ws)
		}
	}
	if outputs.Dtype() == tensor.Float32 {
		return meanDistance[float32](e, d, delta, outputs, targets, weights)
	}
	return meanDistance[float64](e, d, delta, outputs, targets, weights)
}

func meanDistance[F kernel.Float](e *Env, d kernel.Distance, delta float64, outputs, targets, weights *G.Node) (*G.Node, error) {
	shape := outputs.Shape()
	n, positions := shape.TotalSize(), 1
	inputs := G.Nodes{outputs, targets}
	diff := []bool{true, d != kernel.BinaryCrossEntropy}
	if weights != nil {
		positions = weights.Shape().TotalSize()
		inputs, diff = append(inputs, weights), append(diff, false)
	}
	if n == 0 || positions == 0 { // apply returns the error
		positions = 1
	}
	width := n / positions
	w := newWeighting[F](positions)
	sums := make([]float64, kernel.DistanceTasks(n))

	attrs := fmt.Sprint(shape)
	if d == kernel.HuberError {
		attrs += fmt.Sprintf(" from %v", delta)
	}
	o := &op{
		name: distanceNames[d] + attrs, shape: tensor.ScalarShape(), out: dtypeOf[F](), diff: diff,
		run: func(in []G.Value) (G.Value, error) {
			x, t, err := read2[F](in, n, n)
			if err != nil {
				return nil, err
			}
			if err := w.read(optional(in, 2)); err != nil {
				return nil, err
			}
			if d == kernel.BinaryCrossEntropy {
				if err := checkChances(t, w.of, width); err != nil {
					return nil, err
				}
			}
			sum := kernel.SumDistances(e.Cores, sums, d, delta, x, t, w.of, width)
			return scalar(F(w.mean(sum, width))), nil
		},
	}
	o.grad = func(in G.Nodes, out, g *G.Node) (G.Nodes, error) {
		// by returns the derivative by the first of two inputs. An error is the same with the two exchanged.
		by := func(what string, x, t *G.Node) (*G.Node, error) {
			o := newOp(distanceNames[d]+what+attrs, shape, func(dx []F, in []G.Value) error {
				x, t, g, err := read3[F](in, n, n, 1)
				if err != nil {
					return err
				}
				kernel.DistanceGrad(e.Cores, dx, d, delta, x, t, w.gradient(g[0]), width)
				return nil
			})
			return e.apply(o, x, t, g, out) // the loss is an input so that it has run: w is its
		}
		grads := make(G.Nodes, len(in))
		var err error
		if grads[0], err = by(".doutputs", in[0], in[1]); err != nil {
			return nil, err
		}
		if diff[1] {
			grads[1], err = by(".dtargets", in[1], in[0])
		}
		return grads, err
	}
	return e.apply(o, inputs...)
}

// checkChances checks that each target that counts is from 0 to 1.
func checkChances[F kernel.Float](targets, weights []F, width int) error {
	for i, t := range targets {
		if !(t >= 0 && t <= 1) && weights[i/width] != 0 {
			return fmt.Errorf("target %d is %v: it must be from 0 to 1, the chance that the answer is yes", i, t)
		}
	}
	return nil
}
