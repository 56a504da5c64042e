package ops

import (
	"cmp"
	"fmt"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
)

// SinkSoftmax turns scores of shape (T, S), (B, T, S) or (B, H, T, S), in which −Inf masks a key, into attention
// weights: the softmax over the keys and a sink. The sinks have shape (H). A query whose keys are all masked has
// weights of zero.
func SinkSoftmax(e *Env, layer string, scores, sinks *G.Node) (*G.Node, error) {
	if err := checkSinks(layer, sinks, scores, full(scores.Shape())[1]); err != nil {
		return nil, err
	}
	return ByDtype(scores, sinkSoftmax[float32], sinkSoftmax[float64])(e, scores, sinks)
}

func sinkSoftmax[F kernel.Float](e *Env, scores, sinks *G.Node) (*G.Node, error) {
	shape := scores.Shape()
	axes := full(shape)
	heads, queries, keys := axes[1], axes[2], axes[3]
	o := newOp(fmt.Sprintf("sink softmax%v", shape), shape, func(w []F, values []G.Value) {
		scores, sinks := read2[F](values, len(w), heads)
		kernel.SinkSoftmax(e.Cores, w, scores, sinks, queries, keys)
	})
	o.wrt, o.grad = 2, func(_ G.Nodes, w, g *G.Node) (G.Nodes, error) {
		return joint(e, fmt.Sprintf("sink softmax.grad%v", shape), o.DiffWRT(2), []tensor.Shape{shape, {heads}}, []*G.Node{w, g}, nil, nil, func(d [][]F, values []G.Value) {
			w, g := read2[F](values, len(d[0]), len(d[0]))
			kernel.SoftmaxGrad(e.Cores, d[0], w, g, keys)
			kernel.SinkSoftmaxGrad(d[1], w, g, queries, keys)
		})
	}
	return e.apply(o, scores, sinks)
}

// checkSinks checks the sinks of attention with the given number of heads.
func checkSinks(layer string, sinks, like *G.Node, heads int) error {
	const what = "Sinks"
	return cmp.Or(sameDtype(layer, what, sinks, "the query", like), hasShape(layer, what, sinks, heads))
}
