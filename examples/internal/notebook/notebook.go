// Package notebook is what the examples share: it reads printed numbers, draws others, runs a graph once, keeps the
// values of its stages, and prints matrices as numpy does.
package notebook

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/layers"
)

// Numbers reads the numbers that numpy printed, and skips brackets and commas.
func Numbers(printed string) ([]float64, error) {
	fields := strings.FieldsFunc(printed, func(r rune) bool { return strings.ContainsRune("[](), \n\t", r) })
	values := make([]float64, len(fields))
	for i, f := range fields {
		var err error
		if values[i], err = strconv.ParseFloat(f, 64); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// Printed makes a tensor of the numbers that numpy printed. It is for constants: it panics if their count doesn't fit
// the shape.
func Printed(text string, shape ...int) *tensor.Dense {
	values, err := Numbers(text)
	if err == nil && len(values) != tensor.Shape(shape).TotalSize() {
		err = fmt.Errorf("%d numbers for shape %v", len(values), shape)
	}
	if err != nil {
		panic(err)
	}
	return tensor.New(tensor.WithShape(shape...), tensor.WithBacking(values))
}

// Matrix returns a matrix with the given values, row by row.
func Matrix(rows, columns int, values ...float64) *tensor.Dense {
	return tensor.New(tensor.WithShape(rows, columns), tensor.WithBacking(values))
}

// Source returns the generator that a seed decides.
func Source(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// Randn draws a tensor as numpy's random.randn does: independent numbers of mean 0 and variance 1.
func Randn(rng *rand.Rand, shape ...int) *tensor.Dense { return draw(rng.NormFloat64, shape) }

// Rand draws a tensor as numpy's random.rand does: independent numbers from 0 to 1.
func Rand(rng *rand.Rand, shape ...int) *tensor.Dense { return draw(rng.Float64, shape) }

func draw(next func() float64, shape tensor.Shape) *tensor.Dense {
	values := make([]float64, shape.TotalSize())
	for i := range values {
		values[i] = next()
	}
	return tensor.New(tensor.WithShape(shape...), tensor.WithBacking(values))
}

// Causal returns an n×n matrix with a row for each word: seen for that word and those before it, hidden for those
// after.
func Causal(n int, seen, hidden float64) *tensor.Dense {
	values := make([]float64, n*n)
	for i := range values {
		if values[i] = seen; i%n > i/n {
			values[i] = hidden
		}
	}
	return Matrix(n, n, values...)
}

// Eye returns the n×n identity. With K = I and a scale of 1 attention takes the query for its scores; with V = I it
// returns its weights.
func Eye(n int) *tensor.Dense { return tensor.I(tensor.Float64, n, n, 0) }

// Set copies values into a parameter, in row-major order: (H, K, D) fills a weight of shape (H·K, D), head by head.
func Set(p *layers.Param, values *tensor.Dense) error {
	to, from := p.Value.Data().([]float64), values.Data().([]float64)
	if len(to) != len(from) {
		return fmt.Errorf("parameter %q has shape %v, got values of shape %v", p.Name, p.Value.Shape(), values.Shape())
	}
	copy(to, from)
	return nil
}

// Input makes a tensor a node of a graph.
func Input(g *G.ExprGraph, name string, t *tensor.Dense) *G.Node {
	return G.NewTensor(g, t.Dtype(), t.Dims(), G.WithShape(t.Shape()...), G.WithName(name), G.WithValue(t))
}

// Variance is numpy's var, over all of x: the mean of the squares less the square of the mean.
func Variance(x *G.Node) *G.Node {
	return G.Must(G.Sub(G.Must(G.Mean(G.Must(G.Square(x)))), G.Must(G.Square(G.Must(G.Mean(x))))))
}

// Stages are named nodes of one graph, and their values once it has run.
type Stages struct {
	names  []string
	nodes  G.Nodes
	values []*tensor.Dense
}

// Add names a node, to be read when the graph runs.
func (s *Stages) Add(name string, n *G.Node) {
	s.names, s.nodes = append(s.names, name), append(s.nodes, n)
}

// Run runs the graph once. Every stage is read by gorgonia.Read, made before the machine, and copied: the machine uses
// the memory of a node again once nothing in the graph needs it.
func (s *Stages) Run() error {
	read := make([]G.Value, len(s.nodes))
	for i, n := range s.nodes {
		G.Read(n, &read[i])
	}
	vm := G.NewTapeMachine(s.nodes[0].Graph())
	defer vm.Close()
	if err := vm.RunAll(); err != nil {
		return err
	}
	s.values = make([]*tensor.Dense, len(read))
	for i, v := range read {
		switch v := v.(type) {
		case *tensor.Dense:
			s.values[i] = v.Clone().(*tensor.Dense)
		case *G.F64:
			s.values[i] = tensor.New(tensor.FromScalar(float64(*v)))
		default:
			return fmt.Errorf("stage %q: can't read %T", s.names[i], v)
		}
	}
	return nil
}

// Get returns the value of a stage, once Run has run. It panics if there is no stage of that name.
func (s *Stages) Get(name string) *tensor.Dense { return s.values[slices.Index(s.names, name)] }

// Values returns the numbers of a stage, in row-major order.
func (s *Stages) Values(name string) []float64 {
	t := s.Get(name)
	if t.IsScalar() {
		return []float64{t.ScalarValue().(float64)}
	}
	return t.Data().([]float64)
}

// Print writes the named stages, each under its name; all of them if no name is given.
func (s *Stages) Print(w io.Writer, names ...string) {
	if len(names) == 0 {
		names = s.names
	}
	for _, name := range names {
		Print(w, name, s.Get(name))
	}
}
