package ops

import (
	"fmt"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/kernel"
)

// A ScoreFunc changes a score. It returns the new score and its derivative with respect to the old one.
type ScoreFunc = kernel.ScoreFunc

// ChangeScores applies f to scores of shape (T, S), (B, T, S) or (B, H, T, S). Queries have the positions that the mask
// gives them. Errors during a run begin with layer.
func ChangeScores(e *Env, layer string, scores *G.Node, f ScoreFunc, m Mask) (*G.Node, error) {
	return ByDtype(scores, changeScores[float32], changeScores[float64])(e, layer, scores, f, m)
}

func changeScores[F kernel.Float](e *Env, layer string, scores *G.Node, f ScoreFunc, m Mask) (*G.Node, error) {
	shape := scores.Shape()
	mask := inputsOf[F](Mask{Offset: m.Offset, Offsets: m.Offsets}, shape)
	name := fmt.Sprintf("change scores%v%d%s", shape, m.Offset, e.unlike())
	o := newOp(name, shape, func(out []F, values []G.Value) {
		kernel.ChangeScores(e.Cores, out, elements[F](values[0], len(out)), f, mask.read(values[1:]))
	})
	o.layer, o.wrt = layer, 1
	o.grad = func(inputs G.Nodes, _, g *G.Node) (G.Nodes, error) {
		ds := newOp(name+".grad", shape, func(ds []F, values []G.Value) {
			scores, g := read2[F](values, len(ds), len(ds))
			kernel.ChangeScoresGrad(e.Cores, ds, scores, g, f, mask.read(values[2:]))
		})
		n, err := e.apply(ds, append(G.Nodes{scores, g}, mask.nodes...)...)
		return G.Nodes{n}, err
	}
	return e.apply(o, append(G.Nodes{scores}, mask.nodes...)...)
}
