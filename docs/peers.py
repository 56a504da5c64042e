"""Measures Heed and its peers in turn on the CPU, and prints the tables of performance.md as Markdown.

    python3 -m venv venv && venv/bin/pip install torch jax onnx onnxruntime
    go build -o heed ./cmd/heed
    venv/bin/python docs/peers.py ./heed [--rounds 3] [--only step nanogpt long ...]

--only chooses tables (step, forward, long, gemm) and rows (tiny, nanogpt, deep, baby, wide, gpt2). Each round measures
every program once, in a process of its own; a cell has the median of the rounds, and a ratio divides two medians.
PyTorch runs in several settings, and a cell names the fastest: plain (attention written out), sdpa
(scaled_dot_product_attention, AdamW(fused=True)), compile (sdpa under torch.compile), and sdpa-1 (sdpa with one
thread). Standard error has a JSON line per measurement. The machine should do nothing else.
"""
import argparse
import functools
import io
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import time

# batch, length, width, heads, blocks, vocabulary: the configurations of heed bench
CONFIGS = {"tiny": (32, 16, 32, 2, 1, 12), "nanogpt": (12, 64, 128, 4, 4, 65), "deep": (2, 64, 64, 4, 96, 65),
           "baby": (4, 256, 384, 6, 6, 65), "wide": (8, 128, 512, 8, 4, 1000), "gpt2": (1, 256, 768, 12, 12, 50257)}
LENGTHS, SIZES = (1024, 4096), (64, 128, 256, 512, 1024)
LIMIT = 300  # seconds per measurement; slower ones have no figure


def median_ms(step):
    """Returns the median time of a step, after three untimed ones."""
    for _ in range(3):
        step()
    times, begin = [], time.perf_counter()
    while len(times) < 5 or len(times) < 50 and time.perf_counter() - begin < 5:
        start = time.perf_counter()
        step()
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def torch_gpt(name, fused):
    """Returns heed bench's GPT in PyTorch, and ids and targets. The head is the embedding table if V is above 1,000."""
    import torch
    from torch import nn
    from torch.nn import functional as F
    B, T, D, H, L, V = CONFIGS[name]

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(D), nn.LayerNorm(D)
            self.qkv, self.output = nn.Linear(D, 3 * D), nn.Linear(D, D)
            self.up, self.down = nn.Linear(D, 4 * D), nn.Linear(4 * D, D)
            self.register_buffer("mask", torch.full((T, T), -math.inf).triu(1))

        def forward(self, x):
            q, k, v = self.qkv(self.norm1(x)).view(B, T, 3, H, D // H).permute(2, 0, 3, 1, 4)
            x = x + self.output(torch_attend(q, k, v, None if fused else self.mask).transpose(1, 2).reshape(B, T, D))
            return x + self.down(F.relu(self.up(self.norm2(x))))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.positions = nn.Embedding(V, D), nn.Parameter(torch.randn(T, D) * 0.02)
            self.body = nn.Sequential(*(Block() for _ in range(L)), nn.LayerNorm(D))
            self.head = nn.Linear(D, V, bias=V <= 1000)
            nn.init.normal_(self.embed.weight, std=0.02)  # with 1, gradients of gpt2 are subnormal, and slow
            if V > 1000:
                self.head.weight = self.embed.weight

        def forward(self, ids):
            return self.head(self.body(self.embed(ids) + self.positions))

    return GPT(), torch.randint(V, (B, T)), torch.randint(V, (B * T,))


def torch_attend(q, k, v, mask):
    """Returns causal attention: fused, or written out if there is a mask."""
    import torch
    if mask is None:
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    return torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]) + mask, -1) @ v


def bf16_step(name, mode):
    return torch_step(name, mode, half=True)


def torch_step(name, mode, half=False):
    import torch
    fused = mode != "plain"
    model, ids, targets = torch_gpt(name, fused)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=fused)

    def loss():
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=half):
            logits = model(ids)
        return torch.nn.functional.cross_entropy(logits.float().view(len(targets), -1), targets)

    compute = torch.compile(loss) if mode == "compile" else loss

    def step():
        optimiser.zero_grad(set_to_none=True)
        compute().backward()
        optimiser.step()

    return median_ms(step)


def torch_forward(name, mode):
    import torch
    model, ids, _ = torch_gpt(name, mode != "plain")
    model = torch.compile(model.eval()) if mode == "compile" else model.eval()
    with torch.inference_mode():
        return median_ms(lambda: model(ids))


def torch_long(length, mode):
    import torch
    q, k, v = (torch.randn(1, 4, length, 64, requires_grad=True) for _ in range(3))
    mask = torch.full((length, length), -math.inf).triu(1) if mode == "plain" else None

    def step():
        q.grad = k.grad = v.grad = None
        torch_attend(q, k, v, mask).sum().backward()

    return median_ms(step)


def torch_gemm(size, _):
    import torch
    a, b = torch.randn(size, size), torch.randn(size, size)
    many = max(1, 2**24 // size**3)
    return median_ms(lambda: [a @ b for _ in range(many)]) / many


def onnx_forward(name, _):
    import onnxruntime
    import torch
    model, ids, _ = torch_gpt(name, True)
    file = io.BytesIO()
    torch.onnx.export(model.eval(), (ids,), file, input_names=["ids"], dynamo=False)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = os.cpu_count()
    session = onnxruntime.InferenceSession(file.getvalue(), options)
    inputs = {"ids": ids.numpy()}
    return median_ms(lambda: session.run(None, inputs))


def jax_step(name, _):
    import jax
    import jax.numpy as np
    B, T, D, H, L, V = CONFIGS[name]
    keys = iter(jax.random.split(jax.random.PRNGKey(0), 6 * L + 9))

    def weight(*shape):
        return jax.random.normal(next(keys), shape) * 0.02

    def linear(rows, columns):
        return weight(rows, columns), np.zeros(columns)

    def norm():
        return np.ones(D), np.zeros(D)

    blocks = [(norm(), linear(D, 3 * D), linear(D, D), norm(), linear(D, 4 * D), linear(4 * D, D)) for _ in range(L)]
    params = {"embed": weight(V, D), "positions": weight(T, D), "blocks": blocks, "norm": norm()}
    if V <= 1000:
        params["head"] = linear(D, V)
    mask = np.where(np.tril(np.ones((T, T), bool)), 0.0, -np.inf)

    def apply(p, x):
        return x @ p[0] + p[1]

    def normalise(p, x):
        return (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * p[0] + p[1]

    def loss(p, ids, targets):
        x = p["embed"][ids] + p["positions"]
        for norm1, qkv, output, norm2, up, down in p["blocks"]:
            q, k, v = apply(qkv, normalise(norm1, x)).reshape(B, T, 3, H, D // H).transpose(2, 0, 3, 1, 4)
            weights = jax.nn.softmax(q @ k.transpose(0, 1, 3, 2) / math.sqrt(D // H) + mask, -1)
            x = x + apply(output, (weights @ v).transpose(0, 2, 1, 3).reshape(B, T, D))
            x = x + apply(down, jax.nn.relu(apply(up, normalise(norm2, x))))
        x = normalise(p["norm"], x)
        logits = apply(p["head"], x) if V <= 1000 else x @ p["embed"].T
        return -np.take_along_axis(jax.nn.log_softmax(logits), targets[..., None], -1).mean()

    @functools.partial(jax.jit, donate_argnums=(0, 1, 2))
    def step(p, first, second, t, ids, targets):
        grads = jax.grad(loss)(p, ids, targets)
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, grads)
        second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, grads)

        def adamw(w, m, v):
            return w - 1e-3 * (m / (1 - 0.9**t) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8) + 0.01 * w)

        return jax.tree.map(adamw, p, first, second), first, second, t + 1

    ids, targets = (jax.random.randint(next(keys), (B, T), 0, V) for _ in range(2))
    state = [params, jax.tree.map(np.zeros_like, params), jax.tree.map(np.zeros_like, params), np.float32(1)]

    def run():
        state[:] = step(*state, ids, targets)
        jax.block_until_ready(state)

    return median_ms(run)


def measure_here(function, what, mode):
    """Measures a peer in this process, and prints a JSON line."""
    if function != "jax_step":
        import torch
        torch.set_num_threads(1 if mode.endswith("-1") else os.cpu_count())
    ms = globals()[function](int(what) if what.isdigit() else what, mode)
    print(json.dumps({"median_ms": ms, "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


PEERS = {"heed": "Heed", "torch": "PyTorch", "bf16": "PyTorch, bfloat16 autocast", "jax": "JAX", "onnx": "onnxruntime"}
TABLES = {"step": ("One training step: forward, backward, AdamW", ["heed", "torch", "bf16", "jax"]),
          "forward": ("Forward pass", ["heed", "torch", "onnx"]),
          "long": ("Causal attention alone, forward and backward, H 4, K 64", ["heed", "torch"]),
          "gemm": ("float32 matrix product, GFLOP/s", ["heed", "torch"])}


def programs():
    """Yields the table, row, program and setting of each measurement."""
    for name in CONFIGS:
        steps = {"heed": ["fused"], "torch": ["plain", "sdpa", "compile"], "bf16": ["sdpa", "compile"], "jax": ["jit"]}
        if name == "tiny":
            steps["torch"].append("sdpa-1")
        if name == "deep":
            del steps["jax"]  # JAX compiles it for more than five minutes
        forward = {"heed": ["forward"], "torch": ["sdpa", "compile"], "onnx": ["default"]}
        for table, modes in (("step", steps), ("forward", forward)):
            yield from ((table, name, program, mode) for program in modes for mode in modes[program])
    for length in LENGTHS:
        yield from (("long", str(length), *p) for p in (("heed", "fused"), ("torch", "plain"), ("torch", "sdpa")))
    for size in SIZES:
        yield from (("gemm", str(size), *p) for p in (("heed", ""), ("torch", "default")))


def measure(heed, table, name, program, mode):
    """Measures a program in a process of its own. Returns its result, or None if it failed."""
    command = [sys.executable, __file__, "--here", f"{program}_{table}", name, mode]
    if program == "heed":
        config = f"{table}-{name}" if name.isdigit() else name
        command = [heed, "bench", "--json", f"{config}/{mode}".rstrip("/")]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=True)
    except subprocess.SubprocessError as e:
        print(f"{' '.join(command)}: {e}\n{e.stderr or ''}", file=sys.stderr)
        return None
    result = json.loads(run.stdout.splitlines()[-1])
    line = {"table": table, "row": name, "program": program, "mode": mode, **result}
    print(json.dumps(line), file=sys.stderr, flush=True)
    return result


def cell(results, table, name, program):
    """Returns a program's figures in its fastest setting. The argument results has a list for each setting."""
    def best(p):
        done = [(*(statistics.median(r[k] for r in found) for k in ("median_ms", "peak_rss_mb")), key[3])
                for key, found in results.items() if key[:3] == (table, name, p) and found]
        return min(done, default=None)

    ours, theirs = best("heed"), best(program)
    if not ours or not theirs:
        return "–"
    ms, mb, mode = theirs
    if table == "gemm":
        return f"{2 * int(name)**3 / ms / 1e6:.0f}"
    time_and_memory = f"{ms:.2f} ms, {mb:,.0f} MB" if ms < 10 else f"{ms:,.0f} ms, {mb:,.0f} MB"
    return time_and_memory if program == "heed" else f"{time_and_memory} ({mode}): {ms / ours[0]:.2f} times"


def main():
    if sys.argv[1:2] == ["--here"]:
        return measure_here(*sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("heed", help="the command heed")
    parser.add_argument("--rounds", type=int, default=3, help="how often to measure each program")
    parser.add_argument("--only", nargs="+", choices=[*TABLES, *CONFIGS], default=[], metavar="NAME")
    args = parser.parse_args()
    tables, names = set(args.only) & set(TABLES) or set(TABLES), set(args.only) & set(CONFIGS)
    chosen = [p for p in programs() if p[0] in tables and (not names or p[1] in names)]
    results = {p: [] for p in chosen}
    for _ in range(args.rounds):
        for p in chosen:
            if result := measure(os.path.abspath(args.heed), *p):
                results[p].append(result)
    for table, (title, columns) in TABLES.items():
        if found := list(dict.fromkeys(p[1] for p in chosen if p[0] == table)):
            print(f"\n| {title} | {' | '.join(PEERS[c] for c in columns)} |\n|{'---|' * (len(columns) + 1)}")
            for name in found:
                print(f"| {name} | {' | '.join(cell(results, table, name, c) for c in columns)} |")


main()
