package pretrained

// phi3 is the architecture of Phi 3 and 4: joined projections, and for some models a part of a head is rotated.
var phi3 = architecture{
	class: "Phi3ForCausalLM", causal: true, prefix: "model.",
	defaults: `{"vocab_size": 32064, "hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 32, "num_attention_heads": 32,
		"hidden_act": "silu", "max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "bos_token_id": 1, "eos_token_id": 32000, "pad_token_id": 32000}`,
	model: gatedModel, classifier: lastToken, heads: joined(textHeads, scoreTags),
	names: append([]string{"blocks.{i}.attention.query+key+value layers.{i}.self_attn.qkv_proj", "blocks.{i}.feedforward.gate+up layers.{i}.mlp.gate_up_proj"}, gatedNames...),
	config: func(k *keys, c *Config) {
		k.gated(c)
		k.copy("sliding_window", &c.Model.Block.Attention.Window, "embd_pdrop", &c.Model.Dropout, "resid_pdrop", &c.Model.Block.Dropout)
	},
}
