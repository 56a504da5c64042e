#!/usr/bin/env python3
"""Writes the fixtures for the tests of package layers: values and gradients computed by PyTorch.

    python3 fixtures.py

Each family of layers has one JSON file, a list of cases. A case has inputs, parameters (by Heed's names), outputs, a
fixed random weighting of every output, and the gradients of cost = sum of weighting * output. All numbers are computed
in double precision and written with all digits; null stands for minus infinity. The files store boolean masks like Heed:
true allows attention. In PyTorch, true forbids attention, so this script inverts the masks.

Each family has its own seed. Add a new case at the end of its family, so that the other cases don't change. The files
were written with torch 1.13, which gives the same bytes each time. Later versions should give the same numbers to
about 1e-15.
"""
import json
import math
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)
HERE = os.path.dirname(os.path.abspath(__file__))


def rand(*shape, grad=True, scale=0.7):
    return (torch.randn(*shape) * scale).requires_grad_(grad)


def array(t):
    kind = {torch.int64: "int", torch.bool: "bool"}.get(t.dtype, "float")
    flat = t.detach().reshape(-1).tolist()
    if kind == "bool":
        flat = [int(x) for x in flat]
    if kind == "float":
        flat = [None if x == -math.inf else x for x in flat]
    return {"dtype": kind, "shape": list(t.shape), "data": flat}


def case(name, inputs, params, outputs, **config):
    """Runs backward and collects one case. A scalar output has a weighting of 1."""
    weighting = {k: torch.randn(y.shape) if y.dim() else torch.ones(()) for k, y in outputs.items()}
    cost = sum((weighting[k] * y).sum() for k, y in outputs.items())
    cost.backward()
    grads = {k: t.grad for k, t in {**inputs, **params}.items() if t.requires_grad}
    return {
        "name": name,
        "config": config,
        "inputs": {k: array(t) for k, t in inputs.items()},
        "params": {k: array(t) for k, t in params.items()},
        "outputs": {k: array(t) for k, t in outputs.items()},
        "weighting": {k: array(t) for k, t in weighting.items()},
        "grads": {k: array(t) for k, t in grads.items()},
    }


def write(name, cases):
    # One tensor per line keeps diffs readable.
    def one(c):
        lines = ['  "name": %s' % json.dumps(c["name"]), '  "config": %s' % json.dumps(c["config"])]
        for part in ("inputs", "params", "outputs", "weighting", "grads"):
            items = ",\n".join("    %s: %s" % (json.dumps(k), json.dumps(v, separators=(",", ":"))) for k, v in c[part].items())
            lines.append('  "%s": {\n%s\n  }' % (part, items) if items else '  "%s": {}' % part)
        return " {\n" + ",\n".join(lines) + "\n }"

    with open(os.path.join(HERE, name + ".json"), "w") as f:
        f.write("[\n" + ",\n".join(one(c) for c in cases) + "\n]\n")


def randomise(module):
    """Sets random parameters, because PyTorch's initial biases of 0 and norms of 1 could hide a mix-up."""
    with torch.no_grad():
        for p in module.parameters():
            p.copy_(torch.randn(p.shape) * 0.5 + (1.0 if p.dim() == 1 and p[0] == 1 else 0.0))
    return module.train()


def padding(lengths, keys):
    """Returns PyTorch's key_padding_mask, which is true for masked keys."""
    return torch.arange(keys)[None, :] >= lengths[:, None]


def causal(t, s):
    """Returns PyTorch's attn_mask, which is true for masked keys."""
    return torch.triu(torch.ones(t, s), 1).bool()


# ---- single layers


def linear_cases():
    for name, shape, bias in (("matrix", (4, 5), True), ("batch", (2, 3, 5), True), ("no bias", (2, 3, 5), False), ("vector", (5,), True)):
        l, x = randomise(nn.Linear(5, 3, bias=bias)), rand(*shape)
        yield case(name, {"x": x}, dict(l.named_parameters()), {"out": l(x)}, bias=bias)


def embedding_cases():
    for name, ids in (("sequence", [1, 4, 1, 0, 1]), ("batch", [[6, 0, 2], [2, 2, 6]])):
        e, ids = randomise(nn.Embedding(7, 4)), torch.tensor(ids)
        yield case(name, {"ids": ids}, {"weight": e.weight}, {"out": e(ids)})


def norm_cases():
    for name, shape, eps in (("default", (2, 3, 6), 1e-5), ("large eps", (4, 6), 0.1), ("vector", (6,), 1e-5)):
        n, x = randomise(nn.LayerNorm(6, eps=eps)), rand(*shape)
        yield case(name, {"x": x}, dict(n.named_parameters()), {"out": n(x)}, eps=eps)
    for name, shape in (("no bias", (2, 3, 6)), ("vector, no bias", (6,))):  # nn.LayerNorm's argument bias is new in torch 2.1
        w, x = (1 + 0.5 * torch.randn(6)).requires_grad_(), rand(*shape)
        yield case(name, {"x": x}, {"weight": w}, {"out": F.layer_norm(x, (6,), w, None)}, eps=1e-5, nobias=True)


def activation_cases():
    f = {"relu": F.relu, "gelu": F.gelu, "gelu tanh": lambda x: F.gelu(x, approximate="tanh"), "silu": F.silu}
    for name in f:
        x = torch.linspace(-6, 6, 24).reshape(2, 3, 4).requires_grad_()
        yield case(name, {"x": x}, {}, {"out": f[name](x)}, activation=name)


def loss_cases():
    for name, shape, targets, smoothing in (
        ("all count", (4, 5), [0, 3, 4, 3], 0.0),
        ("some ignored", (2, 3, 5), [[0, -1, 4], [-1, 2, 2]], 0.0),
        ("one counts", (2, 2, 5), [[-1, -1], [-1, 1]], 0.0),
        ("smoothed", (4, 5), [0, 3, 4, 3], 0.1),
        ("smoothed, some ignored", (2, 3, 5), [[0, -1, 4], [-1, 2, 2]], 0.1),
        ("smoothed, one counts", (2, 2, 5), [[-1, -1], [-1, 1]], 0.3),
        ("nothing but smoothing, some ignored", (2, 3, 5), [[0, -1, 4], [-1, 2, 2]], 1.0),
        ("many classes, smoothed, ignored by PyTorch's own index", (6, 19), [0, 18, -100, 7, 7, -100], 0.2),
    ):
        logits, targets = rand(*shape, scale=3), torch.tensor(targets)
        ignored = min(-1, targets.min().item())
        loss = F.cross_entropy(logits.reshape(-1, shape[-1]), targets.reshape(-1), ignore_index=ignored, label_smoothing=smoothing)
        yield case(name, {"logits": logits, "targets": targets}, {}, {"loss": loss}, smoothing=smoothing)
    for name, shape, targets, classes, smoothing, weigh in (
        ("classes weighted", (2, 3, 4), [[0, -1, 3], [1, 2, 2]], [0.5, 2, 1, 0.25], 0.0, False),
        ("a class left out", (4, 3), [0, 1, 2, 1], [1, 0, 3], 0.0, False),
        ("positions weighted", (2, 3, 4), [[0, 1, 3], [1, 2, 2]], None, 0.0, True),
        ("positions weighted, smoothed", (2, 3, 4), [[0, 1, 3], [1, -1, 2]], None, 0.2, True),
        ("positions and classes weighted, smoothed", (2, 3, 4), [[0, 1, 3], [1, -1, 2]], [0.5, 2, 1, 0.25], 0.2, True),
    ):
        logits, targets = rand(*shape, scale=3), torch.tensor(targets)
        flat, inputs, config = (logits.reshape(-1, shape[-1]), targets.reshape(-1)), {"logits": logits, "targets": targets}, {}
        if classes:
            config["classes"] = classes
            classes = torch.tensor(classes, dtype=torch.float64)
        if not weigh:
            loss = F.cross_entropy(*flat, ignore_index=-1, weight=classes)
        else:
            w = inputs["weights"] = torch.rand(targets.shape) + 0.5
            w = w.reshape(-1) * (flat[1] >= 0)
            if classes is not None:
                w = w * classes[flat[1].clamp(min=0)]
            losses = F.cross_entropy(*flat, ignore_index=-1, label_smoothing=smoothing, reduction="none")
            loss = (w * losses).sum() / w.sum()
        yield case(name, inputs, {}, {"loss": loss}, smoothing=smoothing, **config)


def elementwise_loss_cases():
    f = {"squared": F.mse_loss, "absolute": F.l1_loss, "huber": F.huber_loss, "binary": F.binary_cross_entropy_with_logits}
    for name in f:
        for shape, weighted in (((5,), None), ((2, 3, 4), None), ((2, 3, 4), 3), ((2, 3, 4), 2), ((2, 3, 4), 1)):
            outputs, targets, config = rand(*shape, scale=2), rand(*shape, scale=2), {"loss": name}
            if name == "binary":
                targets = torch.rand(shape)
                targets[..., 0], targets[..., 1] = 0, 1
            options = {}
            if name == "huber":
                options = {"delta": 0.75}
            inputs = {"outputs": outputs, "targets": targets}
            if weighted is None:
                loss = f[name](outputs, targets, **options)
            else:
                w = inputs["weights"] = torch.rand(shape[:weighted])
                w.view(-1)[0] = 0
                w = w.reshape(w.shape + (1,) * (len(shape) - weighted)).expand(shape)
                loss = (w * f[name](outputs, targets, reduction="none", **options)).sum() / w.sum()
            yield case(f"{name} {shape} {weighted}", inputs, {}, {"loss": loss}, **config, **options)


# ---- attention


def core(name, q, k, v, is_causal=False, lengths=None, allow=None, bias=None, scale=None):
    """Computes scaled dot-product attention. Unlike in PyTorch, a row without visible keys has weights of 0."""
    t, s = q.shape[-2], k.shape[-2]
    scores = q @ k.transpose(-1, -2) * (scale or 1 / math.sqrt(q.shape[-1]))
    inputs = {"q": q, "k": k, "v": v}
    masked = torch.zeros_like(scores).bool()
    if is_causal:
        masked = masked | causal(t, s)
    if lengths is not None:
        inputs["lengths"] = lengths
        p = padding(lengths, s)
        masked = masked | p.reshape(p.shape[0], *([1] * (q.dim() - 2)), s)
    if allow is not None:
        inputs["allow"] = allow
        masked = masked | ~allow
    if bias is not None:
        inputs["bias"] = bias
        scores = scores + bias.masked_fill(bias == -math.inf, 0)
        masked = masked | (bias == -math.inf)
    empty = masked.all(-1, keepdim=True)
    weights = torch.softmax(scores.masked_fill(masked & ~empty, -math.inf), -1).masked_fill(empty, 0)
    return case(name, inputs, {}, {"out": weights @ v, "weights": weights}, causal=is_causal, scale=scale or 0)


def holes(t, p=0.15):
    """Sets random elements of a float mask to minus infinity."""
    with torch.no_grad():
        t[torch.rand(t.shape) < p] = -math.inf
    return t.requires_grad_()


def core_cases():
    def qkv(*lead, t=3, s=4, k=3, v=2):
        return rand(*lead, t, k), rand(*lead, s, k), rand(*lead, s, v)

    yield core("matrices", *qkv())
    yield core("batch", *qkv(2))
    yield core("heads", *qkv(2, 2))
    yield core("scale", *qkv(2, 2), scale=0.25)
    yield core("causal square", *qkv(2, 2, t=4), is_causal=True)
    yield core("causal wide", *qkv(1, 2, t=3, s=5), is_causal=True)
    yield core("causal tall", *qkv(1, 2, t=5, s=3), is_causal=True)
    yield core("lengths with an empty one", *qkv(3, 1), lengths=torch.tensor([4, 0, 2]))
    yield core("allow", *qkv(2, 2), allow=torch.rand(2, 2, 3, 4) < 0.6)
    yield core("allow of (T, S) with an empty row", *qkv(2, 2), allow=torch.tensor([[1, 0, 0, 1], [0, 0, 0, 0], [1, 1, 1, 0]]).bool())
    yield core("bias", *qkv(2, 2), bias=holes(rand(2, 2, 3, 4, grad=False)))
    yield core("bias of (H, 1, S)", *qkv(2, 2), bias=rand(2, 1, 4))
    yield core("everything", *qkv(2, 2, t=4, s=4), is_causal=True, lengths=torch.tensor([3, 4]), allow=torch.rand(2, 1, 4, 4) < 0.8, bias=holes(rand(2, 4, 4, grad=False)))


def multihead_params(a):
    e = a.embed_dim
    if a.in_proj_weight is not None:
        weights = [a.in_proj_weight[i * e : (i + 1) * e] for i in range(3)]
    else:
        weights = [a.q_proj_weight, a.k_proj_weight, a.v_proj_weight]
    names = {"query.weight": weights[0], "key.weight": weights[1], "value.weight": weights[2], "output.weight": a.out_proj.weight}
    if a.in_proj_bias is not None:
        for i, n in enumerate(("query", "key", "value")):
            names[n + ".bias"] = a.in_proj_bias[i * e : (i + 1) * e]
        names["output.bias"] = a.out_proj.bias
    return names


def multihead(name, dim=6, heads=2, t=3, s=None, kdim=None, vdim=None, bias=True, is_causal=False, lengths=None, allow=None, additive=None, batch=2):
    a = randomise(nn.MultiheadAttention(dim, heads, bias=bias, kdim=kdim, vdim=vdim, batch_first=True))
    x = rand(batch, t, dim)
    if s is None:
        inputs = {"query": x}
        key = value = x
        s = t
    else:
        key, value = rand(batch, s, kdim or dim), rand(batch, s, vdim or dim)
        inputs = {"query": x, "key": key, "value": value}
    mask, pad = None, None
    if is_causal:
        mask = causal(t, s)
    if allow is not None:  # (T, S)
        inputs["allow"] = allow
        mask = ~allow if mask is None else mask | ~allow
    if additive is not None:  # (T, S)
        inputs["bias"] = additive
        mask = additive if mask is None else additive.masked_fill(mask, -math.inf)
    if lengths is not None:
        inputs["lengths"] = lengths
        pad = padding(lengths, s)
    out, weights = a(x, key, value, key_padding_mask=pad, attn_mask=mask, average_attn_weights=False)
    c = case(name, inputs, {}, {"out": out, "weights": weights}, dim=dim, heads=heads, key=kdim or dim, value=vdim or dim, bias=bias, causal=is_causal)
    return add_params(c, a, multihead_params)


def add_params(c, module, names):
    """Adds a module's parameters and gradients to case c. The function names returns the parameters by name."""
    for k, v in names(module).items():
        c["params"][k] = array(v)
    with torch.no_grad():
        for p in module.parameters():
            p.copy_(p.grad)
    for k, v in names(module).items():
        c["grads"][k] = array(v)
    return c


def self_attention_cases():
    yield multihead("plain")
    yield multihead("no bias", bias=False, heads=3)
    yield multihead("causal", t=4, is_causal=True)
    yield multihead("lengths", t=4, lengths=torch.tensor([2, 4]))
    yield multihead("causal, lengths and allow", t=4, is_causal=True, lengths=torch.tensor([3, 4]), allow=torch.tensor([[1, 0, 1, 1], [1, 1, 1, 1], [1, 0, 1, 0], [1, 1, 0, 1]]).bool())
    yield multihead("causal, lengths and bias mask", t=4, is_causal=True, lengths=torch.tensor([3, 4]), additive=rand(4, 4))


def cross_attention_cases():
    yield multihead("plain", s=4)
    yield multihead("widths", s=4, kdim=5, vdim=4)
    yield multihead("widths, no bias", s=4, kdim=5, vdim=4, bias=False)
    yield multihead("allow", s=4, allow=torch.tensor([[1, 0, 0, 1], [0, 0, 1, 0], [1, 1, 1, 0]]).bool())
    yield multihead("bias mask", s=4, additive=rand(3, 4))


def masked(name, mask=None, pad=None, inputs={}, is_causal=False, dim=4, heads=2, t=3, s=4, kdim=None, vdim=None, bias=True, batch=2):
    """Runs nn.MultiheadAttention with an attn_mask (mask) and a key_padding_mask (pad). The arguments inputs and
    is_causal are the same masks for Heed. The only output is "out", so Heed's test can use attention as one op."""
    a = randomise(nn.MultiheadAttention(dim, heads, bias=bias, kdim=kdim, vdim=vdim, batch_first=True))
    lead = (batch,) if batch else ()
    query, key, value = rand(*lead, t, dim), rand(*lead, s, kdim or dim), rand(*lead, s, vdim or dim)
    out, _ = a(query, key, value, key_padding_mask=pad, attn_mask=mask, need_weights=False)
    inputs = {"query": query, "key": key, "value": value, **inputs}
    c = case(name, inputs, {}, {"out": out}, dim=dim, heads=heads, key=kdim or dim, value=vdim or dim, bias=bias, causal=is_causal)
    return add_params(c, a, multihead_params)


def mask_cases():
    """Yields every kind of mask of nn.MultiheadAttention, alone and combined, for 2 sequences, 2 heads, 3 queries and 4
    keys."""

    def allowed(*shape):  # every query may attend to key 0
        allow = torch.rand(*shape) < 0.5
        allow[..., 0] = True
        return allow

    def additive(*shape):
        return holes(rand(*shape, grad=False))

    def heads(m):  # Heed's (B, H, T, S) -> PyTorch's (B·H, T, S)
        return m.reshape(-1, *m.shape[-2:])

    lengths = torch.tensor([2, 3])
    pad = padding(lengths, 4)
    gaps = torch.tensor([[1, 0, 1, 0], [1, 1, 0, 1]]).bool()  # true for valid keys
    by_key = gaps[:, None, None, :]

    yield masked("none")
    allow = allowed(3, 4)
    yield masked("bool (T, S)", ~allow, inputs={"allow": allow})
    allow = allowed(2, 2, 3, 4)
    yield masked("bool, each head's", heads(~allow), inputs={"allow": allow})
    bias = rand(3, 4)
    yield masked("float (T, S)", bias, inputs={"bias": bias})
    bias = additive(2, 2, 3, 4)
    yield masked("float, each head's", heads(bias), inputs={"bias": bias})
    yield masked("padding", pad=pad, inputs={"lengths": lengths})
    yield masked("padding between keys", pad=~gaps, inputs={"allow": by_key})
    allow = allowed(3, 4)
    yield masked("padding and bool (T, S)", ~allow, pad, {"allow": allow, "lengths": lengths})
    allow = allowed(2, 2, 3, 4)
    yield masked("padding and bool, each head's", heads(~allow), pad, {"allow": allow, "lengths": lengths})
    allow = allowed(3, 4)
    yield masked("padding between keys and bool (T, S)", ~allow, ~gaps, {"allow": allow & by_key})
    bias = rand(3, 4)
    yield masked("padding and float (T, S)", bias, pad, {"bias": bias, "lengths": lengths})
    bias = additive(2, 2, 3, 4)
    yield masked("padding and float, each head's", heads(bias), pad, {"bias": bias, "lengths": lengths})
    bias = rand(3, 4)
    yield masked("padding between keys and float (T, S)", bias, ~gaps, {"bias": bias, "allow": by_key})
    yield masked("causal", causal(4, 4), is_causal=True, t=4)
    yield masked("causal, fewer queries", causal(3, 4), is_causal=True)
    yield masked("causal, more queries", causal(5, 4), is_causal=True, t=5)
    yield masked("causal and padding", causal(4, 4), pad, {"lengths": lengths}, is_causal=True, t=4)
    bias = rand(4, 4)
    yield masked("causal, padding and float (T, S)", bias.masked_fill(causal(4, 4), -math.inf), pad, {"bias": bias, "lengths": lengths}, is_causal=True, t=4)
    yield masked("causal without a batch", causal(4, 4), is_causal=True, t=4, batch=0)
    allow = allowed(3, 4)
    yield masked("widths, bool (T, S) and padding", ~allow, pad, {"allow": allow, "lengths": lengths}, kdim=5, vdim=3)
    yield masked("no bias, one head, causal and padding", causal(4, 4), pad, {"lengths": lengths}, is_causal=True, t=4, heads=1, bias=False)


# ---- blocks


def scoped(prefix, names):
    return {prefix + "." + k: v for k, v in names.items()}


def block_params(l):
    names = scoped("attention", multihead_params(l.self_attn))
    for ours, theirs in (("feedforward.up", l.linear1), ("feedforward.down", l.linear2)):
        names.update(scoped(ours, dict(theirs.named_parameters())))
    norms = {"norm1": l.norm1, "norm2": l.norm2}
    if hasattr(l, "multihead_attn"):
        names.update(scoped("cross", multihead_params(l.multihead_attn)))
        norms = {"norm1": l.norm1, "normcross": l.norm2, "norm2": l.norm3}
    for ours, theirs in norms.items():
        names.update(scoped(ours, dict(theirs.named_parameters())))
    return names


def encoder_cases():
    for norm_first in (True, False):
        for activation in ("relu", "gelu"):
            l = randomise(nn.TransformerEncoderLayer(6, 2, 8, dropout=0.0, activation=activation, batch_first=True, norm_first=norm_first))
            x, lengths = rand(2, 3, 6), torch.tensor([2, 3])
            out = l(x, src_key_padding_mask=padding(lengths, 3))
            c = case("%s-norm, %s" % ("pre" if norm_first else "post", activation), {"x": x, "lengths": lengths}, {}, {"out": out}, postnorm=not norm_first, activation=activation)
            yield add_params(c, l, block_params)


def decoder_cases():
    for name, norm_first, activation in (
        ("pre-norm", True, "gelu"),
        ("post-norm", False, "relu"),
        ("pre-norm, relu", True, "relu"),
        ("post-norm, gelu", False, "gelu"),
    ):
        l = randomise(nn.TransformerDecoderLayer(6, 2, 8, dropout=0.0, activation=activation, batch_first=True, norm_first=norm_first))
        x, memory, lengths = rand(2, 3, 6), rand(2, 4, 6), torch.tensor([4, 2])
        out = l(x, memory, tgt_mask=causal(3, 3), memory_key_padding_mask=padding(lengths, 4))
        c = case(name, {"x": x, "memory": memory, "lengths": lengths}, {}, {"out": out}, postnorm=not norm_first, activation=activation)
        yield add_params(c, l, block_params)


if __name__ == "__main__":
    for i, (name, cases) in enumerate(
        {
            "linear": linear_cases,
            "embedding": embedding_cases,
            "norm": norm_cases,
            "activation": activation_cases,
            "loss": loss_cases,
            "core": core_cases,
            "self_attention": self_attention_cases,
            "cross_attention": cross_attention_cases,
            "encoder": encoder_cases,
            "decoder": decoder_cases,
            "masks": mask_cases,
            "elementwise_loss": elementwise_loss_cases,
        }.items()
    ):
        torch.manual_seed(20 + i)
        write(name, list(cases()))
