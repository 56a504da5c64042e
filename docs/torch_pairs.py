"""Measures training steps of `heed train --task seq2seq --preset base`, in PyTorch. Prints one JSON object.

    OPENBLAS_CORETYPE=SkylakeX /usr/bin/python3 docs/torch_pairs.py cmudict-train.tsv [steps]

The model is the preset's: 4 encoder blocks and 1 decoder block of width 256, with 4 heads, rotary positions, an RMSNorm before each
sub-layer, normalised queries and keys, a SwiGLU layer of width 688, no biases, and dropout. AdamW trains on batches of 64 rows of similar
length, padded to the longest. The script measures only time and memory, not how well the model learns. Leave OPENBLAS_CORETYPE out if
OpenBLAS recognises the processor. The environment variable THREADS sets the number of threads.
"""
import json
import os
import random
import resource
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

DIM, HEADS, HIDDEN, BATCH, DROPOUT = 256, 4, 688, 64, 0.2
PAD, START = 0, 1


class Norm(nn.Module):
    def __init__(self, width=DIM):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * self.weight


def rotated(x):  # (B, H, T, K)
    half = x.shape[-1] // 2
    angles = torch.arange(x.shape[2])[:, None] * 10000 ** (-torch.arange(half) / half)  # (T, K/2)
    a, b = x[..., :half], x[..., half:]
    return torch.cat((a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()), -1)


class Attention(nn.Module):
    def __init__(self, rotary=True):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(DIM, DIM, bias=False) for _ in range(4))
        self.q_norm, self.k_norm, self.rotary = Norm(DIM // HEADS), Norm(DIM // HEADS), rotary

    def forward(self, x, memory, mask):  # (B, T, D), (B, S, D), bool that broadcasts to (B, H, T, S)
        def heads(y):
            return y.view(*y.shape[:2], HEADS, -1).transpose(1, 2)
        q, k, v = self.q_norm(heads(self.q(x))), self.k_norm(heads(self.k(memory))), heads(self.v(memory))
        if self.rotary:
            q, k = rotated(q), rotated(k)
        scores = (q @ k.transpose(-2, -1)) * (DIM // HEADS) ** -0.5
        y = torch.softmax(scores.masked_fill(~mask, -1e9), -1) @ v
        return self.o(y.transpose(1, 2).reshape(x.shape))


class Block(nn.Module):
    def __init__(self, cross):
        super().__init__()
        self.norm, self.attention = Norm(), Attention()
        self.cross_norm, self.cross = (Norm(), Attention(rotary=False)) if cross else (None, None)
        self.up_norm = Norm()
        self.up, self.gate, self.down = (nn.Linear(DIM, HIDDEN, bias=False), nn.Linear(DIM, HIDDEN, bias=False),
                                         nn.Linear(HIDDEN, DIM, bias=False))

    def forward(self, x, mask, memory=None, memory_mask=None):
        def drop(y):
            return F.dropout(y, DROPOUT, self.training)
        y = self.norm(x)
        x = x + drop(self.attention(y, y, mask))
        if memory is not None:
            x = x + drop(self.cross(self.cross_norm(x), memory, memory_mask))
        y = self.up_norm(x)
        return x + drop(self.down(F.silu(self.gate(y)) * self.up(y)))


class Model(nn.Module):
    def __init__(self, sources, targets):
        super().__init__()
        self.source, self.target = nn.Embedding(sources, DIM), nn.Embedding(targets, DIM)
        self.encoder = nn.ModuleList(Block(False) for _ in range(4))
        self.decoder = nn.ModuleList(Block(True) for _ in range(1))
        self.norm, self.head_norm, self.head = Norm(), Norm(), nn.Linear(DIM, targets, bias=False)

    def forward(self, x, y):  # ids (B, S), (B, T)
        seen = (x != PAD)[:, None, None, :]
        h, z = self.source(x), self.target(y)
        for block in self.encoder:
            h = block(h, seen)
        h = self.norm(h)
        before = torch.ones(y.shape[1], y.shape[1], dtype=torch.bool).tril()
        for block in self.decoder:
            z = block(z, before, h, seen)
        return self.head(self.head_norm(z))  # (B, T, V)


def main():
    if "THREADS" in os.environ:
        torch.set_num_threads(int(os.environ["THREADS"]))
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 300
    rows = [line.rstrip("\n").split("\t")[:2] for line in open(sys.argv[1], encoding="utf-8")]
    letters = {c: i + 2 for i, c in enumerate(sorted({c for s, _ in rows for c in s}))}
    sounds = {c: i + 2 for i, c in enumerate(sorted({c for _, t in rows for c in t.split()}))}
    pairs = [([letters[c] for c in s], [START] + [sounds[c] for c in t.split()] + [START]) for s, t in rows]
    random.seed(1), torch.manual_seed(1)
    random.shuffle(pairs)
    batches = []
    for i in range(0, len(pairs), 50 * BATCH):
        part = sorted(pairs[i:i + 50 * BATCH], key=lambda p: (len(p[0]), len(p[1])))
        batches += [part[j:j + BATCH] for j in range(0, len(part), BATCH)]
    random.shuffle(batches)

    model = Model(len(letters) + 2, len(sounds) + 2)
    optimiser = torch.optim.AdamW(model.parameters(), 1e-3, weight_decay=0.01)
    times = []
    for n, batch in enumerate(batches[:steps]):
        begin = time.process_time(), time.time()
        pad = lambda ids: nn.utils.rnn.pad_sequence([torch.tensor(x) for x in ids], True, PAD)
        x, y = pad([s for s, _ in batch]), pad([t for _, t in batch])
        loss = F.cross_entropy(model(x, y[:, :-1]).flatten(0, 1), y[:, 1:].flatten(), ignore_index=PAD, label_smoothing=0.1)
        optimiser.zero_grad(), loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1)
        optimiser.step()
        times.append((time.process_time() - begin[0], time.time() - begin[1]))
    median = lambda k: sorted(t[k] for t in times[20:])[len(times[20:]) // 2]
    print(json.dumps({"parameters": sum(p.numel() for p in model.parameters()), "steps": len(times), "loss": loss.item(),
                      "processor_ms": 1e3 * median(0), "clock_ms": 1e3 * median(1), "threads": torch.get_num_threads(),
                      "mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


main()
