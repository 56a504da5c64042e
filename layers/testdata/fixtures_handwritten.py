#!/usr/bin/env python3
"""Writes the fixtures of RMSNorm, gated feed-forward layers, rotary positions and ALiBi, in the format of fixtures.py.

    python3 fixtures_handwritten.py

PyTorch 1.13 has none of these layers. This script implements the formulas of the papers and of well-known models.
"""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

from fixtures import add_params, case, causal, multihead_params, rand, randomise, scoped, write

# ---- single layers


class RMSNorm(nn.Module):
    """Replaces torch.nn.RMSNorm, which torch 1.13 doesn't have."""

    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(dim)), eps

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


def rmsnorm_cases():
    for name, shape, dim, eps in (
        ("default", (2, 3, 6), 6, 1e-6),
        ("large eps", (4, 6), 6, 0.1),
        ("vector", (6,), 6, 1e-6),
        ("heads side by side", (2, 3, 6), 2, 1e-6),
    ):
        n, x = randomise(RMSNorm(dim, eps)), rand(*shape)
        out = n(x.reshape(*shape[:-1], shape[-1] // dim, dim)).reshape(shape)
        yield case(name, {"x": x}, dict(n.named_parameters()), {"out": out}, eps=eps, dim=dim, heads=shape[-1] // dim)


class GatedFeedForward(nn.Module):
    def __init__(self, dim, hidden, activation, bias=True):
        super().__init__()
        self.gate, self.up, self.down = nn.Linear(dim, hidden, bias), nn.Linear(dim, hidden, bias), nn.Linear(hidden, dim, bias)
        self.activation = activation

    def forward(self, x):
        return self.down(self.activation(self.gate(x)) * self.up(x))


def gated_cases():
    for name, activation, bias in (("silu", F.silu, True), ("gelu", F.gelu, True), ("relu", F.relu, True), ("silu", F.silu, False)):
        f, x = randomise(GatedFeedForward(4, 5, activation, bias)), rand(2, 3, 4)
        yield case(name + ("" if bias else ", no bias"), {"x": x}, dict(f.named_parameters()), {"out": f(x)}, activation=name, bias=bias)


# ---- positions


def halves(x, positions, dim, base):
    """Applies the rotary positions of GPT-NeoX and Llama. x is (B, H, T, K); positions is (B, T)."""
    rotated, rest = x[..., :dim], x[..., dim:]
    inv_freq = 1.0 / (base ** (torch.arange(0, dim, 2).double() / dim))
    freqs = positions[:, None, :, None].double() * inv_freq  # (B, 1, T, dim/2)
    emb = torch.cat((freqs, freqs), -1)
    half = torch.cat((-rotated[..., dim // 2 :], rotated[..., : dim // 2]), -1)
    return torch.cat((rotated * emb.cos() + half * emb.sin(), rest), -1)


def neighbours(x, positions, dim, base):
    """Applies the rotary positions of GPT-J: rotates each pair of neighbours as one complex number."""
    rotated, rest = x[..., :dim], x[..., dim:]
    angles = torch.einsum("bt,i->bti", positions.double(), base ** (-torch.arange(dim // 2).double() * 2 / dim))
    turn = torch.polar(torch.ones_like(angles), angles)[:, None]  # (B, 1, T, dim/2)
    z = torch.view_as_complex(rotated.reshape(*rotated.shape[:-1], dim // 2, 2).contiguous())
    return torch.cat((torch.view_as_real(z * turn).flatten(-2), rest), -1)


def rotary(name, shape, heads=1, dim=0, base=10000.0, offset=0, positions=None):
    for interleaved, f in ((False, halves), (True, neighbours)):
        x = rand(*shape)
        y = x if len(shape) > 2 else x[None]
        batch, t = y.shape[0], y.shape[-2]
        if y.dim() == 3:
            y = y.reshape(batch, t, heads, -1).transpose(1, 2)
        inputs = {"x": x}
        if positions is None:
            at = (offset + torch.arange(t)).expand(batch, t)
        else:
            inputs["positions"] = positions
            at = positions if positions.dim() == 2 else positions[:, None] + torch.arange(t)
        out = f(y, at, dim or y.shape[-1], base)
        if len(shape) < 4:
            out = out.transpose(1, 2).reshape(shape)
        kind = "neighbours" if interleaved else "halves"
        yield case("%s, %s" % (name, kind), inputs, {}, {"out": out}, heads=heads, rotary=dim, base=base, offset=offset, interleaved=interleaved)


def rotary_cases():
    yield from rotary("(B, H, T, K)", (2, 3, 4, 6))
    yield from rotary("(B, T, K)", (2, 4, 6), base=100.0)
    yield from rotary("(T, K)", (5, 4), offset=3)
    yield from rotary("(B, T, H·K)", (2, 4, 12), heads=3, dim=2, offset=100)
    yield from rotary("(T, H·K)", (4, 12), heads=2, dim=4, base=500.0)
    yield from rotary("offsets", (2, 3, 8), heads=2, positions=torch.tensor([7, 0]))
    yield from rotary("positions", (2, 2, 3, 4), positions=torch.tensor([[0, 0, 1], [5, -2, 900]]))


def slopes(heads):
    """Returns the slopes of ALiBi, computed as in the paper's code."""

    def power_of_two(n):
        start = 2 ** (-(2 ** -(math.log2(n) - 3)))
        return [start * start**i for i in range(n)]

    if math.log2(heads).is_integer():
        return power_of_two(heads)
    closest = 2 ** math.floor(math.log2(heads))
    return power_of_two(closest) + slopes(2 * closest)[0::2][: heads - closest]


def alibi_cases():
    for heads, t, s, offset, is_causal in ((2, 4, 4, 0, True), (3, 3, 3, 0, True), (6, 3, 4, 0, False), (4, 2, 5, 3, False)):
        q, k, v = rand(2, heads, t, 2), rand(2, heads, s, 2), rand(2, heads, s, 3)
        m = torch.tensor(slopes(heads))[:, None, None]
        if is_causal:  # the formula of the paper's code: in each row, it differs from the distances by a constant
            bias = (m * torch.arange(s)).masked_fill(causal(t, s), -math.inf)
        else:
            bias = -m * (torch.arange(t)[:, None] + offset - torch.arange(s)).abs()
        weights = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(2) + bias, -1)
        name = "%d heads, %d from %d on over %d%s" % (heads, t, offset, s, ", causal" if is_causal else "")
        yield case(name, {"q": q, "k": k, "v": v}, {}, {"out": weights @ v, "weights": weights}, heads=heads, offset=offset, causal=is_causal)


# ---- a block


class GatedBlock(nn.Module):
    """A pre-norm layer with RMSNorm and a gated feed-forward layer, as in Llama, but without positions."""

    def __init__(self, activation):
        super().__init__()
        self.self_attn, self.feedforward = nn.MultiheadAttention(6, 2, batch_first=True), GatedFeedForward(6, 8, activation)
        self.norm1, self.norm2 = RMSNorm(6), RMSNorm(6)

    def forward(self, x, mask):
        y = self.norm1(x)
        x = x + self.self_attn(y, y, y, attn_mask=mask)[0]
        return x + self.feedforward(self.norm2(x))


def gated_block_params(l):
    names = scoped("attention", multihead_params(l.self_attn))
    for part in ("feedforward", "norm1", "norm2"):
        names.update(scoped(part, dict(getattr(l, part).named_parameters())))
    return names


def gated_block_cases():
    for name, activation in (("silu", F.silu), ("gelu", F.gelu)):
        l, x = randomise(GatedBlock(activation)), rand(2, 3, 6)
        c = case(name, {"x": x}, {}, {"out": l(x, causal(3, 3))}, activation=name, gated=True, rmsnorm=True)
        yield add_params(c, l, gated_block_params)


if __name__ == "__main__":
    for i, (name, cases) in enumerate(
        {
            "rmsnorm": rmsnorm_cases,
            "gated": gated_cases,
            "rotary": rotary_cases,
            "alibi": alibi_cases,
            "gated_block": gated_block_cases,
        }.items()
    ):
        torch.manual_seed(40 + i)
        write(name, list(cases()))
