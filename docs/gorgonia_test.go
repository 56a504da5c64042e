package docs

import (
	"fmt"
	"math/rand/v2"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/layers/gradcheck"
	"github.com/heed-go/heed/train/optim"
)

// Attention without parameters, between three nodes of a program.
func Example_scaledDotProduct() {
	g := G.NewGraph()
	input := func(name string, rows, columns int, values ...float64) *G.Node {
		v := tensor.New(tensor.WithShape(rows, columns), tensor.WithBacking(values))
		return G.NewMatrix(g, tensor.Float64, G.WithShape(rows, columns), G.WithName(name), G.WithValue(v))
	}
	q := input("q", 2, 2, 9, 0, 0, 9)
	k := input("k", 3, 2, 1, 0, 0, 1, 1, 1)
	v := input("v", 3, 1, 10, 20, 30)

	y, err := layers.ScaledDotProduct(&layers.Build{}, q, k, v, layers.AttentionOptions{
		Mask: layers.Mask{Causal: true}, // query i sees keys 0 to i
	})
	check(err)
	var out G.Value
	G.Read(y, &out)

	vm := G.NewTapeMachine(g)
	defer vm.Close()
	check(vm.RunAll())
	fmt.Printf("%.2f\n", out.Data())
	// Output:
	// [10.00 19.98]
}

// A model learns to name, for each token, the token before it.
type tagger struct {
	embedding *layers.Embedding
	attention *layers.MultiHeadAttention
	head      *layers.Linear
	scale     *layers.Param
}

const vocab, width = 5, 16

func newModel(p *layers.Params) *tagger {
	var m tagger
	var err error
	m.embedding, err = layers.NewEmbedding(p.Scope("embedding"), vocab, width, layers.Init{})
	check(err)
	m.attention, err = layers.NewMultiHeadAttention(p.Scope("attention"), width, layers.AttentionConfig{Heads: 2})
	check(err)
	m.attention.Positions = layers.Rotary{} // without positions, attention knows no order
	m.head, err = layers.NewLinear(p.Scope("head"), width, vocab, layers.LinearConfig{})
	check(err)
	m.scale, err = p.New("scale", layers.Ones(), 1, 1, width) // your own parameter
	check(err)
	return &m
}

func (m *tagger) forward(b *layers.Build, ids *G.Node) (*G.Node, error) {
	x, err := m.embedding.Forward(b, ids) // (B, T) -> (B, T, D)
	if err != nil {
		return nil, err
	}
	y, err := m.attention.Forward(b, x, x, x, layers.Mask{Causal: true}) // (B, T, D)
	if err != nil {
		return nil, err
	}
	scale, err := b.Bind(ids.Graph(), m.scale)
	if err != nil {
		return nil, err
	}
	y, err = G.BroadcastHadamardProd(y, scale, nil, []byte{0, 1}) // Gorgonia's own ops fit between layers
	if err != nil {
		return nil, err
	}
	return m.head.Forward(b, y) // (B, T, V)
}

func Example_gorgonia() {
	params, err := layers.NewParams(tensor.Float64, 1) // the dtype, and the seed of initial values
	check(err)
	m := newModel(params)
	fmt.Print(params.Summary())

	const batch, length = 8, 6
	g := G.NewGraph()
	ids := G.NewMatrix(g, tensor.Int, G.WithShape(batch, length), G.WithName("ids"))
	targets := G.NewMatrix(g, tensor.Int, G.WithShape(batch, length), G.WithName("targets"))

	b := &layers.Build{Training: true, Seed: 1}
	logits, err := m.forward(b, ids)
	check(err)
	loss, err := layers.CrossEntropy(b, logits, targets, layers.CrossEntropyOptions{})
	check(err)
	cost := loss.Mean // over the targets that count, whose number is loss.Count
	_, err = G.Grad(cost, b.Learnables()...)
	check(err)

	rng := rand.New(rand.NewPCG(1, 1))
	feed := func() {
		x, y := make([]int, batch*length), make([]int, batch*length)
		for i := range x {
			x[i], y[i] = rng.IntN(vocab), layers.Ignore // no token is before the first
			if i%length > 0 {
				y[i] = x[i-1]
			}
		}
		check(G.Let(ids, tensor.New(tensor.WithShape(batch, length), tensor.WithBacking(x))))
		check(G.Let(targets, tensor.New(tensor.WithShape(batch, length), tensor.WithBacking(y))))
	}

	feed()
	fmt.Println("gradients:", gradcheck.Config{Directional: true}.Expr(cost, b.Learnables()...))

	var value G.Value
	G.Read(cost, &value)
	check(layers.CheckGraph(g))
	vm := G.NewTapeMachine(g, G.BindDualValues(b.Learnables()...))
	defer vm.Close()
	solver := optim.NewAdamW(0.01)
	solver.ClipNorm = 1
	for step := range 61 {
		feed()
		check(vm.RunAll())
		check(solver.Step(G.NodesToValueGrads(b.Learnables()))) // also sets gradients to zero
		vm.Reset()
		if step%30 == 0 {
			fmt.Printf("step %d: %.3f\n", step, value.Data())
		}
	}

	predict, err := layers.NewFunction(func(b *layers.Build, g *G.ExprGraph) (inputs, outputs G.Nodes, err error) {
		b.CaptureWeights = true
		ids := G.NewMatrix(g, tensor.Int, G.WithShape(1, 4), G.WithName("ids"))
		logits, err := m.forward(b, ids)
		if err != nil {
			return nil, nil, err
		}
		return G.Nodes{ids}, G.Nodes{logits, b.AttentionWeights()[0].Weights}, nil // (1, 4, V), (1, H, 4, 4)
	})
	check(err)
	out, err := predict.Call(tensor.New(tensor.WithShape(1, 4), tensor.WithBacking([]int{3, 1, 4, 1})))
	check(err)
	best, err := out[0].Argmax(2)
	check(err)
	fmt.Println(best.Data().([]int)[1:])
	fmt.Printf("%.2f\n", out[1].Float64s()[12:16]) // weights of the last token in the first head
	// Output:
	// embedding.weight         (5, 16)     80
	// attention.query.weight   (16, 16)    256
	// attention.query.bias     (16)        16
	// attention.key.weight     (16, 16)    256
	// attention.key.bias       (16)        16
	// attention.value.weight   (16, 16)    256
	// attention.value.bias     (16)        16
	// attention.output.weight  (16, 16)    256
	// attention.output.bias    (16)        16
	// head.weight              (5, 16)     80
	// head.bias                (5)         5
	// scale                    (1, 1, 16)  16
	// all                      float64     1269
	// gradients: <nil>
	// step 0: 1.695
	// step 30: 0.097
	// step 60: 0.000
	// [3 1 4]
	// [0.01 0.02 0.84 0.12]
}
