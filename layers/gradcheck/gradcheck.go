// Package gradcheck holds the gradients of Gorgonia expressions to finite differences.
//
// [Check] builds an expression in a graph of its own, takes its gradient with gorgonia.Grad, and compares every entry
// with the central difference
//
//	(f(x + eps) − f(x − eps)) / 2eps
//
// of the cost itself, both as the TapeMachine computes them. [Expr] does the same for an expression that is already in
// a graph, in place. An entry passes where
//
//	|analytic − numerical| ≤ atol + rtol · |numerical|
//
// with the step and the tolerances of torch.autograd.gradcheck: eps 1e-6, atol 1e-5, rtol 1e-3, in float64. [Config]
// changes them. A full check runs the expression twice for each entry of each input; for large inputs, a directional
// one (Config.Directional) runs it twice for each input.
//
// # What can be checked
//
// The cost is a scalar; [Project] reduces an output of any shape to one. It must be deterministic: two runs at one
// point have to give the same bits, which is tested. An expression with dropout needs a fixed mask.
//
// It must also be differentiable within eps of the point. A kink (ReLU at 0, the maximum of equal values, |x| at 0) has
// no derivative for the difference to agree with: choose inputs that keep away from it. Inputs of about unit size are
// best: a cost of 1e6 has too few digits left to resolve a step of 1e-6.
package gradcheck

import (
	"errors"
	"fmt"
	"math"
	"slices"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// A Config says how to check. The zero Config is ready to use: a check of every entry with the default tolerances.
type Config struct {
	Eps  float64 // half the distance between the two points of a difference; 0 means 1e-6
	Atol float64 // how far an entry may be off; 0 means 1e-5
	Rtol float64 // how far in addition, as a fraction of the numerical value; 0 means 1e-3

	// Directional compares one number for each input: the derivative along a random direction of unit length. It takes
	// two runs for an input of any size. A mistake in one of n entries changes that number by about 1/√n of the
	// mistake, so that a small mistake in a large input can pass.
	Directional bool
	// Seed chooses the directions. One seed always gives the same ones.
	Seed uint64
}

// An Input is a value that Check hands to an expression as an input node.
type Input struct {
	// Name is the node's name, and the name that errors use. The default is in0, in1, … by position.
	// No two inputs may share a name: Gorgonia would make them one node.
	Name string
	// Value is what the node is bound to. The check works on a copy and never writes to it.
	Value *tensor.Dense
	// Fixed says that the input is not to be differentiated (ids, masks, targets). It may then be of any dtype; the
	// others are float64.
	Fixed bool
}

// Check compares the gradients that gorgonia.Grad finds for a scalar expression with central differences, with the
// default Config. See [Config.Check].
func Check(build func(g *G.ExprGraph, in G.Nodes) (*G.Node, error), inputs ...Input) error {
	return Config{}.Check(build, inputs...)
}

// Check compares the gradients that gorgonia.Grad finds for a scalar expression with central differences. It calls
// build once, with a fresh graph and one node in it for each input, in order; build returns the cost, a float64 scalar
// in that graph.
//
// It returns nil if all gradients agree. If one doesn't, or is NaN or infinite, the error wraps a [MismatchError] that
// names the worst entry. An input that the cost doesn't depend on, or only through something that isn't differentiated,
// counts as having a gradient of zero, and is checked like any other.
//
// If the check can't be made, the error is of another type: for an input that isn't float64 or shares a name; for
// numbers that build binds itself, as weights, which are for [Config.Expr] to check; for a cost that isn't a float64
// scalar, or is NaN or infinite; for an expression that fails to build or to run, whose cost or gradient differs
// between two runs at the same point, or whose ops write over their inputs. Panics in build, and Gorgonia's own at
// build and compile time, are returned as errors. A panic in an op's Do can't be: the TapeMachine runs ops on a
// goroutine of its own.
func (c Config) Check(build func(g *G.ExprGraph, in G.Nodes) (*G.Node, error), inputs ...Input) (err error) {
	defer recoverTo(&err)
	if c, err = c.withDefaults(); err != nil {
		return wrap(err)
	}
	g := G.NewGraph()
	nodes, wrt, err := inputNodes(g, inputs)
	if err != nil {
		return wrap(err)
	}
	if len(wrt) == 0 {
		return wrap(errNoInput)
	}
	cost, err := build(g, nodes)
	if err != nil {
		return wrap(fmt.Errorf("building the expression: %w", err))
	}
	if cost.Graph() != g {
		return wrap(errors.New("the cost is not in the graph that build was given"))
	}
	if err := onlyInputs(cost, nodes); err != nil {
		return wrap(err)
	}
	return wrap(c.check(cost, wrt))
}

// onlyInputs checks that a cost reads no numbers but those of the inputs: others, such as weights that build bound,
// would go unchecked.
func onlyInputs(cost *G.Node, inputs G.Nodes) error {
	for _, n := range descendants(cost) {
		if !n.IsVar() || n.Value() == nil || slices.Contains(inputs, n) {
			continue
		}
		if dt := n.Dtype(); dt == tensor.Float32 || dt == tensor.Float64 {
			return fmt.Errorf("the expression reads %s, which isn't among the inputs and would go unchecked: give it as an Input, "+
				"Fixed if it is not to be differentiated, or build the graph and give Expr its cost with the nodes to check, "+
				"such as the Learnables of a Build", n.Name())
		}
	}
	return nil
}

// Expr checks an expression that is already in a graph, with the default Config. See [Config.Expr].
func Expr(cost *G.Node, wrt ...*G.Node) error {
	return Config{}.Expr(cost, wrt...)
}

// Expr compares the gradients of cost, a float64 scalar, with central differences at the values that its graph's inputs
// are bound to. wrt are the inputs to check, each a float64 input of the graph; what else the cost reads stays fixed.
// Its errors are those of [Config.Check].
//
// If the gradient of cost has been taken, for all of wrt, that gradient is checked. Otherwise Expr takes it, and its
// nodes stay in the graph. Take the gradients of all of wrt beforehand, or of none: Gorgonia can't add to a gradient,
// nor differentiate a graph for a second cost.
//
// The values of wrt are changed in place and are as before, bit for bit, when Expr returns, on an error too. Nothing
// else may use the graph or its values meanwhile. Gradients bound to nodes (gorgonia.BindDualValues) and variables that
// the graph's own Reads fill are left alone. Values of intermediate nodes are not, and ops that tell training from
// evaluation are left in training, as by any new TapeMachine.
func (c Config) Expr(cost *G.Node, wrt ...*G.Node) (err error) {
	defer recoverTo(&err)
	if c, err = c.withDefaults(); err != nil {
		return wrap(err)
	}
	return wrap(c.check(cost, wrt))
}

// withDefaults returns the Config with the defaults of torch.autograd.gradcheck in place of zeros. A number that makes
// no sense is an error.
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

// inputNodes makes a node for each input, over a copy of its value. It returns all of them, and those to differentiate.
func inputNodes(g *G.ExprGraph, inputs []Input) (all, wrt G.Nodes, err error) {
	taken := make(map[string]bool, len(inputs))
	for i, in := range inputs {
		name := in.Name
		if name == "" {
			name = fmt.Sprintf("in%d", i)
		}
		if taken[name] {
			return nil, nil, fmt.Errorf("two inputs are named %q: Gorgonia would make them one node", name)
		}
		taken[name] = true
		if dt := in.Value.Dtype(); !in.Fixed && dt != tensor.Float64 {
			return nil, nil, fmt.Errorf("input %s is %v: use float64, or Fixed if it is not to be differentiated", name, dt)
		}
		n := inputNode(g, name, in.Value)
		all = append(all, n)
		if !in.Fixed {
			wrt = append(wrt, n)
		}
	}
	return all, wrt, nil
}

// inputNode binds a copy of v, laid out without gaps, to a new node.
func inputNode(g *G.ExprGraph, name string, v *tensor.Dense) *G.Node {
	if v.IsScalar() {
		return G.NewScalar(g, v.Dtype(), G.WithName(name), G.WithValue(v.Data()))
	}
	own := v.Materialize().(*tensor.Dense).Clone().(*tensor.Dense)
	return G.NewTensor(g, v.Dtype(), v.Dims(), G.WithName(name), G.WithShape(v.Shape()...), G.WithValue(own))
}

// wrap adds to an error where it comes from.
func wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("gradcheck: %w", err)
}

// recoverTo turns a panic of Gorgonia's, or of what builds on it, into an error.
func recoverTo(err *error) {
	switch r := recover().(type) {
	case nil:
	case error:
		*err = wrap(fmt.Errorf("panic: %w", r))
	default:
		*err = wrap(fmt.Errorf("panic: %v", r))
	}
}
