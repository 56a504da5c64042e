package pretrained

import (
	"fmt"
	"math"
	"slices"

	"github.com/heed-go/heed/layers"
)

// deepseekV2 is the architecture of DeepSeek-V2: latent attention, and experts after some dense blocks.
var deepseekV2 = architecture{
	class: "DeepseekV2ForCausalLM", causal: true, prefix: "model.",
	defaults: `{"vocab_size": 102400, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32,
		"hidden_act": "silu", "max_position_embeddings": 2048, "rms_norm_eps": 1e-6, "bos_token_id": 1, "eos_token_id": 2, "first_k_dense_replace": 0,
		"kv_lora_rank": 512, "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "n_routed_experts": 64,
		"n_shared_experts": 2, "moe_intermediate_size": 1407, "num_experts_per_tok": null, "routed_scaling_factor": 1, "n_group": null,
		"topk_group": null, "topk_method": "greedy"}`,
	aliases: map[string]string{"num_experts": "n_routed_experts"},
	model:   deepseekModel, classifier: lastToken, names: deepseekNames, heads: textHeads,
	config: func(k *keys, c *Config) {
		x := k.deepseek(c)
		method := "greedy"
		if x.Unnormalized = true; x.Groups > 0 {
			method = "group_limited_greedy"
		}
		k.only("mlp_bias", false, "norm_topk_prob", false, "scoring_func", "softmax")
		switch k.copy("topk_method", &method); {
		case method == "group_limited_greedy":
			k.groups(x, 1)
		case method != "greedy":
			k.fail(unsupported("topk_method", method, "greedy or group_limited_greedy"))
		}
	},
}

// deepseekV3 is the architecture of DeepSeek-V3 and R1. Blocks after the last one, which predict further tokens, aren't
// used.
var deepseekV3 = architecture{
	class: "DeepseekV3ForCausalLM", causal: true, prefix: "model.", further: true,
	defaults: `{"vocab_size": 129280, "hidden_size": 7168, "intermediate_size": 18432, "num_hidden_layers": 61, "num_attention_heads": 128,
		"num_key_value_heads": 128, "hidden_act": "silu", "max_position_embeddings": 4096, "rms_norm_eps": 1e-6, "bos_token_id": 0, "eos_token_id": 1,
		"first_k_dense_replace": 3, "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
		"n_routed_experts": 256, "n_shared_experts": 1, "moe_intermediate_size": 2048, "num_experts_per_tok": 8, "routed_scaling_factor": 2.5,
		"n_group": 8, "topk_group": 4, "norm_topk_prob": true, "rope_interleave": true}`,
	aliases: map[string]string{"num_local_experts": "n_routed_experts"},
	model:   deepseekModel, classifier: lastToken, names: deepseekNames, heads: joined(textHeads, scoreTags),
	config: func(k *keys, c *Config) {
		if r, ok := c.Model.Positions.(layers.Rotary); ok {
			if value, known := k.values["rope_interleave"]; known && value == nil {
				k.values["rope_interleave"] = false
			}
			k.copy("rope_interleave", &r.Interleaved)
			c.Model.Positions = r
		}
		x := k.deepseek(c)
		x.Sigmoid, x.ChoiceBias = true, true
		if k.writing { // one group means none: see settled
			x.Groups, x.TopGroups = max(x.Groups, 1), max(x.TopGroups, 1)
		}
		k.groups(x, 2)
		k.copy("norm_topk_prob", (*not)(&x.Unnormalized))
		k.only("scoring_func", "sigmoid", "topk_method", "noaux_tc")
	},
}

var deepseekModel = layers.ModelConfig{NoBias: true, EmbeddingScale: 1, Positions: layers.Rotary{Interleaved: true}, Block: gatedModel.Block}

var deepseekNames = slices.Concat([]string{
	"blocks.{i}.attention.querylatent layers.{i}.self_attn.q_a_proj", "blocks.{i}.attention.querylatentnorm layers.{i}.self_attn.q_a_layernorm",
	"blocks.{i}.attention.query+rotaryquery layers.{i}.self_attn.q_b_proj|layers.{i}.self_attn.q_proj heads",
	"blocks.{i}.attention.latent+rotarykey layers.{i}.self_attn.kv_a_proj_with_mqa", "blocks.{i}.attention.latentnorm layers.{i}.self_attn.kv_a_layernorm",
	"blocks.{i}.attention.key+value layers.{i}.self_attn.kv_b_proj heads",
	"blocks.{i}.feedforward.choice layers.{i}.mlp.gate.e_score_correction_bias",
	"blocks.{i}.feedforward.shared.gate layers.{i}.mlp.shared_experts.gate_proj", "blocks.{i}.feedforward.shared.up layers.{i}.mlp.shared_experts.up_proj",
	"blocks.{i}.feedforward.shared.down layers.{i}.mlp.shared_experts.down_proj",
}, expertNames)

// deepseek copies what DeepSeek-V2 and V3 share, and returns the settings of experts.
func (k *keys) deepseek(c *Config) *layers.ExpertsConfig {
	m, a, f := c.parts()
	l := &layers.LatentConfig{}
	if a.Latent != nil {
		*l = *a.Latent
	}
	dense, first := *f, 0
	if k.writing && len(m.Variants) > 0 && m.Variants[0].FeedForward != nil {
		dense, first = *m.Variants[0].FeedForward, len(m.Variants[0].Blocks)
	}
	k.gatedSizes(c, "hidden_act")
	if a.Latent = l; !k.writing {
		dense = *f
	}
	if a.KeyValueHeads != 0 && a.KeyValueHeads != a.Heads {
		k.fail(unsupported("num_key_value_heads", a.KeyValueHeads, fmt.Sprintf("the number of heads, %d", a.Heads)))
	}
	a.KeyValueHeads = a.Heads
	k.copy("kv_lora_rank", &l.Rank, "qk_rope_head_dim", &l.RotaryDim, "q_lora_rank", (*zero)(&l.QueryRank), "qk_nope_head_dim", &a.HeadDim, "v_head_dim", &a.ValueDim,
		"attention_bias", (*not)(&a.NoBias), "intermediate_size", &dense.Hidden, "moe_intermediate_size", &f.Hidden, "first_k_dense_replace", &first)
	if k.writing {
		delete(k.values, "head_dim") // another width
	}
	k.rotary(c, "rope_theta", "partial_rotary_factor")
	k.latentScale(a, l)
	x := k.experts(c, "n_routed_experts")
	shared := x.Shared / max(f.Hidden, 1)
	k.copy("routed_scaling_factor", &x.Scale, "n_shared_experts", &shared)
	for name, n := range map[string]int{"n_shared_experts": shared, "moe_intermediate_size": f.Hidden} { // so that the product is an int
		if n > 1<<20 {
			k.invalid(name, fmt.Sprint("at most ", 1<<20))
			return x
		}
	}
	switch x.Shared = shared * f.Hidden; {
	case x.Top < 1 && k.values["num_experts_per_tok"] != nil:
		k.invalid("num_experts_per_tok", "a whole number from 1")
	case !k.writing && first > 0 && k.perLayer(m) != nil:
		v := layers.BlockVariant{FeedForward: &dense}
		for i := range min(first, m.Layers) {
			v.Blocks = append(v.Blocks, i)
		}
		m.Variants = []layers.BlockVariant{v}
	}
	return x
}

// groups copies the groups of experts. Each must have at least the given number of experts.
func (k *keys) groups(x *layers.ExpertsConfig, least int) {
	k.copy("n_group", &x.Groups, "topk_group", &x.TopGroups)
	size := x.Count / max(x.Groups, 1)
	switch {
	case x.Groups < 1 || size < least || x.Count%x.Groups != 0:
		k.invalid("n_group", fmt.Sprintf("a number that divides the %d experts into groups of at least %d", x.Count, least))
	case x.TopGroups < 1 || x.TopGroups > x.Groups:
		k.invalid("topk_group", fmt.Sprintf("from 1 to %d, the number of groups", x.Groups))
	case x.Top > x.TopGroups*size:
		k.invalid("num_experts_per_tok", fmt.Sprintf("at most %d, the experts of topk_group groups", x.TopGroups*size))
	}
}

// latentScale copies the factor of scores, which mscale_all_dim of the rotary positions changes.
func (k *keys) latentScale(a *layers.AttentionConfig, l *layers.LatentConfig) {
	usual := 1 / math.Sqrt(float64(max(a.HeadDim+l.RotaryDim, 1)))
	if k.writing {
		p, _ := k.values["rope_scaling"].(map[string]any)
		factor := &keys{values: map[string]any{"factor": p["factor"]}}
		var slowed float64
		if factor.copy("factor", &slowed); slowed > 1 && a.Scale != usual {
			mscale := (math.Sqrt(a.Scale/usual) - 1) / (0.1 * math.Log(slowed))
			mscale = math.Round(mscale*1e12) / 1e12 // the number that was read
			p["mscale_all_dim"] = written(&mscale)
		}
		return
	}
	p, kind, mscale, factor := k.object("rope_scaling", "rope_parameters"), "default", 0.0, 1.0
	p.copy("type", &kind, "rope_type", &kind, "mscale_all_dim", &mscale, "factor", &factor)
	if k.fail(p.err); kind == "default" || mscale == 0 {
		return
	}
	m := 1.0
	if factor > 1 {
		m = 0.1*mscale*math.Log(factor) + 1
	}
	a.Scale = usual * m * m
	if m <= 0 || a.Scale > 1e15 {
		k.fail(unsupported("mscale_all_dim", mscale, "a factor of scores that is above 0"))
	}
}
