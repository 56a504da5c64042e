package layers_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"path/filepath"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/layers"
)

// TestParamsRefuseWhatDoesNotFit asks for parameters that no machine has memory for.
func TestParamsRefuseWhatDoesNotFit(t *testing.T) {
	for _, dt := range []tensor.Dtype{tensor.Float32, tensor.Float64} {
		p := must[*layers.Params](t)(layers.NewParams(dt, 1))
		for _, shape := range [][]int{{1 << 62}, {math.MaxInt}, {1 << 40, 1 << 40}, {1 << 32, 1 << 32}, {1 << 31, 1 << 31, 4}, {1 << 40}, {3, math.MaxInt, 5}} {
			_, err := p.New("w", layers.Zeros(), shape...)
			wantError(t, err, `parameter "w"`, fmt.Sprint(tensor.Shape(shape)), "memory")
		}
		if n := len(p.All()); n != 0 {
			t.Errorf("there are %d parameters", n)
		}
	}
}

// TestNilParams uses Params that aren't there, or that NewParams didn't make.
func TestNilParams(t *testing.T) {
	for name, p := range map[string]*layers.Params{"nil": nil, "zero": {}} {
		t.Run(name, func(t *testing.T) {
			path := t.TempDir() + "/weights"
			_, made := p.Scope("a").New("w", layers.Zeros(), 2)
			_, loaded := p.Load(path, layers.LoadOptions{})
			_, decoded := p.Decode(bytes.NewReader(nil), 0, layers.LoadOptions{})
			_, fromPyTorch := p.Load(path, layers.LoadOptions{PyTorch: true})
			for what, err := range map[string]error{
				"New": made, "Save": p.Save(path, nil), "Load": loaded, "Encode": p.Encode(&bytes.Buffer{}, nil), "Decode": decoded,
				"LoadPyTorch": fromPyTorch, "SavePyTorch": p.SavePyTorch(path, nil, nil),
			} {
				t.Run(what, func(t *testing.T) { wantError(t, err, "nil or empty", "NewParams") })
			}
			if p.Count() != 0 || p.Get("w") != nil || len(p.All()) != 0 {
				t.Error("there are parameters")
			}
		})
	}
}

// TestCacheRefusesWhatDoesNotFit asks for caches that no machine has memory for, and uses ones that NewCache didn't
// make.
func TestCacheRefusesWhatDoesNotFit(t *testing.T) {
	for _, size := range [][2]int{{1, 1 << 62}, {1 << 62, 1}, {1 << 40, 1 << 40}, {1 << 32, 1 << 32}, {1, 1 << 40}, {math.MaxInt, math.MaxInt}} {
		_, err := layers.NewCache(size[0], size[1])
		wantError(t, err, "cache", "sequences", "memory")
	}
	a := newBench(t).multiHead(4, layers.AttentionConfig{})
	for _, c := range []*layers.Cache{nil, {}} {
		for _, err := range []error{c.Extend(), c.Extend(1), c.Truncate(), c.Truncate(1), c.Reorder(), c.Reorder(0)} {
			wantError(t, err, "cache", "NewCache")
		}
		if c.Batch() != 0 {
			t.Error("there are sequences")
		}
		if c == nil {
			continue
		}
		b := newBench(t)
		b.b = &layers.Build{Cache: c}
		_, err := a.ForwardCached(b.b, b.in("x", 1, 2, 4), layers.Mask{})
		wantError(t, err, "attention", "NewCache")
		_, err = a.ForwardMemory(b.b, b.in("q", 1, 2, 4), nil, layers.Mask{})
		wantError(t, err, "attention", "NewCache")
	}
}

// absurd are sizes that no machine has memory for, whatever they are multiplied with.
var absurd = []int{1 << 40, 1 << 62, math.MaxInt}

// constructors make each layer with a size n in one place, where the others are small.
var constructors = map[string]map[string]func(p *layers.Params, n int) error{
	"NewLinear": {
		"in":   func(p *layers.Params, n int) error { return made(layers.NewLinear(p, n, 2, layers.LinearConfig{})) },
		"out":  func(p *layers.Params, n int) error { return made(layers.NewLinear(p, 2, n, layers.LinearConfig{})) },
		"both": func(p *layers.Params, n int) error { return made(layers.NewLinear(p, n, n, layers.LinearConfig{})) },
	},
	"NewEmbedding": {
		"vocab": func(p *layers.Params, n int) error { return made(layers.NewEmbedding(p, n, 2, layers.Init{})) },
		"dim":   func(p *layers.Params, n int) error { return made(layers.NewEmbedding(p, 2, n, layers.Init{})) },
		"both":  func(p *layers.Params, n int) error { return made(layers.NewEmbedding(p, n, n, layers.Init{})) },
	},
	"NewLayerNorm": {
		"dim": func(p *layers.Params, n int) error { return made(layers.NewLayerNorm(p, n, layers.NormConfig{})) },
	},
	"NewRMSNorm": {
		"dim": func(p *layers.Params, n int) error { return made(layers.NewRMSNorm(p, n, layers.NormConfig{})) },
	},
	"NewNorm": {
		"dim": func(p *layers.Params, n int) error { return made(layers.NewNorm(p, n, layers.NormConfig{})) },
		"dim rms": func(p *layers.Params, n int) error {
			return made(layers.NewNorm(p, n, layers.NormConfig{Kind: layers.NormRMS}))
		},
	},
	"NewFeedForward": {
		"dim": func(p *layers.Params, n int) error {
			return made(layers.NewFeedForward(p, n, layers.FeedForwardConfig{}))
		},
		"hidden": func(p *layers.Params, n int) error {
			return made(layers.NewFeedForward(p, 2, layers.FeedForwardConfig{Hidden: n, Gated: true}))
		},
	},
	"NewMultiHeadAttention": {
		"dim":           func(p *layers.Params, n int) error { return attentionOf(p, n, layers.AttentionConfig{}) },
		"dim and heads": func(p *layers.Params, n int) error { return attentionOf(p, n, layers.AttentionConfig{Heads: n}) },
		"heads": func(p *layers.Params, n int) error {
			return attentionOf(p, 2, layers.AttentionConfig{Heads: n, HeadDim: 1})
		},
		"head width": func(p *layers.Params, n int) error { return attentionOf(p, 2, layers.AttentionConfig{HeadDim: n}) },
		"heads and width": func(p *layers.Params, n int) error {
			return attentionOf(p, 2, layers.AttentionConfig{Heads: n, HeadDim: n})
		},
		"value width": func(p *layers.Params, n int) error { return attentionOf(p, 2, layers.AttentionConfig{ValueDim: n}) },
		"values of any heads": func(p *layers.Params, n int) error {
			return attentionOf(p, 2, layers.AttentionConfig{Heads: 1 << 33, KeyValueHeads: 1 << 33, HeadDim: 1, ValueDim: n})
		},
		"key input": func(p *layers.Params, n int) error {
			return attentionOf(p, 2, layers.AttentionConfig{KeyInput: n, ValueInput: 2})
		},
		"value input": func(p *layers.Params, n int) error { return attentionOf(p, 2, layers.AttentionConfig{ValueInput: n}) },
	},
	"NewAdditiveAttention": {
		"dim": func(p *layers.Params, n int) error {
			return made(layers.NewAdditiveAttention(p, n, layers.AdditiveConfig{}))
		},
		"hidden": func(p *layers.Params, n int) error {
			return made(layers.NewAdditiveAttention(p, 2, layers.AdditiveConfig{Hidden: n}))
		},
		"key": func(p *layers.Params, n int) error {
			return made(layers.NewAdditiveAttention(p, 2, layers.AdditiveConfig{KeyInput: n}))
		},
		"v alone": func(p *layers.Params, n int) error {
			return made(layers.NewAdditiveAttention(p, n, layers.AdditiveConfig{NoProjections: true}))
		},
	},
	"NewEncoderBlock": blockSizes(func(p *layers.Params, n int, c layers.BlockConfig) error {
		return made(layers.NewEncoderBlock(p, n, c))
	}),
	"NewDecoderBlock": blockSizes(func(p *layers.Params, n int, c layers.BlockConfig) error {
		return made(layers.NewDecoderBlock(p, n, c))
	}),
	"NewCrossDecoderBlock": blockSizes(func(p *layers.Params, n int, c layers.BlockConfig) error {
		return made(layers.NewCrossDecoderBlock(p, n, c))
	}),
	"NewEncoder": modelSizes(func(p *layers.Params, c layers.ModelConfig) error { return made(layers.NewEncoder(p, c)) }),
	"NewDecoder": modelSizes(func(p *layers.Params, c layers.ModelConfig) error { return made(layers.NewDecoder(p, c)) }),
	"NewSequenceClassifier": modelSizes(func(p *layers.Params, c layers.ModelConfig) error {
		c.Outputs = max(c.Outputs, 2)
		return made(layers.NewSequenceClassifier(p, layers.SequenceClassifierConfig{Model: c}))
	}),
	"NewEncoderDecoder": modelSizes(func(p *layers.Params, c layers.ModelConfig) error {
		return made(layers.NewEncoderDecoder(p, layers.EncoderDecoderConfig{Model: c}))
	}),

	// These don't take Params.
	"NewParams":   {},
	"NewCache":    {},
	"NewFunction": {},
}

func made(_ any, err error) error { return err }

func newParam(t *testing.T) *layers.Param {
	return must[*layers.Param](t)(newParams(t).New("w", layers.Zeros(), 1))
}

func attentionOf(p *layers.Params, dim int, c layers.AttentionConfig) error {
	return made(layers.NewMultiHeadAttention(p, dim, c))
}

func blockSizes(block func(p *layers.Params, dim int, c layers.BlockConfig) error) map[string]func(p *layers.Params, n int) error {
	return map[string]func(p *layers.Params, n int) error{
		"dim": func(p *layers.Params, n int) error { return block(p, n, layers.BlockConfig{}) },
		"hidden": func(p *layers.Params, n int) error {
			return block(p, 2, layers.BlockConfig{FeedForward: layers.FeedForwardConfig{Hidden: n}})
		},
		"heads that are the output": func(p *layers.Params, n int) error {
			return block(p, 2, layers.BlockConfig{Attention: layers.AttentionConfig{NoOutput: true, Heads: n, HeadDim: n}})
		},
	}
}

func modelSizes(model func(p *layers.Params, c layers.ModelConfig) error) map[string]func(p *layers.Params, n int) error {
	with := func(change func(c *layers.ModelConfig, n int)) func(p *layers.Params, n int) error {
		return func(p *layers.Params, n int) error {
			c := layers.ModelConfig{Vocab: 2, Dim: 2, Layers: 1, Positions: layers.None{}}
			change(&c, n)
			return model(p, c)
		}
	}
	return map[string]func(p *layers.Params, n int) error{
		"vocab":     with(func(c *layers.ModelConfig, n int) { c.Vocab = n }),
		"dim":       with(func(c *layers.ModelConfig, n int) { c.Dim = n }),
		"layers":    with(func(c *layers.ModelConfig, n int) { c.Layers = n }),
		"positions": with(func(c *layers.ModelConfig, n int) { c.Positions = layers.Learned{MaxLen: n} }),
		"alibi": with(func(c *layers.ModelConfig, n int) {
			c.Positions, c.Block.Attention = layers.ALiBi{}, layers.AttentionConfig{Heads: n, HeadDim: 1}
		}),
		"relative bias": with(func(c *layers.ModelConfig, n int) {
			c.Positions, c.Block.Attention = layers.RelativeBias{}, layers.AttentionConfig{Heads: n, HeadDim: 1}
		}),
		"rotary": with(func(c *layers.ModelConfig, n int) {
			c.Positions, c.Block.Attention = layers.Rotary{}, layers.AttentionConfig{HeadDim: n - n%2}
		}),
		"outputs": with(func(c *layers.ModelConfig, n int) { c.Outputs = n }),
		"all":     with(func(c *layers.ModelConfig, n int) { c.Vocab, c.Dim, c.Layers, c.Outputs = n, n, n, n }),
	}
}

// TestConstructorsRefuse asks each constructor for sizes that no machine has memory for, and gives it no Params.
func TestConstructorsRefuse(t *testing.T) {
	for name, places := range constructors {
		for place, make := range places {
			t.Run(name+"/"+place, func(t *testing.T) {
				for _, n := range absurd {
					wantError(t, make(newParams(t), n), "memory")
				}
				for _, p := range []*layers.Params{nil, {}} {
					wantError(t, make(p, 4), "NewParams")
				}
			})
		}
	}
	for name := range exported(t, func(f *ast.FuncDecl) bool { return f.Recv == nil && strings.HasPrefix(f.Name.Name, "New") }) {
		if constructors[name] == nil {
			t.Errorf("%s isn't among the constructors of this test", name)
		}
	}
}

// exported returns the exported functions of the package that are chosen, methods as "Type.Method".
func exported(t *testing.T, choose func(*ast.FuncDecl) bool) map[string]bool {
	names := map[string]bool{}
	for _, path := range must[[]string](t)(filepath.Glob("*.go")) {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		for _, d := range must[*ast.File](t)(parser.ParseFile(token.NewFileSet(), path, nil, 0)).Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || !f.Name.IsExported() || !choose(f) {
				continue
			}
			name := f.Name.Name
			if f.Recv != nil {
				of := f.Recv.List[0].Type
				if star, ok := of.(*ast.StarExpr); ok {
					of = star.X
				}
				if !of.(*ast.Ident).IsExported() {
					continue
				}
				name = of.(*ast.Ident).Name + "." + name
			}
			names[name] = true
		}
	}
	if len(names) == 0 {
		t.Fatal("there are none")
	}
	return names
}

// TestZeroLayers applies layers that are nil and layers that no constructor made.
func TestZeroLayers(t *testing.T) {
	g := G.NewGraph()
	x, ids, b := input(g, "x", random(1, 2, 3, 4)), input(g, "ids", dense([]int{1, 0}, 1, 2)), &layers.Build{}
	cached := &layers.Build{Cache: must[*layers.Cache](t)(layers.NewCache(2, 3))}
	none := layers.Mask{}
	trunks := []*layers.Trunk{nil, {}}
	// The errors of a layer that is nil and of one that is zero.
	tried := map[string][]error{
		"Linear.Forward":             {made((*layers.Linear)(nil).Forward(b, x)), made((&layers.Linear{}).Forward(b, x))},
		"Linear of an empty Param":   {made((&layers.Linear{Weight: &layers.Param{}}).Forward(b, x)), made((&layers.LayerNorm{Weight: &layers.Param{}}).Forward(b, x))},
		"LayerNorm.Forward":          {made((*layers.LayerNorm)(nil).Forward(b, x)), made((&layers.LayerNorm{}).Forward(b, x))},
		"RMSNorm.Forward":            {made((*layers.RMSNorm)(nil).Forward(b, x)), made((&layers.RMSNorm{}).Forward(b, x))},
		"RMSNorm.ForwardHeads":       {made((*layers.RMSNorm)(nil).ForwardHeads(b, x, 2)), made((&layers.RMSNorm{}).ForwardHeads(b, x, 2))},
		"Embedding.Forward":          {made((*layers.Embedding)(nil).Forward(b, ids)), made((&layers.Embedding{}).Forward(b, ids))},
		"FeedForward.Forward":        {made((*layers.FeedForward)(nil).Forward(b, x)), made((&layers.FeedForward{}).Forward(b, x)), made((&layers.FeedForward{}).Forward(&layers.Build{Composed: true}, x))},
		"AdditiveAttention.Forward":  {made((*layers.AdditiveAttention)(nil).Forward(b, x, x, x, none)), made((&layers.AdditiveAttention{}).Forward(b, x, x, x, none))},
		"SequenceClassifier.Forward": {made((*layers.SequenceClassifier)(nil).Forward(b, ids, none)), made((&layers.SequenceClassifier{}).Forward(b, ids, none))},
		"EncoderBlock.Forward":       {made((*layers.EncoderBlock)(nil).Forward(b, x, none)), made((&layers.EncoderBlock{}).Forward(b, x, none))},
		"DecoderBlock.Forward":       {made((*layers.DecoderBlock)(nil).Forward(b, x, nil, none, none)), made((&layers.DecoderBlock{}).Forward(b, x, nil, none, none))},
		"EncoderDecoder.Forward":     {made((*layers.EncoderDecoder)(nil).Forward(b, ids, ids, none)), made((&layers.EncoderDecoder{}).Forward(b, ids, ids, none))},
		"EncoderDecoder.Encode":      {made((*layers.EncoderDecoder)(nil).Encode(b, ids, none)), made((&layers.EncoderDecoder{}).Encode(b, ids, none))},
		"EncoderDecoder.Decode":      {made((*layers.EncoderDecoder)(nil).Decode(b, ids, x, none, none)), made((&layers.EncoderDecoder{}).Decode(b, ids, x, none, none))},
		"EncoderDecoder.Next":        {made((*layers.EncoderDecoder)(nil).Next(cached, ids, x, none, none)), made((&layers.EncoderDecoder{}).Next(cached, ids, x, none, none))},
		"MultiHeadAttention.Forward": {made((*layers.MultiHeadAttention)(nil).Forward(b, x, x, x, none)), made((&layers.MultiHeadAttention{}).Forward(b, x, x, x, none))},
		"MultiHeadAttention.ForwardCached": {
			made((*layers.MultiHeadAttention)(nil).ForwardCached(cached, x, none)), made((&layers.MultiHeadAttention{}).ForwardCached(cached, x, none)),
		},
		"MultiHeadAttention.ForwardMemory": {
			made((*layers.MultiHeadAttention)(nil).ForwardMemory(cached, x, x, none)), made((&layers.MultiHeadAttention{}).ForwardMemory(cached, x, x, none)),
		},
		"Encoder.Forward": {made((*layers.Encoder)(nil).Forward(b, ids, none))},
		"Decoder.Forward": {made((*layers.Decoder)(nil).Forward(b, ids, none))},
		"Decoder.Next":    {made((*layers.Decoder)(nil).Next(cached, ids, none))},
	}
	for _, trunk := range trunks {
		tried["Encoder.Forward"] = append(tried["Encoder.Forward"], made((&layers.Encoder{Trunk: trunk}).Forward(b, ids, none)))
		tried["Decoder.Forward"] = append(tried["Decoder.Forward"], made((&layers.Decoder{Trunk: trunk}).Forward(b, x, none)))
		tried["Decoder.Next"] = append(tried["Decoder.Next"], made((&layers.Decoder{Trunk: trunk}).Next(cached, ids, none)))
	}
	for name, errs := range tried {
		for _, err := range errs {
			t.Run(name, func(t *testing.T) { wantError(t, err, "nil or empty", "make it with New") })
		}
	}
	_, err := b.Bind(g, nil)
	wantError(t, err, "parameter", "nil or empty", "Params.New")
	_, err = b.Bind(g, &layers.Param{})
	wantError(t, err, "parameter", "nil or empty", "Params.New")

	_, err = b.Bind(nil, newParam(t))
	wantError(t, err, "graph", "nil")
	wantError(t, layers.CheckGraph(nil), "graph", "nil")

	// These are of use as they are: given nothing, they say so.
	for name, err := range map[string]error{
		"Activation.Forward": made(layers.ReLU.Forward(b, nil)),
		"Dropout.Forward":    made(layers.Dropout{}.Forward(b, nil)),
	} {
		t.Run(name, func(t *testing.T) { wantError(t, err, "nil") })
		tried[name] = []error{err}
	}
	for name := range exported(t, func(f *ast.FuncDecl) bool {
		return f.Recv != nil && (strings.HasPrefix(f.Name.Name, "Forward") || f.Name.Name == "Next" || f.Name.Name == "Encode" || f.Name.Name == "Decode")
	}) {
		if tried[name] == nil && !strings.HasPrefix(name, "Params.") {
			t.Errorf("%s isn't among the methods of this test", name)
		}
	}
}
