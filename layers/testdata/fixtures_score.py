#!/usr/bin/env python3
"""Writes the fixtures of attention with a function of scores and with a mask from a function, in the format of
fixtures.py. PyTorch's FlexAttention has both, but no gradients on a CPU, so this script writes the formulas out.

    python3 fixtures_score.py
"""
import math

import torch

from fixtures import case, rand, write


def wavy(scores):
    """The function wavy of the Go tests, for scores (B, H, T, S)."""
    _, heads, queries, keys = scores.shape
    head = torch.arange(heads, dtype=scores.dtype)[:, None, None]
    x = (torch.arange(queries, dtype=scores.dtype)[:, None] - torch.arange(keys, dtype=scores.dtype)) / 100
    return scores + 0.3 * torch.sin(scores + head) - x * x / (1 + x * x)


def score_case(name, shape, heads, sees, softcap=0.0):
    """sees is a function of a query's and a key's position, or None."""
    *_, length, dim = shape
    x = rand(*shape)
    weights = {part: rand(dim, dim) for part in ("query", "key", "value", "output")}

    def split(part):
        return (x @ weights[part].T).reshape(-1, length, heads, dim // heads).transpose(1, 2)

    scores = split("query") @ split("key").transpose(-1, -2) / math.sqrt(dim // heads)
    if softcap:
        scores = softcap * torch.tanh(scores / softcap)
    scores = wavy(scores)
    if sees:
        allow = torch.tensor([[sees(t, j) for j in range(length)] for t in range(length)])
        scores = scores.masked_fill(~allow, -math.inf)
    out = (torch.softmax(scores, -1) @ split("value")).transpose(1, 2).reshape(shape) @ weights["output"].T
    params = {part + ".weight": w for part, w in weights.items()}
    return case(name, {"x": x}, params, {"out": out}, heads=heads, dim=dim, scale=softcap, first=sees is not None)


def score_cases():
    prefix = lambda t, j: j < 2 or j <= t
    yield score_case("score", (2, 5, 6), 2, None)
    yield score_case("score and softcap", (1, 4, 6), 3, None, 0.7)
    yield score_case("score and blocks", (2, 6, 4), 2, prefix)
    yield score_case("score, softcap and blocks", (2, 6, 4), 1, prefix, 0.7)


if __name__ == "__main__":
    torch.manual_seed(71)
    write("score", list(score_cases()))
