#!/usr/bin/env python3
"""Writes precision.json: how far PyTorch's gradients in float32 are from its gradients in float64.

    python3 precision.py

The file lists language models of one block, drawn at random. Each has its configuration in Heed's JSON, its loss and
the error of every parameter's gradient: the largest difference from float64, divided by the largest magnitude of the
gradient in float64. The gradient of a key bias is 0 except for rounding; its error is divided by the query bias's
magnitude. Heed's test draws the same parameters and ids with the same formula (see values), so they aren't stored.

The file was written with torch 2.15 on one thread.
"""
import json
import math
import os
import random

import numpy as np
import torch
import torch.nn.functional as F

torch.set_num_threads(1)
VOCAB = 16


def values(seed, n):
    """Returns n numbers from -1 to 1 with 16 bits each, so that they are exact in float32 (SplitMix64)."""
    z = (np.arange(1, n + 1, dtype=np.uint64) + np.uint64(seed << 32)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((z ^ (z >> np.uint64(31))) >> np.uint64(48)).astype(np.float64) / 32768 - 1


def draw(rng):
    """Draws a configuration."""
    heads = rng.choice((2, 4))
    dim, length = heads * rng.choice((4, 8)), rng.choice((32, 64, 96))
    block = {
        "attention": {"heads": heads, "key_value_heads": rng.choice((heads, heads // 2)), "qk_norm": rng.random() < 0.3},
        "feed_forward": {"hidden": rng.choice((1, 2, 3)) * dim, "activation": rng.choice(("relu", "gelu", "gelu tanh", "silu")), "gated": rng.random() < 0.5},
        "norm": {"kind": rng.choice(("layer", "rms")), "eps": 1e-5},
        "post_norm": rng.random() < 0.4,
    }
    positions = rng.choice(({"kind": "none"}, {"kind": "learned", "max_len": length}, {"kind": "relative_bias"}))
    model = {"vocab": VOCAB, "dim": dim, "layers": 1, "positions": positions, "block": block, "final_norm": True}
    return {"batch": rng.choice((1024, 2048, 4096)) // length, "length": length, "model": model}


def shapes(m):
    """Returns the shape of each parameter."""
    dim, block = m["dim"], m["block"]
    attention, hidden = block["attention"], block["feed_forward"]["hidden"]
    width = dim // attention["heads"]
    grouped = attention["key_value_heads"] * width
    all = {"embedding.weight": (VOCAB, dim)}
    if m["positions"]["kind"] == "learned":
        all["positions.weight"] = (m["positions"]["max_len"], dim)
    if m["positions"]["kind"] == "relative_bias":
        all["positions.weight"] = (32, attention["heads"])

    def linear(name, inputs, outputs):
        all[name + ".weight"], all[name + ".bias"] = (outputs, inputs), (outputs,)

    def norm(name):
        all[name + ".weight"] = (dim,)
        if block["norm"]["kind"] == "layer":
            all[name + ".bias"] = (dim,)

    for name, outputs in (("query", dim), ("key", grouped), ("value", grouped), ("output", dim)):
        linear("blocks.0.attention." + name, dim, outputs)
    if attention["qk_norm"]:
        all["blocks.0.attention.querynorm.weight"] = all["blocks.0.attention.keynorm.weight"] = (width,)
    if block["feed_forward"]["gated"]:
        linear("blocks.0.feedforward.gate", dim, hidden)
    linear("blocks.0.feedforward.up", dim, hidden)
    linear("blocks.0.feedforward.down", hidden, dim)
    for name in ("blocks.0.norm1", "blocks.0.norm2", "norm"):
        norm(name)
    linear("head", dim, VOCAB)
    return all


def bucket(back):
    """Returns the bucket of a causal distance in RelativeBias, with 32 buckets and a MaxDistance of 128."""
    return back if back < 16 else min(16 + int(np.float32(math.log(np.float32(back / 16))) / np.float32(math.log(8)) * np.float32(16)), 31)


def loss(c, p, ids, targets):
    """Returns the model's cross-entropy."""
    m, block = c["model"], c["model"]["block"]
    attention, heads = block["attention"], block["attention"]["heads"]
    batch, length = ids.shape
    dtype = p["embedding.weight"].dtype

    def linear(name, x):
        return F.linear(x, p[name + ".weight"], p[name + ".bias"])

    def norm(name, x):
        w = p[name + ".weight"]
        if block["norm"]["kind"] == "rms":
            return F.rms_norm(x, w.shape, w, 1e-5)
        return F.layer_norm(x, w.shape, w, p[name + ".bias"], 1e-5)

    def split(x, heads):
        return x.reshape(batch, length, heads, -1).transpose(1, 2)

    def attend(x):
        name = "blocks.0.attention."
        q = split(linear(name + "query", x), heads)
        k, v = (split(linear(name + part, x), attention["key_value_heads"]) for part in ("key", "value"))
        if attention["qk_norm"]:
            q = F.rms_norm(q, q.shape[-1:], p[name + "querynorm.weight"], 1e-6)
            k = F.rms_norm(k, k.shape[-1:], p[name + "keynorm.weight"], 1e-6)
        k, v = (y.repeat_interleave(heads // attention["key_value_heads"], 1) for y in (k, v))
        if m["positions"]["kind"] == "relative_bias":
            buckets = torch.tensor([[bucket(max(i - j, 0)) for j in range(length)] for i in range(length)])
            bias = p["positions.weight"][buckets].permute(2, 0, 1)
            future = torch.triu(torch.full((length, length), -math.inf, dtype=dtype), 1)
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=bias + future)
        else:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return linear(name + "output", y.transpose(1, 2).reshape(x.shape))

    def feed_forward(x):
        name, f = "blocks.0.feedforward.", block["feed_forward"]
        approximate = "tanh" if f["activation"] == "gelu tanh" else "none"
        act = {"relu": F.relu, "silu": F.silu}.get(f["activation"], lambda x: F.gelu(x, approximate=approximate))
        up = linear(name + "up", x)
        return linear(name + "down", act(linear(name + "gate", x)) * up if f["gated"] else act(up))

    x = F.embedding(ids, p["embedding.weight"])
    if m["positions"]["kind"] == "learned":
        x = x + p["positions.weight"]
    for name, part in (("blocks.0.norm1", attend), ("blocks.0.norm2", feed_forward)):
        x = norm(name, x + part(x)) if block["post_norm"] else x + part(norm(name, x))
    return F.cross_entropy(linear("head", norm("norm", x)).reshape(-1, VOCAB), targets.reshape(-1))


def gradients(seed, c, dtype):
    """Returns the gradient of every parameter, and the loss. Heed's test draws the same parameters and ids."""
    p = {}
    for i, (name, shape) in enumerate(sorted(shapes(c["model"]).items())):
        x = values(100 * seed + i, math.prod(shape)).reshape(shape)
        if len(shape) > 1:
            x = x * 2.0 ** -int(math.log2(shape[1]) / 2)
        else:
            x = x / 2 + (1 if "norm" in name and name.endswith("weight") else 0)
        p[name] = torch.tensor(x, dtype=dtype, requires_grad=True)
    ids = torch.tensor((values(100 * seed + 99, c["batch"] * (c["length"] + 1)) + 1) * VOCAB / 2).long()
    ids = ids.reshape(c["batch"], -1)
    cost = loss(c, p, ids[:, :-1], ids[:, 1:])
    cost.backward()
    return {name: q.grad.double() for name, q in p.items()}, cost.item()


def main():
    rng, cases = random.Random(1), []
    for seed in range(20):
        c = draw(rng)
        single, _ = gradients(seed, c, torch.float32)
        double, c["loss"] = gradients(seed, c, torch.float64)
        c["errors"] = {}
        for name, want in double.items():
            size = double[name.replace("key.bias", "query.bias")].abs().max()
            c["errors"][name] = float("%.3g" % ((single[name] - want).abs().max() / size))
        cases.append(c)
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "precision.json"), "w") as f:
        f.write("[\n" + ",\n".join(" " + json.dumps(c) for c in cases) + "\n]\n")


if __name__ == "__main__":
    main()
