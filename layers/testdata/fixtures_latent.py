#!/usr/bin/env python3
"""Writes the fixtures of latent attention, in the format of fixtures.py.

    python3 fixtures_latent.py

The layers are those of transformers: DeepSeek-V2's and DeepSeek-V3's attention. They compute some numbers in float32
whatever the dtype, so torch.float32 means float64 here; DeepSeek-V2's ranks must then be even. The files were written
with torch 2.15 and transformers 5.23.
"""
import torch
from torch.func import functional_call
from transformers import DeepseekV2Config, DeepseekV3Config
from transformers.models.deepseek_v2.modeling_deepseek_v2 import DeepseekV2Attention, DeepseekV2RotaryEmbedding
from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3Attention, DeepseekV3RotaryEmbedding

from fixtures import case, rand, write

torch.float32, torch.float, torch.Tensor.float = torch.float64, torch.float64, torch.Tensor.double


def latent(name, third, dim=8, heads=2, width=4, value=3, rank=4, rotary=2, queries=6, bias=False, interleaved=True, tokens=5):
    """Causal attention."""
    common = dict(hidden_size=dim, num_attention_heads=heads, num_key_value_heads=heads, qk_nope_head_dim=width, v_head_dim=value, kv_lora_rank=rank, qk_rope_head_dim=rotary, q_lora_rank=queries or None,
                  attention_bias=bias, rope_parameters=dict(rope_type="default", rope_theta=50.0))
    c = DeepseekV3Config(**common, rope_interleave=interleaved) if third else DeepseekV2Config(**common)
    c._attn_implementation = "eager"
    inner = queries or dim
    p = {"query.weight": rand(heads * width, inner), "rotaryquery.weight": rand(heads * rotary, inner), "latent.weight": rand(rank, dim), "rotarykey.weight": rand(rotary, dim),
         "latentnorm.weight": rand(rank), "key.weight": rand(heads * width, rank), "value.weight": rand(heads * value, rank), "output.weight": rand(dim, heads * value)}
    if queries:
        p |= {"querylatent.weight": rand(queries, dim), "querylatentnorm.weight": rand(queries)}
    if bias:
        p |= {"latent.bias": rand(rank), "rotarykey.bias": rand(rotary), "output.bias": rand(dim)} | ({"querylatent.bias": rand(queries)} if queries else {})
    by_head = lambda a, b: torch.cat([x.reshape(heads, -1, x.shape[1]) for x in (p[a], p[b])], 1).reshape(-1, p[a].shape[1])
    w = {"kv_a_layernorm.weight": p["latentnorm.weight"], "kv_b_proj.weight": by_head("key.weight", "value.weight"),
         "q_b_proj.weight" if queries else "q_proj.weight": by_head("query.weight", "rotaryquery.weight")}
    if queries:
        w["q_a_layernorm.weight"] = p["querylatentnorm.weight"]
    for y in ("weight", "bias") if bias else ("weight",):
        w[f"kv_a_proj_with_mqa.{y}"], w[f"o_proj.{y}"] = torch.cat([p[f"latent.{y}"], p[f"rotarykey.{y}"]]), p[f"output.{y}"]
        if queries:
            w[f"q_a_proj.{y}"] = p[f"querylatent.{y}"]
    x = rand(2, tokens, dim)
    mask = torch.full((tokens, tokens), -torch.inf).triu(1)[None, None]
    turn = (DeepseekV3RotaryEmbedding if third else DeepseekV2RotaryEmbedding)(c)(x, torch.arange(tokens)[None])
    out = functional_call((DeepseekV3Attention if third else DeepseekV2Attention)(c, 0), w, (x,), dict(position_embeddings=turn, attention_mask=mask))[0]
    return case(name, {"query": x}, p, {"out": out}, dim=dim, heads=heads, key=width, value=value, bias=bias, base=50.0, interleaved=interleaved,
                latent=dict(rank=rank, rotary_dim=rotary, query_rank=queries))


if __name__ == "__main__":
    torch.manual_seed(15)
    write("latent", [latent("deepseek-v2", False), latent("deepseek-v2 without latent queries", False, queries=0, bias=True, heads=4, rotary=4),
                     latent("deepseek-v3", True, bias=True), latent("deepseek-v3 in halves", True, interleaved=False, heads=1, rotary=6, rank=2, tokens=7)])
