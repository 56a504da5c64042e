package decode

import (
	"fmt"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/ops"
	"github.com/heed-go/heed/layers"
)

// forward adds a model to a graph. It maps new tokens, of shape (B, T), to the logits of the next tokens, (B, V).
type forward func(b *layers.Build, tokens *G.Node) (*G.Node, error)

// graph is a graph of the model for steps with up to T tokens per sequence, with its machine.
type graph struct {
	tokens int   // T
	ids    []int // the values of the input, (B, T)

	// out is the output of the last run. It is allocated separately because the machine has a finalizer, and a pointer
	// cycle through it would never be freed.
	out *G.Value
	vm  G.VM
}

// newGraph builds a graph that continues the sequences in the cache.
func (s *Session) newGraph(tokens int, forward forward) (*graph, error) {
	batch, outputs := s.Batch(), s.outputs
	g := &graph{tokens: tokens, ids: make([]int, batch*tokens)}
	ids := intInput(G.NewGraph(), "tokens", g.ids, batch, tokens)
	logits, err := forward(&layers.Build{Cache: s.cache, Buffers: s.buffers, Cores: s.cores}, ids)
	if err != nil {
		return nil, err
	}
	if !logits.Shape().Eq(tensor.Shape{batch, outputs}) {
		return nil, fmt.Errorf("the model must have one output for each of its %d tokens: logits must have shape (B, V) = (%d, %d), got %v", outputs, batch, outputs, logits.Shape())
	}
	if err := g.compile(logits); err != nil {
		return nil, err
	}
	return g, nil
}

// compile makes the machine. Each run stores the output in g.out.
func (g *graph) compile(out *G.Node) error {
	g.out = new(G.Value)
	G.Read(out, g.out)
	if err := layers.CheckGraph(out.Graph()); err != nil {
		return err
	}
	g.vm = G.NewTapeMachine(out.Graph())
	return nil
}

// run runs the graph and calls use with the output, which use must not keep.
func (g *graph) run(use func(out G.Value) error) error {
	// The next run must start at the beginning, even after an error.
	defer g.vm.Reset()
	if err := ops.Run(g.vm); err != nil {
		return err
	}
	return use(*g.out)
}

func (g *graph) close() { g.vm.Close() }

// intInput returns an input node that uses the memory of ids. Each run reads the present values in ids.
func intInput(g *G.ExprGraph, name string, ids []int, shape ...int) *G.Node {
	// The node gets its own tensor header over the same memory, because a machine writes its engine into the tensors of
	// its graph.
	value := tensor.New(tensor.WithShape(shape...), tensor.WithBacking(ids))
	return G.NewTensor(g, tensor.Int, len(shape), G.WithShape(shape...), G.WithName(name), G.WithValue(value))
}

// toFloat64 copies elements of v, from index from on, to dst as float64.
func toFloat64(dst []float64, v G.Value, from int) error {
	switch src := v.Data().(type) {
	case []float64:
		copy(dst, src[from:])
	case []float32:
		for i, x := range src[from:][:len(dst)] {
			dst[i] = float64(x)
		}
	default:
		return fmt.Errorf("the logits must be float32 or float64, got %v", v.Dtype())
	}
	return nil
}
