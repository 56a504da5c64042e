// Package notebook has functions for the examples of notebooks. It reads printed numbers and draws random numbers. It
// runs a graph once and keeps the values of its stages. It prints matrices like numpy.
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

// Numbers reads numbers printed by numpy. It skips brackets and commas.
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

// Sections returns the parts of a text by their headings. A heading is a line that begins with "# ".
func Sections(text string) map[string]string {
	sections := map[string]string{}
	for _, section := range strings.Split("\n"+text, "\n# ")[1:] {
		heading, body, _ := strings.Cut(section, "\n")
		sections[heading] = strings.Trim(body, "\n")
	}
	return sections
}

// Printed makes a tensor from numbers printed by numpy. Use it for constants: it panics if the text doesn't have the
// right number of numbers.
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

// Source returns a random number generator with a seed.
func Source(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// Randn draws a tensor like numpy's random.randn: independent normal numbers with mean 0 and variance 1.
func Randn(rng *rand.Rand, shape ...int) *tensor.Dense { return draw(rng.NormFloat64, shape) }

// Rand draws a tensor like numpy's random.rand: independent uniform numbers from 0 to 1.
func Rand(rng *rand.Rand, shape ...int) *tensor.Dense { return draw(rng.Float64, shape) }

func draw(next func() float64, shape tensor.Shape) *tensor.Dense {
	values := make([]float64, shape.TotalSize())
	for i := range values {
		values[i] = next()
	}
	return tensor.New(tensor.WithShape(shape...), tensor.WithBacking(values))
}

// Causal(n, seen, hidden) returns an n×n matrix. In row i, columns 0 to i hold the first number, seen, and later
// columns hold the second number, hidden.
func Causal(n int, seen, hidden float64) *tensor.Dense {
	values := make([]float64, n*n)
	for i := range values {
		if values[i] = seen; i%n > i/n {
			values[i] = hidden
		}
	}
	return Matrix(n, n, values...)
}

// Eye returns the n×n identity matrix I. With K = I and a scale of 1, the scores of attention are its queries; with V =
// I, its output is its weights.
func Eye(n int) *tensor.Dense { return tensor.I(tensor.Float64, n, n, 0) }

// Set copies values into a parameter in row-major order, so values of shape (H, K, D) fill a weight of shape (H·K, D)
// head by head.
func Set(p *layers.Param, values *tensor.Dense) { copy(p.Value.Float64s(), values.Float64s()) }

// Input adds a tensor to a graph as a node.
func Input(g *G.ExprGraph, name string, t *tensor.Dense) *G.Node {
	return G.NewTensor(g, t.Dtype(), t.Dims(), G.WithShape(t.Shape()...), G.WithName(name), G.WithValue(t))
}

// Variance is like numpy's var over all elements of x: the mean of the squares minus the square of the mean.
func Variance(x *G.Node) *G.Node {
	return G.Must(G.Sub(G.Must(G.Mean(G.Must(G.Square(x)))), G.Must(G.Square(G.Must(G.Mean(x))))))
}

// Stages are named nodes of one graph, and their values after Run.
type Stages struct {
	names  []string
	nodes  G.Nodes
	values []*tensor.Dense
}

// Add adds a node under a name. Run reads its value.
func (s *Stages) Add(name string, n *G.Node) {
	s.names, s.nodes = append(s.names, name), append(s.nodes, n)
}

// Node returns the node of a stage.
func (s *Stages) Node(name string) *G.Node { return s.nodes[slices.Index(s.names, name)] }

// Run runs the graph once and copies the value of each stage. It needs gorgonia.Read nodes, made before the machine,
// because the machine reuses the memory of nodes that the graph no longer needs.
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

// Get returns the value of a stage after Run. It panics if there is no stage with that name.
func (s *Stages) Get(name string) *tensor.Dense { return s.values[slices.Index(s.names, name)] }

// Values returns the numbers of a stage, in row-major order.
func (s *Stages) Values(name string) []float64 {
	t := s.Get(name)
	if t.IsScalar() {
		return []float64{t.ScalarValue().(float64)}
	}
	return t.Data().([]float64)
}

// Print writes the named stages, each below its name, or all stages if there are no names.
func (s *Stages) Print(w io.Writer, names ...string) {
	if len(names) == 0 {
		names = s.names
	}
	for _, name := range names {
		Print(w, name, s.Get(name))
	}
}
