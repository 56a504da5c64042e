package ops_test

import (
	"math"
	"regexp"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/ops"
)

// TestErrors passes invalid arguments. Each error must name the op.
func TestErrors(t *testing.T) {
	g, e := newGraph(t), &ops.Env{}
	x, y, table := g.in(2, 4, 3, 3), g.in(2, 3, 4), g.in(8, 2)
	failure := func(_ *G.Node, err error) error { return err }
	smoothed := func(smoothing float64) error {
		return failure(mean(ops.CrossEntropy(e, g.in(3, 4), g.ints(3), ops.CrossEntropyOptions{LabelSmoothing: smoothing})))
	}
	turn := func(r ops.Rotary, shape ...int) (*G.Node, error) {
		r.Name = "rotary"
		return ops.Rotate(e, g.in(shape...), nil, r)
	}
	softmax := func(m ops.Mask) error { return failure(ops.Softmax(e, "", x, m)) }
	attention := func(q, k, v *G.Node, heads int, m ops.Mask) error {
		return failure(ops.Attention(e, q, k, v, ops.AttentionConfig{Heads: heads, Scale: 1, Mask: m}))
	}
	relative := func(table, positions *G.Node, queries, keys, maxDistance int, oneWay bool) error {
		return failure(ops.RelativeBias(e, table, positions, queries, keys, ops.Relative{MaxDistance: maxDistance, OneWay: oneWay}))
	}
	states, weight := g.in(2, 3), g.in(5, 3)
	head := func(x, w, b, targets *G.Node, softcap float64, o ops.CrossEntropyOptions) error {
		_, _, _, err := ops.HeadCrossEntropy(e, x, w, b, softcap, targets, o)
		return err
	}
	store := ops.NewStore("keys", tensor.Float64, 2, 3, 4)
	names := regexp.MustCompile("^[a-z][a-z0-9(), -]*: ")
	for _, tc := range []struct {
		err  error
		want string
	}{
		{failure(ops.Activate(e, g.in(2), 9)), "activation 9"},
		{failure(ops.Add(e, g.in(2, 3), g.in(3, 2))), "(2, 3), got (3, 2)"},
		{failure(ops.Add(e, g.in(2), g.in32(2))), "float64, got float32"},
		{failure(ops.AddRows(e, g.in(3, 4), g.in(3, 5), 3)), "(3, 4) and (3, 5)"},
		{failure(ops.AddRows(e, g.in(3, 4), g.in(2, 4), 3)), "from 1 to the table's 2 and divide the input's 3, got 3"},
		{failure(ops.AddRows(e, g.in(3, 4), g.in(2, 4), 2)), "divide the input's 3, got 2"},
		{failure(mean(ops.CrossEntropy(e, g.in(3, 4), g.ints(4), ops.CrossEntropyOptions{}))), "shape (3), got int of shape (4)"},
		{failure(ops.Dropout(e, g.in(3), 1)), "below 1, got 1"},
		{failure(ops.Embedding(e, g.in(3), g.ints(4))), "(V, D)"},
		{failure(ops.Embedding(e, g.in(3, 2), g.in(4))), "got (3, 2), and ids of shape (4) and dtype float64"},
		{failure(ops.SplitHeads(e, g.in(2, 3, 5), 2)), "multiple of 2 heads, got (2, 3, 5)"},
		{failure(ops.SplitHeads(e, g.in(2, 3, 5), 0)), "0 heads"},
		{failure(ops.MergeHeads(e, g.in(2, 3, 5), true)), "(B, H, T, K)"},
		{failure(ops.MergeHeads(e, g.in(2, 3, 5, 2), false)), "(2, 3, 5, 2)"},
		{failure(ops.Linear(e, g.in(2, 3), g.in(4, 2), nil, ops.Identity)), "(2, 3) and (4, 2)"},
		{failure(ops.Linear(e, g.in(2, 3), g.in(4, 3), g.in(3), ops.Identity)), "(4), got (3)"},
		{failure(ops.LinearSum(e, g.in(2, 3), g.in(4, 3), nil, g.in(3, 2), g.in(4, 2), 1, ops.Identity)), "(2, 2), got (3, 2)"},
		{failure(ops.Linear(e, g.in(2, 3), g.in(4, 3), nil, 7)), "no activation 7"},
		{failure(ops.MatMul(e, g.in(2, 3), g.in(2, 3), false, false, 1, false)), "(2, 3) and (2, 3)"},
		{failure(ops.MatMul(e, g.in(2, 2, 3), g.in(1, 3, 2), false, false, 1, false)), "(2, 2, 3) and (1, 3, 2)"},
		{failure(ops.MatMul(e, g.in(3), g.in(3), false, false, 1, false)), "(3) and (3)"},
		{failure(ops.LayerNorm(e, g.in(2, 3), g.in(2), nil, 1)), "gamma must have shape (3), got (2)"},
		{failure(ops.Softmax(e, "", g.in(3), ops.Mask{})), "got (3)"},
		{failure(ops.Softmax(e, "", g.in(3, 3), ops.Mask{Allow: g.in(3, 3)})), "true means attend"},
		{failure(ops.Softmax(e, "", g.in(3, 3), ops.Mask{KeyLengths: g.in(1)})), "int, got float64"},
		{failure(ops.AdditiveScores(e, g.ints(2, 3), g.in(2, 3), nil)), "float32 or float64, got int"},
		{failure(ops.AdditiveScores(e, g.in(2, 3), g.in32(2, 3), nil)), "float64, got float32"},
		{failure(ops.AdditiveScores(e, g.in(3), g.in(3), nil)), "(…, T, K) and the key (…, S, K), got (3) and (3)"},
		{failure(ops.AdditiveScores(e, g.in(2, 3), g.in(1, 2, 3), nil)), "got (2, 3) and (1, 2, 3)"},
		{failure(ops.AdditiveScores(e, g.in(2, 2, 3), g.in(1, 2, 3), nil)), "got (2, 2, 3) and (1, 2, 3)"},
		{failure(ops.AdditiveScores(e, g.in(2, 3), g.in(2, 4), nil)), "got (2, 3) and (2, 4)"},
		{failure(ops.AdditiveScores(e, g.in(2, 3), g.in(2, 3), g.in32(3))), "scale must have the dtype of the query, float64, got float32"},
		{failure(ops.AdditiveScores(e, g.in(2, 3), g.in(2, 3), g.in(1, 3))), "scale must have shape (3), got (1, 3)"},
		{failure(ops.AdditiveScores(e, g.in(2, 3), newGraph(t).in(2, 3), nil)), "another graph"},
		{failure(ops.AdditiveScores(e, g.in(2, 3), G.NewTensor(g.ExprGraph, tensor.Float64, 2, G.WithShape(0, 3), G.WithName("none")), nil)), "at least 1, got (0, 3)"},
		{failure(ops.RMSNorm(e, g.in(2, 3), g.in32(3), 1)), "float64, got float32"},
		{failure(ops.RMSNorm(e, g.in(2, 3), g.in(2), 1)), "(…, H·D) and gamma (D), got (2, 3) and (2)"},
		{failure(ops.Gate(e, g.in(2, 3), g.in(3, 2), ops.SiLU)), "(2, 3), got (3, 2)"},
		{failure(ops.Gate(e, g.in(2), g.in32(2), ops.SiLU)), "float64, got float32"},
		{failure(ops.Gate(e, g.in(2), g.in(2), ops.Identity)), "no activation -1"},
		{failure(turn(rotary, 4)), "(B, H, T, K), got (4)"},
		{failure(turn(ops.Rotary{Frequencies: rotary.Frequencies}, 3, 4)), "at least 1, got 0"},
		{failure(turn(ops.Rotary{Heads: 1}, 3, 4)), "from 2 to the vectors' width 4, got 0"},
		{failure(turn(ops.Rotary{Heads: 2, Frequencies: rotary.Frequencies}, 3, 4)), "to the vectors' width 2, got 4"},
		{failure(ops.Rotate(e, g.in(3, 4), g.ints(3), rotary)), "(1) or (1, 3), got int of shape (3)"},
		{failure(ops.Softcap(e, x, -1)), "softcap: the cap must be above 0 and finite, got -1"},
		{failure(ops.RepeatHeads(e, g.in(2, 3), 2)), "(B, G, S, K)"},
		{failure(ops.JoinHeads(e, g.in(2, 6), g.in(2, 5), 3, 2)), "(…, H·B) or (…, B), with H = 3 and B = 2, got (2, 6) and (2, 5)"},
		{failure(ops.JoinHeads(e, g.in(2, 5), g.in(2, 6), 3, 2)), "got (2, 5) and (2, 6)"},
		{failure(ops.JoinHeads(e, g.in(2, 6), g.in(3, 2), 3, 2)), "got (2, 6) and (3, 2)"},
		{failure(ops.JoinHeads(e, g.in(2, 6), g.in32(2, 6), 3, 2)), "float64, got float32"},
		{failure(ops.HeadProducts(e, g.in(2, 6), g.in(5, 4), 2, false)), "(H·A, C) or (H·C, A), with H = 2, got (2, 6) and (5, 4)"},
		{failure(ops.HeadProducts(e, g.in(2, 6), g.in(8, 4), 2, false)), "must have width 4, like the matrices, got 3"},
		{failure(ops.HeadProducts(e, g.in(2, 6), g.in(8, 4), 2, true)), "must have width 4, like the matrices, got 3"},
		{failure(ops.HeadProducts(e, g.in(2, 6), g.in32(6, 4), 2, false)), "float64, got float32"},
		{failure(ops.Append(e, g.in(2, 3), g.in(2, 4))), "append: the past (…, P, K)"},
		{failure(ops.Append(e, g.in(2, 3), g.in(1, 2, 3))), "got (2, 3) and (1, 2, 3)"},
		{failure(ops.Append(e, g.in(2, 3), g.in32(2, 3))), "float64, got float32"},
		{failure(ops.MaskScores(e, "", g.in(3), ops.Mask{})), "got (3)"},
		{failure(ops.Attention(e, x, g.in(2, 3, 3, 3), g.in(2, 3, 3, 3), ops.AttentionConfig{})), "the same number of heads"},
		{failure(ops.Attention(e, g.in(2, 3, 8), g.in(2, 3, 6), g.in(2, 3, 6), ops.AttentionConfig{Heads: 4, KeyValueHeads: 3})), "got 4 and 3"},
		{failure(store.Append(e, g.in(2, 1, 3), g.ints(2), g.ints(2))), "store of keys: the input must be float64 of shape (2, T, 4)"},
		{failure(store.Append(e, g.in32(2, 1, 4), g.ints(2), g.ints(2))), "got float32"},
		{failure(store.Append(e, g.in(2, 4, 4), g.ints(2), g.ints(2))), "T at most 3, got float64 of shape (2, 4, 4)"},
		{failure(ops.NewMemory("keys").Keep(e, g.in(2))), "memory of keys: the input must have shape (B, T, D)"},
		{failure(ops.NewMemory("keys").Read(e, x, tensor.Float64, 3)), "memory of keys: no graph computes it yet"},
		{failure(ops.AddInt(e, x, 1)), "int of shape (B), got float64"},
		{failure(ops.Pool(e, g.ints(2, 3), nil, 1)), "float32 or float64"},
		{failure(ops.Pool(e, g.in(3), nil, 1)), "(B, T, D) or (T, D), got (3)"},
		{failure(ops.Pool(e, g.in(2, 3), nil, 3)), "there is no pooling 3"},
		{failure(ops.Pool(e, g.in(2, 3, 4), g.ints(3), 1)), "lengths must have shape (2), got (3)"},
		{failure(ops.Pool(e, g.in(2, 3, 4), g.in(2), 1)), "lengths must be int, got float64"},
		{failure(ops.Normalize(e, g.ints(2))), "float32 or float64"},
		{failure(ops.Scale(e, g.ints(2), 1)), "float32 or float64"},
		{smoothed(-1e-9), "cross-entropy: LabelSmoothing must be from 0 to 1, got -1e-09"},
		{smoothed(1.01), "got 1.01"},
		{smoothed(math.NaN()), "got NaN"},
		{smoothed(math.Inf(1)), "got +Inf"},
		{softmax(ops.Mask{Offset: 1, Offsets: g.ints(2)}), "Mask.Offset must be 0"},
		{softmax(ops.Mask{Offsets: g.in(2)}), "Mask.Offsets must be int, got float64"},
		{softmax(ops.Mask{Offsets: g.ints(3)}), "Mask.Offsets must have shape (2), got (3)"},
		{softmax(ops.Mask{Window: &ops.Window{Left: -2}}), "got {Left:-2 Right:0}"},
		{softmax(ops.Mask{Slopes: []float64{1}}), "each of the 4 heads, got 1"},
		{softmax(ops.Mask{Slopes: []float64{1, math.NaN(), 1, 1}}), "and 1e+15, got NaN for head 1"},
		{attention(y, y, g.in32(2, 3, 4), 0, ops.Mask{}), "float64, got float32"},
		{attention(g.in(4), g.in(4), g.in(4), 0, ops.Mask{}), "got (4), (4) and (4)"},
		{attention(g.in(1, 2, 3, 4), g.in(1, 2, 3, 4), g.in(1, 2, 3, 4), 2, ops.Mask{}), "(1, 2, 3, 4)"},
		{attention(y, g.in(1, 3, 4), g.in(1, 3, 4), 0, ops.Mask{}), "same batch"},
		{attention(y, g.in(2, 3, 5), y, 0, ops.Mask{}), "agree in K and S"},
		{attention(y, y, y, 3, ops.Mask{}), "multiple of H = 3"},
		{attention(y, y, y, -1, ops.Mask{}), "got -1"},
		{attention(y, y, y, 2, ops.Mask{Allow: y}), "true means attend"},
		{attention(y, y, y, 2, ops.Mask{KeyLengths: g.ints(3)}), "(2), got (3)"},
		{attention(y, y, y, 2, ops.Mask{Bias: g.in(3, 3, 3)}), "(2, 2, 3, 3), got (3, 3, 3)"},
		{attention(y, y, y, 2, ops.Mask{Bias: g.in32(3, 3)}), "Mask.Bias must be float64, got float32"},
		{attention(y, y, y, 2, ops.Mask{Bias: G.NewScalar(g.ExprGraph, tensor.Float64, G.WithName("bias"))}), "(2, 2, 3, 3), got ()"},
		{attention(y, y, y, 2, ops.Mask{Bias: g.in(1, 2, 2, 3, 3)}), "(2, 2, 3, 3), got (1, 2, 2, 3, 3)"},
		{attention(y, y, y, 2, ops.Mask{Bias: g.in(3, 4)}), "(2, 2, 3, 3), got (3, 4)"},
		{attention(y, y, y, 2, ops.Mask{KeyLengths: g.ints(2, 1)}), "(2), got (2, 1)"},
		{attention(y, y, y, 2, ops.Mask{Window: &ops.Window{Right: -2}}), "or −1 for no limit, got {Left:0 Right:-2}"},
		{attention(y, y, y, 2, ops.Mask{Slopes: []float64{1}}), "each of the 2 heads, got 1"},
		{relative(g.in(8), nil, 2, 2, 9, false), "(buckets, H), got (8)"},
		{relative(g.ints(8, 2), nil, 2, 2, 9, false), "float32 or float64, got int"},
		{relative(g.in(7, 2), nil, 2, 2, 9, false), "the same number for each direction, got 7"},
		{relative(g.in(2, 2), nil, 2, 2, 9, false), "at least 4 buckets, the same number for each direction, got 2"},
		{relative(g.in(1, 2), nil, 2, 2, 9, true), "at least 2 buckets"},
		{relative(table, nil, 2, 2, 2, false), "above 2"},
		{relative(table, nil, 2, 2, 4, true), "above 4"},
		{relative(table, nil, 0, 2, 9, false), "got 0 and 2"},
		{relative(table, nil, 3, 2, 9, false), "got 3 and 2"},
		{relative(table, g.ints(1, 3), 2, 2, 9, false), "(B, 2) or (2), got int of shape (1, 3)"},
		{relative(table, g.in(2), 2, 2, 9, false), "(B, 2) or (2), got float64 of shape (2)"},
		{relative(table, g.ints(1, 1, 2), 2, 2, 9, false), "got int of shape (1, 1, 2)"},
		{relative(table, G.NewScalar(g.ExprGraph, tensor.Int, G.WithName("s")), 2, 2, 9, false), "got int of shape ()"},
		{head(states, g.in(5, 4), nil, g.ints(2), 0, ops.CrossEntropyOptions{}), "(…, I) and the weight (O, I), got (2, 3) and (5, 4)"},
		{head(states, g.in32(5, 3), nil, g.ints(2), 0, ops.CrossEntropyOptions{}), "weight must have the dtype of the input, float64, got float32"},
		{head(states, weight, g.in(4), g.ints(2), 0, ops.CrossEntropyOptions{}), "bias must have shape (5), got (4)"},
		{head(states, weight, nil, g.ints(3), 0, ops.CrossEntropyOptions{}), "targets must be int of shape (2), got int of shape (3)"},
		{head(g.in(3), weight, nil, g.ints(2), 0, ops.CrossEntropyOptions{}), "states must have shape (…, D), with one row per target, got (3)"},
		{head(states, weight, nil, g.ints(2), 0, ops.CrossEntropyOptions{ClassWeights: []float64{1}}), "one weight for each of the 5 classes, got 1"},
		{head(states, weight, nil, g.ints(2), 0, ops.CrossEntropyOptions{Weights: g.in(3)}), "weights must have shape (2), got (3)"},
		{head(states, weight, nil, g.ints(2), -1, ops.CrossEntropyOptions{}), "head cross-entropy: the cap must be above 0 and finite, got -1"},
	} {
		if tc.err == nil || !strings.Contains(tc.err.Error(), tc.want) || !names.MatchString(tc.err.Error()) {
			t.Errorf("got %v, want an error with %q", tc.err, tc.want)
		}
	}
}

// TestRunErrors runs graphs with values that are out of range.
func TestRunErrors(t *testing.T) {
	pool := func(n int) func(g *graph) (*G.Node, error) {
		return func(g *graph) (*G.Node, error) {
			return ops.Pool(&ops.Env{}, g.in(2, 3, 4), g.lengths(1, n), ops.MeanPooling)
		}
	}
	relative := func(position int) func(g *graph) (*G.Node, error) {
		return func(g *graph) (*G.Node, error) {
			return ops.RelativeBias(&ops.Env{}, g.in(8, 2), g.lengths(0, position), 2, 2, ops.Relative{MaxDistance: 9})
		}
	}
	for want, build := range map[string]func(g *graph) (*G.Node, error){
		"length -1 of batch element 1 isn't between 0 and the 3 positions": pool(-1),
		"length 4 of batch element 1 isn't between 0 and the 3 positions":  pool(4),
		"query position -1 isn't between 0 and 1":                          relative(-1),
		"query position 2 isn't between 0 and 1":                           relative(2),
	} {
		g := newGraph(t)
		g.node(build(g))
		vm := G.NewTapeMachine(g.ExprGraph)
		must.Fail(t, vm.RunAll(), want)
		vm.Close()
	}
}
