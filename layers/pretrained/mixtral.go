package pretrained

import (
	"fmt"

	"github.com/heed-go/heed/layers"
)

// mixtral is the architecture of Mixtral 8x7B and 8x22B: Mistral with experts.
var mixtral = architecture{
	class: "MixtralForCausalLM", causal: true, prefix: "model.",
	defaults: `{"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
		"num_key_value_heads": 8, "hidden_act": "silu", "max_position_embeddings": 131072, "rms_norm_eps": 1e-5, "rope_theta": 1000000,
		"num_local_experts": 8, "num_experts_per_tok": 2, "bos_token_id": 1, "eos_token_id": 2}`,
	aliases: map[string]string{"num_experts": "num_local_experts"},
	model:   gatedModel, classifier: lastToken, heads: joined(textHeads, scoreTags, spanHeads),
	names: append([]string{
		"blocks.{i}.feedforward.router layers.{i}.block_sparse_moe.gate", "blocks.{i}.feedforward.gate layers.{i}.block_sparse_moe.experts.{e}.w1",
		"blocks.{i}.feedforward.up layers.{i}.block_sparse_moe.experts.{e}.w3", "blocks.{i}.feedforward.down layers.{i}.block_sparse_moe.experts.{e}.w2",
	}, gatedNames...),
	config: func(k *keys, c *Config) {
		k.gated(c)
		k.copy("sliding_window", &c.Model.Block.Attention.Window)
		k.experts(c, "num_local_experts")
	},
}

// qwen3MoE is the architecture of the mixtures of experts of Qwen 3.
var qwen3MoE = architecture{
	class: "Qwen3MoeForCausalLM", causal: true, prefix: "model.",
	defaults: `{"vocab_size": 151936, "hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 24, "num_attention_heads": 32,
		"num_key_value_heads": 4, "hidden_act": "silu", "max_position_embeddings": 32768, "rms_norm_eps": 1e-6, "sliding_window": 4096,
		"moe_intermediate_size": 768, "num_experts": 128, "num_experts_per_tok": 8, "norm_topk_prob": false}`,
	aliases: map[string]string{"num_local_experts": "num_experts"},
	model:   gatedModel, classifier: lastToken, names: expertNames, heads: joined(textHeads, scoreTags, oldSpans),
	config: func(k *keys, c *Config) {
		k.gated(c)
		a := &c.Model.Block.Attention
		k.copy("attention_bias", (*not)(&a.NoBias), "moe_intermediate_size", &c.Model.Block.FeedForward.Hidden)
		k.queryKeyNorm(c)
		window, used := a.Window, a.Window != nil
		if k.copy("use_sliding_window", &used, "sliding_window", &window); used {
			a.Window = window
		}
		k.copy("norm_topk_prob", (*not)(&k.experts(c, "num_experts").Unnormalized))
	},
}

// olmoe is the architecture of OLMoE.
var olmoe = architecture{
	class: "OlmoeForCausalLM", causal: true, prefix: "model.",
	defaults: `{"vocab_size": 50304, "hidden_size": 2048, "intermediate_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 16,
		"hidden_act": "silu", "max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "num_experts": 64, "num_experts_per_tok": 8,
		"norm_topk_prob": false, "pad_token_id": 1, "eos_token_id": 50279}`,
	aliases: map[string]string{"num_local_experts": "num_experts"},
	model:   gatedModel, classifier: lastToken, names: expertNames, heads: textHeads,
	config: func(k *keys, c *Config) {
		k.gated(c)
		k.copy("attention_bias", (*not)(&c.Model.Block.Attention.NoBias))
		k.queryKeyNorm(c)
		c.Model.Block.Attention.JointNorm = true
		k.copy("norm_topk_prob", (*not)(&k.experts(c, "num_experts").Unnormalized))
	},
}

var expertNames = append([]string{
	"blocks.{i}.feedforward.router layers.{i}.mlp.gate", "blocks.{i}.feedforward.gate layers.{i}.mlp.experts.{e}.gate_proj",
	"blocks.{i}.feedforward.up layers.{i}.mlp.experts.{e}.up_proj", "blocks.{i}.feedforward.down layers.{i}.mlp.experts.{e}.down_proj",
}, gatedNames...)

// experts copies the numbers of experts, and of experts for each token. The argument count is the key of the first.
func (k *keys) experts(c *Config, count string) *layers.ExpertsConfig {
	f := &c.Model.Block.FeedForward
	if !k.writing || f.Experts == nil {
		f.Experts = &layers.ExpertsConfig{}
	}
	if k.copy(count, &f.Experts.Count, "num_experts_per_tok", &f.Experts.Top); f.Experts.Count > maxCount {
		k.invalid(count, fmt.Sprint("at most ", maxCount))
	}
	return f.Experts
}
