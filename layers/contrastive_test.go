package layers_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
)

// contrastiveSubject computes the loss of normalised vectors. With scores, it is the mean squared error of the cosines
// of the pairs.
func contrastiveSubject(t *testing.T, f fixture, _ *layers.Params, b *layers.Build, inputs map[string]*G.Node) map[string]*G.Node {
	x := must.Get(layers.Normalize(b, inputs["vectors"]))(t)
	logits, targets, err := layers.Contrastive(b, x, inputs["texts"], f.Config.Scale)
	must.Do(t, err)
	scores := inputs["scores"]
	if scores == nil {
		return map[string]*G.Node{"loss": must.Get(mean(layers.CrossEntropy(b, logits, targets, layers.CrossEntropyOptions{})))(t)}
	}
	s := logits.Shape()
	values, weights := tensor.New(tensor.WithShape(s...), tensor.Of(tensor.Float64)), tensor.New(tensor.WithShape(s...), tensor.Of(tensor.Float64))
	for i := range s[0] {
		values.Float64s()[i*s[1]+2*i+1], weights.Float64s()[i*s[1]+2*i+1] = f.Inputs["scores"].floats()[i], 1
	}
	g, dt := logits.Graph(), logits.Dtype()
	return map[string]*G.Node{"loss": must.Get(mean(layers.MeanSquaredError(b, logits, input(g, "values", as(dt, values)), input(g, "weights", as(dt, weights)))))(t)}
}

func TestGradientsOfContrastive(t *testing.T) {
	var cases []gradientCase
	for _, texts := range [][]int{
		{0, 1, 2, 3, 4, 5}, {0, 1, 0, 3, 2, 1}, {4, 4, 4, 4, 4, 4}, {0, 1, 2, 3, -1, -1}, {-1, -1, -1, -1, -1, -1},
	} {
		for _, each := range []int{2, 3, 6} {
			cases = append(cases, gradientCase{fmt.Sprint(texts, " by ", each), func(c *bench) *G.Node {
				logits, targets, err := layers.Contrastive(c.b, c.in("vectors", 6, 4), c.ints("texts", texts, 6/each, each), 0.7)
				must.Do(c, err)
				return c.node(G.Square(c.node(mean(layers.CrossEntropy(c.b, logits, targets, layers.CrossEntropyOptions{})))))
			}})
		}
	}
	checkGradients(t, cases)
}

// TestMaskedTextsCannotMatter sets vectors without a text to NaN: no bit of the loss or of a gradient may change. The
// logits that are masked have no gradient, whatever the cost.
func TestMaskedTextsCannotMatter(t *testing.T) {
	run := func(x float64) [][]float64 {
		g := G.NewGraph()
		v := random(1, 6, 3)
		for i := range 6 {
			v.Float64s()[12+i] = x
		}
		vectors := input(g, "vectors", v)
		logits, targets, err := layers.Contrastive(&layers.Build{}, vectors, input(g, "texts", dense([]int{0, 1, 2, 3, -1, -1}, 3, 2)), 0.1)
		must.Do(t, err)
		loss := must.Get(mean(layers.CrossEntropy(&layers.Build{}, logits, targets, layers.CrossEntropyOptions{})))(t)
		sum := must.Get(G.Sum(must.Get(layers.ReLU.Forward(&layers.Build{}, logits))(t)))(t)
		return read(t, append(G.Nodes{loss}, append(gradients(t, loss, vectors), gradients(t, sum, vectors)...)...)...)
	}
	want, got := run(0), run(math.NaN())
	for i := range want {
		sameBits(t, fmt.Sprint("result ", i), got[i], want[i])
	}
}

func TestContrastiveErrors(t *testing.T) {
	for want, build := range map[string]func(g *G.ExprGraph) (vectors, texts *G.Node, temperature float64){
		"shape (B·K, D)": func(g *G.ExprGraph) (*G.Node, *G.Node, float64) {
			return input(g, "v", random(1, 5, 3)), input(g, "t", dense([]int{0, 1, 2, 3}, 2, 2)), 1
		},
		"K of at least 2": func(g *G.ExprGraph) (*G.Node, *G.Node, float64) {
			return input(g, "v", random(1, 2, 3)), input(g, "t", dense([]int{0, 1}, 2, 1)), 1
		},
		"temperature must be": func(g *G.ExprGraph) (*G.Node, *G.Node, float64) {
			return input(g, "v", random(1, 2, 3)), input(g, "t", dense([]int{0, 1}, 1, 2)), 0
		},
		"float32 or float64": func(g *G.ExprGraph) (*G.Node, *G.Node, float64) {
			return input(g, "v", dense([]int{0, 1}, 2, 1)), input(g, "t", dense([]int{0, 1}, 1, 2)), 1
		},
	} {
		v, texts, temperature := build(G.NewGraph())
		if _, _, err := layers.Contrastive(&layers.Build{}, v, texts, temperature); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got the error %v, want one with %q", err, want)
		}
	}
}
