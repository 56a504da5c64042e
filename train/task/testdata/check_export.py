"""Opens exported folders with the reference library, and compares what it computes with what Heed computed.

    go test ./train/task -run 'TestExport$' -exported D
    python train/task/testdata/check_export.py D

For each folder in D, the ids of the texts, the logits (to 1e-5 of the largest) and the likeliest continuations must be
equal. Tried with Python 3.13, torch 2.15.0 and transformers 5.23.0.
"""
import json
import os
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

failed = 0
for file in sorted(os.listdir(sys.argv[1])):
    if not file.endswith(".json"):
        continue
    folder = os.path.join(sys.argv[1], file[:-5])
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model, info = AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True)
    worst, problems = 0.0, [f"{kind}: {names}" for kind, names in info.items() if names]
    for case in json.load(open(os.path.join(sys.argv[1], file), encoding="utf-8")):
        ids = tokenizer(case["text"])["input_ids"]
        if ids != case["ids"] or tokenizer.decode(ids) != case["text"]:
            problems.append(f"{case['text']!r} has ids {ids}, want {case['ids']}, decoded {tokenizer.decode(ids)!r}")
            continue
        with torch.no_grad():
            logits = model(torch.tensor([ids])).logits[0]
            written = model.generate(torch.tensor([ids]), max_new_tokens=case["tokens"], do_sample=False, attention_mask=torch.ones(1, len(ids)))
        want = torch.tensor(case["logits"]).reshape(logits.shape)
        worst = max(worst, float((logits - want).abs().max() / want.abs().max()))
        if tokenizer.decode(written[0]) != case["greedy"]:
            problems.append(f"{case['text']!r} continues as {tokenizer.decode(written[0])!r}, want {case['greedy']!r}")
    if worst > 1e-5:
        problems.append(f"logits differ by {worst:.2g} of the largest")
    failed += len(problems) > 0
    print(f"{file[:-5]}: {type(model).__name__}, {type(tokenizer).__name__}, logits to {worst:.2g}", *(problems or ["equal"]), sep="\n  ")
sys.exit(failed > 0)
