package pretrained

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/safetensors"
)

// A tampered is a copy of a published folder whose files and tensors can be changed.
type tampered struct {
	fstest.MapFS
	tensors []safetensors.Tensor
}

// tamper copies a case.
func tamper(t *testing.T, name string) *tampered {
	t.Helper()
	dir := "testdata/" + name
	f := &tampered{MapFS: fstest.MapFS{}}
	for _, name := range []string{configFile, generationFile} {
		if content, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
			f.put(name, string(content))
		}
	}
	var err error
	if f.tensors, _, err = safetensors.ReadFile(filepath.Join(dir, weights)); err != nil {
		t.Fatal(err)
	}
	f.put(weights, file(t, f.tensors...))
	return f
}

func (f *tampered) put(name, content string) {
	f.MapFS[name] = &fstest.MapFile{Data: []byte(content)}
}

// set changes a key of config.json to a value in JSON.
func (f *tampered) set(key, value string) {
	f.put(configFile, with(string(f.MapFS[configFile].Data), key, json.RawMessage(value)))
}

// shards replaces the weights by one file with each list of tensors, and by an index that lists these files.
func (f *tampered) shards(t *testing.T, lists ...[]safetensors.Tensor) {
	t.Helper()
	delete(f.MapFS, weights)
	m := map[string]string{}
	for i, list := range lists {
		name := string(rune('a'+i)) + ".safetensors"
		f.put(name, file(t, list...))
		for _, x := range list {
			m[x.Name] = name
		}
	}
	content, _ := json.Marshal(map[string]any{"weight_map": m, "metadata": map[string]int{"total_size": -1}})
	f.put(index, string(content))
}

// file returns a safetensors file.
func file(t *testing.T, tensors ...safetensors.Tensor) string {
	t.Helper()
	var b strings.Builder
	must.Do(t, safetensors.Write(&b, tensors, nil))
	return b.String()
}

// TestTampered changes one thing in a folder. The folder must give an error that contains want or, if want is empty,
// must open. The folder llama-tied has two layers and a tied head.
func TestTampered(t *testing.T) {
	const pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
	set := func(key, value string) func(*tampered) { return func(f *tampered) { f.set(key, value) } }
	put := func(name, content string) func(*tampered) { return func(f *tampered) { f.put(name, content) } }
	special := func(name string, mode fs.FileMode) func(*tampered) {
		return func(f *tampered) { f.MapFS[name] = &fstest.MapFile{Mode: mode} }
	}
	extra := func(name string, shape ...int) func(*tampered) {
		return func(f *tampered) {
			x := safetensors.Tensor{Name: name, Shape: shape, Data: make([]float32, tensor.Shape(shape).TotalSize())}
			f.put(weights, file(t, append(f.tensors, x)...))
		}
	}
	tensors := func(change func(x *safetensors.Tensor) bool) func(*tampered) {
		return func(f *tampered) {
			f.tensors = slices.DeleteFunc(f.tensors, func(x safetensors.Tensor) bool { return change(&x) })
			f.put(weights, file(t, f.tensors...))
		}
	}
	less := func(name string) func(*tampered) {
		return tensors(func(x *safetensors.Tensor) bool { return x.Name == name })
	}
	other := func(name string) func(*tampered) { // other values
		return tensors(func(x *safetensors.Tensor) bool {
			if x.Name == name {
				x.Data.([]float32)[3]++
			}
			return false
		})
	}
	for _, test := range []struct {
		folder, what string
		change       func(f *tampered)
		want         string
	}{
		{"llama-tied", "nothing", func(*tampered) {}, ""},
		{"llama-tied", "fewer layers than the weights", set("num_hidden_layers", "1"), `1 layers without the tensor "model.layers.1.`},
		{"llama-tied", "more layers than the weights", set("num_hidden_layers", "3"), "describes a model of 3 layers with at least"},
		{"llama-tied", "biases left out", set("attention_bias", "false"), `without the tensor "model.layers.0.self_attn.`},
		{"llama-tied", "a norm of queries", extra("model.layers.0.self_attn.q_norm.weight", 6), `without the tensor "model.layers.0.self_attn.q_norm.weight"`},
		{"llama-tied", "a buffer of an old release", extra("model.layers.0.self_attn.rotary_emb.inv_freq", 3), ""},
		{"llama-tied", "a head of another shape", extra("lm_head.weight", 41, 15), `"lm_head.weight" must have shape (41, 16), got (41, 15)`},
		{"llama-tied", "fewer tokens than the table", set("vocab_size", "40"), "must have shape (40, 16), got (41, 16)"},
		{"llama-tied", "heads that don't divide", set("num_key_value_heads", "3"), "but the files hold"},
		{"llama-tied", "a fraction", set("num_hidden_layers", "1.5"), "must be a whole number from 0 to 2147483647, got 1.5"},
		{"llama-tied", "NaN", set("rms_norm_eps", `"NaN"`), `rms_norm_eps must be a finite number, got "NaN"`},
		{"llama-tied", "an epsilon of 0", set("rms_norm_eps", "0"), "rms_norm_eps must be above 0, got 0"},
		{"llama-tied", "an angle of 0", set("rope_theta", "0.0"), "rope_theta must be above 0, got 0.0"},
		{"llama-tied", "quantised weights", set("quantization_config", `{"bits": 4}`), "weights that aren't quantised"},
		{"llama-tied", "code", set("auto_map", `{"AutoModel": "evil.py"}`), ""}, // never run: the model opens as its model_type says
		{"llama-tied", "a label far away", func(f *tampered) {
			f.set("architectures", `["LlamaForSequenceClassification"]`)
			f.set("id2label", `{"999999999": "x", "1": "y"}`)
		}, `missing: "score.weight" of shape (2, 16)`},

		{"llama-tied", "a pointer for the weights", put(weights, pointer), "model.safetensors: not a readable safetensors file: it is a Git LFS pointer"},
		{"llama-tied", "a web page for the weights", put(weights, "<!DOCTYPE html><html></html>"), "it is a web page"},
		{"llama-tied", "empty weights", put(weights, ""), "expected 8 bytes, got a file of 0"},
		{"llama-tied", "weights cut short", func(f *tampered) { f.put(weights, string(f.MapFS[weights].Data[:2000])) }, "model.safetensors: not a readable"},
		{"llama-tied", "a shard cut short", func(f *tampered) {
			f.shards(t, f.tensors[:3], f.tensors[3:])
			f.put("b.safetensors", string(f.MapFS["b.safetensors"].Data[:2000]))
		}, "b.safetensors: not a readable"},
		{"llama-tied", "a pointer for a shard", func(f *tampered) { f.shards(t, f.tensors[:3], f.tensors[3:]); f.put("b.safetensors", pointer) }, "b.safetensors: not a readable safetensors file: it is a Git LFS pointer"},
		{"llama-tied", "a false size of all shards", func(f *tampered) { f.shards(t, f.tensors[:3], f.tensors[3:]) }, ""},
		{"llama-tied", "a tensor in two shards", func(f *tampered) { f.shards(t, f.tensors[:3], f.tensors[2:]) }, "is in a.safetensors and in b.safetensors"},
		{"llama-tied", "a tensor in no shard", func(f *tampered) { f.shards(t, f.tensors[:3], f.tensors[4:]) }, "but the files hold"},
		{"llama-tied", "an index of a list", func(f *tampered) { delete(f.MapFS, weights); f.put(index, `{"weight_map": []}`) }, index},
		{"llama-tied", "a large index", func(f *tampered) { delete(f.MapFS, weights); f.put(index, strings.Repeat(" ", maxIndex+1)) }, "expected at most"},

		{"llama-tied", "a pipe for the configuration", special(configFile, fs.ModeNamedPipe), "config.json: expected a regular file"},
		{"llama-tied", "a pipe for other settings", special(generationFile, fs.ModeNamedPipe), "generation_config.json: expected a regular file"},
		{"llama-tied", "a pipe for the modules", special(modulesFile, fs.ModeNamedPipe), "modules.json: expected a regular file"},
		{"llama-tied", "a device for the weights", special(weights, fs.ModeDevice), "model.safetensors: not a readable safetensors file: expected a regular file"},
		{"llama-tied", "a folder for the weights", special(weights, fs.ModeDir), "model.safetensors: not a readable safetensors file: expected a regular file"},
		{"llama-tied", "a pipe for the index", func(f *tampered) { delete(f.MapFS, weights); special(index, fs.ModeNamedPipe)(f) }, "index.json: expected a regular file"},

		{"bart", "fewer decoder layers", set("decoder_layers", "0"), "but the files hold"},
		{"bart", "a billion decoder layers", set("decoder_layers", "1000000000"), "but the files hold"},
		{"bart", "fewer encoder layers", set("encoder_layers", "1"), `without the tensor "model.encoder.layers.1.`},
		{"bart", "no positions of the decoder", less("model.decoder.embed_positions.weight"), `missing: "model.decoder.embed_positions.weight"`},
		{"bart", "no bias", less("final_logits_bias"), ""},
		{"bart", "post-norm blocks as pre-norm", set("model_type", `"mbart"`), `missing: "model.encoder.layer_norm`},
		{"mbart", "pre-norm blocks as post-norm", set("model_type", `"bart"`), `without the tensor "model.decoder.layer_norm.`},
		{"bart-copies", "the encoder's table has other values", other("model.encoder.embed_tokens.weight"), "differs from another table of embeddings"},
		{"bart-copies", "the head has other values", other("lm_head.weight"), ""},
		{"marian", "positions in the file", extra("model.encoder.embed_positions.weight", 32, 8), ""},
		{"marian", "two tables", set("share_encoder_decoder_embeddings", "false"), `missing: "model.encoder.embed_tokens.weight"`},
		{"marian-two", "one table", set("share_encoder_decoder_embeddings", "true"), "differs from another table of embeddings"},
		{"marian-two", "no vocabulary", set("vocab_size", "0"), "vocab_size must be at least 1, got 0"},
		{"marian-two", "an unknown vocabulary", set("vocab_size", "null"), "vocab_size must be at least 1, got null"},
		{"marian-two", "a huge vocabulary", set("decoder_vocab_size", "2147483647"), "but the files hold"},
		{"t5", "a billion decoder layers", set("num_decoder_layers", "1000000000"), "but the files hold"},
		{"t5", "gates", set("is_gated_act", "true"), "but the files hold"},
		{"t5-gated", "no gates", set("is_gated_act", "false"), `missing: "encoder.block.0.layer.1.DenseReluDense.wi.weight"`},
		{"t5", "no head", set("tie_word_embeddings", "false"), `the tensor "lm_head.weight" is missing`},
		{"t5", "an odd number of buckets", set("relative_attention_num_buckets", "7"), "relative_attention_num_buckets must be an even number from 4, got 7"},
		{"t5", "no buckets", set("relative_attention_num_buckets", "0"), "relative_attention_num_buckets must be an even number from 4, got 0"},
		{"t5", "more buckets than distances", set("relative_attention_num_buckets", "32"), "relative_attention_max_distance must be above half"},
		{"t5", "two billion buckets", func(f *tampered) {
			f.set("relative_attention_num_buckets", "2147483646")
			f.set("relative_attention_max_distance", "2147483646")
		}, "but the files hold"},
		{"t5", "heads without width", set("d_kv", "0"), "d_kv must be above 0"},
		{"t5-states", "a decoder", set("architectures", `["T5ForConditionalGeneration"]`), "but the files hold"},
		{"t5", "the encoder alone", set("architectures", `["T5EncoderModel"]`), ""},
	} {
		what := test.folder + ": " + test.what
		f := tamper(t, test.folder)
		test.change(f)
		start := time.Now()
		m, err := OpenFS(f.MapFS, tensor.Float32)
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("%s: took %v", what, took)
		}
		if wantError(t, what, err, test.want); err != nil && m != nil {
			t.Errorf("%s: got a model, want nil", what)
		}
	}
}
