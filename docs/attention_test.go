package docs

import (
	"fmt"
	"math"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/layers/gradcheck"
)

// ints returns a node of shape (1, T).
func ints(g *G.ExprGraph, name string, values []int) *G.Node {
	value := tensor.New(tensor.WithShape(1, len(values)), tensor.WithBacking(values))
	return G.NewTensor(g, tensor.Int, 2, G.WithShape(1, len(values)), G.WithName(name), G.WithValue(value))
}

// run returns the values of a node.
func run(n *G.Node) []float64 {
	var out G.Value
	G.Read(n, &out)
	vm := G.NewTapeMachine(n.Graph())
	defer vm.Close()
	check(vm.RunAll())
	return out.Data().([]float64)
}

// Three documents share a row. The second one has the outputs that it has alone.
func Example_documents() {
	params, err := layers.NewParams(tensor.Float64, 1)
	check(err)
	decoder, err := layers.NewDecoder(params, layers.ModelConfig{Vocab: 9, Dim: 8, Layers: 2, Positions: layers.Learned{MaxLen: 6}})
	check(err)

	g := G.NewGraph()
	ids := ints(g, "ids", []int{4, 1, 5, 7, 2, 3})
	numbers := []int{0, 0, 0, 1, 1, 2} // the document of each token
	positions := []int{0, 1, 2, 0, 1, 0}
	b := &layers.Build{Positions: ints(g, "positions", positions)}
	logits, err := decoder.Forward(b, ids, layers.Mask{Documents: ints(g, "documents", numbers)})
	check(err)
	packed := run(logits)[3*9 : 5*9]

	logits, err = decoder.Forward(&layers.Build{}, ints(G.NewGraph(), "ids", []int{7, 2}), layers.Mask{})
	check(err)
	largest := 0.0
	for i, x := range run(logits) {
		largest = math.Max(largest, math.Abs(x-packed[i]))
	}
	fmt.Println("equal up to rounding:", largest < 1e-12)
	// Output:
	// equal up to rounding: true
}

// Functions become masks.
func Example_blockMask() {
	longformer := func(query, key int) bool { // Beltagy et al., 2020
		return query == 0 || key == 0 || query-key >= 0 && query-key <= 1
	}
	dilated := func(query, key int) bool { // Child et al., 2019
		return query >= key && query-key <= 2 && (query-key)%2 == 0
	}
	square := func(query, key int) bool { // the pixels around a pixel, in rows of 4
		return max(query/4-key/4, key/4-query/4, query%4-key%4, key%4-query%4) <= 1
	}
	const T = 8
	prefix, err := layers.NewBlockMask(T, T, func(query, key int) bool {
		return key < 3 || key <= query // a prefix that all tokens see, then causal (Raffel et al., 2020)
	})
	check(err)

	// picture shows which keys the queries see: with scores of 0, the output is the mean of the values that they see.
	picture := func(m *layers.BlockMask) {
		b, g := &layers.Build{}, G.NewGraph()
		matrix := func(name string, values []float64) *G.Node {
			value := tensor.New(tensor.WithShape(T, T), tensor.WithBacking(values))
			return G.NewMatrix(g, tensor.Float64, G.WithShape(T, T), G.WithName(name), G.WithValue(value))
		}
		identity := make([]float64, T*T)
		for i := range T {
			identity[i*T+i] = 1
		}
		q, k, v := matrix("q", make([]float64, T*T)), matrix("k", identity), matrix("v", identity)
		y, err := layers.ScaledDotProduct(b, q, k, v, layers.AttentionOptions{Mask: layers.Mask{Blocks: m}})
		check(err)
		for i, weight := range run(y) {
			fmt.Print(map[bool]string{true: "x", false: "."}[weight > 0])
			if i%T == T-1 && i < T*T-1 {
				fmt.Print(" ")
			}
		}
		fmt.Println()
	}
	picture(prefix)
	for _, sees := range []func(query, key int) bool{longformer, dilated, square} {
		m, err := layers.NewBlockMask(T, T, sees)
		check(err)
		picture(m)
	}
	// Output:
	// xxx..... xxx..... xxx..... xxxx.... xxxxx... xxxxxx.. xxxxxxx. xxxxxxxx
	// xxxxxxxx xx...... xxx..... x.xx.... x..xx... x...xx.. x....xx. x.....xx
	// x....... .x...... x.x..... .x.x.... ..x.x... ...x.x.. ....x.x. .....x.x
	// xx..xx.. xxx.xxx. .xxx.xxx ..xx..xx xx..xx.. xxx.xxx. .xxx.xxx ..xx..xx
}

// A bias of your own, with its gradients.
func Example_score() {
	g, b := G.NewGraph(), &layers.Build{}
	sequence := func(name string, shift int) *G.Node { // (T, H·K)
		values := make([]float64, 5*4)
		for i := range values {
			values[i] = math.Sin(float64(i + shift))
		}
		return G.NewMatrix(g, tensor.Float64, G.WithShape(5, 4), G.WithName(name), G.WithValue(tensor.New(tensor.WithShape(5, 4), tensor.WithBacking(values))))
	}
	q, k, v := sequence("q", 0), sequence("k", 1), sequence("v", 2)

	far := func(score float64, head, query, key int) (value, derivative float64) {
		distance := math.Abs(float64(query - key))
		return score - math.Log1p(distance)/float64(1+head), 1 // each head looks less far than the next one
	}
	y, err := layers.ScaledDotProduct(b, q, k, v, layers.AttentionOptions{Heads: 2, Score: far})
	check(err)

	fmt.Println(y.Shape(), gradcheck.Expr(G.Must(G.Sum(G.Must(G.Square(y)))), q, k, v)) // nil: the gradients are right
	// Output:
	// (5, 4) <nil>
}

// A sink takes weight from the keys.
func Example_sinks() {
	b, g := &layers.Build{}, G.NewGraph()
	column := func(name string, values ...float64) *G.Node {
		value := tensor.New(tensor.WithShape(len(values), 1), tensor.WithBacking(values))
		return G.NewMatrix(g, tensor.Float64, G.WithShape(len(values), 1), G.WithName(name), G.WithValue(value))
	}
	sinks := G.NewVector(g, tensor.Float64, G.WithShape(1), G.WithName("sinks"), G.WithValue(tensor.New(tensor.WithShape(1), tensor.WithBacking([]float64{2}))))
	st, err := layers.ScaledDotProductStages(b, column("query", 1), column("keys", 0, 1, -1, 0.5), column("values", 1, 1, 1, 1), layers.AttentionOptions{Sinks: sinks})
	check(err)
	fmt.Printf("%.2f\n", run(st.Weights))
	// Output:
	// [0.08 0.21 0.03 0.13]
}

// Latent vectors take less memory in a Cache than keys and values.
func Example_latent() {
	config := layers.AttentionConfig{
		Heads: 8, HeadDim: 16, NoBias: true, // keys and values have width 16 in each head
		Latent: &layers.LatentConfig{Rank: 32, RotaryDim: 8, QueryRank: 48}, // QueryRank: queries from a latent vector, too
	}
	weights, perToken := config.Sizes(128) // numbers in the matrices, and in a Cache for each token
	fmt.Println(weights, "weights,", perToken, "numbers per token")

	config.Latent = nil
	weights, perToken = config.Sizes(128)
	fmt.Println(weights, "weights,", perToken, "numbers per token")
	// Output:
	// 45056 weights, 40 numbers per token
	// 65536 weights, 256 numbers per token
}

// Four experts, of which each token passes two.
func Example_experts() {
	params, err := layers.NewParams(tensor.Float64, 1)
	check(err)
	config := layers.FeedForwardConfig{
		Hidden: 8, Gated: true, Activation: layers.SiLU, NoBias: true, // of each expert
		Experts: &layers.ExpertsConfig{Count: 4, Top: 2, Balance: 0.01},
	}
	layer, err := layers.NewFeedForward(params, 4, config)
	check(err)
	b, g := &layers.Build{}, G.NewGraph()
	x := G.NewTensor(g, tensor.Float64, 3, G.WithShape(1, 5, 4), G.WithName("x"), G.WithInit(G.Gaussian(0, 1)))
	y, err := layer.Forward(b, x)
	check(err)
	routing := b.Routings()[0] // its nodes Chosen and Shares have shape (tokens, 2)
	fmt.Println(y.Shape(), routing.Chosen.Shape(), routing.Shares.Shape())
	shares := run(routing.Shares)
	fmt.Printf("the shares of a token add up to %.3f\n", shares[0]+shares[1])
	// Output:
	// (1, 5, 4) (5, 2) (5, 2)
	// the shares of a token add up to 1.000
}
