#!/usr/bin/env python3
"""Makes the tables of docs/results.md's section "Learning rates".

  docs/rates.py cmudict-train.tsv tinyshakespeare.txt            a grid of rates, and the suggestions of --find-rate
  docs/rates.py --sequences cmudict-train.tsv cmudict-valid.tsv  sequences with the other defaults

It writes its files to the current folder. The other rows are from Debian's list of packages (`apt-cache dumpavail`).
The program heed must be in the PATH. The grid trains 108 times and finds 18 rates, in about 20 minutes; the sequences
take about as long.
"""
import collections
import csv
import datetime
import math
import random
import re
import shutil
import subprocess
import sys

RATES = ("0.0001", "0.0003", "0.001", "0.003", "0.01", "0.03")
FILES = {
    "sections": "--task classification --data sections.csv --units characters --mix=false --monitor val_loss --dim 64 --layers 1 --max-epochs 8",
    "noisy": "--task classification --data noisy.csv --units characters --mix=false --monitor val_loss --dim 32 --layers 1 --max-epochs 10",
    "sizes": "--task regression --data sizes.csv --units tokens --mix=false --dim 64 --layers 1 --max-epochs 4",
    "phonemes": "--task seq2seq --data phonemes.tsv --units characters --dim 64 --layers 2 --max-epochs 10",
    "characters": "--task text --data text.txt --dim 64 --layers 2 --max-epochs 4",
    "sort": "--task sort --max-epochs 8",
}


def packages():
    """Returns 18,000 descriptions with section and size, from the 40 largest sections, in a random order."""
    seen, texts = {}, {}
    for block in subprocess.run(["apt-cache", "dumpavail"], capture_output=True, text=True, check=True).stdout.split("\n\n"):
        fields = dict(line.split(":", 1) for line in block.split("\n") if line[:1] != " " and ":" in line)
        text, section = fields.get("Description", "").strip(), fields.get("Section", "").split("/")[-1].strip()
        if text and section:
            seen.setdefault((text, section), int(fields.get("Installed-Size", "0")))
    for (text, section), size in seen.items():
        texts.setdefault(text, (section, size))
    top = {section for section, _ in collections.Counter(section for _, section in seen).most_common(40)}
    rows = sorted((text, section, size) for text, (section, size) in texts.items() if section in top)
    random.Random(1).shuffle(rows)
    return rows[:18000]


def write(path, header, rows, delimiter=","):
    with open(path, "w", newline="") as f:
        csv.writer(f, delimiter=delimiter, lineterminator="\n").writerows([header] + rows)


def make(words, text):
    rows, four, rng = packages(), ["doc", "python", "games", "libdevel"], random.Random(2)
    write("sections.csv", ("text", "label"), [r[:2] for r in rows[:4000]])
    write("sizes.csv", ("text", "number"), [(r[0], round(math.log10(1 + r[2]), 4)) for r in rows])
    noisy = [r for r in rows if r[1] in four][:600]
    write("noisy.csv", ("text", "label"), [(r[0], rng.choice(four) if rng.random() < 0.3 else r[1]) for r in noisy])
    with open(words) as f:
        lines = f.read().splitlines()
    random.Random(1).shuffle(lines)
    write("phonemes.tsv", ("source", "target"), [line.split("\t") for line in lines[:4000]], "\t")
    with open(text) as f, open("text.txt", "w") as out:
        out.write(f.read(200000))


def spelled(n):
    """Returns a number below a million in English words."""
    if n >= 1000:
        return spelled(n // 1000) + " thousand" + (" " + spelled(n % 1000) if n % 1000 else "")
    if n >= 100:
        return spelled(n // 100) + " hundred" + (" and " + spelled(n % 100) if n % 100 else "")
    if n >= 20:
        tens = "twenty thirty forty fifty sixty seventy eighty ninety".split()
        return tens[n // 10 - 2] + ("-" + spelled(n % 10) if n % 10 else "")
    return ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
            "seventeen eighteen nineteen").split()[n]


def sequences(words, held):
    """Returns files of sequences, each with the rows to train and to test."""
    rng = random.Random(1)
    with open(words) as train, open(held) as test:
        train, test = ([line.split("\t")[:2] for line in f.read().splitlines()] for f in (train, test))
    rng.shuffle(train)
    forms = ["%d %B %Y", "%B %d, %Y", "%d/%m/%y", "%a %d %b %Y", "%Y%m%d", "%A, %d %B %Y", "%d.%m.%Y"]
    days = [datetime.date(1950, 1, 1) + datetime.timedelta(days=n) for n in rng.sample(range(36500), 2500)]
    dates = [(day.strftime(rng.choice(forms)), day.isoformat()) for day in days]
    numbers = [(spelled(n), n) for n in rng.sample(range(1000000), 2500)]
    return {
        "1,000 pronunciations": (train[:1000], test),
        "5,000 pronunciations": (train[:5000], test),
        "20,000 pronunciations": (train[:20000], test),
        "5,000 spellings": ([row[::-1] for row in train[:5000]], [row[::-1] for row in test]),
        "2,000 numbers": (numbers[:2000], numbers[2000:]),
        "2,000 dates": (dates[:2000], dates[2000:]),
    }


def heed(flags, command="train"):
    return subprocess.run(["heed", command, *flags.split()], capture_output=True, text=True).stdout


if sys.argv[1] == "--sequences":
    for name, files in sequences(*sys.argv[2:]).items():
        for file, rows in zip(("train.tsv", "test.tsv"), files):
            write(file, ("source", "target"), rows, "\t")
        found = []
        for rate in ("0.001", "0.002", "0.003"):
            shutil.rmtree("run", ignore_errors=True)
            heed(f"--task seq2seq --data train.tsv --learning-rate {rate} --out run")
            found.append(float(re.search(r"^Exact: ([0-9.]+)", heed("run --data test.tsv", "eval"), re.M)[1]))
        print("|", name, "|", " | ".join(f"{100 * x:.1f} %" for x in found), "|", flush=True)
    sys.exit()

make(*sys.argv[1:])
for name, flags in FILES.items():
    losses = []
    for rate in RATES:
        found = []
        for seed in (1, 2, 3):
            shutil.rmtree("run", ignore_errors=True)
            found.append(float(re.search(r"^Best.* Val=([0-9.]+)", heed(f"{flags} --seed {seed} --learning-rate {rate} --out run"), re.M)[1]))
        losses.append(sum(found) / 3)
    suggested = [re.search(r"--learning-rate (\S+),", heed(f"{flags} --seed {seed} --find-rate"))[1] for seed in (1, 2, 3)]
    print("|", name, "|", " | ".join(f"{x:.3f}" for x in losses), "|", ", ".join(suggested), "|", flush=True)
