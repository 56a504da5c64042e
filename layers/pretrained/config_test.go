package pretrained

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/safetensors"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/layers/decode"
)

// failure returns the error of a call: failure(ReadConfig(fsys)).
func failure[T any](_ T, err error) error { return err }

// wantUnsupported checks that err is an *UnsupportedError about a key, with its value and what is supported.
func wantUnsupported(t *testing.T, what string, err error, key string) {
	t.Helper()
	var u *UnsupportedError
	if !errors.As(err, &u) || u.Key != key || u.Value == "" || u.Want == "" {
		t.Errorf("%s: got the error %v, want an *UnsupportedError about %s", what, err, key)
	}
}

// wantError checks that err is an error that contains a text, or nil if the text is empty.
func wantError(t *testing.T, what any, err error, text string) {
	t.Helper()
	if (err == nil) != (text == "") || err != nil && !strings.Contains(err.Error(), text) {
		t.Errorf("%v: got the error %v, want one that contains %q (none if empty)", what, err, text)
	}
}

// folder returns a folder with these files. The first is config.json.
func folder(config string, others ...string) fstest.MapFS {
	fsys := fstest.MapFS{configFile: {Data: []byte(config)}}
	for i := 0; i < len(others); i += 2 {
		fsys[others[i]] = &fstest.MapFile{Data: []byte(others[i+1])}
	}
	return fsys
}

// TestDefaults checks that a config.json with only a model_type means the same as one with all the values that the
// reference library has for missing keys, in today's spelling.
func TestDefaults(t *testing.T) {
	var full map[string]json.RawMessage
	must.Do(t, readJSON(os.DirFS("testdata"), "defaults.json", maxJSON, &full))
	for _, a := range architectures {
		want, err := ReadConfig(folder(string(full[a.Name])))
		if err != nil {
			t.Errorf("%s: %v", a.Name, err)
			continue
		}
		got, err := ReadConfig(folder(fmt.Sprintf(`{"model_type": %q}`, a.Name)))
		if err != nil {
			t.Errorf("%s: %v", a.Name, err)
			continue
		}
		x, _ := members(got)
		y, _ := members(want)
		if !maps.EqualFunc(x, y, func(x, y any) bool { return show(x) == show(y) }) || got.MaxLen != want.MaxLen ||
			got.Start != want.Start || got.Pad != want.Pad || !slices.Equal(got.End, want.End) {
			t.Errorf("%s: without keys\n%+v\nwith them\n%+v", a.Name, got, want)
		}
	}
}

// TestSpellings checks settings that can be written in several ways.
func TestSpellings(t *testing.T) {
	for _, test := range []struct{ what, one, other string }{
		{"rotary scaling", `"rope_theta": 500, "rope_scaling": {"type": "linear", "factor": 2}`,
			`"rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 500}`},
		{"dynamic scaling within the positions", `"rope_scaling": {"rope_type": "dynamic", "factor": 4}`, `"rope_scaling": null`},
		{"the original length", `"max_position_embeddings": 64, "rope_scaling": {"rope_type": "yarn", "factor": 2}`,
			`"max_position_embeddings": 64, "rope_scaling": {"rope_type": "yarn", "factor": 2, "original_max_position_embeddings": 64, "attention_factor": null}`},
		{"mscale", `"rope_scaling": {"rope_type": "yarn", "factor": 2, "mscale": 1, "mscale_all_dim": 1}`, `"rope_scaling": {"rope_type": "yarn", "factor": 2, "attention_factor": 1.0}`},
		{"an end token", `"eos_token_id": 7`, `"eos_token_id": [7]`},
		{"no padding", `"pad_token_id": -1`, `"pad_token_id": null`},
		{"swish", `"hidden_act": "swish"`, `"hidden_act": "silu"`},
		{"keys without effect", `"use_cache": false, "torch_dtype": "bfloat16", "pretraining_tp": 2`, `"dtype": "float16"`},
	} {
		var configs []string
		for _, keys := range []string{test.one, test.other} {
			c, err := ReadConfig(folder(`{"model_type": "llama", ` + keys + `}`))
			if err != nil {
				t.Fatalf("%s: %v", test.what, err)
			}
			settings, _ := members(c)
			configs = append(configs, fmt.Sprint(show(settings), c.End, c.Pad))
		}
		if configs[0] != configs[1] {
			t.Errorf("%s:\n%s\n%s", test.what, configs[0], configs[1])
		}
	}
}

// bertScore returns the config.json of a classifier with other members, by default with one class.
func bertScore(members string) string {
	if !strings.Contains(members, "num_labels") {
		members = strings.TrimSuffix(`"num_labels": 1, `+members, ", ")
	}
	return `{"model_type": "bert", "architectures": ["BertForSequenceClassification"], ` + members + "}"
}

// modules returns the files of a folder with one module.
func modules(sentence string) []string {
	return []string{"modules.json", `[{"path": "", "type": "a.Transformer"}]`, "config_sentence_transformers.json", sentence}
}

// The file that names the function of a score, and the file that limits texts, count in the reference library's order.
func TestSentenceSettings(t *testing.T) {
	const identity, sigmoid = `"torch.nn.modules.linear.Identity"`, `"torch.nn.modules.activation.Sigmoid"`
	length := func(config string) []string { return []string{tokenizerFile, config} }
	for _, test := range []struct {
		what, config string
		files        []string
		sigmoid      bool
		maxLen       int
	}{
		{"one label", bertScore(""), nil, true, 512},
		{"three labels", bertScore(`"num_labels": 3`), nil, false, 512},
		{"a regression", bertScore(`"problem_type": "regression"`), nil, false, 512},
		{"a regression with a function", bertScore(`"problem_type": "regression", "sentence_transformers": {"activation_fn": ` + sigmoid + `}`), nil, true, 512},
		{"the old key", bertScore(`"sbert_ce_default_activation_function": ` + identity), nil, false, 512},
		{"both keys", bertScore(`"sbert_ce_default_activation_function": ` + identity + `, "sentence_transformers": {"activation_fn": ` + sigmoid + `}`), nil, true, 512},
		{"modules", bertScore(""), modules(`{"model_type": "CrossEncoder", "activation_fn": ` + identity + `}`), false, 512},
		{"modules without a function", bertScore(""), modules(`{"model_type": "CrossEncoder"}`), true, 512},
		{"no modules.json", bertScore(""), []string{"config_sentence_transformers.json", `{"activation_fn": ` + identity + `}`}, true, 512},
		{"a limit", bertScore(""), length(`{"model_max_length": 128}`), true, 128},
		{"no limit", bertScore(""), length(`{"model_max_length": 1000000000000000019884624838656}`), true, 512},
		{"a limit as a float", bertScore(""), length(`{"model_max_length": 1e30}`), true, 512},
		{"the old limit", bertScore(""), length(`{"max_len": 64}`), true, 64},
		{"two limits", bertScore(""), length(`{"max_len": 64, "model_max_length": 128}`), true, 128},
		{"a decoder's limit", `{"model_type": "llama", "max_position_embeddings": 512}`, length(`{"model_max_length": 128}`), false, 512},
		{"an embedding's limit", `{"model_type": "bert"}`, append(modules(`{}`), length(`{"model_max_length": 128}`)...), false, 128},
		{"an embedding of single texts", `{"model_type": "bert", "rope_scaling": {}}`, append(modules(`{}`), length(`{"model_max_length": 128, "model_input_names": ["input_ids"]}`)...), false, 128},
		{"an older embedding's limit", `{"model_type": "bert"}`, append(modules(`{}`), tokenizerFile, `{"model_max_length": 128}`, "sentence_bert_config.json", `{"max_seq_length": 256}`), false, 256},
	} {
		c, err := ReadConfig(folder(test.config, test.files...))
		if err != nil || c.Sigmoid != test.sigmoid || c.MaxLen != test.maxLen {
			t.Errorf("%s: a sigmoid is %t, the limit %d, %v", test.what, c.Sigmoid, c.MaxLen, err)
		}
	}
	wantError(t, "no tokens", failure(ReadConfig(folder(bertScore(""), length(`{"model_max_length": 0}`)...))), "tokenizer_config.json: model_max_length must be at least 1, got 0")
}

// Several labels may have thresholds, also in a folder that Save wrote.
func TestSeveral(t *testing.T) {
	const several = `"problem_type": "multi_label_classification", "id2label": {"0": "a", "1": "b"}, "num_labels": 2`
	for _, test := range []struct {
		members string
		want    []float64
	}{
		{"", nil},
		{`, "thresholds": {"1": 0.25}`, []float64{0.5, 0.25}},
		{`, "sentence_transformers": {"activation_fn": "torch.nn.modules.activation.Sigmoid"}`, nil},
	} {
		c := must.Get(ReadConfig(folder(bertScore(several + test.members))))(t)
		k := must.Get(c.write(tensor.Float32))(t)
		again := must.Get(ReadConfig(folder(string(must.Get(json.Marshal(k.values))(t)))))(t)
		for _, c := range []Config{c, again} {
			if !c.Several || c.Sigmoid || !slices.Equal(c.Thresholds, test.want) {
				t.Errorf("%s: read %+v", test.members, c)
			}
		}
	}
	wantError(t, "a threshold", failure(ReadConfig(folder(bertScore(several+`, "thresholds": {"0": 2}`)))), "thresholds: a score must be from 0 to 1, got 2")
	wantError(t, "another problem", failure(ReadConfig(folder(bertScore(`"num_labels": 2, "problem_type": "regression"`)))), "single_label_classification")
}

// dense returns the files of a folder with a Dense module, and perhaps more modules.
func dense(config, more string) []string {
	return []string{"modules.json", `[{"path": "", "type": "a.Transformer"}, {"path": "1", "type": "a.Pooling"}, {"path": "2", "type": "a.Dense"}` + more + `]`,
		"1/config.json", "{}", "2/config.json", config}
}

// TestDense opens and saves a folder with a Dense module, and refuses sizes that don't fit.
func TestDense(t *testing.T) {
	f := tamper(t, "bert-states") // its width is 16
	with := func(config string, rows, columns int) error {
		others := dense(config, "")
		for i := 0; i < len(others); i += 2 {
			f.put(others[i], others[i+1])
		}
		f.put("2/model.safetensors", file(t, safetensors.Tensor{Name: "linear.weight", Shape: []int{rows, columns}, Data: make([]float32, rows*columns)}))
		m, err := OpenFS(f.MapFS, tensor.Float64)
		if err == nil {
			dir := t.TempDir()
			m.Params.Get("dense.weight").Value.Float64s()[5] = 7
			must.Do(t, Save(dir, m.Config, m.Params))
			for i := 0; i < len(others); i += 2 {
				must.Do(t, os.MkdirAll(filepath.Dir(dir+"/"+others[i]), 0o777))
				must.Do(t, os.WriteFile(dir+"/"+others[i], []byte(others[i+1]), 0o666))
			}
			again := must.Get(Open(dir, tensor.Float64))(t)
			if again.Dense == nil || again.Dense.Weight.Value.Float64s()[5] != 7 || len(again.Ignored) > 0 {
				t.Errorf("saved and opened again: %v, ignored %q", again.Dense, again.Ignored)
			}
		}
		return err
	}
	wantError(t, "a fitting one", with(`{"in_features": 16, "out_features": 3, "bias": false}`, 3, 16), "")
	for config, want := range map[string]string{
		`{"in_features": 15, "out_features": 3, "bias": false}`: "2/config.json: in_features must be 16, the width of the model, got 15",
		`{"out_features": 0, "bias": false}`:                    "2/config.json: out_features must be from 1 to 65536, got 0",
		`{"out_features": 65537, "bias": false}`:                "out_features must be from 1 to 65536, got 65537",
		`{"bias": false}`:                                       "out_features must be from 1",
		`{"out_features": 4, "bias": false}`:                    `"linear.weight" must have shape (4, 16), got (3, 16)`,
		`{"out_features": 3}`:                                   `missing: "linear.bias"`,
	} {
		wantError(t, config, with(config, 3, 16), want)
	}
	f.put("2/config.json", `{"out_features": 3}`)
	delete(f.MapFS, "2/model.safetensors")
	wantError(t, "no weights", failure(OpenFS(f.MapFS, tensor.Float32)), "there are no weights")
}

func TestUnsupported(t *testing.T) {
	pooling := func(config string) []string {
		return []string{"modules.json", `[{"path": "", "type": "a.Transformer"}, {"path": "1", "type": "a.Pooling"}]`, "1/config.json", config}
	}
	for _, test := range []struct {
		key, config string
		others      []string
	}{
		{"model_type", `{"model_type": "udop"}`, nil},
		{"feed_forward_proj", `{"model_type": "t5", "feed_forward_proj": "gated-mish"}`, nil},
		{"architectures", `{"model_type": "bart", "architectures": ["BartModel"]}`, nil},
		{"decoder_attention_heads", `{"model_type": "bart", "encoder_attention_heads": 8}`, nil},
		{"tie_word_embeddings", `{"model_type": "marian", "tie_word_embeddings": false}`, nil},
		{"is_encoder_decoder", `{"model_type": "mbart", "is_encoder_decoder": false}`, nil},
		{"num_beam_groups", `{"model_type": "t5"}`, []string{"generation_config.json", `{"num_beam_groups": 2}`}},
		{"quantization_config", `{"model_type": "llama", "quantization_config": {"quant_method": "gptq"}}`, nil},
		{"quantization_config", `{"model_type": "gpt_oss", "quantization_config": {"quant_method": "mxfp4"}}`, nil},
		{"rope_parameters", `{"model_type": "gpt_oss", "rope_parameters": null}`, nil},
		{"swiglu_alpha", `{"model_type": "gpt_oss", "swiglu_alpha": 1.5}`, nil},
		{"mlp_only_layers", `{"model_type": "qwen3_moe", "mlp_only_layers": [1]}`, nil},
		{"quantization_config", `{"model_type": "deepseek_v3", "quantization_config": {"quant_method": "fp8"}}`, nil},
		{"topk_method", `{"model_type": "deepseek_v2", "topk_method": "noaux_tc"}`, nil},
		{"topk_method", `{"model_type": "deepseek_v3", "topk_method": "greedy"}`, nil},
		{"scoring_func", `{"model_type": "deepseek_v3", "scoring_func": "softmax"}`, nil},
		{"mlp_bias", `{"model_type": "deepseek_v2", "mlp_bias": true}`, nil},
		{"num_key_value_heads", `{"model_type": "deepseek_v2", "num_key_value_heads": 4}`, nil},
		{"mscale_all_dim", `{"model_type": "deepseek_v2", "rope_scaling": {"type": "yarn", "factor": 4, "original_max_position_embeddings": 512, "mscale_all_dim": -10}}`, nil},
		{"clip_qkv", `{"model_type": "olmoe", "clip_qkv": 8}`, nil},
		{"architectures", `{"model_type": "llama", "architectures": ["LlamaForMultipleChoice"]}`, nil},
		{"rope_type", `{"model_type": "llama", "rope_scaling": {"rope_type": "longrope", "factor": 2}}`, nil},
		{"partial_rotary_factor", `{"model_type": "llama", "partial_rotary_factor": 0.5}`, nil},
		{"rotary_pct", `{"model_type": "gpt_neox", "rotary_pct": 0}`, nil}, // it rotates nothing, and a Dim of 0 means all
		{"rotary_pct", `{"model_type": "gpt_neox", "rotary_pct": 0.01}`, nil},
		{"rotary_pct", `{"model_type": "gpt_neox", "hidden_size": 16, "num_attention_heads": 4}`, nil},
		{"partial_rotary_factor", `{"model_type": "gpt_neox", "rope_parameters": {"partial_rotary_factor": 1.5}}`, nil},
		{"hidden_act", `{"model_type": "llama", "hidden_act": "mish"}`, nil},
		{"scale_attn_by_inverse_layer_idx", `{"model_type": "gpt2", "scale_attn_by_inverse_layer_idx": true}`, nil},
		{"word_embed_proj_dim", `{"model_type": "opt", "word_embed_proj_dim": 512}`, nil},
		{"layer_types", `{"model_type": "qwen2", "num_hidden_layers": 1, "layer_types": ["chunked_attention"]}`, nil},
		{"is_causal", `{"model_type": "llama", "is_causal": false}`, nil},
		{"is_decoder", `{"model_type": "roberta", "is_decoder": true}`, nil},
		{"attention_chunk_size", `{"model_type": "llama", "attention_chunk_size": 8}`, nil},
		{"stop_strings", `{"model_type": "llama"}`, []string{"generation_config.json", `{"stop_strings": ["."]}`}},
		{"bad_words_ids", `{"model_type": "llama"}`, []string{"generation_config.json", `{"bad_words_ids": [[1]]}`}},
		{"truncate_dim", `{"model_type": "llama"}`, append(pooling(`{}`), "config_sentence_transformers.json", `{"truncate_dim": 2}`)},
		{"query_length", `{"model_type": "llama"}`, append(pooling(`{}`), "sentence_bert_config.json", `{"query_length": 2}`)},
		{"model_input_names", `{"model_type": "bert", "architectures": ["BertForSequenceClassification"], "id2label": {"0": "a"}}`, []string{"tokenizer_config.json", `{"model_input_names": ["input_ids"]}`}},
		{"use_bidirectional_attention", `{"model_type": "gemma3_text", "use_bidirectional_attention": true}`, nil},
		{"position_embedding_type", `{"model_type": "bert", "position_embedding_type": "relative_key"}`, nil},
		{"is_decoder", `{"model_type": "bert", "is_decoder": true}`, nil},
		{"architectures", `{"model_type": "bert", "architectures": ["BertForMultipleChoice"]}`, nil},
		{"pad_token_id", `{"model_type": "roberta", "pad_token_id": 0}`, nil},
		{"relative_attention_num_buckets", `{"model_type": "mpnet", "relative_attention_num_buckets": 16}`, nil},
		{"rope_scaling", `{"model_type": "modernbert", "rope_scaling": {"rope_type": "linear", "factor": 2.0}}`, nil},
		{"classifier_pooling", `{"model_type": "modernbert", "classifier_pooling": "max"}`, nil},
		{"num_beams", `{"model_type": "llama"}`, []string{"generation_config.json", `{"num_beams": 4}`}},
		{"type", `{"model_type": "llama"}`, []string{"modules.json", `[{"path": "", "type": "a.Transformer"}, {"path": "1", "type": "a.Dense"}]`}},
		{"type", `{"model_type": "llama"}`, dense(`{"out_features": 3}`, `, {"path": "2", "type": "a.Dense"}`)},
		{"use_residual", `{"model_type": "llama"}`, dense(`{"out_features": 3, "use_residual": true}`, "")},
		{"module_output_name", `{"model_type": "llama"}`, dense(`{"out_features": 3, "module_output_name": "other"}`, "")},
		{"activation_function", `{"model_type": "llama"}`, dense(`{"out_features": 3, "activation_function": "torch.nn.modules.activation.Hardtanh"}`, "")},
		{"activation_function", `{"model_type": "llama"}`, dense(`{"out_features": 3, "activation_function": "mine.Tanh"}`, "")},
		{"pooling_mode", `{"model_type": "llama"}`, pooling(`{"pooling_mode_max_tokens": true}`)},
		{"pooling_mode", `{"model_type": "llama"}`, pooling(`{"pooling_mode": ["cls", "mean"]}`)},
		{"include_prompt", `{"model_type": "llama"}`, pooling(`{"include_prompt": false}`)},
		{"model_type", bertScore(""), modules(`{"model_type": "SparseEncoder"}`)},
		{"model_type", `{"model_type": "bert"}`, modules(`{"model_type": "CrossEncoder"}`)},
		{"default_prompt_name", bertScore(""), modules(`{"model_type": "CrossEncoder", "prompts": {"a": "b"}, "default_prompt_name": "a"}`)},
		{"activation_fn", bertScore(""), modules(`{"model_type": "CrossEncoder", "activation_fn": "torch.nn.modules.activation.Tanh"}`)},
		{"activation_fn", bertScore(`"sentence_transformers": {"activation_fn": "mine.Sigmoid"}`), nil},
		{"sbert_ce_default_activation_function", bertScore(`"num_labels": 3, "sbert_ce_default_activation_function": "torch.nn.modules.activation.Sigmoid"`), nil},
		{"transformer_task", bertScore(""), append(modules(`{}`), "sentence_bert_config.json", `{"transformer_task": "sequence-classification"}`)},
	} {
		wantUnsupported(t, test.config+strings.Join(test.others, " "), failure(ReadConfig(folder(test.config, test.others...))), test.key)
	}
	fsys := folder("")
	delete(fsys, configFile)
	fsys[adapter] = &fstest.MapFile{Data: []byte("{}")}
	wantUnsupported(t, "an adapter", failure(ReadConfig(fsys)), adapter)
}

// TestEmbeddingFolder reads a folder as sentence-transformers writes it, with the model in a folder of its own.
func TestEmbeddingFolder(t *testing.T) {
	fsys := fstest.MapFS{}
	for name, content := range map[string]string{
		"modules.json":                            `[{"idx": 0, "name": "0", "path": "0_Transformer", "type": "sentence_transformers.models.Transformer"}, {"path": "1_Pooling", "type": "x.Pooling"}, {"path": "2", "type": "x.Normalize"}]`,
		"0_Transformer/config.json":               `{"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "sliding_window": null}`,
		"0_Transformer/model.safetensors":         "",
		"0_Transformer/sentence_bert_config.json": `{"max_seq_length": 256, "do_lower_case": true}`,
		"1_Pooling/config.json":                   `{"word_embedding_dimension": 4, "pooling_mode_mean_tokens": false, "pooling_mode_lasttoken": true, "include_prompt": true}`,
		"config_sentence_transformers.json":       `{"prompts": {"query": "find: ", "document": ""}, "default_prompt_name": "query"}`,
	} {
		fsys[name] = &fstest.MapFile{Data: []byte(content)}
	}
	c := must.Get(ReadConfig(fsys))(t)
	if c.Folder != "0_Transformer" || c.Head != "states" || c.MaxLen != 256 || !c.Normalize || c.Pooling != layers.LastPooling ||
		c.Prompts["query"] != "find: " || c.Prompt != "query" || c.Model.Outputs != 0 || *c.Model.Block.Attention.Window != (layers.Window{Left: -1}) {
		t.Errorf("read %+v", c)
	}
	files, err := Files(fsys)
	if err != nil || !slices.Equal(files, []string{"0_Transformer/model.safetensors"}) {
		t.Errorf("files %v, error %v", files, err)
	}
}

// TestFiles opens a folder whose only safetensors file has a name of its own.
func TestFiles(t *testing.T) {
	fsys := folder("", "model.fp16.safetensors", "", "vocab.txt", "")
	for _, want := range []string{"model.fp16.safetensors", weights} { // model.safetensors comes first
		if files, err := Files(fsys); err != nil || !slices.Equal(files, []string{want}) {
			t.Errorf("files %v, error %v, want %s", files, err, want)
		}
		fsys[weights] = &fstest.MapFile{}
	}
	delete(fsys, weights)
	fsys[adapter] = &fstest.MapFile{Data: []byte("{}")} // then the file may hold only the adapter's weights
	wantUnsupported(t, "an adapter", failure(Files(fsys)), adapter)
}

func TestGenerationConfig(t *testing.T) {
	c, err := ReadConfig(folder(`{"model_type": "llama", "eos_token_id": 9, "bos_token_id": 8}`,
		"generation_config.json", `{"eos_token_id": [3, 4], "pad_token_id": 5, "do_sample": true, "temperature": 0.6, "top_p": 0.9, "repetition_penalty": 1.1}`))
	want := decode.Sampler{Temperature: 0.6, TopK: 50, TopP: 0.9, RepetitionPenalty: 1.1}
	if err != nil || !slices.Equal(c.End, []int{3, 4}) || c.Pad != 5 || c.Start != 8 || c.Sampler != want {
		t.Errorf("%+v, %v", c, err)
	}
	c, err = ReadConfig(folder(`{"model_type": "llama"}`, "generation_config.json", `{"temperature": 0.6}`))
	if err != nil || c.Sampler != (decode.Sampler{}) {
		t.Errorf("without do_sample: %+v, %v", c.Sampler, err)
	}
}

// TestSearch reads how generation_config.json searches for answers and which tokens it bars, writes it and reads it
// again.
func TestSearch(t *testing.T) {
	barred := func(least int) decode.BeamOptions {
		return decode.BeamOptions{Rules: decode.Rules{Suppress: []int{3, 4}, SuppressFirst: []int{5}, MinTokens: least}}
	}
	for _, test := range []struct {
		config, generation string
		want               decode.BeamOptions
		start, least, most int // the first token, and the lengths with it
	}{
		{`{"model_type": "t5", "bos_token_id": 8}`, "", decode.BeamOptions{Width: 1, LengthPenalty: 1, Ends: decode.EndLikely}, 8, 0, 0},
		{`{"model_type": "bart", "num_beams": 5, "early_stopping": true}`, "", decode.BeamOptions{Width: 5, LengthPenalty: 1, Ends: decode.EndFull, Rules: decode.Rules{ForceLast: []int{2}}}, 2, 0, 0},
		{`{"model_type": "mbart", "decoder_start_token_id": 7}`, `{"num_beams": 4, "length_penalty": 2.5, "early_stopping": "never", "no_repeat_ngram_size": 3,
			"bad_words_ids": [[4], [5, 6]], "forced_bos_token_id": 9, "forced_eos_token_id": [2, 3], "max_length": 200, "max_new_tokens": 60}`,
			decode.BeamOptions{Width: 4, LengthPenalty: 2.5, Rules: decode.Rules{ForceFirst: []int{9}, ForceLast: []int{2, 3}, NoRepeat: 3, BadWords: [][]int{{4}, {5, 6}}}, MaxTokens: 60}, 7, 0, 200},
		{`{"model_type": "marian"}`, `{"decoder_start_token_id": 3, "early_stopping": false, "bad_words_ids": null}`, decode.BeamOptions{Width: 1, LengthPenalty: 1, Ends: decode.EndLikely}, 3, 0, 0},
		{`{"model_type": "llama"}`, `{"suppress_tokens": [3, 4], "begin_suppress_tokens": 5, "min_new_tokens": 2, "min_length": 9}`, barred(2), 0, 0, 0},
		{`{"model_type": "llama"}`, `{"suppress_tokens": [3, 4], "begin_suppress_tokens": [5], "min_length": 9}`, barred(0), 0, 9, 0},
		{`{"model_type": "llama"}`, `{"suppress_tokens": [3, 4], "begin_suppress_tokens": [5], "min_length": 9, "min_new_tokens": 0}`, barred(0), 0, 0, 0},
	} {
		fsys := folder(test.config)
		if test.generation != "" {
			fsys = folder(test.config, generationFile, test.generation)
		}
		c := must.Get(ReadConfig(fsys))(t)
		k := newKeys()
		c.generation(k)
		content := must.Get(json.Marshal(k.values))(t)
		again := must.Get(ReadConfig(folder(test.config, generationFile, string(content))))(t)
		for _, c := range []Config{c, again} {
			if !reflect.DeepEqual(c.Search, test.want) || c.AnswerStart != test.start || c.MinLen != test.least || c.AnswerLen != test.most {
				t.Errorf("%s, %s:\n%+v, start %d, lengths %d and %d, want\n%+v, %d, %d and %d; written as %s", test.config, test.generation,
					c.Search, c.AnswerStart, c.MinLen, c.AnswerLen, test.want, test.start, test.least, test.most, content)
			}
		}
	}
	for generation, want := range map[string]string{
		`{"num_beams": 0}`:             "num_beams must be from 1 to 1024, got 0",
		`{"num_beams": 1025}`:          "num_beams must be from 1 to 1024, got 1025",
		`{"length_penalty": -10.5}`:    "generation_config.json: length_penalty must be from -10 to 10, got -10.5",
		`{"length_penalty": "NaN"}`:    "length_penalty must be a finite number",
		`{"no_repeat_ngram_size": -1}`: "no_repeat_ngram_size must be a whole number from 0",
		`{"bad_words_ids": [[3, -1]]}`: "bad_words_ids must be a list of lists of token ids",

		`{"decoder_start_token_id": 32128}`:    "generation_config.json: decoder_start_token_id must be below 32128, the size of the vocabulary, got 32128",
		`{"forced_bos_token_id": 32128}`:       "generation_config.json: forced_bos_token_id must be below 32128",
		`{"forced_eos_token_id": [1, 40000]}`:  "generation_config.json: forced_eos_token_id must be below 32128",
		`{"bad_words_ids": [[1], [2, 32128]]}`: "generation_config.json: bad_words_ids must be below 32128",

		`{"early_stopping": []}`:       `early_stopping must be true, false or "never", got []`,
		`{"early_stopping": "always"}`: `early_stopping must be true, false or "never"`,
		`{"bad_words_ids": [3]}`:       "bad_words_ids must be a list of lists of token ids",
		`{"bad_words_ids": [[]]}`:      "bad_words_ids must be a list of lists of token ids",
		`{"bad_words_ids": [["a"]]}`:   "bad_words_ids must be",
		`{"max_length": -3}`:           "max_length must be a whole number",
	} {
		wantError(t, generation, failure(ReadConfig(folder(`{"model_type": "t5"}`, generationFile, generation))), want)
	}
	const marian = `{"model_type": "marian", "pad_token_id": 8, "vocab_size": 9, "share_encoder_decoder_embeddings": false, `
	wantError(t, "a start", failure(ReadConfig(folder(marian+`"decoder_start_token_id": 9}`))), "config.json: decoder_start_token_id must be below 9, the size of the vocabulary, got 9")
	wantError(t, "a larger vocabulary", failure(ReadConfig(folder(marian+`"decoder_vocab_size": 10, "decoder_start_token_id": 9}`))), "")
	wantError(t, "a start of a classifier", failure(ReadConfig(folder(`{"model_type": "bart", "architectures": ["BartForSequenceClassification"], "decoder_start_token_id": 50265}`))), "config.json: decoder_start_token_id must be below 50265")
}

// TestLackingTokens reads ids of special tokens that no text has.
func TestLackingTokens(t *testing.T) {
	c := must.Get(ReadConfig(folder(`{"model_type": "llama", "vocab_size": 5, "bos_token_id": 5, "pad_token_id": 6}`, generationFile, `{"eos_token_id": [4, 5]}`)))(t)
	if c.Start != -1 || c.Pad != -1 || !slices.Equal(c.End, []int{4}) {
		t.Errorf("got %d, %d and %v, want -1, -1 and [4]", c.Start, c.Pad, c.End)
	}
}

// TestPrefixes reads the texts in front of sources.
func TestPrefixes(t *testing.T) {
	c := must.Get(ReadConfig(folder(`{"model_type": "t5", "prefix": " ", "task_specific_params": {"summarization": {"prefix": "summarize: ", "num_beams": 4}, "other": {"min_length": 5}}}`)))(t)
	if want := map[string]string{"summarization": "summarize: ", "other": "", "prefix": " "}; !maps.Equal(c.Prompts, want) || c.Prompt != "prefix" {
		t.Errorf("%v, %q, want %v", c.Prompts, c.Prompt, want)
	}
	for task, want := range map[string][2]int{"summarization": {4, 0}, "other": {1, 5}, "prefix": {1, 0}} {
		if got := must.Get(c.For(task))(t); got.Search.Width != want[0] || got.MinLen != want[1] {
			t.Errorf("%s: got %d beams and a least length of %d, want %d", task, got.Search.Width, got.MinLen, want)
		}
	}
	c = must.Get(ReadConfig(folder(`{"model_type": "t5", "task_specific_params": {"x": {"num_beams": 0}, "y": {"num_beam_groups": 2}}}`)))(t)
	wantError(t, "no beam", failure(c.For("x")), "num_beams must be from 1")
	wantError(t, "groups of beams", failure(c.For("y")), "num_beam_groups 2")
	wantError(t, "a list", failure(ReadConfig(folder(`{"model_type": "t5", "task_specific_params": [1]}`))), "task_specific_params must be an object")
	wantError(t, "a number", failure(ReadConfig(folder(`{"model_type": "t5", "prefix": 1}`))), "prefix must be a string")
}

// tensorFile returns a safetensors file whose header describes one float32 tensor.
func tensorFile(name string, numbers int) string {
	header := fmt.Sprintf(`{%q:{"dtype":"F32","shape":[%d],"data_offsets":[0,%d]}}`, name, numbers, 4*numbers)
	return string([]byte{byte(len(header)), 0, 0, 0, 0, 0, 0, 0}) + header + string(make([]byte, 4*numbers))
}

// TestHostile opens folders that lie. Each must give an error within a second, with little memory.
func TestHostile(t *testing.T) {
	llama := func(keys string) string { return `{"model_type": "llama", ` + keys + `}` }
	tiny := llama(`"hidden_size": 4, "num_attention_heads": 1, "vocab_size": 4, "intermediate_size": 4, "num_hidden_layers": 1`)
	list := func(files ...string) string { // an index
		entries := map[string]string{}
		for i, file := range files {
			entries[fmt.Sprint("t", i)] = file
		}
		content, _ := json.Marshal(map[string]any{"weight_map": entries})
		return string(content)
	}
	for _, test := range []struct {
		config, want string
		others       []string
	}{
		{llama(`"num_hidden_layers": 1000000000`), "but the files hold", nil},
		{llama(`"num_hidden_layers": 1e30`), "num_hidden_layers must be a whole number", nil},
		{llama(`"num_hidden_layers": -1`), "num_hidden_layers must be a whole number", nil},
		{llama(`"hidden_size": "64"`), `hidden_size must be a whole number from 0 to 2147483647, got "64"`, nil},
		{llama(`"hidden_size": 2147483647, "num_attention_heads": 1`), "but the files hold", nil},
		{llama(`"hidden_size": 0`), "describes a model", nil},
		{llama(`"vocab_size": 2147483647`), "but the files hold", nil},
		{llama(`"num_attention_heads": 2147483647, "head_dim": 2147483647`), "but the files hold", nil},
		{llama(`"rms_norm_eps": 1e999`), "rms_norm_eps must be a finite number", nil},
		{llama(`"rms_norm_eps": 1e-6, "rms_norm_eps": 1`), "given twice", nil},
		{llama(`"architectures": ["LlamaForSequenceClassification"], "num_labels": 2147483647`), "at most 10000 classes", nil},
		{`{"model_type": "qwen2", "num_hidden_layers": 1000000000}`, "at most 10000 layers", nil},
		{`{"model_type": "gpt_neo", "num_layers": 1000000000}`, "attention_types must be", nil},
		{`{"model_type": "gpt_neo", "attention_types": [[["global"], 2147483647]]}`, "attention_types must be", nil},
		{`{"model_type": "deepseek_v3", "num_hidden_layers": 1000000000}`, "at most 10000 layers", nil},
		{`{"model_type": "deepseek_v3", "n_shared_experts": 2147483647}`, "n_shared_experts must be at most 1048576", nil},
		{`{"model_type": "deepseek_v3", "moe_intermediate_size": 2147483647}`, "moe_intermediate_size must be at most 1048576", nil},
		{`{"model_type": "deepseek_v3", "kv_lora_rank": 2147483647, "qk_nope_head_dim": 2147483647}`, "but the files hold", nil},
		{`{"model_type": "deepseek_v3", "n_group": 0}`, "n_group must be a number that divides the 256 experts into groups of at least 2", nil},
		{`{"model_type": "deepseek_v3", "topk_group": 9}`, "topk_group must be from 1 to 8", nil},
		{`{"model_type": "deepseek_v3", "num_experts_per_tok": 200}`, "num_experts_per_tok must be at most 128", nil},
		{`{"model_type": "deepseek_v3", "num_experts_per_tok": 0}`, "num_experts_per_tok must be a whole number from 1", nil},
		{`{"model_type": "deepseek_v3", "rope_scaling": {"rope_type": "yarn", "factor": 1e300, "mscale_all_dim": 1e300}}`, "isn't supported", nil},
		{`{"model_type": "gpt2", "n_positions": 2147483647, "n_layer": 1}`, "but the files hold", nil},
		{`{"model_type": 3}`, "model_type must be a string", nil},
		{`{}`, "model_type is missing", nil},
		{`[]`, "config.json: ", nil},
		{`{"a":` + strings.Repeat("[", 200_000), "config.json: ", nil},
		{strings.Repeat(" ", maxJSON) + "{}", "config.json: expected at most 4194304 bytes", nil},
		{tiny, "model of 1 layers with at least", []string{weights, tensorFile("x", 1)}},
		{tiny, `the weights have no head: the tensor "lm_head.weight" is missing`, []string{weights, tensorFile("x", 130)}},
		{tiny, "missing", []string{weights, tensorFile("x", 1000)}},
		{tiny, "not a readable safetensors file", []string{weights, "\xff\xff\xff\xff\xff\xff\xff\xff"}},
		{tiny, "must lie in a file of the same folder", []string{index, list("../x.safetensors")}},
		{tiny, "must lie in a file of the same folder", []string{index, list("/etc/passwd")}},
		{tiny, "must lie in a file of the same folder", []string{index, list("..")}},
		{tiny, `lists "b.safetensors", but there is no such file`, []string{index, list("a.safetensors", "b.safetensors"), "a.safetensors", tensorFile("x", 1)}},
		{tiny, "weight_map must name the file", []string{index, `{}`}},
		{tiny, "x", []string{index, list("a.safetensors", "b.safetensors"), "a.safetensors", tensorFile("x", 1000), "b.safetensors", tensorFile("x", 1000)}},
		{tiny, `got "a.safetensors", "b.safetensors": rename`, []string{"a.safetensors", tensorFile("x", 1000), "b.safetensors", tensorFile("x", 1000)}},
		{tiny, "PyTorch pickle", []string{"pytorch_model.bin", "\x80\x02"}},
		{tiny, "there are no weights", nil},
		{tiny, "modules.json: path must be a folder in this folder", []string{"modules.json", `[{"path": "../..", "type": "a.Transformer"}]`}},
		{tiny, "modules.json: expected modules, got none", []string{"modules.json", `[]`}},
	} {
		fsys := folder(test.config, test.others...)
		if test.others == nil && test.want != "there are no weights" {
			fsys[weights] = &fstest.MapFile{Data: []byte(tensorFile("x", 1))}
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now()
		_, err := OpenFS(fsys, tensor.Float32)
		runtime.ReadMemStats(&after)
		wantError(t, fmt.Sprintf("%.100s %.100q", test.config, test.others), err, test.want)
		if took := time.Since(start); took > time.Second {
			t.Errorf("%.100s %.100q: took %v", test.config, test.others, took)
		}
		if mb := (after.TotalAlloc - before.TotalAlloc) >> 20; mb > 20 {
			t.Errorf("%.100s %.100q: allocated %d MB", test.config, test.others, mb)
		}
	}
}

// TestMemory checks Memory against the parameters of models.
func TestMemory(t *testing.T) {
	each(t, func(t *testing.T, r reference) {
		m := r.open(t, tensor.Float32)
		weights, perToken := m.Memory(tensor.Float32)
		all := 4 * m.Params.Count()
		if weights > all || weights < all*3/4 {
			t.Errorf("%d bytes of weights, want at most %d and not much less", weights, all)
		}
		width := func(layer string) int {
			return m.Params.All()[slices.IndexFunc(m.Params.All(), func(q *layers.Param) bool { return strings.HasSuffix(q.Name, layer+".weight") })].Value.Shape()[0]
		}
		numbers := 2 * width("key")
		if m.Model.Block.Attention.Latent != nil {
			numbers = width(".latent") + width(".rotarykey")
		}
		if want := 4 * cmp.Or(m.decoderLayers(), m.Model.Layers) * numbers; perToken != want {
			t.Errorf("%d bytes per token, want %d", perToken, want)
		}
	})
}

// FuzzReadConfig reads configurations and checks that those without an error can be written and read again.
func FuzzReadConfig(f *testing.F) {
	each := func(dir string) {
		config, _ := os.ReadFile("testdata/" + dir + "/config.json")
		generation, _ := os.ReadFile("testdata/" + dir + "/generation_config.json")
		f.Add(config, generation)
	}
	for _, dir := range []string{"llama-tied", "gpt2", "qwen2", "gpt_neo", "gpt_neox", "gemma3", "gemma3-old", "llama-classes", "llama-states", "bert", "xlm-roberta", "mpnet", "modernbert", "electra-mask", "albert-mask", "deberta-classes", "deberta-v2-own", "t5-gated", "marian-two", "bart"} {
		each(dir)
	}
	f.Fuzz(func(t *testing.T, config, generation []byte) {
		c, err := ReadConfig(folder(string(config), generationFile, string(generation)))
		if err != nil {
			return
		}
		c.Memory(tensor.Float32)
		if k, err := c.write(tensor.Float32); err == nil {
			content := must.Get(json.Marshal(k.values))(t)
			wantError(t, string(content), failure(ReadConfig(folder(string(content)))), "")
		}
	})
}
