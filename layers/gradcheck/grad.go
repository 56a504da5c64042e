package gradcheck

import (
	"errors"
	"fmt"
	"slices"

	"gonum.org/v1/gonum/graph"
	G "gorgonia.org/gorgonia"
)

// descendants returns n and all nodes that it is computed from.
func descendants(n *G.Node) []*G.Node {
	nodes, seen := []*G.Node{n}, map[*G.Node]bool{n: true}
	for i := 0; i < len(nodes); i++ {
		for _, child := range children(nodes[i]) {
			if !seen[child] {
				seen[child] = true
				nodes = append(nodes, child)
			}
		}
	}
	return nodes
}

func children(n *G.Node) []*G.Node { return related(n.Graph().From(n.ID())) }
func parents(n *G.Node) []*G.Node  { return related(n.Graph().To(n.ID())) }

func related(it graph.Nodes) []*G.Node {
	var nodes []*G.Node
	for it != nil && it.Next() {
		nodes = append(nodes, it.Node().(*G.Node))
	}
	return nodes
}

// gradNodes returns the gradient of cost with respect to each node in wrt. The gradient is nil for an input that no
// differentiable path connects to cost; gorgonia.Grad would return an error for it.
func gradNodes(cost *G.Node, wrt, below []*G.Node) (G.Nodes, error) {
	reached, err := differentiable(cost)
	if err != nil {
		return nil, err
	}
	if err := oneCost(cost, below); err != nil {
		return nil, err
	}
	grads := make(G.Nodes, len(wrt))
	var open G.Nodes // inputs for gorgonia.Grad
	for _, n := range wrt {
		if reached[n] {
			open = append(open, n)
		}
	}
	if cost.Deriv() == nil && len(open) > 0 {
		if _, err := G.Grad(cost, open...); err != nil {
			return nil, fmt.Errorf("taking the gradient: %w", err)
		}
	}
	for i, n := range wrt {
		if !reached[n] {
			continue
		}
		if grads[i] = n.Deriv(); grads[i] == nil {
			return nil, fmt.Errorf("the gradient was taken without %s: take it with respect to all nodes to check, or to none", n.Name())
		}
	}
	return grads, nil
}

// differentiable returns the nodes that a differentiable path connects to cost.
func differentiable(cost *G.Node) (map[*G.Node]bool, error) {
	reached := map[*G.Node]bool{cost: true}
	for todo := []*G.Node{cost}; len(todo) > 0; {
		n := todo[0]
		todo = todo[1:]
		below := children(n)
		if len(below) == 0 {
			continue
		}
		op, ok := n.Op().(G.SDOp)
		if !ok {
			return nil, fmt.Errorf("%v has no derivative: a %T is not an SDOp", n.Op(), n.Op())
		}
		diff := op.DiffWRT(len(below))
		if len(diff) != len(below) {
			return nil, fmt.Errorf("%v: DiffWRT(%d) has length %d", op, len(below), len(diff))
		}
		for i, child := range below {
			if diff[i] && !reached[child] {
				reached[child] = true
				todo = append(todo, child)
			}
		}
	}
	return reached, nil
}

// oneCost returns an error if the graph has been differentiated for another cost. A node has only one derivative, so
// gorgonia.Grad would mix the gradients of both costs.
func oneCost(cost *G.Node, below []*G.Node) error {
	nodes := below
	if cost.Deriv() != nil {
		nodes = parents(cost)
	}
	if slices.ContainsFunc(nodes, func(n *G.Node) bool { return n.Deriv() != nil }) {
		return errors.New("the graph has been differentiated for another cost: build a new graph to check this one")
	}
	return nil
}
