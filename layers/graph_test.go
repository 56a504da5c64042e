package layers_test

import (
	"context"
	"math"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/layers/decode"
	"github.com/heed-go/heed/layers/gradcheck"
	"github.com/heed-go/heed/train"
)

// Two float64 inputs of shape (2, 2) with these names have equal hashes.
const keyTwin, valueTwin = "t77989", "t1101292"

// TestCollidingNames uses two inputs with equal hashes, which Gorgonia treats as one. All code that builds a machine
// must return an error.
func TestCollidingNames(t *testing.T) {
	square := func(g *G.ExprGraph, name string) *G.Node {
		return input(g, name, dense([]float64{1, 2, 3, 4}, 2, 2))
	}
	params := newParams(t)
	weight := must.Get(params.New("query", layers.Ones(), 2, 2))(t)
	attend := func(b *layers.Build, g *G.ExprGraph) (*G.Node, error) {
		query := must.Get(b.Bind(g, weight))(t)
		out, err := layers.ScaledDotProduct(b, query, square(g, keyTwin), square(g, valueTwin), layers.AttentionOptions{})
		if err != nil {
			return nil, err
		}
		return gradcheck.Project(out, 1)
	}
	for name, build := range map[string]func() error{
		"check": func() error {
			g := G.NewGraph()
			must.Get(attend(&layers.Build{}, g))(t)
			return layers.CheckGraph(g)
		},
		"gradcheck": func() error {
			g := G.NewGraph()
			cost := must.Get(attend(&layers.Build{}, g))(t)
			return gradcheck.Expr(cost, g.ByName(keyTwin)...)
		},
		"decode": func() error {
			p := newParams(t)
			model := must.Get(layers.NewDecoder(p, layers.ModelConfig{Vocab: 3, Positions: layers.Learned{MaxLen: 3}, Dim: 2, Layers: 1}))(t)
			p.Get("blocks.0.attention.key.weight").Name = keyTwin
			p.Get("blocks.0.attention.value.weight").Name = valueTwin
			session, err := decode.New(model, decode.Config{})
			if err == nil {
				defer session.Close()
				_, err = decode.Generate(context.Background(), session, [][]int{{0}}, decode.Options{MaxTokens: 1})
			}
			return err
		},
		"train": func() error {
			_, err := train.Fit(context.Background(), train.Problem{
				Params: params,
				Loss: func(b *layers.Build, inputs G.Nodes) (layers.Loss, []train.Metric, error) {
					g := inputs[0].Graph()
					mean, err := attend(b, g)
					b.Fixed = append(g.ByName(keyTwin), g.ByName(valueTwin)...)
					return layers.Loss{Mean: mean}, nil, err
				},
				Train: train.Dataset{Len: 1, Batch: func([]int) ([]*tensor.Dense, error) {
					return []*tensor.Dense{tensor.New(tensor.FromScalar(float32(1)))}, nil
				}},
			}, train.Config{BatchSize: 1, MaxEpochs: 1}, train.RunOptions{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			must.Fail(t, build(), keyTwin, valueTwin, "another name")
		})
	}
}

// TestManyBlocks builds a training graph with 150 blocks and checks that no two of its thousands of nodes have the same
// hash. It runs only a graph with 40 blocks, because Gorgonia's time to compile grows with the square of the number of
// nodes.
func TestManyBlocks(t *testing.T) {
	testseed.Slow(t)
	build := func(blocks int) *G.Node {
		model := must.Get(layers.NewDecoder(newParams(t), layers.ModelConfig{
			Vocab: 3, Positions: layers.Rotary{}, Dim: 2, Layers: blocks, Block: layers.BlockConfig{FeedForward: layers.FeedForwardConfig{Hidden: 2}},
		}))(t)
		g := G.NewGraph()
		b := &layers.Build{Training: true}
		logits := must.Get(model.Forward(b, input(g, "ids", dense([]int{0, 1, 2}, 1, 3)), layers.Mask{}))(t)
		loss := must.Get(mean(layers.CrossEntropy(b, logits, input(g, "targets", dense([]int{1, 2, 0}, 1, 3)), layers.CrossEntropyOptions{})))(t)
		gradients(t, loss, b.Learnables()...)
		return loss
	}
	g := build(150).Graph()
	must.Do(t, layers.CheckGraph(g))
	if n := len(g.AllNodes()); n < 5_000 {
		t.Errorf("the graph has %d nodes, want at least 5,000", n)
	}
	if got := read(t, build(40))[0][0]; math.IsNaN(got) || got < 0.1 || got > 10 {
		t.Errorf("the loss is %v, want a number from 0.1 to 10", got)
	}
}
