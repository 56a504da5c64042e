package layers_test

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"math/bits"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
)

// Sizes too large for any machine, also with an int of 32 bits. The product of two roots overflows to 0.
const (
	half  = math.MaxInt/2 + 1
	root  = 1 << (bits.UintSize / 2)
	large = min(1<<40, math.MaxInt)
)

// TestParamsTooLarge asks for parameters too large for any machine.
func TestParamsTooLarge(t *testing.T) {
	for _, dt := range []tensor.Dtype{tensor.Float32, tensor.Float64} {
		p := must.Get(layers.NewParams(dt, 1))(t)
		for _, shape := range [][]int{{half}, {math.MaxInt}, {large, large}, {root, root}, {root / 2, root / 2, 4}, {large}, {3, math.MaxInt, 5}} {
			must.Refuse(p.New("w", layers.Zeros(), shape...))(t, `parameter "w"`, fmt.Sprint(tensor.Shape(shape)), "memory")
		}
		if n := len(p.All()); n != 0 {
			t.Errorf("the set has %d parameters, want 0", n)
		}
	}
}

// TestCachesTooLarge asks for caches too large for any machine.
func TestCachesTooLarge(t *testing.T) {
	for _, size := range [][2]int{{1, half}, {half, 1}, {large, large}, {root, root}, {1, large}, {math.MaxInt, math.MaxInt}} {
		must.Refuse(layers.NewCache(size[0], size[1]))(t, "cache", "sequences", "memory")
	}
}

// absurd lists sizes too large for any machine.
var absurd = []int{large, half, math.MaxInt}

// constructors has functions that call each constructor with n as one size and small other sizes. A key begins with the
// name that errors use for the size.
var constructors = map[string]map[string]func(p *layers.Params, n int) error{
	"NewLinear": {
		"the width of the input":                 func(p *layers.Params, n int) error { return made(layers.NewLinear(p, n, 2, layers.LinearConfig{})) },
		"the width of the output":                func(p *layers.Params, n int) error { return made(layers.NewLinear(p, 2, n, layers.LinearConfig{})) },
		"the width of the input, and the output": func(p *layers.Params, n int) error { return made(layers.NewLinear(p, n, n, layers.LinearConfig{})) },
	},
	"NewEmbedding": {
		"Vocab":          func(p *layers.Params, n int) error { return made(layers.NewEmbedding(p, n, 2, layers.Init{})) },
		"Dim":            func(p *layers.Params, n int) error { return made(layers.NewEmbedding(p, 2, n, layers.Init{})) },
		"Vocab, and Dim": func(p *layers.Params, n int) error { return made(layers.NewEmbedding(p, n, n, layers.Init{})) },
	},
	"NewNorm": {
		"Dim": ofWidth(layers.NewNorm, layers.NormConfig{}),
	},
	"NewFeedForward": {
		"Dim": ofWidth(layers.NewFeedForward, layers.FeedForwardConfig{}),
		"Hidden": func(p *layers.Params, n int) error {
			return made(layers.NewFeedForward(p, 2, layers.FeedForwardConfig{Hidden: n, Gated: true}))
		},
	},
	"NewMultiHeadAttention": {
		"Dim":            ofWidth(layers.NewMultiHeadAttention, layers.AttentionConfig{}),
		"Dim, and Heads": func(p *layers.Params, n int) error { return attentionOf(p, n, layers.AttentionConfig{Heads: n}) },
		"Heads": func(p *layers.Params, n int) error {
			return attentionOf(p, 2, layers.AttentionConfig{Heads: n, HeadDim: 1})
		},
		"HeadDim": func(p *layers.Params, n int) error { return attentionOf(p, 2, layers.AttentionConfig{HeadDim: n}) },
		"Heads, and HeadDim": func(p *layers.Params, n int) error {
			return attentionOf(p, 2, layers.AttentionConfig{Heads: n, HeadDim: n})
		},
		"ValueDim": func(p *layers.Params, n int) error { return attentionOf(p, 2, layers.AttentionConfig{ValueDim: n}) },
		"ValueDim, of many heads": func(p *layers.Params, n int) error {
			return attentionOf(p, 2, layers.AttentionConfig{Heads: 2 * root, KeyValueHeads: 2 * root, HeadDim: 1, ValueDim: n})
		},
		"KeyInput": func(p *layers.Params, n int) error {
			return attentionOf(p, 2, layers.AttentionConfig{KeyInput: n, ValueInput: 2})
		},
		"ValueInput": func(p *layers.Params, n int) error { return attentionOf(p, 2, layers.AttentionConfig{ValueInput: n}) },
	},
	"NewAdapter": {"Rank": func(p *layers.Params, n int) error {
		if _, err := layers.NewLinear(p, 2, 2, layers.LinearConfig{}); err != nil {
			return err
		}
		return made(layers.NewAdapter(p, layers.LowRank{Rank: n}, 1))
	}},
	"NewAdditiveAttention": {
		"Dim": ofWidth(layers.NewAdditiveAttention, layers.AdditiveConfig{}),
		"Hidden": func(p *layers.Params, n int) error {
			return made(layers.NewAdditiveAttention(p, 2, layers.AdditiveConfig{Hidden: n}))
		},
		"KeyInput": func(p *layers.Params, n int) error {
			return made(layers.NewAdditiveAttention(p, 2, layers.AdditiveConfig{KeyInput: n}))
		},
		"Dim, without projections": ofWidth(layers.NewAdditiveAttention, layers.AdditiveConfig{NoProjections: true}),
	},
	"NewEncoderBlock":      blockSizes(layers.NewEncoderBlock),
	"NewDecoderBlock":      blockSizes(layers.NewDecoderBlock),
	"NewCrossDecoderBlock": blockSizes(layers.NewCrossDecoderBlock),
	"NewEncoder":           modelSizes(layers.NewEncoder),
	"NewDecoder":           modelSizes(layers.NewDecoder),
	"NewSequenceClassifier": modelSizes(func(p *layers.Params, c layers.ModelConfig) (*layers.SequenceClassifier, error) {
		c.Outputs = cmp.Or(c.Outputs, 2)
		return layers.NewSequenceClassifier(p, layers.SequenceClassifierConfig{Model: c})
	}),
	"NewEncoderDecoder": modelSizes(func(p *layers.Params, c layers.ModelConfig) (*layers.EncoderDecoder, error) {
		return layers.NewEncoderDecoder(p, layers.EncoderDecoderConfig{Model: c})
	}),

	// These constructors take no Params.
	"NewParams":    {},
	"NewBlockMask": {},
	"NewCache":     {},
	"NewFunction":  {},
}

func made(_ any, err error) error { return err }

// ofWidth returns a function that calls a constructor with n as the width.
func ofWidth[C, L any](make func(p *layers.Params, dim int, c C) (L, error), c C) func(p *layers.Params, n int) error {
	return func(p *layers.Params, n int) error { return made(make(p, n, c)) }
}

func attentionOf(p *layers.Params, dim int, c layers.AttentionConfig) error {
	return made(layers.NewMultiHeadAttention(p, dim, c))
}

func blockSizes[B any](block func(p *layers.Params, dim int, c layers.BlockConfig) (B, error)) map[string]func(p *layers.Params, n int) error {
	return map[string]func(p *layers.Params, n int) error{
		"Dim": ofWidth(block, layers.BlockConfig{}),
		"Hidden": func(p *layers.Params, n int) error {
			return made(block(p, 2, layers.BlockConfig{FeedForward: layers.FeedForwardConfig{Hidden: n}}))
		},
		"Heads, that are the output": func(p *layers.Params, n int) error {
			return made(block(p, 2, layers.BlockConfig{Attention: layers.AttentionConfig{NoOutput: true, Heads: n, HeadDim: n}}))
		},
	}
}

func modelSizes[M any](model func(p *layers.Params, c layers.ModelConfig) (M, error)) map[string]func(p *layers.Params, n int) error {
	with := func(change func(c *layers.ModelConfig, n int)) func(p *layers.Params, n int) error {
		return func(p *layers.Params, n int) error {
			c := layers.ModelConfig{Vocab: 2, Dim: 2, Layers: 1, Positions: layers.NoPositions{}}
			change(&c, n)
			return made(model(p, c))
		}
	}
	return map[string]func(p *layers.Params, n int) error{
		"Vocab":  with(func(c *layers.ModelConfig, n int) { c.Vocab = n }),
		"Dim":    with(func(c *layers.ModelConfig, n int) { c.Dim = n }),
		"Layers": with(func(c *layers.ModelConfig, n int) { c.Layers = n }),
		"Layers, with a variant": with(func(c *layers.ModelConfig, n int) {
			c.Layers, c.Variants = n, []layers.BlockVariant{{Blocks: []int{0}, NoNorm1: true}}
		}),
		"MaxLen": with(func(c *layers.ModelConfig, n int) { c.Positions = layers.Learned{MaxLen: n} }),
		"Heads, alibi": with(func(c *layers.ModelConfig, n int) {
			c.Positions, c.Block.Attention = layers.ALiBi{}, layers.AttentionConfig{Heads: n, HeadDim: 1}
		}),
		"Heads, relative bias": with(func(c *layers.ModelConfig, n int) {
			c.Positions, c.Block.Attention = layers.RelativeBias{}, layers.AttentionConfig{Heads: n, HeadDim: 1}
		}),
		"HeadDim, rotary": with(func(c *layers.ModelConfig, n int) {
			c.Positions, c.Block.Attention = layers.Rotary{}, layers.AttentionConfig{HeadDim: n - n%2}
		}),
		"Outputs":             with(func(c *layers.ModelConfig, n int) { c.Outputs = n }),
		"Dim, and all others": with(func(c *layers.ModelConfig, n int) { c.Vocab, c.Dim, c.Layers, c.Outputs = n, n, n, max(n, 2) }),
	}
}

// TestConstructors calls each constructor with invalid sizes, and with sizes too large for any machine. Errors for
// invalid sizes name the layer, the size and its value.
func TestConstructors(t *testing.T) {
	for name, places := range constructors {
		for place, make := range places {
			t.Run(name+"/"+place, func(t *testing.T) {
				size, _, _ := strings.Cut(place, ",")
				must.Fail(t, make(newParams(t).Scope("s"), -2), " s", size, "got -2")
				if name == "NewEmbedding" || slices.Contains([]string{"the width of the input", "the width of the output", "Dim", "Layers", "MaxLen"}, size) {
					must.Fail(t, make(newParams(t).Scope("s"), 0), " s", size, "at least 1, got 0") // 0 means a default for other sizes
				}
				for _, n := range absurd {
					must.Fail(t, make(newParams(t), n), "memory")
				}
			})
		}
	}
	for _, name := range exportedNew(t) {
		if constructors[name] == nil {
			t.Errorf("%s is missing in constructors: add it there", name)
		}
	}
}

// exportedNew returns the names of the package's functions whose names begin with New.
func exportedNew(t *testing.T) (names []string) {
	for _, path := range must.Get(filepath.Glob("*.go"))(t) {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		for _, d := range must.Get(parser.ParseFile(token.NewFileSet(), path, nil, 0))(t).Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "New") {
				names = append(names, f.Name.Name)
			}
		}
	}
	if len(names) == 0 {
		t.Fatal("found no functions")
	}
	return names
}
