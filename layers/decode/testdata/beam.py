#!/usr/bin/env python3
"""Writes beam.json: texts that the generate of the transformers library finds in a model whose logits are a formula.

    pip install torch transformers  # 2.15 and 5.24 wrote the committed file
    python3 beam.py
"""
import json
import random

import torch
from transformers import GenerationConfig, PretrainedConfig, PreTrainedModel
from transformers.generation import GenerationMixin
from transformers.modeling_outputs import CausalLMOutputWithPast

VOCAB, END = 11, 10


def logits(seed, tokens):
    """beam_test.go computes the same."""
    h = seed
    for t in tokens[-3:]:
        h = (h * 31 + t + 1) * 7919 % 1000003
    return [((h * (i + 7) * 104729 + i * 7919) % 1000003) / 1000003 * 6 + len(tokens) * (i == END) / 8 for i in range(VOCAB)]


class Formula(PreTrainedModel, GenerationMixin):
    config_class = PretrainedConfig

    def __init__(self, seed):
        super().__init__(PretrainedConfig(vocab_size=VOCAB))
        self.seed, self.weight = seed, torch.nn.Parameter(torch.zeros(1))

    def prepare_inputs_for_generation(self, input_ids, **kwargs):
        return {"input_ids": input_ids}

    def forward(self, input_ids, **kwargs):
        rows = [[logits(self.seed, row)] for row in input_ids.tolist()]
        return CausalLMOutputWithPast(logits=torch.tensor(rows))


def draw(rng):
    """Settings by the names of generation_config.json."""
    o = {"num_beams": rng.choice([1, 2, 4, 4, 4]), "max_new_tokens": rng.choice([5, 12, 30]), "length_penalty": rng.choice([1.0, 0.0, 0.6, 2.0, -1.0]),
         "early_stopping": rng.choice([True, False, "never"])}
    for name, values in [("no_repeat_ngram_size", [1, 2, 3]), ("repetition_penalty", [1.3, 0.7, 2.0]), ("forced_bos_token_id", [3, 7]),
                         ("forced_eos_token_id", [END, [END]]), ("min_length", [4, 9]), ("min_new_tokens", [6]),
                         ("bad_words_ids", [[[2]], [[2], [3, 4], [5, 6, 7], [END]]]), ("suppress_tokens", [[1, 5]]), ("begin_suppress_tokens", [[0, 6, 9]]),
                         ("eos_token_id", [[END, 4]])]:
        if rng.random() < 0.25:
            o[name] = rng.choice(values)
    if o.get("no_repeat_ngram_size") == 1 and (o["max_new_tokens"] > 5 or "min_length" in o or "min_new_tokens" in o):
        o["no_repeat_ngram_size"] = 2  # or no token is left
    return o


def main():
    rng, cases = random.Random(5), []
    while len(cases) < 120:
        seed, prompt, o = rng.randrange(1, 10 ** 5), [rng.randrange(VOCAB - 1)], draw(rng)
        config = GenerationConfig(**{"eos_token_id": END, "pad_token_id": END, **o}, do_sample=False, use_cache=False)
        n = o["num_beams"]
        if n == 1:
            config.length_penalty, config.early_stopping = None, None
        out = Formula(seed).generate(torch.tensor([prompt]), generation_config=config, num_return_sequences=n, return_dict_in_generate=True, output_scores=True)
        scores = out.sequences_scores.tolist() if n > 1 else None
        cases.append({"seed": seed, "prompt": prompt, "options": o, "tokens": [row[1:] for row in out.sequences.tolist()], "scores": scores})
    with open("beam.json", "w") as f:
        f.write("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]\n")


if __name__ == "__main__":
    main()
