package layers_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
)

// relativeConfig configures a model whose positions are a relative bias.
func relativeConfig(r layers.RelativeBias) layers.ModelConfig {
	return layers.ModelConfig{Vocab: 5, Dim: 8, Layers: 3, Positions: r, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}}}
}

// TestRelativeBiasIsShared checks that the blocks of a stack share one table, or have one each.
func TestRelativeBiasIsShared(t *testing.T) {
	p := newParams(t)
	must.Get(layers.NewEncoderDecoder(p, layers.EncoderDecoderConfig{Model: relativeConfig(layers.RelativeBias{})}))(t)
	for _, name := range []string{"encoder.positions.weight", "decoder.positions.weight"} {
		w := p.Get(name)
		if w == nil || !w.Value.Shape().Eq(tensor.Shape{32, 2}) {
			t.Errorf("%s is %v, want shape (32, 2)", name, w)
		}
	}
	for _, perBlock := range []bool{false, true} {
		b, want := &layers.Build{}, []string{"positions.weight"}
		if perBlock {
			want = []string{"blocks.0.positions.weight", "blocks.1.positions.weight", "blocks.2.positions.weight"}
		}
		d := must.Get(layers.NewDecoder(newParams(t), relativeConfig(layers.RelativeBias{PerBlock: perBlock})))(t)
		must.Get(d.Forward(b, input(G.NewGraph(), "ids", dense([]int{1, 2, 3}, 3)), layers.Mask{}))(t)
		var tables []string
		for _, n := range b.Learnables() {
			if strings.HasSuffix(n.Name(), "positions.weight") {
				tables = append(tables, n.Name())
			}
		}
		if slices.Sort(tables); !slices.Equal(tables, want) {
			t.Errorf("the graph has the tables %q, want %q", tables, want)
		}
	}
}

// TestRelativeBiasReadsOn reads a sequence far longer than MaxDistance. It swaps two tokens that are farther than
// MaxDistance from the last token: the last output doesn't change.
func TestRelativeBiasReadsOn(t *testing.T) {
	a := newBench(t)
	attention := a.multiHead(4, layers.AttentionConfig{Heads: 2})
	attention.Positions = must.Get(layers.RelativeBias{Buckets: 4, MaxDistance: 5, Init: layers.Normal(1)}.New(a.p.Scope("positions"), 4, layers.AttentionConfig{Heads: 2}))(t)
	const length, far = 300, 290
	last := func(swap bool) []float64 {
		x := random(3, length, 4)
		if rows := x.Float64s(); swap {
			for i := range 4 {
				rows[i], rows[far*4+i] = rows[far*4+i], rows[i]
			}
		}
		n := input(G.NewGraph(), "x", x)
		out := read(t, must.Get(attention.Forward(&layers.Build{}, n, n, n, layers.Mask{Causal: true}))(t))[0]
		return out[len(out)-4:]
	}
	near(t, "the last output", last(true), last(false), 1e-12)
}

func TestRelativeBiasErrors(t *testing.T) {
	made := func(r layers.RelativeBias, dim, heads int) error {
		_, err := r.New(newParams(t).Scope("p"), dim, layers.AttentionConfig{Heads: heads})
		return err
	}
	must.Fail(t, made(layers.RelativeBias{Buckets: 7}, 4, 2), "relative bias p", "at least 4 buckets", "got 7")
	must.Fail(t, made(layers.RelativeBias{Buckets: 2}, 4, 2), "relative bias p", "got 2")
	must.Fail(t, made(layers.RelativeBias{Buckets: -4}, 4, 2), "relative bias p", "got -4")
	must.Fail(t, made(layers.RelativeBias{MaxDistance: 16}, 4, 2), "relative bias p", "MaxDistance must be above 16", "got 16")
	must.Fail(t, made(layers.RelativeBias{MaxDistance: -1}, 4, 2), "relative bias p", "MaxDistance", "got -1")
	must.Fail(t, made(layers.RelativeBias{}, 0, 2), "relative bias p", "Dim", "got 0")
	must.Fail(t, made(layers.RelativeBias{}, 4, -2), "relative bias p", "Heads", "got -2")
	must.Fail(t, made(layers.RelativeBias{Init: layers.Normal(math.NaN())}, 4, 2), "p.weight", "NaN")
	must.Fail(t, made(layers.RelativeBias{Buckets: half, MaxDistance: math.MaxInt}, 4, 2), "p.weight", fmt.Sprintf("(%d, 2)", half), "memory")

	r := must.Get(layers.RelativeBias{}.New(newParams(t).Scope("p"), 4, layers.AttentionConfig{}))(t)
	vector := input(G.NewGraph(), "x", random(1, 4))
	must.Refuse(r.Score(&layers.Build{}, vector, vector, nil, layers.Mask{}))(t, "relative bias p", "queries", "keys")

	c := relativeConfig(layers.RelativeBias{})
	c.Positions = layers.PositionsList{Schemes: []layers.PositionsConfig{layers.RelativeBias{PerBlock: true}}}
	listed := must.Get(layers.NewEncoder(newParams(t), c))(t)
	must.Refuse(listed.Forward(&layers.Build{}, input(G.NewGraph(), "ids", dense([]int{1}, 1)), layers.Mask{}))(t, "PerBlock", "not for an element of a list")

	e := must.Get(layers.NewEncoder(newParams(t), relativeConfig(layers.RelativeBias{})))(t)
	g := G.NewGraph()
	ids := input(g, "ids", dense([]int{1, 2}, 1, 2))
	b := &layers.Build{}
	for _, tc := range []struct {
		mask layers.Mask
		want string
	}{
		{layers.Mask{Bias: input(g, "bias", random(1, 2, 2))}, "the mask can't have a Bias, because the model sets it"},
		{layers.Mask{Offset: 1}, "can't have an offset"},
		{layers.Mask{Offsets: input(g, "offsets", dense([]int{1}, 1))}, "can't have an offset"},
	} {
		must.Refuse(e.Forward(b, ids, tc.mask))(t, "attention blocks.0.attention", tc.want)
	}
}

// TestRelativeBiasBesideACache applies an encoder, which doesn't use the Build's Cache. The states are the same with
// and without a Cache.
func TestRelativeBiasBesideACache(t *testing.T) {
	p := newParams(t)
	encoder := must.Get(layers.NewEncoder(p, relativeConfig(layers.RelativeBias{Init: layers.Normal(3)})))(t)
	encode := func(cache *layers.Cache) []float64 {
		g := G.NewGraph()
		b := &layers.Build{Cache: cache, Positions: input(g, "positions", dense([]int{3, 2, 1, 0}, 1, 4))}
		return read(t, must.Get(encoder.Forward(b, input(g, "ids", dense([]int{1, 2, 3, 4}, 1, 4)), layers.Mask{}))(t))[0]
	}
	cache := must.Get(layers.NewCache(1, 8))(t)
	sameBits(t, "states beside a Cache", encode(cache), encode(nil))

	attention := encoder.Blocks[0].Attention
	for _, b := range []*layers.Build{{}, {Cache: cache}} {
		x := input(G.NewGraph(), "x", random(1, 1, 3, 8))
		must.Refuse(attention.Forward(b, x, x, x, layers.Mask{Offset: 2}))(t, "offset")
	}
}

// TestRelativeBiasOfTooLong checks that a bias too large for memory is an error when the graph is built.
func TestRelativeBiasOfTooLong(t *testing.T) {
	positions := must.Get(layers.RelativeBias{}.New(newParams(t), 4, layers.AttentionConfig{}))(t)
	x := G.NewMatrix(G.NewGraph(), tensor.Float64, G.WithShape(1<<30, 4), G.WithName("x"))
	must.Refuse(positions.Score(&layers.Build{}, x, x, nil, layers.Mask{}))(t, "relative bias", "1073741824", "memory")
}

// nowhere is a position scheme whose New returns nil.
type nowhere struct{}

func (nowhere) New(*layers.Params, int, layers.AttentionConfig) (layers.Positions, error) {
	return nil, nil
}

func TestPositionsOfNil(t *testing.T) {
	must.Refuse(layers.NewEncoder(newParams(t), layers.ModelConfig{Vocab: 3, Dim: 4, Layers: 1, Positions: nowhere{}}))(t, "encoder", "nowhere", "returned nil")
}
