"""Trains in PyTorch what `heed train --task text --preset nanogpt` trains. Prints one JSON object per line.

    OPENBLAS_CORETYPE=SkylakeX /usr/bin/python3 docs/torch_nanogpt.py tinyshakespeare.txt [seed ...]

This is the run that nanoGPT's README (https://github.com/karpathy/nanoGPT) documents for a CPU: block 64, batch 12,
4 layers, 4 heads, width 128, no dropout, 2,000 iterations, with the settings of its config/train_shakespeare_char.py and
train.py. The loss is computed on the whole validation split, in adjacent windows, every 250 iterations; the best one counts.
Leave OPENBLAS_CORETYPE out if OpenBLAS recognises the processor. The environment variable THREADS sets the number of threads.
"""
import json
import math
import os
import resource
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

LENGTH, BATCH, LAYERS, HEADS, DIM = 64, 12, 4, 4, 128
STEPS, CHECK, RATE, WARM_UP, FLOOR = 2000, 250, 1e-3, 100, 0.1


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(DIM))

    def forward(self, x):
        return F.layer_norm(x, (DIM,), self.weight, None, 1e-5)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mask", torch.full((LENGTH, LENGTH), -math.inf).triu(1))
        self.norm1, self.norm2 = Norm(), Norm()
        self.qkv, self.output = nn.Linear(DIM, 3 * DIM, bias=False), nn.Linear(DIM, DIM, bias=False)
        self.up, self.down = nn.Linear(DIM, 4 * DIM, bias=False), nn.Linear(4 * DIM, DIM, bias=False)

    def forward(self, x):  # (B, T, D)
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, HEADS, d // HEADS).permute(2, 0, 3, 1, 4)  # (B, H, T, D/H) each
        weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(d // HEADS) + self.mask, -1)  # (B, H, T, T)
        x = x + self.output((weights @ v).transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    def __init__(self, vocab):
        super().__init__()
        self.tokens, self.positions = nn.Parameter(torch.empty(vocab, DIM)), nn.Parameter(torch.empty(LENGTH, DIM))
        self.blocks, self.norm = nn.Sequential(*(Block() for _ in range(LAYERS))), Norm()
        for name, p in self.named_parameters():
            if p.dim() == 2:
                residual = name.endswith(("output.weight", "down.weight"))
                nn.init.normal_(p, std=0.02 / math.sqrt(2 * LAYERS) if residual else 0.02)

    def forward(self, x, y):
        logits = self.norm(self.blocks(self.tokens[x] + self.positions)) @ self.tokens.T  # (B, T, V)
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), y.reshape(-1))


def rate(step):
    if step < WARM_UP:
        return RATE * (step + 1) / WARM_UP
    return RATE * (FLOOR + (1 - FLOOR) * (1 + math.cos(math.pi * (step - WARM_UP) / (STEPS - WARM_UP))) / 2)


@torch.no_grad()
def validate(model, windows):  # (N, T + 1)
    total = sum(model(w[:, :-1], w[:, 1:]).item() * len(w) for w in windows.split(250))
    return total / len(windows)


def train(text, seed):
    torch.manual_seed(seed)
    ids = {c: i for i, c in enumerate(sorted(set(text)))}
    ids = torch.tensor([ids[c] for c in text])
    n = len(text) * 9 // 10
    validation = ids[n:]
    windows = validation[: len(validation) // (LENGTH + 1) * (LENGTH + 1)].view(-1, LENGTH + 1)
    model = GPT(len(set(text)))
    groups = [
        {"params": [p for p in model.parameters() if p.dim() == 2], "weight_decay": 0.1},
        {"params": [p for p in model.parameters() if p.dim() == 1], "weight_decay": 0.0},
    ]
    optimiser = torch.optim.AdamW(groups, betas=(0.9, 0.99))
    losses, start = [], time.perf_counter()
    for step in range(STEPS):
        for group in optimiser.param_groups:
            group["lr"] = rate(step)
        batch = torch.stack([ids[i : i + LENGTH + 1] for i in torch.randint(n - LENGTH, (BATCH,))])
        loss = model(batch[:, :-1], batch[:, 1:])
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        if (step + 1) % CHECK == 0:
            losses.append(validate(model, windows))
    return {
        "seed": seed,
        "parameters": sum(p.numel() for p in model.parameters()),
        "val_loss": round(min(losses), 4),
        "seconds": round(time.perf_counter() - start, 1),
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


torch.set_num_threads(int(os.environ.get("THREADS", "2")))
with open(sys.argv[1], newline="") as f:
    content = f.read()
for seed in map(int, sys.argv[2:] or ["1", "2", "3"]):
    print(json.dumps(train(content, seed)), flush=True)
