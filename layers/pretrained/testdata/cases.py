"""The cases of make.py. Each has a config and, if they aren't the defaults: head ("text"), edit (keys of config.json to
replace or, with None, to remove), files (further JSON files), tensors (a function that changes the dict of tensors), shard
(the size of shards), first (the smallest id that is drawn), segments (the number of token types), tokens (the largest
number of tokens), ends (for each row, how many of its last tokens are the id of padding), eos (each row ends with
eos_token_id) and model (a class in place of that for the head)."""
import torch
import transformers as t

small = dict(vocab_size=41, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=32)
llama3 = dict(rope_type="llama3", factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=8)
yarn = dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=8, beta_fast=4.0, beta_slow=0.5)
gpt2 = dict(vocab_size=41, n_positions=32, n_embd=16, n_layer=2, n_head=4)

latent = dict(kv_lora_rank=6, q_lora_rank=10, qk_nope_head_dim=4, qk_rope_head_dim=4, v_head_dim=6, moe_intermediate_size=8, n_shared_experts=2)
distil = dict(vocab_size=41, dim=16, hidden_dim=24, n_layers=2, n_heads=4, max_position_embeddings=32)
distances = dict(relative_attention=True, pos_att_type="p2c|c2p")
v3 = small | distances | dict(position_biased_input=False, position_buckets=4, norm_rel_ebd="layer_norm", share_att_key=True)
modern = small | dict(num_hidden_layers=5, pad_token_id=0, bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2)


def positions(w):
    return w | {"embeddings.position_ids": torch.arange(32)[None]}


def old_gpt2(w):
    """As in the first folders of GPT-2: no prefix, masks, and a copy of the tied head."""
    head = w["transformer.wte.weight"].clone()
    w = {k.removeprefix("transformer."): v for k, v in w.items()}
    return w | {"lm_head.weight": head, "h.0.attn.bias": torch.ones(1, 1, 32, 32).tril().bool(), "h.0.attn.masked_bias": torch.tensor(-1e4)}


def other_head(w):
    """tie_word_embeddings is wrong: the head has weights of its own."""
    return w | {"lm_head.weight": torch.randn(41, 16)}


def old_bert(w):
    """As in the first folders of BERT: gamma and beta, position_ids, and heads that aren't used."""
    w = {k.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): v for k, v in w.items()}
    return w | {"bert.embeddings.position_ids": torch.arange(32)[None], "cls.seq_relationship.weight": torch.randn(2, 16), "cls.seq_relationship.bias": torch.randn(2)}


def head_only(w):
    """The shared weights have the head's name."""
    return {k.replace("model.embed_tokens", "lm_head"): v for k, v in w.items()}


def without_bias(w):
    return {k: v for k, v in w.items() if k != "score.bias"}


def corrected(w):
    """Biases of experts that aren't 0, and a block after the last one."""
    w = {k: torch.randn_like(v) / 4 if k.endswith("e_score_correction_bias") else v for k, v in w.items()}
    return w | {k.replace("layers.1.", "layers.2."): v.clone() for k, v in w.items() if ".layers.1." in k and "experts" not in k}


cases = {
    "llama": dict(config=t.LlamaConfig(**small, num_key_value_heads=2, rms_norm_eps=1e-5), shard="6KB"),
    "llama-tied": dict(config=t.LlamaConfig(**small | dict(max_position_embeddings=64), num_key_value_heads=1, head_dim=6, attention_bias=True, mlp_bias=True,
                       tie_word_embeddings=True, rope_parameters=llama3 | dict(rope_theta=500.0), eos_token_id=[2, 5]),
                       edit=dict(rope_parameters=None, rope_theta=500.0, rope_scaling=llama3)),
    "llama-yarn": dict(config=t.LlamaConfig(**small, rope_parameters=yarn | dict(rope_theta=10000.0))),
    "llama-classes": dict(config=t.LlamaConfig(**small, pad_token_id=0, id2label={0: "bad", 1: "so so", 2: "good"}, label2id={"bad": 0, "so so": 1, "good": 2}), head="classes"),
    "llama-several": dict(config=t.LlamaConfig(**small | dict(num_hidden_layers=1), pad_token_id=0, num_labels=3, problem_type="multi_label_classification"), head="classes"),
    "llama-states": dict(config=t.LlamaConfig(**small, num_key_value_heads=2, rope_parameters=dict(rope_type="linear", factor=3.0, rope_theta=1000.0)), head="states",
                         edit=dict(rope_parameters=None, rope_theta=1000, rope_scaling=dict(type="linear", factor=3.0))),
    "gpt2": dict(config=t.GPT2Config(**gpt2, bos_token_id=1, eos_token_id=2), tensors=old_gpt2),
    "gpt2-classes": dict(config=t.GPT2Config(**gpt2 | dict(n_layer=1), bos_token_id=1, eos_token_id=2, pad_token_id=2, num_labels=3), head="classes", ends=[2, 4, 0]),
    "gpt2-untied": dict(config=t.GPT2Config(**gpt2, n_inner=20, activation_function="gelu", layer_norm_epsilon=1e-3, tie_word_embeddings=False, pad_token_id=0)),
    "qwen2": dict(config=t.Qwen2Config(**small | dict(num_hidden_layers=3), num_key_value_heads=2, use_sliding_window=True, sliding_window=3, max_window_layers=1),
                  edit=dict(layer_types=None)),
    "qwen2-tied": dict(config=t.Qwen2Config(**small, num_key_value_heads=4, tie_word_embeddings=True, sliding_window=3), tensors=head_only),
    "qwen2-head": dict(config=t.Qwen2Config(**small | dict(num_hidden_layers=1), num_key_value_heads=2, tie_word_embeddings=True), tensors=other_head),
    "qwen3": dict(config=t.Qwen3Config(**small, num_key_value_heads=2, head_dim=6, rms_norm_eps=1e-5, rope_parameters=dict(rope_type="default", rope_theta=1e6))),
    "qwen3-bias": dict(config=t.Qwen3Config(**small, num_key_value_heads=2, head_dim=8, attention_bias=True, tie_word_embeddings=True, use_sliding_window=True,
                       sliding_window=4, layer_types=["sliding_attention", "full_attention"])),
    "mistral": dict(config=t.MistralConfig(**small, num_key_value_heads=2, head_dim=6, sliding_window=4)),
    "mistral-both": dict(config=t.MistralConfig(**small, num_key_value_heads=2, sliding_window=3), head="states", edit=dict(is_causal=False)),
    "qwen3-both": dict(config=t.Qwen3Config(**small, num_key_value_heads=2, head_dim=6, pad_token_id=0, num_labels=3), head="classes", edit=dict(is_causal=False)),
    "gemma3-both": dict(config=t.Gemma3TextConfig(**small, num_key_value_heads=1, head_dim=6, sliding_window=4, query_pre_attn_scalar=9,
                        layer_types=["sliding_attention", "full_attention"], use_bidirectional_attention=True), head="states"),
    "gpt_neo": dict(config=t.GPTNeoConfig(vocab_size=41, max_position_embeddings=32, hidden_size=16, num_layers=3, num_heads=4, intermediate_size=24, window_size=3,
                    attention_types=[[["global", "local"], 1], [["local"], 1]], bos_token_id=1, eos_token_id=2)),
    "gpt_neox": dict(config=t.GPTNeoXConfig(**small, rope_parameters=dict(rope_type="default", rope_theta=1000.0, partial_rotary_factor=0.5)),
                     edit=dict(rope_parameters=None, rotary_pct=0.5, rotary_emb_base=1000)),
    "gpt_neox-serial": dict(config=t.GPTNeoXConfig(**small | dict(num_attention_heads=2), use_parallel_residual=False, attention_bias=False, hidden_act="gelu_new", tie_word_embeddings=True)),
    "opt": dict(config=t.OPTConfig(vocab_size=41, hidden_size=16, num_hidden_layers=2, ffn_dim=24, max_position_embeddings=32, num_attention_heads=4)),
    "opt-post": dict(config=t.OPTConfig(vocab_size=41, hidden_size=16, num_hidden_layers=2, ffn_dim=24, max_position_embeddings=32, num_attention_heads=2,
                     do_layer_norm_before=False, enable_bias=False, activation_function="gelu", tie_word_embeddings=False)),
    "gemma2": dict(config=t.Gemma2Config(**small | dict(num_hidden_layers=3), num_key_value_heads=2, head_dim=6, sliding_window=3, query_pre_attn_scalar=10,
                   attn_logit_softcapping=2.0, final_logit_softcapping=3.0, rms_norm_eps=1e-5), edit=dict(layer_types=None)),
    "gemma3": dict(config=t.Gemma3TextConfig(**small | dict(num_hidden_layers=3), num_key_value_heads=1, head_dim=6, sliding_window=4, query_pre_attn_scalar=9,
                   layer_types=["sliding_attention", "full_attention", "sliding_attention"],
                   rope_parameters=dict(full_attention=dict(rope_type="linear", factor=8.0, rope_theta=1e5), sliding_attention=dict(rope_type="default", rope_theta=100.0)))),
    "gemma3-old": dict(config=t.Gemma3TextConfig(**small | dict(num_hidden_layers=3), num_key_value_heads=2, head_dim=4, sliding_window=3, final_logit_softcapping=5.0,
                       attention_bias=True, sliding_window_pattern=2),
                       edit=dict(rope_parameters=None, rope_theta=5000.0, rope_local_base_freq=200.0, rope_scaling=dict(rope_type="linear", factor=2.0), layer_types=None, sliding_window_pattern=2)),
    "bert": dict(config=t.BertConfig(**small), head="mask", segments=2, tensors=old_bert, edit=dict(architectures=["BertForPreTraining"])),
    "bert-untied": dict(config=t.BertConfig(**small | dict(num_hidden_layers=1), tie_word_embeddings=False, hidden_act="gelu_new", layer_norm_eps=1e-3), head="mask"),
    "bert-classes": dict(config=t.BertConfig(**small | dict(num_hidden_layers=1), type_vocab_size=3, id2label={0: "no", 1: "yes", 2: "maybe"}, label2id={"no": 0, "yes": 1, "maybe": 2}),
                         head="classes", segments=3),
    "bert-several": dict(config=t.BertConfig(**small | dict(num_hidden_layers=1), id2label={0: "sport", 1: "war", 2: "art", 3: "law"}, label2id={"sport": 0, "war": 1, "art": 2, "law": 3},
                         problem_type="multi_label_classification"), head="classes", segments=2),
    "bert-states": dict(config=t.BertConfig(**small, hidden_act="relu"), head="states"),
    "roberta-mask": dict(config=t.RobertaConfig(**small, type_vocab_size=1), head="mask"),
    "roberta-classes": dict(config=t.RobertaConfig(**small, type_vocab_size=1, num_labels=3), head="classes"),
    "xlm-roberta": dict(config=t.XLMRobertaConfig(**small, type_vocab_size=1), head="states", tensors=positions),
    "camembert-mask": dict(config=t.CamembertConfig(**small, type_vocab_size=1, tie_word_embeddings=False), head="mask"),
    "distilbert-mask": dict(config=t.DistilBertConfig(**distil), head="mask"),
    "distilbert-classes": dict(config=t.DistilBertConfig(**distil, activation="relu", num_labels=2), head="classes"),
    "mpnet": dict(config=t.MPNetConfig(**small), head="states"),
    "mpnet-mask": dict(config=t.MPNetConfig(**small, hidden_act="gelu_new"), head="mask"),
    "mpnet-classes": dict(config=t.MPNetConfig(**small, num_labels=3), head="classes"),
    "modernbert-mask": dict(config=t.ModernBertConfig(**modern, local_attention=4), head="mask"),
    "modernbert-classes": dict(config=t.ModernBertConfig(**modern, local_attention=6, classifier_pooling="mean", norm_bias=True, attention_bias=True, mlp_bias=True,
                               classifier_bias=True, classifier_activation="silu", num_labels=3), head="classes"),
    "modernbert": dict(config=t.ModernBertConfig(**modern | dict(num_hidden_layers=3), local_attention=4, layer_types=["sliding_attention", "full_attention", "sliding_attention"]), head="states"),
    "electra-mask": dict(config=t.ElectraConfig(**small, embedding_size=12), head="mask", segments=2),
    "electra-classes": dict(config=t.ElectraConfig(**small | dict(num_hidden_layers=1), embedding_size=16, num_labels=3), head="classes"),
    "electra": dict(config=t.ElectraConfig(**small | dict(num_hidden_layers=1), embedding_size=8, type_vocab_size=1), head="states"),
    "albert-mask": dict(config=t.AlbertConfig(**small | dict(num_hidden_layers=4), embedding_size=12, num_hidden_groups=2), head="mask", segments=2),
    "albert-classes": dict(config=t.AlbertConfig(**small | dict(num_hidden_layers=3), embedding_size=16, hidden_act="gelu", num_labels=3), head="classes"),
    "albert-untied": dict(config=t.AlbertConfig(**small, embedding_size=8, tie_word_embeddings=False), head="mask"),
    "deberta-mask": dict(config=t.DebertaConfig(**small | distances, position_biased_input=False), head="mask"),
    "deberta-classes": dict(config=t.DebertaConfig(**small | distances | dict(num_hidden_layers=1, pos_att_type=["c2p"]), max_relative_positions=5, type_vocab_size=2, embedding_size=12,
                            pooler_hidden_act="tanh", num_labels=3), head="classes", segments=2),
    "deberta": dict(config=t.DebertaConfig(**small | dict(num_hidden_layers=1, pos_att_type=["c2p"])), head="states"),
    "deberta-v2-mask": dict(config=t.DebertaV2Config(**v3), head="mask", tokens=20),
    "deberta-v2-classes": dict(config=t.DebertaV2Config(**v3 | dict(num_hidden_layers=1), num_labels=3), head="classes"),
    "deberta-v2": dict(config=t.DebertaV2Config(**small | distances | dict(pos_att_type="p2c"), max_relative_positions=6, type_vocab_size=1, attention_head_size=4), head="states"),
    "deberta-v2-own": dict(config=t.DebertaV2Config(**v3 | dict(num_hidden_layers=1, share_att_key=False, norm_rel_ebd="none", position_biased_input=True), max_relative_positions=7), head="states"),
    "deberta-v2-new": dict(config=t.DebertaV2Config(**v3 | dict(num_hidden_layers=1), legacy=False), head="mask"),
    "deberta-v2-narrow": dict(config=t.DebertaV2Config(**v3 | dict(num_hidden_layers=1), embedding_size=12), head="mask"),
    "mpnet-long": dict(config=t.MPNetConfig(**small | dict(num_hidden_layers=1, hidden_size=8, intermediate_size=8, max_position_embeddings=172)), head="states", tokens=170),
    "mixtral": dict(config=t.MixtralConfig(**small, num_key_value_heads=2, num_local_experts=4)),
    "mixtral-classes": dict(config=t.MixtralConfig(**small | dict(num_hidden_layers=1, intermediate_size=8), num_key_value_heads=1, num_local_experts=3, num_experts_per_tok=1,
                            sliding_window=3, pad_token_id=0, num_labels=3), head="classes"),
    "qwen3_moe": dict(config=t.Qwen3MoeConfig(**small, num_key_value_heads=2, head_dim=6, num_experts=5, num_experts_per_tok=3, moe_intermediate_size=10)),
    "qwen3_moe-window": dict(config=t.Qwen3MoeConfig(**small | dict(num_hidden_layers=1), num_key_value_heads=1, head_dim=4, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=6,
                             norm_topk_prob=True, attention_bias=True, use_sliding_window=True, sliding_window=3, tie_word_embeddings=True), edit=dict(num_local_experts=None, num_experts=4)),
    "olmoe": dict(config=t.OlmoeConfig(**small, num_key_value_heads=2, num_experts=5, num_experts_per_tok=3, eos_token_id=2)),
    "olmoe-states": dict(config=t.OlmoeConfig(**small | dict(num_hidden_layers=1, intermediate_size=8), num_experts=3, num_experts_per_tok=2, norm_topk_prob=True, eos_token_id=2, attention_bias=True), head="states"),
    "gpt_oss": dict(config=t.GptOssConfig(**small, num_key_value_heads=2, head_dim=6, num_local_experts=4, num_experts_per_tok=2, sliding_window=3, swiglu_limit=1.2, pad_token_id=0,
                    rope_parameters=yarn | dict(rope_theta=1000.0, truncate=False))),
    "gpt_oss-classes": dict(config=t.GptOssConfig(**small | dict(num_hidden_layers=1, intermediate_size=6), num_key_value_heads=1, head_dim=4, num_local_experts=3, num_experts_per_tok=1,
                            layer_types=["full_attention"], attention_bias=False, pad_token_id=0, num_labels=3, rope_parameters=dict(rope_type="default", rope_theta=1000.0)), head="classes"),
    "phi3": dict(config=t.Phi3Config(**small, num_key_value_heads=2, pad_token_id=0, eos_token_id=2, sliding_window=3)),
    "phi3-part": dict(config=t.Phi3Config(**small | dict(num_hidden_layers=1, hidden_size=32), num_key_value_heads=1, pad_token_id=0, tie_word_embeddings=True,
                      rope_parameters=dict(rope_type="default", rope_theta=100.0, partial_rotary_factor=0.75)), edit=dict(rope_parameters=None, rope_theta=100.0, partial_rotary_factor=0.75)),
    "starcoder2": dict(config=t.Starcoder2Config(**small, num_key_value_heads=2, bos_token_id=1, eos_token_id=2, norm_epsilon=1e-3)),
    "starcoder2-classes": dict(config=t.Starcoder2Config(**small | dict(num_hidden_layers=1), use_bias=False, sliding_window=3, pad_token_id=0, num_labels=3), head="classes"),
    "olmo2": dict(config=t.Olmo2Config(**small, num_key_value_heads=2, eos_token_id=2)),
    "olmo2-states": dict(config=t.Olmo2Config(**small | dict(num_hidden_layers=1), attention_bias=True, eos_token_id=2), head="states"),
    "smollm3": dict(config=t.SmolLM3Config(**small | dict(num_hidden_layers=3), num_key_value_heads=2, pad_token_id=0, bos_token_id=1, eos_token_id=2, no_rope_layer_interval=2),
                    edit=dict(no_rope_layers=None, layer_types=None)),
    "smollm3-bias": dict(config=t.SmolLM3Config(**small, num_key_value_heads=1, pad_token_id=0, attention_bias=True, mlp_bias=True, no_rope_layers=[0, 1], tie_word_embeddings=False)),
    "smollm3-window": dict(config=t.SmolLM3Config(**small | dict(num_hidden_layers=4, intermediate_size=8), num_key_value_heads=1, pad_token_id=0, bos_token_id=1, eos_token_id=2, use_sliding_window=True, sliding_window=3,
                           no_rope_layers=[1, 0, 1, 0], layer_types=["sliding_attention", "full_attention", "full_attention", "sliding_attention"])),
    "glm4": dict(config=t.Glm4Config(**small, num_key_value_heads=2, head_dim=8, pad_token_id=0, eos_token_id=[2, 3])),
    "glm4-classes": dict(config=t.Glm4Config(**small | dict(num_hidden_layers=1), num_key_value_heads=1, head_dim=6, attention_bias=False, pad_token_id=0, num_labels=3,
                         rope_parameters=dict(rope_type="default", rope_theta=100.0, partial_rotary_factor=0.7)), head="classes"),
    "ernie4_5": dict(config=t.Ernie4_5Config(**small, num_key_value_heads=2, head_dim=4)),
    "ernie4_5-bias": dict(config=t.Ernie4_5Config(**small | dict(num_hidden_layers=1), num_key_value_heads=1, head_dim=6, use_bias=True, tie_word_embeddings=False)),
    "granite": dict(config=t.GraniteConfig(**small, num_key_value_heads=2, embedding_multiplier=12.0, residual_multiplier=0.22, attention_multiplier=0.3, logits_scaling=3.0,
                    rope_parameters=dict(rope_type="default", rope_theta=1000.0))),
    "granite-tied": dict(config=t.GraniteConfig(**small | dict(num_hidden_layers=1), num_key_value_heads=1, tie_word_embeddings=True, attention_bias=True, mlp_bias=True, embedding_multiplier=3,
                         logits_scaling=8), edit=dict(residual_multiplier=None, attention_multiplier=None)),
    "granite-states": dict(config=t.GraniteConfig(**small | dict(num_hidden_layers=1, intermediate_size=8), embedding_multiplier=2.0, residual_multiplier=1.5, logits_scaling=4.0), head="states"),
    "cohere2": dict(config=t.Cohere2Config(**small | dict(num_hidden_layers=4), num_key_value_heads=2, bos_token_id=1, eos_token_id=2, sliding_window=3, logit_scale=0.3,
                    rope_parameters=dict(rope_type="default", rope_theta=1000.0)), edit=dict(layer_types=None)),
    "cohere2-bias": dict(config=t.Cohere2Config(**small, num_key_value_heads=1, bos_token_id=1, eos_token_id=2, sliding_window=4, attention_bias=True, tie_word_embeddings=False,
                         layer_norm_eps=1e-3, layer_types=["full_attention", "sliding_attention"])),
    "cohere2-states": dict(config=t.Cohere2Config(**small | dict(num_hidden_layers=3, intermediate_size=8), bos_token_id=1, eos_token_id=2, sliding_window=2, sliding_window_pattern=2), head="states",
                           edit=dict(layer_types=None, sliding_window_pattern=2)),
    "stablelm": dict(config=t.StableLmConfig(**small | dict(hidden_size=32), num_key_value_heads=2)),
    "stablelm-bias": dict(config=t.StableLmConfig(**small | dict(num_hidden_layers=1), num_key_value_heads=1, use_qkv_bias=True, layer_norm_eps=1e-3, tie_word_embeddings=True,
                          rope_parameters=dict(rope_type="default", rope_theta=100.0, partial_rotary_factor=0.5))),
    "deepseek_v2": dict(config=t.DeepseekV2Config(**small, **latent, first_k_dense_replace=1, n_routed_experts=4, num_experts_per_tok=2, routed_scaling_factor=1.5,
                        rope_parameters=yarn | dict(rope_theta=100.0, mscale=0.7, mscale_all_dim=0.3))),
    "deepseek_v2-groups": dict(config=t.DeepseekV2Config(**small | dict(num_hidden_layers=1), **latent | dict(q_lora_rank=None), n_routed_experts=6, num_experts_per_tok=2, n_group=3, topk_group=1,
                               topk_method="group_limited_greedy", attention_bias=True, tie_word_embeddings=True, rms_norm_eps=1e-3)),
    "deepseek_v3": dict(config=t.DeepseekV3Config(**small, **latent, num_key_value_heads=4, first_k_dense_replace=1, n_routed_experts=8, num_experts_per_tok=3, n_group=4, topk_group=2), tensors=corrected),
    "deepseek_v3-classes": dict(config=t.DeepseekV3Config(**small | dict(num_hidden_layers=1), **latent | dict(n_shared_experts=1), num_key_value_heads=4, first_k_dense_replace=0, n_routed_experts=3,
                                num_experts_per_tok=2, n_group=1, topk_group=1, norm_topk_prob=False, rope_interleave=False, attention_bias=True, pad_token_id=0, num_labels=3,
                                rope_parameters=dict(rope_type="linear", factor=2.0, rope_theta=100.0, mscale_all_dim=1.0)), head="classes"),
    "modernbert-old": dict(config=t.ModernBertConfig(**modern | dict(num_hidden_layers=3), local_attention=5, decoder_bias=False), head="mask",
                           edit=dict(layer_types=None, rope_parameters=None, global_attn_every_n_layers=2, global_rope_theta=500.0, local_rope_theta=50.0, position_embedding_type="absolute")),
    "bert-tags": dict(config=t.BertConfig(**small | dict(num_hidden_layers=1), id2label={0: "O", 1: "B-PER", 2: "I-PER"}, label2id={"O": 0, "B-PER": 1, "I-PER": 2}), head="tags"),
    "bert-spans": dict(config=t.BertConfig(**small | dict(num_hidden_layers=1)), head="spans", segments=2),
    "roberta-tags": dict(config=t.RobertaConfig(**small | dict(num_hidden_layers=1), type_vocab_size=1, num_labels=5), head="tags"),
    "distilbert-tags": dict(config=t.DistilBertConfig(**distil | dict(n_layers=1), num_labels=1), head="tags"),
    "distilbert-spans": dict(config=t.DistilBertConfig(**distil | dict(n_layers=1)), head="spans"),
    "mpnet-tags": dict(config=t.MPNetConfig(**small | dict(num_hidden_layers=1), num_labels=3), head="tags"),
    "modernbert-tags": dict(config=t.ModernBertConfig(**modern | dict(num_hidden_layers=2), local_attention=4, classifier_bias=True, norm_bias=True, num_labels=3), head="tags"),
    "modernbert-spans": dict(config=t.ModernBertConfig(**modern | dict(num_hidden_layers=1), local_attention=4, classifier_activation="silu"), head="spans"),
    "electra-tags": dict(config=t.ElectraConfig(**small | dict(num_hidden_layers=1), embedding_size=12, num_labels=3), head="tags"),
    "albert-tags": dict(config=t.AlbertConfig(**small, embedding_size=8, num_labels=3), head="tags"),
    "albert-spans": dict(config=t.AlbertConfig(**small, embedding_size=8), head="spans", segments=2),
    "deberta-tags": dict(config=t.DebertaConfig(**small | distances | dict(num_hidden_layers=1), num_labels=3), head="tags"),
    "deberta-v2-tags": dict(config=t.DebertaV2Config(**v3 | dict(num_hidden_layers=1), num_labels=3), head="tags"),
    "deberta-v2-spans": dict(config=t.DebertaV2Config(**v3 | dict(num_hidden_layers=1)), head="spans"),
    "llama-tags": dict(config=t.LlamaConfig(**small | dict(num_hidden_layers=1), num_key_value_heads=2, num_labels=3), head="tags", edit=dict(token_classification_bias=False), tensors=without_bias),
    "llama-spans": dict(config=t.LlamaConfig(**small | dict(num_hidden_layers=1), num_key_value_heads=2), head="spans"),
    "qwen3-tags": dict(config=t.Qwen3Config(**small | dict(num_hidden_layers=1), num_key_value_heads=2, head_dim=6, num_labels=3), head="tags", edit=dict(is_causal=False)),
    "mistral-spans": dict(config=t.MistralConfig(**small | dict(num_hidden_layers=1), num_key_value_heads=2, sliding_window=3), head="spans"),
    "mixtral-tags": dict(config=t.MixtralConfig(**small | dict(num_hidden_layers=1, intermediate_size=8), num_key_value_heads=1, num_local_experts=3, num_experts_per_tok=1, num_labels=3), head="tags"),
    "gemma2-tags": dict(config=t.Gemma2Config(**small | dict(num_hidden_layers=1), num_key_value_heads=2, head_dim=6, sliding_window=3, query_pre_attn_scalar=10, num_labels=3), head="tags"),
    "gpt2-tags": dict(config=t.GPT2Config(**gpt2 | dict(n_layer=1), bos_token_id=1, eos_token_id=2, num_labels=3), head="tags"),
    "gpt2-spans": dict(config=t.GPT2Config(**gpt2 | dict(n_layer=1), bos_token_id=1, eos_token_id=2), head="spans"),
    "gpt_neox-tags": dict(config=t.GPTNeoXConfig(**small | dict(num_hidden_layers=1), num_labels=3, rope_parameters=dict(rope_type="default", rope_theta=1000.0, partial_rotary_factor=0.5)), head="tags"),
    "opt-spans": dict(config=t.OPTConfig(vocab_size=41, hidden_size=16, num_hidden_layers=1, ffn_dim=24, max_position_embeddings=32, num_attention_heads=4), head="spans"),
    "gpt_oss-tags": dict(config=t.GptOssConfig(**small | dict(num_hidden_layers=1, intermediate_size=6), num_key_value_heads=1, head_dim=4, num_local_experts=3, num_experts_per_tok=1,
                         layer_types=["sliding_attention"], sliding_window=3, num_labels=3, rope_parameters=dict(rope_type="default", rope_theta=1000.0)), head="tags"),
}

halves = dict(vocab_size=41, d_model=8, encoder_layers=2, decoder_layers=1, encoder_ffn_dim=12, decoder_ffn_dim=12, encoder_attention_heads=2, decoder_attention_heads=2,
              max_position_embeddings=32)
special = dict(pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=2, forced_eos_token_id=2)
t5 = dict(vocab_size=41, d_model=8, d_kv=6, d_ff=12, num_layers=1, num_decoder_layers=2, num_heads=2, relative_attention_num_buckets=8, relative_attention_max_distance=6,
          decoder_start_token_id=0)


def own_table(w):
    """T5 1.1: the head has weights of its own."""
    return w | {"lm_head.weight": torch.randn(41, 8)}


def copies(w):
    """As in old files: copies of the shared table, and no bias."""
    table = w["model.shared.weight"]
    w = {k: v for k, v in w.items() if k != "final_logits_bias"}
    return w | {k: table.clone() for k in ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight")}


cases |= {
    "t5": dict(config=t.T5Config(**t5), head="sequence", edit=dict(scale_decoder_outputs=None)),
    "t5-gated": dict(config=t.T5Config(**t5 | dict(num_layers=1, num_decoder_layers=1), feed_forward_proj="gated-gelu", layer_norm_epsilon=1e-3, tie_word_embeddings=False),
                     head="sequence", tensors=own_table, edit=dict(tie_word_embeddings=False, scale_decoder_outputs=None)),
    "t5-states": dict(config=t.T5Config(**t5 | dict(num_layers=1)), head="states", model="T5EncoderModel"),
    "mt5": dict(config=t.MT5Config(**t5 | dict(num_layers=1, num_decoder_layers=2)), head="sequence", tensors=own_table, edit=dict(tie_word_embeddings=False)),
    "umt5": dict(config=t.UMT5Config(**t5 | dict(num_layers=2)), head="sequence"),
    "bart": dict(config=t.BartConfig(**halves, **special, scale_embedding=True), head="sequence"),
    "bart-copies": dict(config=t.BartConfig(**halves | dict(encoder_layers=1), **special, activation_function="relu"), head="sequence", tensors=copies),
    "bart-classes": dict(config=t.BartConfig(**halves | dict(encoder_layers=1, decoder_layers=2), **special, num_labels=3), head="classes", eos=True),
    "mbart": dict(config=t.MBartConfig(**halves, **special, scale_embedding=True), head="sequence"),
    "marian": dict(config=t.MarianConfig(**halves, scale_embedding=True, activation_function="swish", pad_token_id=40, eos_token_id=0, decoder_start_token_id=40, forced_eos_token_id=0), head="sequence"),
    "marian-two": dict(config=t.MarianConfig(**halves | dict(encoder_layers=1), decoder_vocab_size=37, share_encoder_decoder_embeddings=False, pad_token_id=36, eos_token_id=0,
                       decoder_start_token_id=36, forced_eos_token_id=0), head="sequence"),
    "pegasus": dict(config=t.PegasusConfig(**halves, scale_embedding=True, activation_function="relu"), head="sequence"),
}
