package pretrained

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/heed-go/heed/layers"
)

var yes = true

// gptNeo is the architecture of GPT-Neo and TinyStories. Scores aren't scaled, and every second block has a window.
var gptNeo = architecture{
	class: "GPTNeoForCausalLM", causal: true, prefix: "transformer.",
	defaults: `{"vocab_size": 50257, "max_position_embeddings": 2048, "hidden_size": 2048, "num_layers": 24, "num_heads": 16,
		"attention_types": [[["global", "local"], 12]], "window_size": 256, "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5,
		"bos_token_id": 50256, "eos_token_id": 50256, "tie_word_embeddings": true}`,
	model: layers.ModelConfig{NoBias: true, EmbeddingScale: 1, Block: layers.BlockConfig{
		Attention: layers.AttentionConfig{Scale: 1, NoBias: true, OutputBias: &yes},
	}},
	classifier: lastToken, heads: joined(textHeads, tokenHeads), aliases: map[string]string{"num_attention_heads": "num_heads", "num_hidden_layers": "num_layers"},
	config: func(k *keys, c *Config) {
		m, a, f := c.parts()
		k.copy("vocab_size", &m.Vocab, "hidden_size", &m.Dim, "num_layers", &m.Layers, "num_heads", &a.Heads, "intermediate_size", &f.Hidden,
			"activation_function", &f.Activation, "layer_norm_epsilon", &m.Block.Norm.Eps, "tie_word_embeddings", &m.Tied,
			"resid_dropout", &m.Block.Dropout, "embed_dropout", &m.Dropout, "attention_dropout", &a.Dropout)
		k.learned("max_position_embeddings", c, 0)
		window := slidingWindow(*m)
		k.copy("window_size", &window)
		k.attentionTypes(m, window)
	},
	names: []string{
		"embedding wte", "positions wpe", "norm ln_f", "blocks.{i}.norm1 h.{i}.ln_1", "blocks.{i}.norm2 h.{i}.ln_2",
		"blocks.{i}.attention.query h.{i}.attn.attention.q_proj", "blocks.{i}.attention.key h.{i}.attn.attention.k_proj",
		"blocks.{i}.attention.value h.{i}.attn.attention.v_proj", "blocks.{i}.attention.output h.{i}.attn.attention.out_proj",
		"blocks.{i}.feedforward.up h.{i}.mlp.c_fc", "blocks.{i}.feedforward.down h.{i}.mlp.c_proj",
	},
}

// attentionTypes copies which blocks have a window, as layerTypes does. In attention_types, a list such as
// [[["global", "local"], 12]] gives kinds, and how often they repeat.
func (k *keys) attentionTypes(m *layers.ModelConfig, window *layers.Window) {
	kinds := map[bool]string{false: "global", true: "local"}
	p := &keys{values: map[string]any{}, writing: k.writing}
	if k.writing {
		groups := []any{}
		for _, local := range p.slidingLayers(m, nil) {
			groups = append(groups, []any{[]string{kinds[local]}, 1})
		}
		k.values["attention_types"] = groups
		return
	}
	var groups [][2]json.RawMessage
	var types []string
	content, err := json.Marshal(k.values["attention_types"])
	err = errors.Join(err, json.Unmarshal(content, &groups))
	for _, group := range groups {
		var part []string
		var count int
		err = errors.Join(err, json.Unmarshal(group[0], &part), json.Unmarshal(group[1], &count))
		if err != nil || count < 0 || count > m.Layers || len(types)+count*len(part) > m.Layers {
			break
		}
		types = append(types, slices.Repeat(part, count)...)
	}
	if err != nil || len(types) != m.Layers || slices.ContainsFunc(types, func(kind string) bool { return kind != "global" && kind != "local" }) {
		k.invalid("attention_types", "lists of global and local, and how often they repeat, for all layers")
		return
	}
	p.layerTypes(m, window, nil, func(i int) bool { return types[i] == "local" })
	k.fail(p.err)
}
