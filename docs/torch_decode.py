"""Measures how fast the transformers library reads a prompt and computes the next token with a model of GPT-2's shape (124
million random weights), on the CPU, for performance.md. Prints one JSON object per line.

    pip install torch transformers  # any versions with GPT2LMHeadModel
    python3 docs/torch_decode.py

`go test -bench GPT2 ./layers/decode` measures the same with Heed. Run both in turn. Each figure is the shortest of several
runs, with one PyTorch thread and with two.
"""
import json
import time

import torch
from transformers import GPT2Config, GPT2LMHeadModel

PROMPT, RUNS = 512, 15


def shortest_ms(*steps):
    """Runs the steps in turn. Returns the shortest time of each."""
    best = [float("inf")] * len(steps)
    for _ in range(RUNS):
        for i, step in enumerate(steps):
            start = time.perf_counter()
            step()
            best[i] = min(best[i], (time.perf_counter() - start) * 1e3)
    return best


def main():
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config()).eval()
    ids = torch.arange(PROMPT)[None] * 97 % model.config.vocab_size
    token = torch.tensor([[7]])
    words = torch.cat([p.detach().view(-1) for p in model.parameters()]).view(torch.int64)  # as many bytes as the weights
    for threads in (1, 2):
        torch.set_num_threads(threads)
        with torch.inference_mode():
            cache = model(ids, use_cache=True, logits_to_keep=1).past_key_values

            def step():
                model(token, past_key_values=cache, use_cache=True)
                cache.crop(-1)

            prompt, next_token, read = shortest_ms(lambda: model(ids, use_cache=True, logits_to_keep=1), step, words.sum)
        print(json.dumps({"threads": threads, "prompt_ms": round(prompt, 1), "token_ms": round(next_token, 2), "read_ms": round(read, 2)}), flush=True)


main()
