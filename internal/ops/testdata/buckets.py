#!/usr/bin/env python3
"""Writes buckets.json, the buckets of T5 (Raffel et al., 2020), for the tests of relative bias.

    python3 buckets.py

PyTorch computes the buckets in float32, as in T5, because rounding decides the ends of some ranges. A case lists the
distances, from -700 to 700, at which the bucket changes.
"""
import json
import math
import os

import torch

FAR = 700


def buckets(count, max_distance, one_way):
    distance = torch.arange(-FAR, FAR + 1)  # the key's position minus the query's
    back = (-distance).clamp(min=0) if one_way else distance.abs()
    n = count if one_way else count // 2
    exact = n // 2
    ratio = torch.log(back.clamp(min=1).float() / exact) / math.log(max_distance / exact)
    coarse = (exact + (ratio * (n - exact)).long()).clamp(max=n - 1)
    bucket = torch.where(back < exact, back, coarse)
    if not one_way:
        bucket = bucket + n * (distance > 0).long()
    return bucket.tolist()


cases = []
for count, max_distance, one_way in (
    (32, 128, False), (32, 128, True), (16, 64, False), (8, 20, True), (4, 2, False), (2, 2, True), (7, 50, True), (64, 512, False), (32, 1000000, True),
):  # fmt: skip
    b = buckets(count, max_distance, one_way)
    starts = [[i - FAR, x] for i, x in enumerate(b) if i == 0 or b[i - 1] != x]
    cases.append({"buckets": count, "max_distance": max_distance, "one_way": one_way, "starts": starts})

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "buckets.json"), "w") as f:
    f.write("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")
