// Package gradcheck compares the gradients of Gorgonia expressions with finite differences.
//
// [Check] builds an expression in a new graph, takes its gradient with gorgonia.Grad, and compares every entry with the
// central difference
//
//	(f(x + eps) − f(x − eps)) / 2eps
//
// of the cost. The TapeMachine computes both. [Expr] does the same for an expression in an existing graph. An entry
// passes if
//
//	|analytic − numerical| ≤ atol + rtol · |numerical|
//
// The defaults are the same as in torch.autograd.gradcheck: eps 1e-6, atol 1e-5, rtol 1e-3, in float64. A [Config] can
// change them. A full check runs the expression twice per entry of each input. For large inputs, a directional check
// (Config.Directional) runs it only twice per input.
//
// # Requirements
//
// The cost must be a scalar; [Project] reduces an output of any shape to a scalar. The cost must be deterministic:
// Check returns an error if two runs with the same values differ in any bit. An expression with dropout needs a fixed
// mask.
//
// The cost must be differentiable within eps of the given values. At a kink (ReLU at 0, the maximum of equal values,
// |x| at 0) there is no derivative to compare with, so choose inputs away from kinks. Inputs of about unit size work
// best: in a cost of 1e6, float64 can't resolve a step of 1e-6.
package gradcheck

import (
	"errors"
	"fmt"
	"math"
	"slices"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// A Config holds the options of a check. The zero Config checks every entry with the default tolerances.
type Config struct {
	Eps  float64 // the step: the cost is computed at x − Eps and x + Eps; 0 means 1e-6
	Atol float64 // absolute tolerance; 0 means 1e-5
	Rtol float64 // relative tolerance, a fraction of the numerical value; 0 means 1e-3

	// Directional compares one number per input: the derivative along a random direction of unit length. This needs
	// only two runs per input, whatever its size. An error in one of n entries changes the derivative by only about
	// 1/√n of the error, so a small error in a large input may not be found.
	Directional bool
	// Seed determines the directions.
	Seed uint64
}

// An Input is a value for which Check makes an input node.
type Input struct {
	// Name is the name of the node, also in errors. The default is in0 for the first input, in1 for the second, and so
	// on. Names must differ, because Gorgonia would merge two inputs with the same name.
	Name string
	// Value is the node's value. Check copies it and never writes to it.
	Value *tensor.Dense
	// Fixed says that the input isn't differentiated (ids, masks, targets). It may then have any dtype; other inputs
	// must be float64.
	Fixed bool
}

// Check compares the gradients of a scalar expression with central differences, with the default Config. See
// [Config.Check].
func Check(build func(g *G.ExprGraph, nodes G.Nodes) (*G.Node, error), inputs ...Input) error {
	return Config{}.Check(build, inputs...)
}

// Check compares the gradients that gorgonia.Grad gives for a scalar expression with central differences. It calls
// build once, with a new graph and one node in it for each input, in order. build must return the cost, a float64
// scalar in that graph.
//
// Check returns nil if all gradients agree. If a gradient doesn't agree, or is NaN or infinite, the error wraps a
// [MismatchError] that names the worst entry. If no differentiable path connects an input to the cost, its gradient
// counts as zero and is checked too.
//
// Other errors mean that the check was impossible:
//   - an input isn't float64, or two inputs have the same name;
//   - the expression reads numbers that build bound itself, such as weights; use [Config.Expr] for those;
//   - the cost isn't a float64 scalar, or is NaN or infinite;
//   - the expression can't be built or run, isn't deterministic, or overwrites its inputs.
//
// Check returns a panic in build or in Gorgonia's compiler as an error. It can't recover a panic in an op's Do, because
// the TapeMachine runs ops in another goroutine.
func (c Config) Check(build func(g *G.ExprGraph, nodes G.Nodes) (*G.Node, error), inputs ...Input) (err error) {
	defer finish(&err)
	if c, err = c.withDefaults(); err != nil {
		return err
	}
	g := G.NewGraph()
	nodes, wrt, err := inputNodes(g, inputs)
	if err != nil {
		return err
	}
	if len(wrt) == 0 {
		return errNoInput
	}
	cost, err := build(g, nodes)
	if err != nil {
		return fmt.Errorf("building the expression: %w", err)
	}
	if cost.Graph() != g {
		return errors.New("the cost is not in the graph given to build")
	}
	if err := onlyInputs(cost, nodes); err != nil {
		return err
	}
	return c.check(cost, wrt)
}

// onlyInputs returns an error if the cost reads floating-point numbers other than the inputs, such as weights that
// build bound. Nothing would check their gradients.
func onlyInputs(cost *G.Node, inputs G.Nodes) error {
	for _, n := range descendants(cost) {
		if !n.IsVar() || n.Value() == nil || slices.Contains(inputs, n) {
			continue
		}
		if dt := n.Dtype(); dt == tensor.Float32 || dt == tensor.Float64 {
			return fmt.Errorf("the expression reads %s, which isn't among the inputs and would go unchecked: make it an Input, "+
				"with Fixed if it isn't differentiated, or build the graph yourself and call Expr with the nodes to check, "+
				"such as the Learnables of a Build", n.Name())
		}
	}
	return nil
}

// Expr checks an expression in an existing graph, with the default Config. See [Config.Expr].
func Expr(cost *G.Node, wrt ...*G.Node) error {
	return Config{}.Expr(cost, wrt...)
}

// Expr compares the gradients of cost, a float64 scalar, with central differences at the present values of the graph's
// inputs. The argument wrt lists the inputs to check, which must be float64. Other inputs keep their values. Expr
// returns the same errors as [Config.Check].
//
// If gorgonia.Grad has already been called for cost and all of wrt, Expr checks that gradient. Otherwise it calls
// gorgonia.Grad, and the new nodes stay in the graph. Before Expr, call gorgonia.Grad for all of wrt or not at all:
// Gorgonia can't extend a gradient, and can't differentiate a graph for a second cost.
//
// Expr changes the values of wrt in place and restores every bit before it returns, also after an error. Meanwhile
// nothing else may use the graph or its values. Expr doesn't touch gradients bound by gorgonia.BindDualValues or the
// variables of the graph's own Reads. It does overwrite the values of intermediate nodes. Like any new TapeMachine, it
// leaves ops that distinguish training from evaluation in training mode.
func (c Config) Expr(cost *G.Node, wrt ...*G.Node) (err error) {
	defer finish(&err)
	if c, err = c.withDefaults(); err != nil {
		return err
	}
	return c.check(cost, wrt)
}

// withDefaults replaces zeros by the defaults of torch.autograd.gradcheck. It returns an error if a number is negative,
// NaN or infinite.
func (c Config) withDefaults() (Config, error) {
	for _, o := range []struct {
		name  string
		value *float64
		def   float64
	}{{"Eps", &c.Eps, 1e-6}, {"Atol", &c.Atol, 1e-5}, {"Rtol", &c.Rtol, 1e-3}} {
		switch {
		case !(*o.value >= 0) || math.IsInf(*o.value, 0):
			return c, fmt.Errorf("%s must be a positive number, or 0 for the default of %g, got %g", o.name, o.def, *o.value)
		case *o.value == 0:
			*o.value = o.def
		}
	}
	return c, nil
}

// inputNodes makes a node for each input, with a copy of its value. The result wrt has the nodes whose gradients are
// checked.
func inputNodes(g *G.ExprGraph, inputs []Input) (nodes, wrt G.Nodes, err error) {
	taken := make(map[string]bool, len(inputs))
	for i, input := range inputs {
		name := input.Name
		if name == "" {
			name = fmt.Sprintf("in%d", i)
		}
		if taken[name] {
			return nil, nil, fmt.Errorf("two inputs are named %q: Gorgonia would merge them", name)
		}
		taken[name] = true
		if dt := input.Value.Dtype(); !input.Fixed && dt != tensor.Float64 {
			return nil, nil, fmt.Errorf("input %s is %v: use float64, or set Fixed if it isn't differentiated", name, dt)
		}
		n := inputNode(g, name, input.Value)
		nodes = append(nodes, n)
		if !input.Fixed {
			wrt = append(wrt, n)
		}
	}
	return nodes, wrt, nil
}

// inputNode binds a contiguous copy of v to a new node.
func inputNode(g *G.ExprGraph, name string, v *tensor.Dense) *G.Node {
	if v.IsScalar() {
		return G.NewScalar(g, v.Dtype(), G.WithName(name), G.WithValue(v.Data()))
	}
	own := v.Materialize().(*tensor.Dense).Clone().(*tensor.Dense)
	return G.NewTensor(g, v.Dtype(), v.Dims(), G.WithName(name), G.WithShape(v.Shape()...), G.WithValue(own))
}

// finish turns a panic into an error, and adds the package's name to an error.
func finish(err *error) {
	switch r := recover().(type) {
	case nil:
	case error:
		*err = fmt.Errorf("panic: %w", r)
	default:
		*err = fmt.Errorf("panic: %v", r)
	}
	if *err != nil {
		*err = fmt.Errorf("gradcheck: %w", *err)
	}
}
