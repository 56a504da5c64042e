#!/usr/bin/env python3
"""Writes sampler.json: probabilities of next tokens, computed by the logits processors of the transformers library.

    pip install torch transformers  # 2.15 and 5.23 wrote the committed file
    python3 sampler.py

transformers has no presence and frequency penalties. This script subtracts them by the formula in OpenAI's API reference.
"""
import json

import torch
from transformers import (LogitsProcessorList, MinPLogitsWarper, RepetitionPenaltyLogitsProcessor, TemperatureLogitsWarper,
                          TopKLogitsWarper, TopPLogitsWarper)


def probabilities(settings, logits, prompt, generated):
    """The order of the processors is that of GenerationMixin._get_logits_processor."""
    scores, ids = torch.tensor([logits], dtype=torch.float64), torch.tensor([prompt + generated])
    if "repetition_penalty" in settings:
        scores = RepetitionPenaltyLogitsProcessor(settings["repetition_penalty"])(ids, scores)
    for token in set(generated):
        scores[0, token] -= generated.count(token) * settings.get("frequency_penalty", 0) + settings.get("presence_penalty", 0)
    warpers = LogitsProcessorList()
    for name, warper in [("temperature", TemperatureLogitsWarper), ("top_k", TopKLogitsWarper), ("top_p", TopPLogitsWarper), ("min_p", MinPLogitsWarper)]:
        if settings.get(name, 0) != 0:
            warpers.append(warper(settings[name]))
    if settings["temperature"] == 0:
        return torch.nn.functional.one_hot(scores[0].argmax(), len(logits)).tolist()
    return warpers(ids, scores)[0].softmax(-1).tolist()


def main():
    torch.manual_seed(1)
    cases = []
    for settings in [
        {"temperature": 0, "repetition_penalty": 1.3},
        {"temperature": 0, "presence_penalty": 2.0, "frequency_penalty": 1.0},
        {"temperature": 1.0, "repetition_penalty": 1.2},
        {"temperature": 1.0, "repetition_penalty": 0.8},
        {"temperature": 1.0, "presence_penalty": 1.5},
        {"temperature": 1.0, "frequency_penalty": 0.7},
        {"temperature": 0.7, "presence_penalty": -0.5, "frequency_penalty": -1.1},
        {"temperature": 1.0, "min_p": 0.1},
        {"temperature": 0.5, "min_p": 0.1},
        {"temperature": 1.0, "min_p": 1.0},
        {"temperature": 1.5, "top_k": 7, "min_p": 0.2},
        {"temperature": 1.5, "top_p": 0.9, "min_p": 0.05},
        {"temperature": 0.8, "top_k": 9, "top_p": 0.8, "min_p": 0.1, "repetition_penalty": 1.1, "presence_penalty": 0.4, "frequency_penalty": 0.2},
    ]:
        logits = (2 * torch.randn(12, dtype=torch.float64)).tolist()
        ranked = sorted(range(12), key=lambda i: -logits[i])
        prompt, generated = [ranked[1], ranked[11], ranked[1]], [ranked[0], ranked[2], ranked[0], ranked[11], ranked[5]]
        cases.append({"sampler": settings, "logits": logits, "prompt": prompt, "generated": generated,
                      "probs": probabilities(settings, logits, prompt, generated)})
    with open("sampler.json", "w") as f:
        f.write("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")


main()
