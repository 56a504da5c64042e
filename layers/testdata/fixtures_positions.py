#!/usr/bin/env python3
"""Writes the fixtures of rotary positions with scaled frequencies, and of relative bias, in the format of fixtures.py.

    python3 fixtures_positions.py

PyTorch has none of these. This script implements the formulas of the papers, with the constants and roundings of
well-known models.
"""
import math

import torch

from fixtures import case, causal, rand, write

# ---- rotary positions


def linear(dim, base, factor):
    """Position interpolation (Chen et al., 2023): position p becomes p/factor."""
    return [base ** (-2 * i / dim) / factor for i in range(dim // 2)], 1.0


def ntk(dim, base, factor):
    """NTK-aware scaling: with a new base, the last pair turns slower by the factor, and the first pair as before."""
    base *= factor ** (dim / (dim - 2))
    return [base ** (-2 * i / dim) for i in range(dim // 2)], 1.0


def yarn(dim, base, factor, original, fast=32, slow=1, truncate=True, attention_factor=None):
    """YaRN (Peng et al., 2023), with a ramp over the indices of the pairs, as in the authors' code."""

    def pair(rotations):  # fractional index of the pair that makes this number of rotations over the original length
        return dim * math.log(original / (2 * math.pi * rotations)) / (2 * math.log(base))

    low, high = pair(fast), pair(slow)
    if truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, dim - 1)
    if low == high:
        high += 0.001
    freqs = []
    for i in range(dim // 2):
        f = base ** (-2 * i / dim)
        ramp = min(max((i - low) / (high - low), 0), 1)
        freqs.append(f / factor * ramp + f * (1 - ramp))
    return freqs, 0.1 * math.log(factor) + 1 if attention_factor is None else attention_factor


def llama3(dim, base, factor, original, low=1.0, high=4.0):
    """Llama 3.1: stretches long wavelengths, keeps short wavelengths, and blends the wavelengths between them."""
    freqs = []
    for i in range(dim // 2):
        f = base ** (-2 * i / dim)
        wavelength = 2 * math.pi / f
        if wavelength > original / low:
            f /= factor
        elif wavelength >= original / high:
            smooth = (original / wavelength - low) / (high - low)
            f = (1 - smooth) * f / factor + smooth * f
        freqs.append(f)
    return freqs, 1.0


def turn(x, positions, freqs, magnitude, interleaved):
    """Rotates pairs of x, of shape (T, K), by their positions, and scales the pairs by the magnitude. Each pair is
    one complex number."""
    dim = 2 * len(freqs)
    rotated, rest = x[:, :dim], x[:, dim:]
    angles = positions[:, None].double() * torch.tensor(freqs)
    z = torch.polar(torch.full_like(angles, magnitude), angles)
    if interleaved:
        z = z * torch.view_as_complex(rotated.reshape(len(x), -1, 2).contiguous())
        out = torch.view_as_real(z).reshape(len(x), -1)
    else:
        z = z * torch.complex(rotated[:, : dim // 2], rotated[:, dim // 2 :])
        out = torch.cat((z.real, z.imag), -1)
    return torch.cat((out, rest), -1)


def scaled_rotary(name, f, width, base, scaling, dim=0, interleaved=False, **more):
    """Makes a case of rotary positions. The argument scaling configures Heed; more sets the same options of f."""
    x, positions = rand(3, width), torch.tensor([[1, 777, 100000]])
    freqs, magnitude = f(dim or width, base, scaling["factor"], **more)
    out = turn(x, positions[0], freqs, magnitude, interleaved)
    return case(name, {"x": x, "positions": positions}, {}, {"out": out}, heads=1, rotary=dim, base=base, interleaved=interleaved, scaling=scaling)


def scaled_rotary_cases():
    def scaling(kind, factor, **more):
        return {"kind": kind, "factor": factor, **more}

    yield scaled_rotary("linear", linear, 8, 10000.0, scaling("linear", 4.0))
    yield scaled_rotary("linear, part of the width", linear, 6, 500.0, scaling("linear", 2.5), dim=4, interleaved=True)
    yield scaled_rotary("ntk", ntk, 16, 10000.0, scaling("ntk", 8.0))
    yield scaled_rotary("ntk, two pairs", ntk, 4, 100.0, scaling("ntk", 2.0), interleaved=True)
    for interleaved in (False, True):
        yield scaled_rotary("yarn, width of 64, interleaved %s" % interleaved, yarn, 64, 10000.0, scaling("yarn", 16.0, original_len=4096), original=4096, interleaved=interleaved)
    yield scaled_rotary(
        "yarn, everything", yarn, 32, 1000000.0,
        scaling("yarn", 4.0, original_len=32768, low=2.0, high=24.0, magnitude=1.25, unrounded=True),
        dim=24, original=32768, fast=24, slow=2, truncate=False, attention_factor=1.25,
    )  # fmt: skip
    yield scaled_rotary("yarn, a ramp of no length", yarn, 4, 10000.0, scaling("yarn", 4.0, original_len=4), original=4)
    yield scaled_rotary("yarn, a short original", yarn, 16, 10000.0, scaling("yarn", 2.0, original_len=64), original=64)
    yield scaled_rotary("llama3, 3.1 8B", llama3, 128, 500000.0, scaling("llama3", 8.0, original_len=8192), original=8192)
    yield scaled_rotary(
        "llama3, other bounds", llama3, 32, 10000.0, scaling("llama3", 32.0, original_len=2048, low=0.5, high=9.0),
        original=2048, low=0.5, high=9.0, interleaved=True,
    )  # fmt: skip


# ---- relative bias


def bucket(distance, buckets, max_distance, both_ways):
    """Returns the bucket of a distance: the key's position minus the query's position (Raffel et al., 2020)."""
    first, back = 0, max(-distance, 0)
    if both_ways:
        buckets //= 2
        first, back = (buckets, distance) if distance > 0 else (0, -distance)
    exact = buckets // 2
    if back < exact:
        return first + back
    coarse = exact + int(math.log(back / exact) / math.log(max_distance / exact) * (buckets - exact))
    return first + min(coarse, buckets - 1)


def relative_case(name, shape, heads, is_causal, buckets, max_distance):
    """Computes T5's self-attention, which has no biases and no scale."""
    *_, length, dim = shape
    x = rand(*shape)
    weights = {part: rand(dim, dim) for part in ("query", "key", "value", "output")}
    table = rand(buckets, heads)

    def split(part):
        y = x if x.dim() == 3 else x[None]
        return (y @ weights[part].T).reshape(-1, length, heads, dim // heads).transpose(1, 2)

    buckets_of = [[bucket(j - i, buckets, max_distance, not is_causal) for j in range(length)] for i in range(length)]
    scores = split("query") @ split("key").transpose(-1, -2) + table[torch.tensor(buckets_of)].permute(2, 0, 1)
    if is_causal:
        scores = scores.masked_fill(causal(length, length), -math.inf)
    out = (torch.softmax(scores, -1) @ split("value")).transpose(1, 2).reshape(shape) @ weights["output"].T
    params = {part + ".weight": w for part, w in weights.items()}
    return case(name, {"x": x}, {**params, "positions.weight": table}, {"out": out}, heads=heads, causal=is_causal, buckets=buckets, max_distance=max_distance)


def relative_cases():
    for is_causal in (False, True):
        name = "causal" if is_causal else "both ways"
        yield relative_case(name, (2, 7, 6), 2, is_causal, 8, 6)
        yield relative_case(name + ", without a batch", (5, 4), 1, is_causal, 4, 3)
        yield relative_case(name + ", T5's buckets", (1, 24, 4), 4, is_causal, 32, 128)


if __name__ == "__main__":
    for i, (name, cases) in enumerate({"rotary_scaled": scaled_rotary_cases, "relative": relative_cases}.items()):
        torch.manual_seed(60 + i)
        write(name, list(cases()))
