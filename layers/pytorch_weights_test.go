package layers_test

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/safetensors"
	"github.com/heed-go/heed/layers"
)

// stateDicts lists files with PyTorch state dicts. For each file, a fixture has the same weights and PyTorch's results.
// See testdata/fixtures_seq2seq.py and fixtures_torch.py.
var stateDicts = []torchFile{
	{"torch_attention_packed", "torch_attention", "packed", multiHeadSubject, nil},
	{"torch_attention_packed_no_bias", "torch_attention", "packed, no bias", multiHeadSubject, nil},
	{"torch_attention_widths", "torch_attention", "widths", multiHeadSubject, nil},
	{"torch_attention_widths_no_bias", "torch_attention", "widths, no bias", multiHeadSubject, nil},
	{"torch_layers", "torch_layers", "one of each", oneOfEachSubject, nil},
	{"torch_transformer", "seq2seq", "pre-norm", seq2seqSubject, transformerName},
	{"torch_transformer_post_norm", "torch_transformer_post_norm", "post-norm with norms at the end", finalNormSubject, transformerName},
	{"torch_classifier", "classifier", "first", classifierSubject, classifierName},
}

type torchFile struct {
	file, family, name string
	subject            subject
	rename             func(name string) string
}

func (d torchFile) fixture(t *testing.T) fixture {
	t.Helper()
	fixtures := load(t, d.family)
	i := slices.IndexFunc(fixtures, func(f fixture) bool { return f.Name == d.name })
	if i < 0 {
		t.Fatalf("%s has no case %q", d.family, d.name)
	}
	return fixtures[i]
}

// apply builds a graph of the model, with all parameters 0.
func (d torchFile) apply(t *testing.T, dt tensor.Dtype) (p *layers.Params, outs map[string]*G.Node) {
	t.Helper()
	f := d.fixture(t)
	p = must.Get(layers.NewParams(dt, 1))(t)
	inputs := map[string]*G.Node{}
	g := G.NewGraph()
	for name, a := range f.Inputs {
		inputs[name] = input(g, "input "+name, a.as(dt))
	}
	outs = d.subject(t, f, p, &layers.Build{}, inputs)
	for _, q := range p.All() {
		q.Value.Zero() // the subject has filled them
	}
	return p, outs
}

// transformerName translates a parameter's name to its name in the file of a module with an nn.Transformer.
func transformerName(name string) string {
	switch name {
	case "encoder.embedding.weight":
		return "src.weight"
	case "decoder.embedding.weight":
		return "tgt.weight"
	case "encoder.positions.weight":
		return "src_pos"
	case "decoder.positions.weight":
		return "tgt_pos"
	}
	if rest, ok := strings.CutPrefix(name, "decoder.head."); ok {
		return "generator." + rest
	}
	return "transformer." + name
}

// classifierName translates a parameter's name to its name in the file of a module with an nn.TransformerEncoder and
// embeddings.
func classifierName(name string) string {
	switch name {
	case "encoder.embedding.weight":
		return "embedding.weight"
	case "encoder.positions.weight":
		return "positions"
	}
	return name
}

// oneOfEachSubject builds the model of the class Layers in testdata/fixtures_torch.py.
func oneOfEachSubject(t *testing.T, f fixture, p *layers.Params, b *layers.Build, inputs map[string]*G.Node) map[string]*G.Node {
	const dim = 4
	block := layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}, FeedForward: layers.FeedForwardConfig{Hidden: 5}}
	embedding := must.Get(layers.NewEmbedding(p.Scope("embedding"), 7, 3, layers.Init{}))(t)
	linear := must.Get(layers.NewLinear(p.Scope("linear"), 3, dim, layers.LinearConfig{}))(t)
	norm := must.Get(layers.NewNorm(p.Scope("norm"), dim, layers.NormConfig{}))(t)
	block.PostNorm = true
	encoder := must.Get(layers.NewEncoderBlock(p.Scope("encoder_layer"), dim, block))(t)
	scale := must.Get(layers.NewNorm(p.Scope("scale"), dim, layers.NormConfig{NoBias: true}))(t)
	block.PostNorm = false
	decoder := must.Get(layers.NewCrossDecoderBlock(p.Scope("decoder_layer"), dim, block))(t)
	head := must.Get(layers.NewLinear(p.Scope("head"), dim, 2, layers.LinearConfig{NoBias: true}))(t)
	f.fill(t, p)

	x := must.Get(embedding.Forward(b, inputs["ids"]))(t)
	x = must.Get(linear.Forward(b, x))(t)
	x = must.Get(norm.Forward(b, x))(t)
	memory := must.Get(encoder.Forward(b, x, f.mask(inputs)))(t)
	memory = must.Get(scale.Forward(b, memory))(t)
	x = must.Get(decoder.ForwardCross(b, x, memory, layers.Mask{}, f.mask(inputs)))(t)
	return one(must.Get(head.Forward(b, x))(t))
}

// finalNormSubject is like an nn.Transformer with PyTorch's defaults: post-norm, and a norm after each stack.
func finalNormSubject(t *testing.T, f fixture, p *layers.Params, b *layers.Build, inputs map[string]*G.Node) map[string]*G.Node {
	m := newSeq2Seq(t, p, func(c *layers.EncoderDecoderConfig) { c.Model.Block.PostNorm, c.Model.FinalNorm = true, true })
	f.fill(t, p)
	return one(must.Get(m.Forward(b, inputs["source"], inputs["target"], f.mask(inputs)))(t))
}

// torchTensors returns PyTorch's table with other names.
func torchTensors(p *layers.Params, rename func(name string) string) []layers.Tensor {
	table := layers.PyTorch(p)
	for _, t := range table {
		if rename != nil {
			t.Names[0] = rename(t.Names[0])
		}
	}
	return table
}

func stateDict(name string) string { return filepath.Join("testdata", name+".safetensors") }

// TestLoadPyTorch loads weights from PyTorch, compares the outputs with a fixture, and saves the weights again.
func TestLoadPyTorch(t *testing.T) {
	for _, d := range stateDicts {
		f := d.fixture(t)
		for _, dt := range []tensor.Dtype{tensor.Float64, tensor.Float32} {
			t.Run(fmt.Sprintf("%s/%v", d.file, dt), func(t *testing.T) {
				p, outs := d.apply(t, dt)
				if metadata := must.Get(p.Load(stateDict(d.file), layers.LoadOptions{Tensors: torchTensors(p, d.rename)}))(t).Metadata; metadata != nil {
					t.Errorf("got metadata %v, want none", metadata)
				}
				tolerance := map[tensor.Dtype]float64{tensor.Float64: 1e-12, tensor.Float32: 1e-5}[dt]
				for _, q := range p.All() {
					near(t, q.Name, floats(t, q.Value), f.Params[q.Name].floats(), tolerance/100)
				}
				for name, y := range outs {
					near(t, name, read(t, y)[0], f.Outputs[name].floats(), tolerance)
				}
				if dt == tensor.Float32 {
					return
				}
				path := filepath.Join(t.TempDir(), "saved.safetensors")
				want := map[string]string{"epoch": "7"}
				must.Do(t, p.SaveTensors(path, torchTensors(p, d.rename), want))
				sameTensors(t, path, stateDict(d.file))
				if metadata := must.Get(p.Load(path, layers.LoadOptions{Tensors: torchTensors(p, d.rename)}))(t).Metadata; !reflect.DeepEqual(metadata, want) {
					t.Errorf("got metadata %v, want %v", metadata, want)
				}
			})
		}
	}
}

// sameTensors checks that two files have exactly the same tensors.
func sameTensors(t *testing.T, got, want string) {
	t.Helper()
	read := func(path string) map[string]safetensors.Tensor {
		tensors, _, err := safetensors.ReadFile(path)
		must.Do(t, err)
		byName := map[string]safetensors.Tensor{}
		for _, x := range tensors {
			byName[x.Name] = x
		}
		return byName
	}
	a, b := read(got), read(want)
	for name, x := range b {
		if !reflect.DeepEqual(a[name], x) {
			t.Errorf("tensor %s is %v, want %v", name, a[name], x)
		}
	}
	if len(a) != len(b) {
		t.Errorf("got %d tensors, want %d", len(a), len(b))
	}
}

// TestPyTorchNames compares the names of saved tensors with the names in the state dicts of PyTorch's layers.
func TestPyTorchNames(t *testing.T) {
	const attention = " self_attn.in_proj_weight self_attn.in_proj_bias self_attn.out_proj.weight self_attn.out_proj.bias"
	const rest = " linear1.weight linear1.bias linear2.weight linear2.bias norm1.weight norm1.bias norm2.weight norm2.bias"
	cross := strings.ReplaceAll(attention, "self_attn", "multihead_attn") + " norm3.weight norm3.bias"
	block := layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}}
	multi := layers.AttentionConfig{Heads: 2}
	for _, tc := range []struct {
		name string
		make func(p *layers.Params) error
		want string
	}{
		{"nn.TransformerEncoderLayer", making(layers.NewEncoderBlock, 4, block), attention + rest},
		{"a decoder block without cross-attention", making(layers.NewDecoderBlock, 4, block), attention + rest},
		{"nn.TransformerDecoderLayer", making(layers.NewCrossDecoderBlock, 4, block), attention + cross + rest},
		{"an nn.MultiheadAttention with any name", func(p *layers.Params) error { return attentionOf(p.Scope("a.b"), 4, multi) },
			strings.ReplaceAll(attention, "self_attn", "a.b")},
		{"widths", making(layers.NewMultiHeadAttention, 4, layers.AttentionConfig{Heads: 2, KeyInput: 3}), "q_proj_weight k_proj_weight v_proj_weight in_proj_bias out_proj.weight out_proj.bias"},
		{"no output", making(layers.NewMultiHeadAttention, 4, layers.AttentionConfig{Heads: 2, NoOutput: true, NoBias: true}), "in_proj_weight"},
		{"an nn.TransformerEncoder and more", func(p *layers.Params) error {
			_, err := layers.NewEncoder(p.Scope("m"), layers.ModelConfig{Vocab: 2, Positions: layers.Learned{MaxLen: 2}, Dim: 4, Layers: 1, Outputs: 2})
			return err
		}, "m.embedding.weight m.positions.weight m.norm.weight m.norm.bias m.head.weight m.head.bias" +
			strings.ReplaceAll(attention+rest, " ", " m.layers.0.")},
		{"names that only look like ours", func(p *layers.Params) error {
			for _, scope := range []string{"attention", "cross", "blocks", "blocks.x", "feedforward", "norm2", "query", "feedforward.gate"} {
				if _, err := layers.NewNorm(p.Scope(scope), 2, layers.NormConfig{NoBias: true}); err != nil {
					return err
				}
			}
			return nil
		}, "attention.weight cross.weight blocks.weight blocks.x.weight feedforward.weight norm2.weight query.weight feedforward.gate.weight"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := newParams(t)
			must.Do(t, tc.make(p))
			path := filepath.Join(t.TempDir(), "saved.safetensors")
			must.Do(t, p.SaveTensors(path, layers.PyTorch(p), nil))
			tensors, _, err := safetensors.ReadFile(path)
			must.Do(t, err)
			var got []string
			for _, x := range tensors {
				got = append(got, x.Name)
			}
			want := strings.Fields(tc.want)
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("got  %v\nwant %v", got, want)
			}
			before := weightBits(p)
			randomise(p)
			must.Get(p.Load(path, layers.LoadOptions{Tensors: layers.PyTorch(p)}))(t)
			if !sameWeights(weightBits(p), before) {
				t.Error("the saved values differ from the loaded ones")
			}
		})
	}
}
