package layers_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/safetensors"
	"github.com/heed-go/heed/layers"
)

// TestLoadPyTorchIntoAnotherModel loads state dicts into models that don't fit. No parameter changes. The error lists
// missing, unexpected and different tensors by their names in the file.
func TestLoadPyTorchIntoAnotherModel(t *testing.T) {
	seq2seq := func(change func(c *layers.EncoderDecoderConfig)) func(t *testing.T, p *layers.Params) {
		return func(t *testing.T, p *layers.Params) { newSeq2Seq(t, p, change) }
	}
	attention := func(c layers.AttentionConfig) func(t *testing.T, p *layers.Params) {
		c.Heads = 2
		return func(t *testing.T, p *layers.Params) {
			must.Get(layers.NewMultiHeadAttention(p, 6, c))(t)
		}
	}
	for _, tc := range []struct {
		name, file string
		model      func(t *testing.T, p *layers.Params)
		rename     func(name string) string
		want       []string
	}{
		{"no norms after the stacks", "torch_transformer_post_norm", seq2seq(func(c *layers.EncoderDecoderConfig) { c.Model.Block.PostNorm = true }), transformerName,
			[]string{`unexpected: "transformer.decoder.norm.bias" of shape (4), "transformer.decoder.norm.weight" of shape (4), "transformer.encoder.norm.bias" of shape (4), and 1 more`}},
		{"one more layer", "torch_transformer", seq2seq(func(c *layers.EncoderDecoderConfig) { c.DecoderLayers = 2 }), transformerName,
			[]string{`missing: "transformer.decoder.layers.1.self_attn.in_proj_weight" of shape (12, 4)`, "and 15 more"}},
		{"one layer fewer", "torch_transformer", seq2seq(func(c *layers.EncoderDecoderConfig) { c.Model.Layers = 1 }), transformerName,
			[]string{`unexpected: "transformer.encoder.layers.1.linear1.bias" of shape (5)`, "and 9 more"}},
		{"another vocabulary", "torch_transformer", seq2seq(func(c *layers.EncoderDecoderConfig) { c.Model.Vocab = 8 }), transformerName,
			[]string{`different: "src.weight" must have shape (8, 4), got (7, 4)`}},
		{"no Rename", "torch_transformer", seq2seq(nil), nil,
			[]string{`missing: "encoder.embedding.weight" of shape (7, 4)`, `unexpected: "generator.bias" of shape (6)`}},
		{"packed weights into separate ones", "torch_attention_packed", attention(layers.AttentionConfig{KeyInput: 5}), nil,
			[]string{`missing: "q_proj_weight" of shape (6, 6), "k_proj_weight" of shape (6, 5), "v_proj_weight" of shape (6, 5)`, `unexpected: "in_proj_weight" of shape (18, 6)`}},
		{"separate weights into packed ones", "torch_attention_widths", attention(layers.AttentionConfig{}), nil,
			[]string{`missing: "in_proj_weight" of shape (18, 6)`, `unexpected: "k_proj_weight" of shape (6, 5), "q_proj_weight" of shape (6, 6), "v_proj_weight" of shape (6, 4)`}},
		{"biases into a layer without biases", "torch_attention_packed", attention(layers.AttentionConfig{NoBias: true}), nil,
			[]string{`unexpected: "in_proj_bias" of shape (18), "out_proj.bias" of shape (6)`}},
		{"no biases into a layer with biases", "torch_attention_widths_no_bias", attention(layers.AttentionConfig{KeyInput: 5, ValueInput: 6}), nil,
			[]string{`missing: "in_proj_bias" of shape (18), "out_proj.bias" of shape (6)`}},
		{"swapped widths of keys and values", "torch_attention_widths", attention(layers.AttentionConfig{KeyInput: 4, ValueInput: 5}), nil,
			[]string{`different: "k_proj_weight" must have shape (6, 4), got (6, 5), "v_proj_weight" must have shape (6, 5), got (6, 4)`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := newParams(t)
			tc.model(t, p)
			before := weightBits(p)
			must.Refuse(p.Load(stateDict(tc.file), layers.LoadOptions{Tensors: torchTensors(p, tc.rename)}))(t, append(tc.want, stateDict(tc.file), "don't fit the model")...)
			if !sameWeights(weightBits(p), before) {
				t.Error("the error changed parameters")
			}
		})
	}
}

// TestLoadNamesTheOptionTensors loads files with PyTorch's names without PyTorch's table, and files with our names with
// it. The error says what to do with the option. If another model wrote the file, the error doesn't name it.
func TestLoadNamesTheOptionTensors(t *testing.T) {
	set := func(name string) string {
		return fmt.Sprintf("%q is a name from PyTorch: load the file with LoadOptions{Tensors: layers.PyTorch(params)}", name)
	}
	ours := filepath.Join(t.TempDir(), "ours.safetensors")
	attention := func(c layers.AttentionConfig) *layers.Params {
		c.Heads = 2
		p := newParams(t)
		must.Get(layers.NewMultiHeadAttention(p, 6, c))(t)
		return p
	}
	must.Do(t, attention(layers.AttentionConfig{}).Save(ours, nil))
	torch := layers.LoadOptions{Tensors: layers.PyTorch(attention(layers.AttentionConfig{}))}
	for _, tc := range []struct {
		name, file string
		options    layers.LoadOptions
		want       string // empty: the error doesn't name the option
	}{
		{"packed", stateDict("torch_attention_packed"), layers.LoadOptions{}, set("in_proj_bias")},
		{"widths", stateDict("torch_attention_widths_no_bias"), layers.LoadOptions{}, set("k_proj_weight")},
		{"in a larger model", stateDict("torch_transformer"), layers.LoadOptions{}, set("transformer.decoder.layers.0.multihead_attn.in_proj_bias")},
		{"ignored", stateDict("torch_attention_packed"), layers.LoadOptions{Ignore: true}, set("in_proj_bias")},
		{"dropped", stateDict("torch_attention_packed"), layers.LoadOptions{Drop: func(string) bool { return true }}, ""},
		{"our names", ours, torch, `"key.bias" is the model's own name: load the file without LoadOptions.Tensors`},
		{"neither", stateDict("torch_classifier"), torch, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := attention(layers.AttentionConfig{}).Load(tc.file, tc.options)
			must.Fail(t, err, "don't fit the model", tc.want)
			if tc.want == "" && strings.Contains(err.Error(), "LoadOptions") {
				t.Errorf("got the error %q, want no option in it", err)
			}
		})
	}
}

// TestPyTorchFloat32 loads state dicts in float32, PyTorch's default, into parameters of both dtypes, and saves the
// parameters. The values don't change.
func TestPyTorchFloat32(t *testing.T) {
	for _, d := range stateDicts {
		t.Run(d.file, func(t *testing.T) {
			tensors, _, err := safetensors.ReadFile(stateDict(d.file))
			must.Do(t, err)
			for i := range tensors {
				values := tensors[i].Data.([]float64)
				tensors[i].Data = as(tensor.Float32, dense(values, len(values))).Float32s()
			}
			path := filepath.Join(t.TempDir(), "float32.safetensors")
			must.Do(t, os.WriteFile(path, weightFileOf(t, tensors...), 0o644))
			for _, dt := range []tensor.Dtype{tensor.Float32, tensor.Float64} {
				p, _ := d.apply(t, dt)
				must.Get(p.Load(path, layers.LoadOptions{Tensors: torchTensors(p, d.rename)}))(t)
				again := filepath.Join(t.TempDir(), "again.safetensors")
				must.Do(t, p.SaveTensors(again, torchTensors(p, d.rename), nil))
				if dt == tensor.Float32 {
					sameTensors(t, again, path)
					continue
				}
				q, _ := d.apply(t, tensor.Float32) // reads the float64 file into float32
				must.Get(q.Load(again, layers.LoadOptions{Tensors: torchTensors(p, d.rename)}))(t)
				for _, r := range q.All() {
					if !slices.Equal(floats(t, r.Value), floats(t, p.Get(r.Name).Value)) {
						t.Errorf("%s has changed by conversion to float64 and back", r.Name)
					}
				}
			}
		})
	}
}
