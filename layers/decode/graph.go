package decode

import (
	"fmt"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/layers"
)

// forward adds a model to a graph. It maps new tokens, of shape (B, T), to the logits of what follows them, (B, V).
type forward func(b *layers.Build, tokens *G.Node) (*G.Node, error)

// graph is a model in a graph for steps of up to T tokens a sequence, with the machine that runs it.
type graph struct {
	tokens int   // T
	ids    []int // the values of its input, (B, T)

	// out is the output of the last run. It is allocated separately: a pointer cycle through the machine, which has a
	// finalizer, is never freed.
	out *G.Value
	vm  G.VM
}

// newGraph builds a graph that continues what the cache holds.
func (s *Session) newGraph(tokens int, forward forward) (*graph, error) {
	batch, vocab := s.Batch(), s.vocab
	g := &graph{tokens: tokens, ids: make([]int, batch*tokens)}
	ids := intInput(G.NewGraph(), "tokens", g.ids, batch, tokens)
	logits, err := forward(&layers.Build{Cache: s.cache, Buffers: s.buffers, Cores: s.cores}, ids)
	if err != nil {
		return nil, err
	}
	if !logits.Shape().Eq(tensor.Shape{batch, vocab}) {
		return nil, fmt.Errorf("the model must have an output for each of its %d tokens, (B, V) = (%d, %d), got logits of shape %v", vocab, batch, vocab, logits.Shape())
	}
	if err := g.compile(logits); err != nil {
		return nil, err
	}
	return g, nil
}

// compile makes the machine, which reads its output into g.out.
func (g *graph) compile(out *G.Node) error {
	g.out = new(G.Value)
	G.Read(out, g.out)
	if err := layers.CheckGraph(out.Graph()); err != nil {
		return err
	}
	g.vm = G.NewTapeMachine(out.Graph())
	return nil
}

// run runs the graph and calls use with its output, which use mustn't keep.
func (g *graph) run(use func(out G.Value) error) error {
	// However this run ends, the next one must start at the beginning.
	defer g.vm.Reset()
	if err := g.vm.RunAll(); err != nil {
		return err
	}
	return use(*g.out)
}

func (g *graph) close() { g.vm.Close() }

// intInput returns an input node over ids. A run reads what they are at that time.
func intInput(g *G.ExprGraph, name string, ids []int, shape ...int) *G.Node {
	// The node has a tensor of its own over the same memory, as a machine writes its engine into the tensors of its
	// graph.
	value := tensor.New(tensor.WithShape(shape...), tensor.WithBacking(ids))
	return G.NewTensor(g, tensor.Int, len(shape), G.WithShape(shape...), G.WithName(name), G.WithValue(value))
}

// toFloat64 copies the elements of a value, as float64.
func toFloat64(to []float64, v G.Value) error {
	switch from := v.Data().(type) {
	case []float64:
		copy(to, from)
	case []float32:
		for i, x := range from {
			to[i] = float64(x)
		}
	default:
		return fmt.Errorf("the logits must be float32 or float64, got %v", v.Dtype())
	}
	return nil
}
