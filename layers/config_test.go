package layers_test

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/layers"
)

// drawConfig draws a random configuration. It sets each exported field with probability 1/2. The configuration needn't
// be valid.
func drawConfig(r *rand.Rand, v reflect.Value) {
	switch x := v.Addr().Interface().(type) {
	case *layers.Init:
		inits := []layers.Init{{}, layers.Zeros(), layers.Normal(r.Float64()), layers.Uniform(r.Float64()), layers.Init{Kind: "xavier_uniform"}, layers.Init{Kind: "he_normal"}}
		*x = inits[r.IntN(len(inits))]
		return
	case *layers.Activation:
		*x = everyActivation[r.IntN(len(everyActivation))]
		return
	case *layers.Pooling:
		*x = poolings[r.IntN(len(poolings))]
		return
	case *string:
		*x = []string{"", "layer", "rms"}[r.IntN(3)]
		return
	case *layers.PositionsConfig:
		table := layers.Choices()["positions"]
		names := []string{""} // none: the Positions stay nil
		for name := range table.All {
			names = append(names, name)
		}
		if scheme, err := table.Parse(names[r.IntN(len(names))]); err == nil {
			if _, ok := scheme.(layers.PositionsList); ok { // it holds schemes, but no list and no nil
				*x = layers.PositionsList{}
				if r.IntN(2) == 0 {
					*x = layers.PositionsList{Schemes: []layers.PositionsConfig{layers.Rotary{Base: r.Float64()}, layers.Learned{MaxLen: r.IntN(9)}}}
				}
				return
			}
			drawn := reflect.New(reflect.TypeOf(scheme)).Elem()
			drawConfig(r, drawn)
			*x = drawn.Interface().(layers.PositionsConfig)
		}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				drawConfig(r, v.Field(i))
			}
		}
	case reflect.Pointer:
		if v.SetZero(); r.IntN(2) == 0 {
			v.Set(reflect.New(v.Type().Elem()))
			drawConfig(r, v.Elem())
		}
	case reflect.Slice:
		if v.SetZero(); r.IntN(2) == 0 {
			v.Set(reflect.MakeSlice(v.Type(), r.IntN(3), 3))
			for i := range v.Len() {
				drawConfig(r, v.Index(i))
			}
		}
	case reflect.Int:
		v.SetInt(int64(r.IntN(20) - 5))
	case reflect.Float64:
		v.SetFloat(r.NormFloat64() * float64(r.IntN(2)))
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	default:
		panic(v.Type().String() + ": drawConfig can't draw this type")
	}
}

// TestConfigsGoToJSONAndBack writes random configurations to JSON and reads them back unchanged.
func TestConfigsGoToJSONAndBack(t *testing.T) {
	seed := testseed.Of(t)
	r := rand.New(rand.NewPCG(seed, 1))
	for range 200 {
		for _, config := range []any{
			&layers.ModelConfig{}, &layers.EncoderDecoderConfig{}, &layers.SequenceClassifierConfig{}, &layers.BlockConfig{},
			&layers.AdditiveConfig{}, &layers.LinearConfig{},
		} {
			drawConfig(r, reflect.ValueOf(config).Elem())
			data, err := json.Marshal(config)
			if err != nil {
				t.Fatalf("seed %d: %+v: %v", seed, config, err)
			}
			back := reflect.New(reflect.TypeOf(config).Elem())
			if err := json.Unmarshal(data, back.Interface()); err != nil {
				t.Fatalf("seed %d: %s: %v", seed, data, err)
			}
			if !reflect.DeepEqual(back.Interface(), config) {
				t.Fatalf("seed %d: %s: got %+v, want %+v", seed, data, back, config)
			}
		}
	}
}

// TestConfigJSON checks the names used in files, which must never change.
func TestConfigJSON(t *testing.T) {
	c := layers.ModelConfig{
		Vocab: 65, Dim: 32, Layers: 2, Dropout: 0.1, Variants: []layers.BlockVariant{{Blocks: []int{1}, Positions: layers.NoPositions{}, NoNorm1: true}}, Init: layers.Normal(0.02),
		Positions: layers.Rotary{Base: 50000, Scaling: layers.RotaryScaling{Kind: "linear", Factor: 2}},
		Block: layers.BlockConfig{
			Attention:   layers.AttentionConfig{Heads: 4, KeyValueHeads: 2, Window: &layers.Window{Left: 7, Right: -1}, OutputBias: new(false)},
			FeedForward: layers.FeedForwardConfig{Activation: layers.SiLU, Gated: true},
			Norm:        layers.NormConfig{Kind: "rms"},
		},
	}
	const want = `{"vocab":65,"dim":32,"layers":2,"block":{"attention":{"heads":4,"key_value_heads":2,"window":{"left":7,"right":-1},"output_bias":false},` +
		`"feed_forward":{"activation":"silu","gated":true},"norm":{"kind":"rms"}},"variants":[{"blocks":[1],"no_norm1":true,"positions":{"kind":"none"}}],"dropout":0.1,"init":{"kind":"normal","scale":0.02},` +
		`"positions":{"kind":"rotary","base":50000,"scaling":{"kind":"linear","factor":2}}}`
	if got, err := json.Marshal(c); err != nil || string(got) != want {
		t.Errorf("got %s (error: %v), want %s", got, err, want)
	}
	var back layers.ModelConfig
	must.Do(t, json.Unmarshal([]byte(want), &back))
	if !reflect.DeepEqual(back, c) {
		t.Errorf("got %+v, want %+v", back, c)
	}
	must.Get(layers.NewDecoder(newParams(t), back))(t)
}

func TestConfigJSONErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		json string
		want []string
	}{
		"unknown field":            {`{"dim": 4, "depth": 3}`, []string{"a model's configuration", `unknown key "depth"`}},
		"unknown field within":     {`{"block": {"attention": {"head": 3}}}`, []string{`unknown key "head"`}},
		"unknown positions":        {`{"positions": {"kind": "spiral"}}`, []string{`"spiral"`, "use none, learned"}},
		"positions, no kind":       {`{"positions": {"base": 3}}`, []string{"positions must have a kind", "rotary"}},
		"positions' kind":          {`{"positions": {"kind": 3}}`, []string{"positions must have a kind"}},
		"positions as a name":      {`{"positions": "rotary"}`, []string{"positions: ", "string"}},
		"field of another kind":    {`{"positions": {"kind": "rotary", "max_len": 3}}`, []string{"positions of kind rotary", `unknown key "max_len"`}},
		"a list in a list":         {`{"positions": {"kind": "several", "schemes": [{"kind": "several"}]}}`, []string{"positions of kind several", `no positions of kind "several"`, "use none, learned"}},
		"repeated in a list":       {`{"positions": {"kind": "several", "schemes": [{"kind": "rotary", "base": 1, "base": 2}]}}`, []string{`"base"`, "twice"}},
		"unknown activation":       {`{"block": {"feed_forward": {"activation": "maxout"}}}`, []string{"no activation \"maxout\"", "use one of relu, gelu"}},
		"a function":               {`{"init": {"func": {}}}`, []string{"func"}},
		"more after the end":       {`{"dim": 4} {}`, []string{"after top-level value"}},
		"unknown within a variant": {`{"variants": [{"blocks": [1], "windows": {}}]}`, []string{"a variant of blocks", `unknown key "windows"`, "did you mean window"}},
		"a variant's positions":    {`{"variants": [{"positions": {"kind": "spiral"}}]}`, []string{`"spiral"`, "use none, learned"}},
		"a fraction":               {`{"dim": 4.5}`, []string{"dim", "4.5"}},
		"a repeated key":           {`{"dim": 4, "vocab": 3, "dim": 5}`, []string{"a model's configuration", `"dim" is given twice`}},
		"repeated within":          {`{"block": {"attention": {"heads": 2, "heads": 3}}}`, []string{`"heads" in "block.attention" is given twice`}},
		"repeated positions'":      {`{"positions": {"kind": "rotary", "base": 3, "base": 4}}`, []string{`"base" in "positions" is given twice`}},
		"upper case":               {`{"Dim": 4}`, []string{`unknown key "Dim"`}},
		"upper case within":        {`{"positions": {"kind": "rotary", "BASE": 3}}`, []string{`unknown key "BASE" in "positions"`}},
	} {
		t.Run(name, func(t *testing.T) {
			c := layers.ModelConfig{Dim: 7}
			must.Fail(t, json.Unmarshal([]byte(tc.json), &c), tc.want...)
			if c.Dim != 7 {
				t.Error("the error changed the configuration")
			}
		})
	}
	for text, config := range map[string]any{
		`{"model": {"dim": 4}, "shared": true, "shared": false}`: new(layers.EncoderDecoderConfig),
		`{"Model": {"dim": 4}}`:                                  new(layers.EncoderDecoderConfig),
		`{"pooling": "last", "pooling": "mean"}`:                 new(layers.SequenceClassifierConfig),
		`{"pooling": "last", "POOLING": "mean"}`:                 new(layers.SequenceClassifierConfig),
		`{"pooling": "max"}`:                                     new(layers.SequenceClassifierConfig),
	} {
		if err := json.Unmarshal([]byte(text), config); err == nil || !reflect.ValueOf(config).Elem().IsZero() {
			t.Errorf("%s: got %+v, %v, want an error", text, config, err)
		}
	}
	for _, c := range map[string]struct {
		config any
		want   string
	}{
		"a function": {layers.ModelConfig{Init: layers.Init{Func: func(*rand.Rand, []float64, []int) {}}}, "an Init with a Func"},
		"own scheme": {layers.ModelConfig{Positions: backwards{}}, "positions of type layers_test.backwards can't go to JSON"},
		"a list":     {layers.ModelConfig{Positions: layers.PositionsList{Schemes: []layers.PositionsConfig{layers.PositionsList{}}}}, "positions of type layers.PositionsList can't go to JSON"},
		"activation": {layers.FeedForwardConfig{Activation: 99}, "activation 99"},
	} {
		must.Refuse(json.Marshal(c.config))(t, c.want)
	}
}

// FuzzModelConfig reads arbitrary text as a configuration. If that works, it writes the configuration and reads it
// again: the two are equal.
func FuzzModelConfig(f *testing.F) {
	f.Add([]byte(`{"vocab": 3, "dim": 4, "layers": 1, "positions": {"kind": "learned", "max_len": 2, "init": {"kind": "normal", "scale": 1}}}`))
	f.Add([]byte(`{"positions": {"kind": "rotary", "scaling": {"kind": "yarn", "factor": 2}}, "block": {"norm": {"kind": "rms"}}}`))
	f.Add([]byte(`{"model": {"dim": 4}, "target_positions": {"kind": "relative_bias"}, "target_vocab": 3}`))
	f.Add([]byte(`{"model": {"outputs": 4}, "pooling": "first"}`))
	f.Add([]byte(`{"variants": [{"blocks": [0], "window": {"left": 3}, "positions": {"kind": "alibi"}}, {"window": null, "no_norm1": true}]}`))
	f.Add([]byte(`{"positions": null, "init": null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, config := range []any{layers.ModelConfig{}, layers.EncoderDecoderConfig{}, layers.SequenceClassifierConfig{}} {
			config, back := reflect.New(reflect.TypeOf(config)), reflect.New(reflect.TypeOf(config))
			if json.Unmarshal(data, config.Interface()) != nil {
				continue
			}
			again, err := json.Marshal(config.Interface())
			if err != nil {
				t.Fatalf("%+v: %v", config, err)
			}
			if err := json.Unmarshal(again, back.Interface()); err != nil || !reflect.DeepEqual(config.Interface(), back.Interface()) {
				t.Fatalf("%s: got %+v (error: %v), want %+v", again, back, err, config)
			}
		}
	})
}

// backwards is a position scheme that isn't part of package layers, so it can't be written to JSON.
type backwards struct{ layers.NoPositions }

func (backwards) New(*layers.Params, int, layers.AttentionConfig) (layers.Positions, error) {
	return backwards{}, nil
}

func (backwards) Rotate(b *layers.Build, x *G.Node, heads int, positions *G.Node) (*G.Node, error) {
	return layers.Rotary{Base: 3}.Rotate(b, x, heads, positions)
}
