#!/usr/bin/env python3
"""Writes the fixtures of experts, and of attention with sinks or an output gate, in the format of fixtures.py.

    python3 fixtures_experts.py

The layers are those of transformers: DeepSeek-V3's and gpt-oss's experts, Qwen3-Next's and gpt-oss's attention. They
compute some numbers in float32 whatever the dtype, so torch.float32 means float64 here. The files were written with
torch 2.15 and transformers 5.24.
"""
import torch
from torch.func import functional_call
from transformers import DeepseekV3Config, GptOssConfig, Qwen3NextConfig
from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3MoE
from transformers.models.gpt_oss.modeling_gpt_oss import GptOssAttention, GptOssMLP
from transformers.models.qwen3_next.modeling_qwen3_next import Qwen3NextAttention

from fixtures import case, rand, write

torch.float32, torch.Tensor.float = torch.float64, torch.Tensor.double


def deepseek(name, lead, dim=6, hidden=5, count=8, top=3, groups=4, best=2, normalize=True, scale=2.5):
    c = DeepseekV3Config(hidden_size=dim, moe_intermediate_size=hidden, n_routed_experts=count, num_experts_per_tok=top, n_group=groups, topk_group=best,
                         norm_topk_prob=normalize, routed_scaling_factor=scale, n_shared_experts=2)
    c._experts_implementation = "eager"
    p = {"router.weight": rand(count, dim), "gate.weight": rand(count, hidden, dim), "up.weight": rand(count, hidden, dim), "down.weight": rand(count, dim, hidden),
         "shared.gate.weight": rand(2 * hidden, dim), "shared.up.weight": rand(2 * hidden, dim), "shared.down.weight": rand(dim, 2 * hidden)}
    w = {"gate.weight": p["router.weight"], "experts.gate_up_proj": torch.cat([p["gate.weight"], p["up.weight"]], 1), "experts.down_proj": p["down.weight"],
         **{f"shared_experts.{x}_proj.weight": p[f"shared.{x}.weight"] for x in ("gate", "up", "down")}}
    x = rand(*lead, dim)
    out = functional_call(DeepseekV3MoE(c), w, (x,))
    experts = dict(count=count, top=top, sigmoid=True, unnormalized=not normalize, scale=scale, groups=groups, top_groups=best, shared=2 * hidden)
    return case(name, {"x": x}, p, {"out": out}, dim=dim, value=hidden, experts=experts, nobias=True)


def gpt_oss(name, lead, dim=6, hidden=5, count=4, top=2, limit=0.8):
    c = GptOssConfig(hidden_size=dim, intermediate_size=hidden, num_local_experts=count, num_experts_per_tok=top, swiglu_limit=limit)
    c._experts_implementation = "eager"
    p = {"router.weight": rand(count, dim), "router.bias": rand(count), "gate.weight": rand(count, hidden, dim), "gate.bias": rand(count * hidden),
         "up.weight": rand(count, hidden, dim), "up.bias": rand(count * hidden), "down.weight": rand(count, dim, hidden), "down.bias": rand(count * dim)}
    pairs = lambda a, b: torch.stack([a, b], 2).reshape(count, 2 * hidden, -1)  # gates and other hidden units in turn
    w = {"router.weight": p["router.weight"], "router.bias": p["router.bias"],
         "experts.gate_up_proj": pairs(p["gate.weight"], p["up.weight"]).transpose(1, 2),
         "experts.gate_up_proj_bias": pairs(p["gate.bias"].reshape(count, hidden), p["up.bias"].reshape(count, hidden)).reshape(count, -1),
         "experts.down_proj": p["down.weight"].transpose(1, 2), "experts.down_proj_bias": p["down.bias"].reshape(count, dim)}
    x = rand(*lead, dim)
    out = functional_call(GptOssMLP(c), w, (x,))[0]
    return case(name, {"x": x}, p, {"out": out}, dim=dim, value=hidden, experts=dict(count=count, top=top, router_bias=True, limit=limit))


def attention(name, gated, dim=8, heads=4, groups=2, tokens=5, bias=True):
    """Causal attention without positions."""
    width = dim // heads
    common = dict(hidden_size=dim, num_attention_heads=heads, num_key_value_heads=groups, head_dim=width, attention_bias=bias, rms_norm_eps=1e-2)
    c = (Qwen3NextConfig if gated else GptOssConfig)(**common)
    c._attn_implementation = "eager"
    p = {}
    for x, out, inner in [("query", heads * width, dim), ("key", groups * width, dim), ("value", groups * width, dim), ("output", dim, heads * width)]:
        p[x + ".weight"] = rand(out, inner)
        if bias:
            p[x + ".bias"] = rand(out)
    w = {f"{'kvo'['key value output'.split().index(x)]}_proj.{y}": p[f"{x}.{y}"] for x in ("key", "value", "output") for y in (("weight", "bias") if bias else ("weight",))}
    for y in ("weight", "bias") if bias else ("weight",):
        w[f"q_proj.{y}"] = p[f"query.{y}"]
        if gated:  # a head's queries are followed by its gate
            p[f"gate.{y}"] = rand(*p[f"query.{y}"].shape)
            w[f"q_proj.{y}"] = torch.stack([z.reshape(heads, width, -1) for z in (p[f"query.{y}"], p[f"gate.{y}"])], 1).reshape(2 * heads * width, *p[f"query.{y}"].shape[1:])
    if gated:
        for x in ("query", "key"):
            p[x + "norm.weight"] = rand(width)
            w[x[0] + "_norm.weight"] = p[x + "norm.weight"] - 1
    else:
        p["sinks"] = w["sinks"] = rand(heads)
    x = rand(2, tokens, dim)
    mask = torch.full((tokens, tokens), -torch.inf).triu(1)[None, None]
    turn = torch.ones(1, tokens, width), torch.zeros(1, tokens, width)
    if not gated:  # it has half of the angles
        turn = tuple(z[..., :width // 2] for z in turn)
    out = functional_call((Qwen3NextAttention if gated else GptOssAttention)(c, 0), w, (x, turn, mask))[0]
    return case(name, {"query": x}, p, {"out": out}, dim=dim, heads=heads, value=groups, bias=bias, gated=gated, eps=1e-2)


if __name__ == "__main__":
    torch.manual_seed(13)
    write("experts", [deepseek("deepseek", (2, 7)), deepseek("deepseek, not normalised", (9,), groups=2, best=1, normalize=False, scale=1.0),
                      gpt_oss("gpt-oss", (2, 7)), gpt_oss("gpt-oss, one expert each", (1, 5), top=1)])
    torch.manual_seed(14)
    write("gated_attention", [attention("qwen3-next", True), attention("qwen3-next without biases", True, heads=2, groups=1, bias=False),
                              attention("gpt-oss", False), attention("gpt-oss without biases", False, groups=1, bias=False)])
