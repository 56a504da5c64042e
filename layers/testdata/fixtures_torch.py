#!/usr/bin/env python3
"""Writes fixtures of whole modules and files with their weights, in the formats of fixtures_seq2seq.py.

    python3 fixtures_torch.py

The modules have PyTorch's defaults. One is an nn.Transformer with post-norm, whose stacks also end with a norm. The
other has the kinds of layers that exist in both PyTorch and Heed.
"""
import torch
import torch.nn as nn

from fixtures import add_params, block_params, case, causal, padding, randomise, scoped, write
from fixtures_seq2seq import DIM, HEADS, HIDDEN, Seq2Seq, encoder_layer, save, seq2seq_params


class DefaultSeq2Seq(Seq2Seq):
    def __init__(self):
        super().__init__(norm_first=False, shared=False)
        self.transformer = nn.Transformer(DIM, HEADS, 2, 1, HIDDEN, dropout=0.0, batch_first=True)


def transformer_cases():
    m = randomise(DefaultSeq2Seq())
    save("torch_transformer_post_norm", m)
    source, target, lengths = torch.randint(0, 7, (2, 5)), torch.randint(0, 6, (2, 3)), torch.tensor([5, 3])
    inputs = {"source": source, "target": target, "lengths": lengths}
    c = case("post-norm with norms at the end", inputs, {}, {"out": m(source, target, lengths)})
    yield add_params(c, m, seq2seq_params)


class Layers(nn.Module):
    """One layer of each kind. Heed's scopes have the same names as these attributes."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(7, 3)
        self.linear = nn.Linear(3, DIM)
        self.norm = nn.LayerNorm(DIM)
        self.encoder_layer = encoder_layer(norm_first=False)
        self.scale = nn.LayerNorm(DIM)
        self.scale.register_parameter("bias", None)  # the same as bias=False, which torch has since 2.1
        self.decoder_layer = nn.TransformerDecoderLayer(DIM, HEADS, HIDDEN, dropout=0.0, batch_first=True, norm_first=True)
        self.head = nn.Linear(DIM, 2, bias=False)

    def forward(self, ids, lengths):
        pad = padding(lengths, ids.shape[1])
        x = self.norm(self.linear(self.embedding(ids)))
        memory = self.scale(self.encoder_layer(x, src_key_padding_mask=pad))
        t = ids.shape[1]
        return self.head(self.decoder_layer(x, memory, tgt_mask=causal(t, t), memory_key_padding_mask=pad))


def layers_params(m):
    names = {}
    for part in ("embedding", "linear", "norm", "scale", "head"):
        names.update(scoped(part, dict(getattr(m, part).named_parameters())))
    for part in ("encoder_layer", "decoder_layer"):
        names.update(scoped(part, block_params(getattr(m, part))))
    return names


def layers_cases():
    m = randomise(Layers())
    save("torch_layers", m)
    ids, lengths = torch.tensor([[1, 6, 6, 0], [3, 1, 5, 5]]), torch.tensor([4, 2])
    c = case("one of each", {"ids": ids, "lengths": lengths}, {}, {"out": m(ids, lengths)})
    yield add_params(c, m, layers_params)


if __name__ == "__main__":
    for name, cases in (("torch_transformer_post_norm", transformer_cases), ("torch_layers", layers_cases)):
        torch.manual_seed(236)  # with this seed, no norm gets a nearly constant row (see fixtures_seq2seq.py)
        write(name, list(cases()))
