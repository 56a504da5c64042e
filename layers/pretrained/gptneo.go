package pretrained

import "github.com/heed-go/heed/layers"

// gptNeo is the architecture of GPT-Neo and TinyStories. Scores aren't scaled, and every second block has a window.
var gptNeo = architecture{
	class: "GPTNeoForCausalLM", causal: true, prefix: "transformer.",
	defaults: `{"vocab_size": 50257, "max_position_embeddings": 2048, "hidden_size": 2048, "num_layers": 24, "num_heads": 16,
		"attention_types": [[["global", "local"], 12]], "window_size": 256, "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5,
		"bos_token_id": 50256, "eos_token_id": 50256, "tie_word_embeddings": true}`,
	model: layers.ModelConfig{NoBias: true, EmbeddingScale: 1, Block: layers.BlockConfig{
		Attention: layers.AttentionConfig{Scale: 1, NoBias: true, OutputBias: &yes},
	}},
	classifier: lastToken, heads: textHeads,
	config: func(k *keys, c *Config) {
		m := &c.Model
		a, f := &m.Block.Attention, &m.Block.FeedForward
		k.int("vocab_size", &m.Vocab)
		k.int("hidden_size", &m.Dim)
		k.layers("num_layers", m)
		k.int("num_heads", &a.Heads)
		k.int("intermediate_size", &f.Hidden)
		k.activation("activation_function", &f.Activation)
		k.float("layer_norm_epsilon", &m.Block.Norm.Eps)
		k.float("resid_dropout", &m.Block.Dropout)
		k.float("embed_dropout", &m.Dropout)
		k.float("attention_dropout", &a.Dropout)
		k.bool("tie_word_embeddings", &m.Tied)
		k.learned("max_position_embeddings", c)
		k.attentionTypes(c)
	},
	names: []name{
		{ours: "embedding", theirs: "wte"},
		{ours: "positions", theirs: "wpe"},
		{ours: "blocks.{i}.norm1", theirs: "h.{i}.ln_1"},
		{ours: "blocks.{i}.attention.query", theirs: "h.{i}.attn.attention.q_proj"},
		{ours: "blocks.{i}.attention.key", theirs: "h.{i}.attn.attention.k_proj"},
		{ours: "blocks.{i}.attention.value", theirs: "h.{i}.attn.attention.v_proj"},
		{ours: "blocks.{i}.attention.output", theirs: "h.{i}.attn.attention.out_proj"},
		{ours: "blocks.{i}.norm2", theirs: "h.{i}.ln_2"},
		{ours: "blocks.{i}.feedforward.up", theirs: "h.{i}.mlp.c_fc"},
		{ours: "blocks.{i}.feedforward.down", theirs: "h.{i}.mlp.c_proj"},
		{ours: "norm", theirs: "ln_f"},
	},
}

var yes = true

// attentionTypes copies which blocks have a window. A list such as [[["global", "local"], 12]] gives types, and how
// often they repeat.
func (k *keys) attentionTypes(c *Config) {
	names := map[string]string{"global": fullAttention, "local": slidingAttention}
	p := &keys{values: map[string]any{}, writing: k.writing}
	window := slidingWindow(c.Model)
	if k.window("window_size", &window); k.writing {
		var types []any
		p.layerTypes(c, window, nil, nil)
		for _, t := range p.values["layer_types"].([]string) {
			for name, theirs := range names {
				if t == theirs {
					types = append(types, []any{[]any{name}, 1})
				}
			}
		}
		k.values["attention_types"] = types
		return
	}
	types, ok := []any{}, true
	groups, _ := k.values["attention_types"].([]any)
	for _, group := range groups {
		pair, _ := group.([]any)
		if ok = ok && len(pair) == 2; !ok {
			break
		}
		list, _ := pair[0].([]any)
		count, _ := integer(pair[1])
		for range min(count, maxLayers) {
			for _, t := range list {
				name, _ := t.(string)
				if len(types) > maxLayers || names[name] == "" {
					ok = false
					break
				}
				types = append(types, names[name])
			}
		}
	}
	if !ok || len(types) != c.Model.Layers {
		k.invalid("attention_types", "lists of global and local, and how often they repeat, for all layers")
		return
	}
	p.values["layer_types"] = types
	p.layerTypes(c, window, nil, nil)
}
