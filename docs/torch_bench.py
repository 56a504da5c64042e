"""Measures PyTorch's columns in the tables of performance.md, on the CPU. Prints one JSON object per line.

    OPENBLAS_CORETYPE=SkylakeX /usr/bin/python3 docs/torch_bench.py [nanogpt|tiny|long|gemm ...]

Leave OPENBLAS_CORETYPE out if OpenBLAS recognises the processor. Each figure is measured with one PyTorch thread and with two;
the tables show the better one. OpenBLAS has its own threads: for matrix products on one core, also set
OPENBLAS_NUM_THREADS=1.
"""
import json
import math
import resource
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F


def median_ms(step, warmup, count):
    times = []
    for i in range(warmup + count):
        start = time.perf_counter()
        step()
        if i >= warmup:
            times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def report(config, threads, ms, flops=None):
    line = {"config": config, "threads": threads, "median_ms": round(ms, 4)}
    if flops:
        line["gflops"] = round(flops / ms / 1e6, 1)
    line["peak_rss_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps(line), flush=True)


def causal_mask(length):
    return torch.full((length, length), -math.inf).triu(1)


def attend(q, k, v, mask):
    return torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]) + mask, -1) @ v


class Block(nn.Module):
    def __init__(self, length, dim, heads):
        super().__init__()
        self.register_buffer("mask", causal_mask(length))
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.output = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x):
        b, t, d = x.shape
        qkv = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        x = x + self.output(attend(*qkv, self.mask).transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.relu(self.up(self.norm2(x))))


def gpt(batch, length, dim, heads, blocks, vocab):
    embed, positions = nn.Embedding(vocab, dim), nn.Parameter(torch.randn(length, dim) * 0.02)
    body = nn.Sequential(*(Block(length, dim, heads) for _ in range(blocks)), nn.LayerNorm(dim), nn.Linear(dim, vocab))
    optimiser = torch.optim.AdamW([*embed.parameters(), positions, *body.parameters()], lr=1e-3)
    x, y = torch.randint(vocab, (batch, length)), torch.randint(vocab, (batch * length,))

    def step():
        loss = F.cross_entropy(body(embed(x) + positions).view(-1, vocab), y)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()

    return step


def long(length):
    q, k, v = (torch.randn(1, 4, length, 64, requires_grad=True) for _ in range(3))
    mask = causal_mask(length)

    def step():
        q.grad = k.grad = v.grad = None
        attend(q, k, v, mask).sum().backward()

    return step


for name in sys.argv[1:] or ["nanogpt", "tiny", "long", "gemm"]:
    for threads in (1, 2):
        torch.set_num_threads(threads)
        torch.manual_seed(0)
        if name == "nanogpt":
            report(name, threads, median_ms(gpt(12, 64, 128, 4, 4, 65), 5, 25))
        elif name == "tiny":
            report(name, threads, median_ms(gpt(32, 16, 32, 2, 1, 12), 5, 100))
        elif name == "long":
            for t in (1024, 4096):
                report(f"long-{t}", threads, median_ms(long(t), 1, 5))
        elif name == "gemm":
            for n in (64, 128, 256, 512, 1024):
                a, b = torch.randn(n, n), torch.randn(n, n)
                report(f"gemm-{n}", threads, median_ms(lambda: a @ b, 5, max(50, 2**31 // n**3)), 2 * n**3)
        else:
            sys.exit(f"unknown configuration {name}")
