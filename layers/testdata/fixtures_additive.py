#!/usr/bin/env python3
"""Writes the fixtures of additive attention, in the format of fixtures.py.

    python3 fixtures_additive.py

PyTorch has no such layer. This script implements the formulas of the paper (Bahdanau, Cho and Bengio, 2014, appendix
A.1.2) and, without projections, those of Keras's AdditiveAttention.
"""
import math

import torch
import torch.nn as nn

from fixtures import case, causal, holes, padding, rand, write


class Additive(nn.Module):
    def __init__(self, dim, key, hidden, projections, scale):
        super().__init__()
        if projections:
            self.query, self.key = nn.Linear(dim, hidden, bias=False), nn.Linear(key, hidden, bias=False)
        self.scale = nn.Parameter(torch.randn(hidden)) if scale else None

    def forward(self, q, k, v, masked, bias):
        """The arguments masked (true for masked keys) and bias broadcast to (B, 1, T, S). A row without visible keys
        has weights of 0."""
        if hasattr(self, "query"):
            q, k = self.query(q), self.key(k)
        t = torch.tanh(q.unsqueeze(-2) + k.unsqueeze(-3))  # (B, T, 1, K) + (B, 1, S, K) -> (B, T, S, K)
        scores = (t if self.scale is None else t * self.scale).sum(-1)
        scores = scores.reshape(-1, 1, *scores.shape[-2:])
        if bias is not None:
            masked = masked | (bias == -math.inf)
            scores = scores + bias.masked_fill(bias == -math.inf, 0)
        masked = masked.expand(scores.shape)
        empty = masked.all(-1, keepdim=True)
        weights = torch.softmax(scores.masked_fill(masked & ~empty, -math.inf), -1).masked_fill(empty, 0)
        out = (weights @ v.reshape(-1, 1, *v.shape[-2:])).squeeze(1)
        return out.reshape(*q.shape[:-1], v.shape[-1]), weights


def additive(name, lead=(2,), t=3, s=4, dim=4, key=None, hidden=None, width=3, projections=True, scale=True, is_causal=False, lengths=None, allow=None, bias=None):
    key, hidden = key or dim, hidden or dim
    a = Additive(dim, key, hidden, projections, scale)
    inputs = {"query": rand(*lead, t, dim), "key": rand(*lead, s, key), "value": rand(*lead, s, width)}
    masked = torch.zeros(1, 1, t, s).bool()
    if is_causal:
        masked = masked | causal(t, s)
    if lengths is not None:
        inputs["lengths"] = lengths
        masked = masked | padding(lengths, s)[:, None, None, :]
    if allow is not None:
        inputs["allow"] = allow
        masked = masked | ~allow
    if bias is not None:
        inputs["bias"] = bias
    out, weights = a(inputs["query"], inputs["key"], inputs["value"], masked, bias)
    params = {("scale.weight" if n == "scale" else n): p for n, p in a.named_parameters()}
    return case(name, inputs, params, {"out": out, "weights": weights}, causal=is_causal)


def cases():
    yield additive("the paper's")
    yield additive("widths", key=5, hidden=6, width=2)
    yield additive("no batch", lead=(), key=3, hidden=2)
    yield additive("Keras's", projections=False)
    yield additive("Keras's, no scale", projections=False, scale=False)
    yield additive("no scale", hidden=7, scale=False)
    yield additive("one of each", lead=(1,), t=1, s=1, dim=1, width=1)
    yield additive("causal", t=4, is_causal=True)
    yield additive("lengths with an empty one", lead=(3,), lengths=torch.tensor([4, 0, 2]))
    yield additive("allow of (T, S) with an empty row", allow=torch.tensor([[1, 0, 0, 1], [0, 0, 0, 0], [1, 1, 1, 0]]).bool())
    yield additive("allow of (B, 1, 1, S)", allow=torch.tensor([[1, 0, 0, 1], [0, 1, 1, 1]]).bool()[:, None, None, :])
    yield additive("bias", bias=holes(rand(2, 1, 3, 4, grad=False)))
    yield additive(
        "everything", t=4, key=3, hidden=5, is_causal=True, lengths=torch.tensor([3, 4]), allow=torch.rand(2, 1, 4, 4) < 0.8, bias=holes(rand(4, 4, grad=False))
    )
    yield additive("many keys", lead=(1,), t=3, s=40, dim=3, hidden=19)


if __name__ == "__main__":
    torch.manual_seed(60)
    write("additive", list(cases()))
