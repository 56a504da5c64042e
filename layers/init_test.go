package layers_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
)

// TestInitialisers checks the mean, standard deviation and limits of many draws, in both dtypes, and for sizes that are
// drawn one after the other and on all cores.
func TestInitialisers(t *testing.T) {
	t.Run("small", func(t *testing.T) { testInitialisers(t, 200, 400) })
	t.Run("large", func(t *testing.T) { testInitialisers(t, 500, 1000) })
}

func testInitialisers(t *testing.T, out, fanIn int) {
	both := float64(fanIn + out)
	for _, tc := range []struct {
		name      string
		init      layers.Init
		mean, std float64
		limit     float64 // largest possible magnitude; 0 means no limit
	}{
		{"zeros", layers.Zeros(), 0, 0, 0},
		{"ones", layers.Ones(), 1, 0, 0},
		{"normal", layers.Normal(0.3), 0, 0.3, 0},
		{"uniform", layers.Uniform(0.3), 0, 0.3 / math.Sqrt(3), 0.3},
		{"xavier uniform", layers.Init{Kind: "xavier_uniform"}, 0, math.Sqrt(2 / both), math.Sqrt(6 / both)},
		{"xavier normal", layers.Init{Kind: "xavier_normal"}, 0, math.Sqrt(2 / both), 0},
		{"he uniform", layers.Init{Kind: "he_uniform"}, 0, math.Sqrt(2 / float64(fanIn)), math.Sqrt(6 / float64(fanIn))},
		{"he normal", layers.Init{Kind: "he_normal"}, 0, math.Sqrt(2 / float64(fanIn)), 0},
	} {
		for _, dt := range []tensor.Dtype{tensor.Float32, tensor.Float64} {
			p := must.Get(layers.NewParams(dt, 3))(t)
			w := must.Get(p.New("w", tc.init, out, fanIn))(t)
			var sum, squares, largest float64
			x := floats(t, w.Value)
			for _, v := range x {
				sum += v
				squares += (v - tc.mean) * (v - tc.mean)
				largest = max(largest, math.Abs(v))
			}
			n := float64(len(x))
			if d := math.Abs(sum/n - tc.mean); d > 5*tc.std/math.Sqrt(n) {
				t.Errorf("%s, %v: the mean is %v, want %v", tc.name, dt, sum/n, tc.mean)
			}
			if std := math.Sqrt(squares / n); math.Abs(std-tc.std) > 0.02*tc.std {
				t.Errorf("%s, %v: the standard deviation is %v, want %v", tc.name, dt, std, tc.std)
			}
			if tc.limit > 0 && (largest > tc.limit*(1+1e-6) || largest < 0.99*tc.limit) {
				t.Errorf("%s, %v: the largest magnitude is %v, want slightly less than %v", tc.name, dt, largest, tc.limit)
			}
		}
	}
}

// TestInitOfNestedConfigs checks that a model's Init fills every weight matrix that has no Init of its own.
func TestInitOfNestedConfigs(t *testing.T) {
	number := func(x float64) layers.Init {
		return layers.Init{Func: func(_ *rand.Rand, values []float64, _ []int) {
			for i := range values {
				values[i] = x
			}
		}}
	}
	p := newParams(t)
	must.Get(layers.NewEncoderDecoder(p, layers.EncoderDecoderConfig{Model: layers.ModelConfig{
		Vocab: 3, Dim: 2, Layers: 1, Positions: layers.Learned{MaxLen: 2, Init: number(2)}, Init: number(3), EmbeddingInit: number(4),
		Block: layers.BlockConfig{Attention: layers.AttentionConfig{Init: number(5), OutputInit: number(6)}, FeedForward: layers.FeedForwardConfig{OutputInit: number(7)}, Norm: layers.NormConfig{Kind: "rms"}},
	}}))(t)
	for _, q := range p.All() {
		want := 3.0
		for _, tc := range []struct {
			part string
			want float64
		}{ // the first entry whose part occurs in the parameter's name decides
			{"bias", 0}, {"norm", 1}, {"positions", 2}, {"embedding", 4}, {"output", 6}, {"down", 7}, {"attention", 5}, {"cross", 5},
		} {
			if strings.Contains(q.Name, tc.part) {
				want = tc.want
				break
			}
		}
		if got := q.Value.Float64s()[0]; got != want {
			t.Errorf("%s is %v, want %v", q.Name, got, want)
		}
	}
}

// TestInitOfLearnedPositions checks that learned positions begin as large as a model's embeddings, also in a list of
// schemes. The caller's list must not change.
func TestInitOfLearnedPositions(t *testing.T) {
	list := layers.PositionsList{Schemes: []layers.PositionsConfig{layers.RelativeBias{}, layers.Learned{MaxLen: 2}, layers.Learned{MaxLen: 2, Init: layers.Ones()}}}
	p := newParams(t)
	must.Get(layers.NewEncoder(p, layers.ModelConfig{
		Vocab: 3, Dim: 2, Layers: 1, Positions: list, EmbeddingInit: layers.Zeros(),
		Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 1}, FeedForward: layers.FeedForwardConfig{Hidden: 2}},
	}))(t)
	for name, want := range map[string]float64{"embedding.weight": 0, "positions.1.weight": 0, "positions.2.weight": 1} {
		if got := p.Get(name).Value.Float64s(); slices.Min(got) != want || slices.Max(got) != want {
			t.Errorf("%s begins as %v, want %v", name, got, want)
		}
	}
	if l := list.Schemes[1].(layers.Learned); l.Init.Kind != "" {
		t.Errorf("the caller's list has changed: %+v", l)
	}
	alone := newParams(t)
	must.Get(layers.Learned{MaxLen: 2}.New(alone, 2, layers.AttentionConfig{}))(t)
	if x := alone.All()[0].Value.Float64s(); slices.Min(x) == slices.Max(x) {
		t.Errorf("positions without a model begin as %v, want random values", x)
	}
}

func TestInitErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		init layers.Init
		want []string
	}{
		"no such kind":      {layers.Init{Kind: "orthogonal"}, []string{"orthogonal", "he_normal", "zeros"}},
		"a scale alone":     {layers.Init{Scale: 0.02}, []string{`""`, "normal"}},
		"scale below 0":     {layers.Normal(-1), []string{"Scale of normal", "from 0 to 1e+15", "-1"}},
		"scale NaN":         {layers.Uniform(math.NaN()), []string{"Scale of uniform", "NaN"}},
		"scale infinite":    {layers.Normal(inf), []string{"from 0 to 1e+15", "Inf"}},
		"scale too large":   {layers.Normal(1e308), []string{"Scale of normal", "1e+308"}},
		"an infinite value": {layers.Init{Func: func(_ *rand.Rand, values []float64, _ []int) { values[1] = inf }}, []string{"Func"}},
		"scale of none":     {layers.Init{Kind: "he_uniform", Scale: 1}, []string{"he_uniform can't have a Scale", "1"}},
		"a func and a kind": {layers.Init{Kind: "ones", Func: func(*rand.Rand, []float64, []int) {}}, []string{"a Func can't have a Kind", "ones"}},
	} {
		t.Run(name, func(t *testing.T) {
			must.Refuse(newParams(t).New("w", tc.init, 2, 3))(t, append(tc.want, `parameter "w"`)...)
		})
	}
}
