package ops

import (
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// IntNode adds an input node of ids to a graph. Its shape is (size, length), or (size) if the length is 0.
func IntNode(g *G.ExprGraph, name string, size, length int) *G.Node {
	s := idShape(size, length)
	return G.NewTensor(g, tensor.Int, len(s), G.WithShape(s...), G.WithName(name))
}

// IntTensor returns a value of ids for an IntNode of this size and length.
func IntTensor(ids []int, size, length int) *tensor.Dense {
	return tensor.New(tensor.WithShape(idShape(size, length)...), tensor.WithBacking(ids))
}

func idShape(size, length int) tensor.Shape {
	return tensor.Shape{size, length}[:1+min(length, 1)]
}
