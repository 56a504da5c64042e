#!/usr/bin/env python3
"""Writes the fixtures of packed documents, in the format of fixtures.py: PyTorch's nn.MultiheadAttention with the mask
that the documents' numbers stand for.

    python3 fixtures_documents.py
"""
import torch

from fixtures import causal, masked, padding, write


def documents_case(name, numbers, is_causal=False, lengths=None, **config):
    """numbers has shape (B, T). Every query sees at least one key, because PyTorch gives NaN otherwise."""
    numbers = torch.tensor(numbers)
    batch, t = numbers.shape
    hidden = numbers[:, :, None] != numbers[:, None, :]
    inputs = {"documents": numbers}
    if is_causal:
        hidden = hidden | causal(t, t)
    if lengths:
        inputs["lengths"] = torch.tensor(lengths)
        hidden = hidden | padding(inputs["lengths"], t)[:, None, :]
    mask = hidden.repeat_interleave(config["heads"], 0)  # (B·H, T, T)
    return masked(name, mask, inputs=inputs, is_causal=is_causal, t=t, s=t, batch=batch, **config)


def documents_cases():
    rows = [[0, 0, 0, 1, 1, 2], [7, 3, 3, 3, 3, 9]]
    for is_causal in (False, True):
        name = "causal" if is_causal else "both ways"
        yield documents_case(name, rows, is_causal, heads=2)
        yield documents_case(name + ", keys that don't adjoin", [[0, 1, 0, 1, 2, 0], [1, 1, 1, 1, 1, 1]], is_causal, heads=2)
        yield documents_case(name + ", lengths", [[0, 0, 0, 0, 0, 0], [3, 3, 2, 2, 2, 2]], is_causal, [4, 5], heads=2)


if __name__ == "__main__":
    torch.manual_seed(70)
    write("documents", list(documents_cases()))
