package pretrained

import "github.com/heed-go/heed/layers"

// olmo2 is the architecture of OLMo 2. The outputs of sub-layers are normalised, and their inputs aren't.
var olmo2 = architecture{
	class: "Olmo2ForCausalLM", causal: true, prefix: "model.",
	defaults: `{"vocab_size": 50304, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32,
		"hidden_act": "silu", "max_position_embeddings": 2048, "rms_norm_eps": 1e-5, "pad_token_id": 1, "eos_token_id": 50279}`,
	model: changed(gatedModel, func(m *layers.ModelConfig) {
		m.Block.Attention.JointNorm, m.Block.OutputNorm, m.Block.NoInputNorm = true, true, true
	}),
	classifier: lastToken, heads: textHeads,
	names: append([]string{"blocks.{i}.norm1out layers.{i}.post_attention_layernorm", "blocks.{i}.norm2out layers.{i}.post_feedforward_layernorm"}, gatedNames...),
	config: func(k *keys, c *Config) {
		k.gated(c)
		k.copy("attention_bias", (*not)(&c.Model.Block.Attention.NoBias))
		k.queryKeyNorm(c)
	},
}
