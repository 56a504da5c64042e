"""Makes small models with random weights whose configurations are drawn key by key, for TestDrawn.

    python drawn.py DIR COUNT SEED [TYPE...]    # by default all types

Each has one to four members that keys.json lists for its config.json, with values of the type that the configuration
class has for them, or that its authors use. Configurations that the reference library itself refuses are drawn again.
"""
import json
import os
import random
import sys
import warnings

import numpy as np
import torch
import transformers
from safetensors.torch import save_file
from transformers import CONFIG_MAPPING

from cases import distances, distil, gpt2, halves, latent, modern, small, special, t5
from make import HEADS, HERE, doubles, outputs, reference

B, T = 2, 9
LISTS = {k: v.split() for k, v in json.load(open(os.path.join(HERE, "keys.json"))).items()}
SIZES = dict({"deberta-v2": small | distances, "deberta": small | distances}, electra=small | dict(embedding_size=12), albert=small | dict(embedding_size=12), gpt2=gpt2 | dict(bos_token_id=1, eos_token_id=2), distilbert=distil, modernbert=modern,
             gpt_neo=dict(vocab_size=41, max_position_embeddings=32, hidden_size=16, num_layers=2, num_heads=4, intermediate_size=24, window_size=3,
                          attention_types=[[["global", "local"], 1]], bos_token_id=1, eos_token_id=2),
             opt=dict(vocab_size=41, hidden_size=16, num_hidden_layers=2, ffn_dim=24, max_position_embeddings=32, num_attention_heads=4, word_embed_proj_dim=16),
             gemma2=small | dict(num_key_value_heads=2, head_dim=6, query_pre_attn_scalar=9), gemma3_text=small | dict(num_key_value_heads=2, head_dim=6, query_pre_attn_scalar=9),
             qwen2=small | dict(num_key_value_heads=2), qwen3=small | dict(num_key_value_heads=2, head_dim=6), mistral=small | dict(num_key_value_heads=2),
             mixtral=small | dict(num_key_value_heads=2, num_local_experts=4), olmoe=small | dict(num_experts=4, num_experts_per_tok=2, eos_token_id=2),
             deepseek_v2=small | latent | dict(n_routed_experts=4, num_experts_per_tok=2, first_k_dense_replace=1),
             deepseek_v3=small | latent | dict(num_key_value_heads=4, n_routed_experts=8, num_experts_per_tok=2, n_group=2, topk_group=1, first_k_dense_replace=1),
             qwen3_moe=small | dict(num_key_value_heads=2, head_dim=6, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=8),
             gpt_oss=small | dict(num_key_value_heads=2, head_dim=6, num_local_experts=4, num_experts_per_tok=2, sliding_window=3),
             phi3=small | dict(num_key_value_heads=2, pad_token_id=0), starcoder2=small | dict(num_key_value_heads=2), olmo2=small | dict(num_key_value_heads=2),
             smollm3=small | dict(num_key_value_heads=2, pad_token_id=0), glm4=small | dict(num_key_value_heads=2, head_dim=8, pad_token_id=0),
             ernie4_5=small | dict(num_key_value_heads=2, head_dim=6), stablelm=small | dict(hidden_size=32, num_key_value_heads=2),
             granite=small | dict(num_key_value_heads=2), cohere2=small | dict(num_key_value_heads=2, bos_token_id=1, eos_token_id=2, sliding_window=3),
             t5=t5, mt5=t5, umt5=t5, bart=halves | special, mbart=halves | special, marian=halves | special, pegasus=halves | special,
             gpt_neox=small | dict(num_attention_heads=2, rotary_pct=0.25), llama=small | dict(num_key_value_heads=2))
TYPES = [k for k in LISTS if k in CONFIG_MAPPING]
ACTIVATIONS = "gelu gelu_new gelu_pytorch_tanh gelu_fast relu silu tanh quick_gelu relu2 mish".split()


def rope(r):
    kind = r.choice("default linear dynamic llama3 yarn longrope".split())
    p = {r.choice(["type", "rope_type"]): kind, "factor": r.choice([2.0, 4.0]), "rope_theta": r.choice([100.0, 5000.0])}
    if kind == "llama3":
        p |= dict(low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=8)
    if kind == "yarn":
        p |= dict(original_max_position_embeddings=8, beta_fast=r.choice([4.0, 8.0]), beta_slow=0.5)
        p |= r.choice([{}, dict(attention_factor=1.5), dict(mscale=0.7, mscale_all_dim=0.3), dict(truncate=False)])
    if kind == "longrope":
        p |= dict(long_factor=[2.0] * 2, short_factor=[1.0] * 2, original_max_position_embeddings=8)
    return p | r.choice([{}, {}, dict(partial_rotary_factor=0.5)])


def draw(r, kind, key, default):
    """A value for a key, or None if it isn't one to draw."""
    if key in ("rope_parameters", "rope_scaling"):
        p = rope(r)
        if kind in ("gemma3_text", "modernbert") and key == "rope_parameters":
            return dict(full_attention=p, sliding_attention=rope(r))
        return p
    if key in ("hidden_act", "hidden_activation", "activation_function", "activation", "classifier_activation", "pooler_hidden_act"):
        return r.choice(ACTIVATIONS)
    drawn = dict(layer_types=lambda: [r.choice(["full_attention", "sliding_attention"]) for _ in range(2)], sliding_window=lambda: r.choice([2, 3, 5]),
                   head_dim=lambda: r.choice([2, 4, 8]), max_position_embeddings=lambda: r.choice([9, 16, 64]), hidden_size=lambda: r.choice([16, 32]), num_attention_heads=lambda: r.choice([2, 4]), is_causal=lambda: r.random() < 0.3, num_labels=lambda: r.choice([1, 3]), classifier_pooling=lambda: r.choice(["cls", "mean"]),
                   id2label=lambda: {0: "a", 1: "b", 2: "c"}, token_classification_bias=lambda: r.random() < 0.5, problem_type=lambda: r.choice(["regression", "single_label_classification", "multi_label_classification"]),
                   partial_rotary_factor=lambda: r.choice([0.5, 1.0]), attn_logit_softcapping=lambda: 2.0, final_logit_softcapping=lambda: 3.0, attention_chunk_size=lambda: 3,
                   attention_types=lambda: [[[r.choice(["global", "local"])], 2]], use_bidirectional_attention=lambda: r.random() < 0.5, position_embedding_type=lambda: r.choice(
                       ["absolute", "relative_key"]), pad_token_id=lambda: r.choice([0, 3, 40]), rope_theta=lambda: 50.0, sliding_window_pattern=lambda: r.choice([1, 2, 3]),
                   local_attention=lambda: r.choice([4, 6]), n_inner=lambda: 20, query_pre_attn_scalar=lambda: 5, rotary_pct=lambda: r.choice([0.0, 0.1, 0.5, 1.0]), rotary_emb_base=lambda: 70,
                   no_rope_layers=lambda: [r.choice([0, 1]) for _ in range(2)],
                   max_window_layers=lambda: r.choice([0, 1, 2]), embedding_size=lambda: r.choice([12, 16]), word_embed_proj_dim=lambda: r.choice([8, 16]), original_max_position_embeddings=lambda: 16,
                   relative_attention=lambda: r.random() < 0.8, pos_att_type=lambda: r.choice(["c2p|p2c", "p2c", ["c2p"], ["p2c", "c2p"]]), position_buckets=lambda: r.choice([-1, 2, 4, 8]),
                   max_relative_positions=lambda: r.choice([-1, 5, 12]), norm_rel_ebd=lambda: r.choice(["none", "layer_norm"]), share_att_key=lambda: r.random() < 0.5,
                   num_hidden_groups=lambda: r.choice([1, 2]), inner_group_num=lambda: r.choice([1, 2]), conv_kernel_size=lambda: r.choice([0, 3]), feed_forward_proj=lambda: r.choice(["", "gated-"]) + r.choice(ACTIVATIONS), dense_act_fn=lambda: r.choice(ACTIVATIONS),
                   decoder_vocab_size=lambda: r.choice([37, 41]), d_model=lambda: r.choice([8, 16]), d_kv=lambda: r.choice([2, 6]), num_decoder_layers=lambda: r.choice([1, 3]),
                   relative_attention_num_buckets=lambda: r.choice([4, 8, 9, 32]), relative_attention_max_distance=lambda: r.choice([2, 5, 64]), vocab_size=lambda: 43, talking_head=lambda: r.random() < 0.3)
    if key in drawn:
        return drawn[key]()
    if isinstance(default, bool):
        return r.random() < 0.7 if not default else r.random() < 0.3
    if key.endswith("_token_id"):
        return r.randrange(41)
    if isinstance(default, float):
        return 10 ** r.uniform(-6, -1) if "eps" in key else r.choice([0.0, 0.1, 0.02, 0.5])
    if isinstance(default, int):
        return {"type_vocab_size": r.choice([1, 2, 3]), "num_hidden_layers": 2}.get(key, r.choice([1, 2, 4, 8, 16]))
    if default is None and key not in ("transformers_version", "dtype", "torch_dtype", "quantization_config", "name_or_path", "_name_or_path", "architectures", "auto_map"):
        return r.choice([True, False, 2])
    return None


def make(folder, r):
    kind = r.choice(TYPES)
    causal = kind in "llama gpt2 qwen2 qwen3 mistral gemma3_text gpt_neo gpt_neox opt gemma2 mixtral qwen3_moe olmoe gpt_oss phi3 starcoder2 olmo2 smollm3 glm4 ernie4_5 stablelm deepseek_v2 deepseek_v3 granite cohere2".split()
    known = [head for head in ("classes", "tags", "spans") if type(CONFIG_MAPPING[kind]()) in getattr(transformers, HEADS[head])._model_mapping]
    sequence = kind in "t5 mt5 umt5 bart mbart marian pegasus".split()
    head = "sequence" if sequence else r.choice(["text" if causal else "mask", "states"] + known)
    values = dict(SIZES.get(kind, small))
    if head == "classes":
        values |= dict(pad_token_id=1 if "roberta" in kind or kind == "camembert" else 0)  # RoBERTa's positions begin after it
    defaults = CONFIG_MAPPING[kind]().to_dict()
    keys = {}
    while len(keys) < r.choice([1, 2, 3, 4]):
        key = r.choice(LISTS["config.json"] + 3 * LISTS[kind] + ["is_causal"])
        value = draw(r, kind, key, defaults.get(CONFIG_MAPPING[kind].attribute_map.get(key, key)))
        if value is not None and key not in ("architectures", "model_type"):
            keys[key] = value
    values |= keys
    os.makedirs(folder)
    path = os.path.join(folder, "config.json")
    json.dump(values | dict(model_type=kind), open(path, "w"))
    config = CONFIG_MAPPING[kind].from_pretrained(folder)
    torch.manual_seed(r.randrange(1 << 30))
    model = getattr(transformers, HEADS[head]).from_config(config)
    with torch.no_grad():
        for _, p in model.named_parameters():
            if not p.requires_grad:  # sinusoidal positions
                continue
            p.copy_(torch.randn_like(p) * (0.2 if p.dim() == 1 else 1.5 / p.shape[-1] ** 0.5) + (1 if p.dim() == 1 and p.abs().sum() > 0 else 0))
    model.save_pretrained(folder)
    for name in os.listdir(folder):
        if name.endswith(".json") and name != "config.json":
            os.remove(os.path.join(folder, name))
    json.dump(values | dict(model_type=kind, architectures=[type(model).__name__]), open(path, "w"))
    open(os.path.join(folder, "keys.txt"), "w").write(f"{kind} {head} " + " ".join(keys))
    rng = np.random.default_rng(r.randrange(1 << 30))
    x = dict(ids=torch.tensor(rng.integers(4, 40, (B, T))), lengths=torch.tensor([T, 6]))
    if sequence:
        x["answers"] = torch.tensor(rng.integers(4, min(40, getattr(config, "decoder_vocab_size", 40)), (B, 6)))
    x["ids"][1, 6:] = 0 if config.pad_token_id is None else config.pad_token_id
    with doubles(), torch.no_grad():
        logits, mask = outputs(reference(folder, head), head, x)
    if head != "classes" and not sequence:
        logits = logits * mask[..., None]
    assert torch.isfinite(logits).all()
    save_file(x | dict(logits=logits.double().contiguous()), os.path.join(folder, "expected.safetensors"))


def main(folder, count, seed, *types):
    TYPES[:] = types or TYPES
    warnings.simplefilter("ignore")
    r, made, bad = random.Random(seed), 0, 0
    while made < count:
        name = os.path.join(folder, f"{made:04d}")
        try:
            make(name, r)
            made += 1
        except Exception as e:  # the reference library refuses the configuration
            bad += 1
            os.system(f"rm -rf {name}")
            if os.environ.get("SHOW"):
                print(type(e).__name__, str(e)[:200].replace("\n", " "))
    print(f"{made} models; the reference library refused {bad} configurations")


main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
