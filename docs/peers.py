"""Compares Heed with its peers on the CPU, and prints the tables of performance.md as Markdown.

    python3 -m venv venv && venv/bin/pip install torch jax onnx onnxruntime transformers sentence-transformers
    go build -o heed ./cmd/heed
    venv/bin/python docs/peers.py ./heed [--rounds 20] [--only step nanogpt long ...]
    venv/bin/python docs/peers.py ./heed --only embed decode --minilm FOLDER --gguf FILE --node FOLDER

--only chooses tables (step, forward, long, gemm, embed, decode) and rows (nanogpt, 1000, ...). For each setting of a
peer, a process of Heed and one of the peer take turns of about 0.4 seconds, or of one step if it takes longer, because
the speed of a machine changes within minutes. A cell has the median time of a step and the peak memory. The number
before "times" is the median of the peer's time divided by Heed's in the same turn. Peers run in several settings, and a
cell names the one with the lowest ratio: plain (attention written out), sdpa (scaled_dot_product_attention,
AdamW(fused=True)), compile (sdpa under torch.compile), a number (texts per batch), and those that end in -1 (with one
thread). bf16 autocast runs beside heed bench --precision bfloat16. Standard error has a JSON line per setting, with the
quartiles of the ratio. The machine should do nothing else: a busy neighbour slows down programs whose threads wait
actively much more than others.

embed makes vectors of short texts with all-MiniLM-L6-v2, whose folder --minilm names: of 128 with hugot's pure Go
backend, which needs Go and its module proxy, and of 1,000 with the other programs. A step of Heed is the whole command
heed embed, with opening the model; the others have opened it before. decode reads 512 tokens, and computes the next
token after 128: with GPT-2's shape beside transformers, and with SmolLM2-135M's beside llama.cpp. Heed's weights are
random there; llama.cpp reads the file --gguf. It runs from the folder --node, after npm install node-llama-cpp in it.
A peer that isn't installed is left out with a message.
"""
import argparse
import functools
import json
import math
import os
import queue
import random
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

# batch, length, width, heads, blocks, vocabulary: the configurations of heed bench
CONFIGS = {"tiny": (32, 16, 32, 2, 1, 12), "nanogpt": (12, 64, 128, 4, 4, 65), "deep": (2, 64, 64, 4, 96, 65),
           "baby": (4, 256, 384, 6, 6, 65), "wide": (8, 128, 512, 8, 4, 1000), "gpt2": (1, 256, 768, 12, 12, 50257)}
TURN = 400  # milliseconds per turn, which has at least one step
LIMIT = 300  # seconds that a program may take to answer, compiling included
requests = queue.SimpleQueue()  # numbers of steps, for serve


def serve(step, who=resource.RUSAGE_SELF):
    """Runs three untimed steps, or fewer if they take 10 seconds, and then the steps of each request. It answers with
    their median time and the peak memory of this process or its children."""
    begin, warm = time.monotonic(), 0
    while warm < 3 and time.monotonic() < begin + 10:
        step()
        warm += 1
    while steps := requests.get():
        times = []
        for _ in range(steps):
            start = time.perf_counter()
            step()
            times.append((time.perf_counter() - start) * 1e3)
        memory = resource.getrusage(who).ru_maxrss / 1024
        print(json.dumps({"median_ms": statistics.median(times), "peak_rss_mb": memory}), file=answers, flush=True)


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
            self.head = nn.Linear(D, V, bias=V <= 1000, device="cpu" if V <= 1000 else "meta")
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


def torch_step(name, mode, half=False):
    import torch
    fused = mode != "plain"
    model, ids, targets = torch_gpt(name, fused)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=fused)

    def loss():
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=half):
            logits = model(ids)
        return torch.nn.functional.cross_entropy(logits.float().view(len(targets), -1), targets)

    compute = torch.compile(loss) if mode.startswith("compile") else loss

    def step():
        optimiser.zero_grad(set_to_none=True)
        compute().backward()
        optimiser.step()

    serve(step)


bf16_step = functools.partial(torch_step, half=True)


def torch_forward(name, mode):
    import torch
    model, ids, _ = torch_gpt(name, mode != "plain")
    model = torch.compile(model.eval()) if mode.startswith("compile") else model.eval()
    with torch.inference_mode():
        serve(lambda: model(ids))


def torch_long(length, mode):
    import torch
    q, k, v = (torch.randn(1, 4, length, 64, requires_grad=True) for _ in range(3))
    mask = torch.full((length, length), -math.inf).triu(1) if mode == "plain" else None

    def step():
        q.grad = k.grad = v.grad = None
        torch_attend(q, k, v, mask).sum().backward()

    serve(step)


def torch_gemm(size, _):
    import torch
    a, b = torch.randn(size, size), torch.randn(size, size)
    product = torch.empty(size, size)
    serve(lambda: torch.mm(a, b, out=product))


def onnx_forward(name, _):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        if not os.fork():  # a process of its own, whose memory doesn't count
            import torch
            model, ids, _ = torch_gpt(name, True)
            torch.onnx.export(model.eval(), (ids,), path, input_names=["ids"], dynamo=False)
            os._exit(0)
        os.wait()
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = os.cpu_count()
        session = onnxruntime.InferenceSession(path, options)
    import numpy
    B, T, _, _, _, V = CONFIGS[name]
    inputs = {"ids": numpy.random.randint(V, size=(B, T))}
    serve(lambda: session.run(None, inputs))


PATHS = {"minilm": "folder of all-MiniLM-L6-v2", "gguf": "file of SmolLM2-135M", "node": "folder with node_modules"}


def given(path):
    """Returns a path that the call names."""
    return os.environ.get(path.upper()) or sys.exit(f"this needs --{path}: {PATHS[path]}")


def texts(count):
    """Returns texts of 3 to 31 words that are one token each."""
    with open(given("minilm") + "/vocab.txt", encoding="utf-8") as lines:
        words = [word for line in lines if len(word := line.strip()) > 3 and word.isascii() and word.isalpha()]
    draw = random.Random(1)
    return [" ".join(draw.choices(words, k=draw.randint(3, 31))) for _ in range(count)]


def text_file(count, folder):
    """Writes texts to a file of JSON lines, and returns its path."""
    path = folder + "/texts.jsonl"
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(json.dumps({"text": text}) + "\n" for text in texts(count))
    return path


def heed_embed(count, heed):
    file = text_file(count, tempfile.mkdtemp())
    command = [heed, "embed", given("minilm"), "--data", file, "--out", file + ".npy"]
    serve(lambda: subprocess.run(command, check=True, stdout=sys.stderr), resource.RUSAGE_CHILDREN)


def sentence_embed(count, batch):
    from sentence_transformers import SentenceTransformer
    model, inputs = SentenceTransformer(given("minilm"), device="cpu"), texts(count)
    serve(lambda: model.encode(inputs, batch_size=int(batch)))


def export_minilm(folder):
    """Writes MiniLM as an ONNX file that has only ops known to hugot, and returns its path."""
    path = folder + "/model.onnx"
    if os.fork():  # a process of its own, whose memory doesn't count
        return path if os.wait()[1] == 0 else sys.exit("can't export the model")
    import torch
    from transformers import BertModel
    model = BertModel.from_pretrained(given("minilm"), attn_implementation="eager").eval()

    class States(torch.nn.Module):
        def forward(self, ids, mask, segments):
            x, bias = self.model.embeddings(ids, segments), (mask[:, None, None].float() - 1) * 1e9
            for block in self.model.encoder.layer:
                x = block(x, bias)
            return x

    states, ids = States(), torch.ones(2, 8, dtype=torch.long)
    states.model = model
    names = ["input_ids", "attention_mask", "token_type_ids", "last_hidden_state"]
    torch.onnx.export(states, (ids, ids, 0 * ids), path, input_names=names[:3], output_names=names[3:], dynamo=False,
                      dynamic_axes={name: {0: "batch", 1: "length"} for name in names}, opset_version=17)
    os._exit(0)


def onnx_embed(count, batch):
    path = export_minilm(tempfile.mkdtemp())
    import numpy
    import onnxruntime
    from tokenizers import Tokenizer
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = os.cpu_count()
    session = onnxruntime.InferenceSession(path, options)
    tokenizer, inputs, batch = Tokenizer.from_file(given("minilm") + "/tokenizer.json"), texts(count), int(batch)
    tokenizer.enable_padding()

    def step():
        ordered = sorted(inputs, key=len)
        for i in range(0, count, batch):
            rows = tokenizer.encode_batch(ordered[i:i + batch])
            ids, mask = (numpy.array([getattr(row, key) for row in rows]) for key in ("ids", "attention_mask"))
            states, = session.run(None, {"input_ids": ids, "attention_mask": mask, "token_type_ids": 0 * ids})
            vectors = (states * mask[..., None].astype("float32")).sum(1)
            vectors /= numpy.linalg.norm(vectors, axis=1, keepdims=True)

    serve(step)


HUGOT = r"""package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/knights-analytics/hugot"
)

func get[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func main() {
	config := hugot.FeatureExtractionConfig{ModelPath: os.Args[1], Name: "embed"}
	pipeline := get(hugot.NewPipeline(get(hugot.NewGoSession()), config))
	var texts []string
	for lines := bufio.NewScanner(get(os.Open(os.Args[2]))); lines.Scan(); {
		var row struct{ Text string }
		get(0, json.Unmarshal(lines.Bytes(), &row))
		texts = append(texts, row.Text)
	}
	slices.SortFunc(texts, func(a, b string) int { return cmp.Compare(len(a), len(b)) })
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var times []float64
		for range get(strconv.Atoi(lines.Text())) {
			start := time.Now()
			for batch := range slices.Chunk(texts, get(strconv.Atoi(os.Args[3]))) {
				get(pipeline.RunPipeline(batch))
			}
			times = append(times, time.Since(start).Seconds()*1e3)
		}
		slices.Sort(times)
		var usage syscall.Rusage
		syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
		fmt.Printf("{\"median_ms\": %v, \"peak_rss_mb\": %v}\n", times[len(times)/2], usage.Maxrss/1024)
	}
}
"""


def hugot_embed(count, batch):
    folder = tempfile.mkdtemp()
    with open(folder + "/main.go", "w") as file:
        file.write(HUGOT)
    for command in "mod init peer", "get github.com/knights-analytics/hugot@latest", "mod tidy", "build -o peer .":
        subprocess.run(["go", *command.split()], cwd=folder, check=True, stdout=sys.stderr)
    export_minilm(folder)
    shutil.copy(given("minilm") + "/tokenizer.json", folder)
    become(folder + "/peer", folder, text_file(count, folder), batch)


def transformers_decode(what, _):
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel
    model, token = GPT2LMHeadModel(GPT2Config()).eval(), torch.tensor([[7]])
    ids = torch.arange(512 if what == "prompt" else 128)[None] * 97 % model.config.vocab_size
    with torch.inference_mode():
        def read():
            return model(ids, use_cache=True, logits_to_keep=1).past_key_values

        cache = read()

        def following():
            model(token, past_key_values=cache, use_cache=True)
            cache.crop(-1)

        serve(read if what == "prompt" else following)


LLAMA = """
import {createInterface} from "node:readline";
import {getLlama} from "node-llama-cpp";
const [file, what, threads] = process.argv.slice(2);
const llama = await getLlama({gpu: false, build: "never", logLevel: "error"});
const model = await llama.loadModel({modelPath: file});
const context = await model.createContext({contextSize: 1024, batchSize: 512, threads: Number(threads)});
const sequence = context.getSequence();
const prompt = Array.from({length: what == "prompt" ? 512 : 128}, (_, i) => i * 97 % 49152);
let tokens, room = 0;
async function step() {
  if (room-- == 0) {
    await sequence.clearHistory();
    tokens = sequence.evaluate(prompt, {temperature: 0, yieldEogToken: true});
    room = what == "prompt" ? 0 : 128;
  }
  await tokens.next();
}
for await (const line of createInterface({input: process.stdin})) {
  const times = [];
  for (let i = 0; i < Number(line); i++) {
    const start = performance.now();
    await step();
    times.push(performance.now() - start);
  }
  times.sort((a, b) => a - b);
  const memory = process.resourceUsage().maxRSS / 1024;
  console.log(JSON.stringify({median_ms: times[times.length >> 1], peak_rss_mb: memory}));
}
process.exit(0);
"""


def llama_decode(what, mode):
    folder = tempfile.mkdtemp()
    os.symlink(given("node") + "/node_modules", folder + "/node_modules")
    with open(folder + "/peer.mjs", "w") as file:
        file.write(LLAMA)
    threads = 1 if mode.endswith("-1") else os.cpu_count()
    become("node", folder + "/peer.mjs", given("gguf"), what.split("/")[-1], str(threads))


def become(*command):
    """Replaces this process by another program, which serves."""
    os.dup2(answers.fileno(), 1)
    os.execvp(command[0], command)


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

    serve(run)


def serve_here(function, what, mode):
    """Serves a peer in this process, which ends at the end of standard input. Each line is a number of steps."""
    global answers
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print goes to standard error

    def read():
        while line := os.read(0, 20):
            requests.put(int(line))
        os._exit(0)  # even if the program is still compiling

    if function not in ("hugot_embed", "llama_decode"):  # which read it themselves
        threading.Thread(target=read, daemon=True).start()
    if function.startswith(("torch", "bf16", "transformers")):
        import torch
        torch.set_num_threads(1 if mode.endswith("-1") else os.cpu_count())
    try:
        globals()[function](int(what) if what.isdigit() else what, mode)
    except (ImportError, FileNotFoundError) as e:
        sys.exit(f"{function} is left out: {e}")


PEERS = {"heed": "Heed", "torch": "PyTorch", "half": "Heed, bfloat16", "bf16": "PyTorch, bfloat16 autocast",
         "jax": "JAX", "onnx": "onnxruntime", "sentence": "sentence-transformers", "hugot": "hugot, pure Go",
         "transformers": "transformers", "llama": "llama.cpp"}
TORCH = ["sdpa", "compile", "sdpa-1", "compile-1"]
TABLES = {  # title, rows, and the settings of each peer
    "step": ("One training step: forward, backward, AdamW", [*CONFIGS],
             {"torch": ["plain", *TORCH], "bf16": ["sdpa", "compile"], "jax": ["jit"]}),
    "forward": ("Forward pass", [*CONFIGS], {"torch": TORCH, "onnx": ["default"]}),
    "long": ("Causal attention alone, forward and backward, H 4, K 64", ["1024", "4096"], {"torch": ["plain", "sdpa"]}),
    "gemm": ("float32 matrix product, GFLOP/s", ["64", "128", "256", "512", "1024"],
             {"torch": ["default", "default-1"]}),
    "embed": ("Vectors of short texts, MiniLM", ["128", "1000"],
              {"sentence": ["16", "32", "64"], "onnx": ["16", "32", "64"], "hugot": ["32"]}),
    "decode": ("A prompt of 512 tokens, and the next token",
               ["prompt", "decode-1", "smollm2/prompt", "smollm2/token", "smollm2/int8"],
               {"transformers": ["default"], "llama": ["default", "default-1"]})}


def useful(table, row, peer, mode):
    """Reports whether a setting may be a peer's fastest, and ends in time."""
    if table == "decode":
        return (peer == "llama") == row.startswith("smollm2")
    if table == "embed":
        return (peer == "hugot") == (row == "128")
    if mode.endswith("-1"):
        return row in ("tiny", "64", "128")
    return (row, peer) != ("deep", "jax")  # JAX compiles it for more than five minutes


class Program:
    """A process that runs steps of one benchmark on request. It ends when its standard input does."""

    def __init__(self, command):
        self.steps, self.errors = 1, tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors,
                                        start_new_session=True)

    def turn(self):
        """Runs steps, one in the first turn, and returns their median time and the peak memory. It raises
        ChildProcessError if the process ends or takes too long."""
        time.sleep(0.05)  # until the other program's threads stop waiting actively
        begin, timer = time.monotonic(), threading.Timer(LIMIT, self.stop)
        timer.start()
        try:
            os.write(self.process.stdin.fileno(), b"%d\n" % self.steps)
            figures = json.loads(self.process.stdout.readline())
            self.steps = max(1, round(TURN / figures["median_ms"]))
            return figures
        except (BrokenPipeError, ValueError):
            status = self.stop()
            self.errors.seek(0)
            raise ChildProcessError(f"{' '.join(self.process.args)}: ended with status {status} after "
                                    f"{time.monotonic() - begin:.0f} s (limit {LIMIT} s)\n{self.errors.read()[-2000:]}")
        finally:
            timer.cancel()

    def stop(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        return self.process.wait()


def compare(heed, rounds, table, row, peer, mode):
    """Lets Heed and a setting of a peer take turns. Returns what it measured, or None if a program failed."""
    names = {"step": f"{row}/fused", "forward": f"{row}/forward", "decode": row}
    ours = [heed, "bench", "--turns", names.get(table, f"{table}-{row}"), *["--precision=bfloat16"] * (peer == "bf16")]
    if table == "embed":
        ours = [sys.executable, __file__, "--here", "heed_embed", row, heed]
    theirs = [sys.executable, __file__, "--here", f"{peer}_{table}", row, mode]
    pair = []
    try:
        for command in ours, theirs:
            pair.append(Program(command))
            pair[-1].turn()
        turns = [[program.turn() for program in pair] for _ in range(rounds)]
    except OSError as e:
        print(e, file=sys.stderr, flush=True)
        return None
    finally:
        for program in pair:
            program.stop()
    ms, mb = ([[figures[key] for figures in turn] for turn in turns] for key in ("median_ms", "peak_rss_mb"))
    times = sorted(theirs / ours for ours, theirs in ms)
    line = {"table": table, "row": row, "peer": peer, "mode": mode,
            "ms": [*map(statistics.median, zip(*ms))], "mb": [*map(max, zip(*mb))],  # of Heed and the peer
            "times": statistics.median(times), "quartiles": [times[rounds * k // 4] for k in (1, 3)]}
    print(json.dumps(line), file=sys.stderr, flush=True)
    return line


def cell(lines, program):
    """Returns a program's figures beside the fastest setting of a peer: of itself, for Heed of the row's first peer,
    and for Heed in bfloat16 of autocast. The argument lines has the measurements of a row."""
    ours, first = program in ("heed", "half"), lines[0]["peer"] if lines else None
    found = [line for line in lines if line["peer"] == {"heed": first, "half": "bf16"}.get(program, program)]
    if not found:
        return "–"
    best = min(found, key=lambda line: line["times"])
    ms, mb = (best[key][0 if ours else 1] for key in ("ms", "mb"))
    times = "" if ours else f" ({best['mode']}): {best['times']:.2f} times"
    if best["table"] == "gemm":
        return f"{2 * int(best['row'])**3 / ms / 1e6:.0f}{times}"
    return f"{ms:.2f} ms, {mb:,.0f} MB{times}" if ms < 10 else f"{ms:,.0f} ms, {mb:,.0f} MB{times}"


def main():
    if sys.argv[1:2] == ["--here"]:
        return serve_here(*sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    rows = {row for _, rows, _ in TABLES.values() for row in rows}
    parser.add_argument("heed", help="the command heed")
    parser.add_argument("--rounds", type=int, default=20, help="number of turns for each setting of a peer")
    parser.add_argument("--only", nargs="+", choices=[*TABLES, *rows], default=[], metavar="NAME")
    for name, about in PATHS.items():
        parser.add_argument("--" + name, help=about, metavar="PATH")
    args = parser.parse_args()
    os.environ |= {name.upper(): os.path.abspath(path) for name in PATHS if (path := getattr(args, name))}
    tables, names = set(args.only) & set(TABLES) or set(TABLES), set(args.only) & rows
    folder = tempfile.TemporaryDirectory()
    os.environ["TMPDIR"] = folder.name  # programs that are killed leave files there
    for table, (title, rows, peers) in TABLES.items():
        chosen = [row for row in rows if table in tables and (not names or row in names)]
        shown = {"heed", *peers, *(["half"] if "bf16" in peers else [])}
        columns = [column for column in PEERS if column in shown]
        if chosen:
            print(f"\n| {title} | {' | '.join(PEERS[c] for c in columns)} |\n|{'---|' * (len(columns) + 1)}")
        for row in chosen:
            settings = [(row, peer, mode) for peer in peers for mode in peers[peer] if useful(table, row, peer, mode)]
            lines = [line for s in settings if (line := compare(os.path.abspath(args.heed), args.rounds, table, *s))]
            print(f"| {row} | {' | '.join(cell(lines, c) for c in columns)} |", flush=True)


if __name__ == "__main__":
    main()
