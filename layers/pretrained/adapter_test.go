package pretrained

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/safetensors"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/layers"
)

// eachAdapter calls do for every case with its adapter and the values that are expected with it.
func eachAdapter(t *testing.T, do func(t *testing.T, r reference, m *Model, a *layers.Adapter, expected values)) {
	each(t, func(t *testing.T, r reference) {
		leaveOut(t)
		dir := filepath.Join(r.dir, "adapter")
		if _, err := os.Stat(dir); err != nil && (strings.HasSuffix(r.name, "-tags") || strings.HasSuffix(r.name, "-spans")) {
			t.Skip("make_adapters.py has no settings for it")
		}
		m := r.open(t, tensor.Float64)
		do(t, r, m, must.Get(m.OpenAdapter(os.DirFS(dir), m.Params))(t), readValues(t, filepath.Join(dir, "expected.safetensors")))
	})
}

// TestAdapterLogits compares the outputs with an adapter and of the merged model with the reference library's. A saved
// adapter must open with the same bits.
func TestAdapterLogits(t *testing.T) {
	testseed.Slow(t)
	eachAdapter(t, func(t *testing.T, r reference, m *Model, a *layers.Adapter, expected values) {
		want, x := expected.floats("logits"), r.batch()
		compare(t, "with the adapter", m.run(t, x, &layers.Build{Adapter: a}), want, 1e-9, 0)
		dir := t.TempDir()
		if *saved != "" { // with -run AdapterLogits, for testdata/make_adapters.py --check
			dir = filepath.Join(*saved, r.name)
		}
		must.Do(t, m.SaveAdapter(dir, r.name, m.Params, a))
		again := must.Get(m.OpenAdapter(os.DirFS(dir), m.Params))(t)
		compare(t, "with the saved adapter", m.run(t, x, &layers.Build{Adapter: again}), want, 1e-9, 0)
		must.Do(t, a.Merge(m.Params))
		compare(t, "merged", m.run(t, x, &layers.Build{}), want, 1e-9, 0)
	})
}

// TestAdapterGradients compares the gradients of all parameters of an adapter with the reference library's.
func TestAdapterGradients(t *testing.T) {
	testseed.Slow(t)
	eachAdapter(t, func(t *testing.T, r reference, m *Model, a *layers.Adapter, expected values) {
		table := must.Get(m.adapterTensors(m.Params, a))(t)
		for i := range table {
			table[i].Plus = 0
		}
		r.compareGradients(t, m, &layers.Build{Adapter: a}, expected, a.Params, table)
	})
}

// TestTamperedAdapter changes one thing in an adapter for the queries and values of llama. The error must contain want
// or, if that is a key of adapter_config.json, name it as unsupported. With an empty want, the adapter opens.
func TestTamperedAdapter(t *testing.T) {
	const dir = "testdata/llama/adapter"
	m := must.Get(Open("testdata/llama", tensor.Float32))(t)
	config := must.Get(os.ReadFile(filepath.Join(dir, adapter)))(t)
	tensors, _, err := safetensors.ReadFile(filepath.Join(dir, adapterWeights))
	must.Do(t, err)
	none := func(x []safetensors.Tensor) []safetensors.Tensor { return x }
	rename := func(old, new string) func([]safetensors.Tensor) []safetensors.Tensor {
		return func(x []safetensors.Tensor) []safetensors.Tensor {
			for i := range x {
				x[i].Name = strings.Replace(x[i].Name, old, new, 1)
			}
			return x
		}
	}
	for _, test := range []struct {
		what, key, value string
		change           func([]safetensors.Tensor) []safetensors.Tensor
		want             string
	}{
		{"nothing", "", "", none, ""},
		{"an expression", "target_modules", `"(?:.*vision.*)|(?:\\bmodel\\.layers\\.[\\d]{1,}\\.(?:self_attn|mlp)\\.(?:q_proj|v_proj))"`, none, ""},
		{"names without the prefix", "", "", rename("model.model.", "model."), ""},
		{"DoRA", "use_dora", "true", none, "use_dora"},
		{"ranks by layer", "rank_pattern", `{"q_proj": 2}`, none, "rank_pattern"},
		{"some layers", "layers_to_transform", "[0]", none, "layers_to_transform"},
		{"a new key", "new", `{"x": 1}`, none, "new"},
		{"another kind", "peft_type", `"LOHA"`, none, "peft_type"},
		{"biases", "bias", `"all"`, none, "bias"},
		{"changed weights of the base", "init_lora_weights", `"pissa"`, none, "init_lora_weights"},
		{"an odd initialisation", "init_lora_weights", `{"x": 1}`, none, "init_lora_weights"},
		{"no scale", "lora_alpha", "0", none, "lora_alpha"},
		{"classes", "task_type", `"SEQ_CLS"`, none, "task_type"},
		{"an expression of Python", "target_modules", `"(?!lm_head).*"`, none, "target_modules"},
		{"an expression that takes long", "target_modules", `"(.?){1000}` + strings.Repeat("(.?){1000}", 100) + `"`, none, "target_modules"},
		{"a number of targets", "target_modules", "3", none, "target_modules must be a list of strings, got 3"},
		{"a dropout of 1", "lora_dropout", "1.0", none, "at least 0 and below 1, got 1"},
		{"a large rank", "r", "1000000", none, "must have shape (r, 16) with the r 1000000"},
		{"a target less", "target_modules", `["q_proj"]`, none, `has no target_modules for the layer "model.layers.0.self_attn.v_proj"`},
		{"a target more", "target_modules", `["q_proj", "v_proj", "k_proj"]`, none, `names the layer "layers.0.self_attn.k_proj", but the file has no tensors for it`},
		{"another model's layers", "", "", rename("layers.", "h."), "the file has no tensors for it"},
		{"a layer that isn't there", "", "", rename("layers.1.", "layers.2."), "the file has no tensors for it"},
		{"no layers", "target_modules", `[]`, func([]safetensors.Tensor) []safetensors.Tensor { return nil }, "the file has no tensors for layers in target_modules"},
		{"no B", "", "", func(x []safetensors.Tensor) []safetensors.Tensor {
			return slices.DeleteFunc(x, func(x safetensors.Tensor) bool { return strings.Contains(x.Name, "0.self_attn.q_proj.lora_B") })
		}, `missing: "base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight"`},
		{"a magnitude of DoRA", "", "", func(x []safetensors.Tensor) []safetensors.Tensor {
			return append(x, safetensors.Tensor{Name: "base_model.model.model.layers.0.self_attn.q_proj.lora_magnitude_vector", Shape: []int{16}, Data: make([]float32, 16)})
		}, "unexpected: "},
		{"a tensor of nothing", "r", "2147483647", func(x []safetensors.Tensor) []safetensors.Tensor {
			x[0].Shape, x[0].Data = []int{2147483647, 0}, []float32{}
			return x
		}, "must have shape"},
	} {
		content := string(config)
		if test.key != "" {
			content = with(content, test.key, json.RawMessage(test.value))
		}
		a, err := m.OpenAdapter(fstest.MapFS{
			adapter:        {Data: []byte(content)},
			adapterWeights: {Data: []byte(file(t, test.change(slices.Clone(tensors))...))},
		}, m.Params)
		if test.want == test.key && test.key != "" {
			wantUnsupported(t, test.what, err, test.key)
		} else if wantError(t, test.what, err, test.want); err != nil && a != nil {
			t.Errorf("%s: got an adapter, want nil", test.what)
		}
	}
	wantError(t, "without weights", failure(m.OpenAdapter(fstest.MapFS{adapter: {Data: config}}, m.Params)), adapterWeights)
}

// TestAdapterOfTiedHead opens an adapter for a head whose weight is also the table of the embeddings.
func TestAdapterOfTiedHead(t *testing.T) {
	m := must.Get(Open("testdata/gpt2", tensor.Float32))(t)
	_, err := m.OpenAdapter(fstest.MapFS{
		adapter: {Data: []byte(`{"r": 1, "target_modules": ["lm_head"]}`)},
		adapterWeights: {Data: []byte(file(t,
			safetensors.Tensor{Name: "base_model.model.lm_head.lora_A.weight", Shape: []int{1, 16}, Data: make([]float32, 16)},
			safetensors.Tensor{Name: "base_model.model.lm_head.lora_B.weight", Shape: []int{41, 1}, Data: make([]float32, 41)}))},
	}, m.Params)
	wantUnsupported(t, "a tied head", err, "target_modules or modules_to_save")
	wantError(t, "a tied head", err, "share their weights")
}

// TestSaveAdapterErrors saves adapters that no published adapter can be like, and one whose classifier isn't trained.
func TestSaveAdapterErrors(t *testing.T) {
	for _, test := range []struct {
		model string
		low   layers.LowRank
		want  string
	}{
		{"gpt2", layers.LowRank{Rank: 1}, "must have the Joint [[query key value]], got []"},
		{"llama", layers.LowRank{Rank: 1, Joint: [][]string{{"query", "key"}}}, "must have the Joint [], got [[query key]]"},
		{"gpt2", layers.LowRank{Rank: 1, Joint: [][]string{{"query", "key", "value"}}, Whole: []string{"embedding"}}, "modules_to_save"},
		{"gpt2", layers.LowRank{Rank: 1, Joint: [][]string{{"query", "key", "value"}}, Whole: []string{"query"}}, "name all of them in Targets, or all in Whole"},
		{"roberta-classes", layers.LowRank{Rank: 1, Targets: []string{"query"}, Whole: []string{"head"}}, ""},
		{"modernbert", layers.LowRank{Rank: 1, Targets: []string{"up"}, Joint: [][]string{{"query", "key", "value"}, {"gate", "up"}}}, ""},
	} {
		m := must.Get(Open("testdata/"+test.model, tensor.Float32))(t)
		a := must.Get(layers.NewAdapter(m.Params, test.low, 1))(t)
		dir := t.TempDir()
		err := m.SaveAdapter(dir, "base", m.Params, a)
		if test.want == "" && err == nil {
			_, err = m.OpenAdapter(os.DirFS(dir), m.Params)
		}
		wantError(t, test.model, err, test.want)
	}
}

// TestAdapterOfAnotherBase opens an adapter whose file has the base's weights of the head, as peft saves them. They
// must be those of the base.
func TestAdapterOfAnotherBase(t *testing.T) {
	const dir, head = "testdata/mistral/adapter", "base_model.model.lm_head.base_layer.weight"
	tensors, _, err := safetensors.ReadFile(filepath.Join(dir, adapterWeights))
	must.Do(t, err)
	config := must.Get(os.ReadFile(filepath.Join(dir, adapter)))(t)
	i := slices.IndexFunc(tensors, func(x safetensors.Tensor) bool { return x.Name == head })
	weights, ok := tensors[i].Data.([]float32)
	if !ok {
		t.Fatalf("%s holds %T", head, tensors[i].Data)
	}
	for _, test := range []struct {
		what   string
		change func()
		want   string
	}{
		{"nothing", func() {}, ""},
		{"another number", func() { weights[7] *= 1.01 }, `the tensor "` + head + `" isn't the base's: number 7 is`},
		{"another shape", func() { tensors[i].Shape = []int{16, 41} }, `"` + head + `" must have shape (41, 16), got (16, 41)`},
		{"another layer", func() { tensors[i].Name = "base_model.model.other.base_layer.weight" }, `unexpected: "base_model.model.other.base_layer.weight"`},
	} {
		m := must.Get(Open("testdata/mistral", tensor.Float32))(t)
		before := tensors[i]
		copy(weights, m.Params.Get("head.weight").Value.Float32s()) // the file has them as bfloat16
		test.change()
		wantError(t, test.what, failure(m.OpenAdapter(fstest.MapFS{adapter: {Data: config}, adapterWeights: {Data: []byte(file(t, tensors...))}}, m.Params)), test.want)
		tensors[i] = before
	}
}
