#!/usr/bin/env python3
"""Writes the files of docs/results.md's section "Packages", and scores linear models on them.

It reads Debian's list of packages with `apt-cache dumpavail`, and writes to the current folder:
  packages.tsv, packages-test.tsv  description and log10 of the installed size in KiB
  pairs.tsv, pairs-test.tsv        two descriptions, and whether their packages are in the same section
The linear models need scikit-learn. Times are processor seconds of this process.
"""
import math
import random
import subprocess
import time

import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import mean_absolute_error, r2_score
from sklearn.pipeline import make_union


def packages():
    """Returns a description, a size and a section for each different description, in a random order."""
    found = {}
    text = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, text=True, check=True).stdout
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.split("\n") if line[:1] not in (" ", "") and ": " in line)
        name, size = fields.get("Description", "").strip(), int(fields.get("Installed-Size", "0"))
        if name and size > 0 and "\t" not in name:
            found.setdefault(name, (name, math.log10(size), fields.get("Section", "").split("/")[-1]))
    rows = list(found.values())
    random.Random(1).shuffle(rows)
    return rows


def pairs(rows, n, rng):
    """Returns n pairs of descriptions. Every second pair is of one section."""
    sections = {}
    for name, _, section in rows:
        sections.setdefault(section, []).append(name)
    out = []
    for i in range(n):
        name, _, section = rng.choice(rows)
        other, where = rng.choice(sections[section]), section
        while i % 2 == 0 and where == section:
            other, _, where = rng.choice(rows)
        out.append((name, other, "same" if where == section else "different"))
    return out


def write(path, header, rows):
    with open(path, "w") as f:
        for row in [header] + rows:
            f.write("\t".join(row) + "\n")


rows = packages()
cut = len(rows) // 10
test, train = rows[:cut], rows[cut:]
rng = random.Random(2)
test_pairs, train_pairs = pairs(test, 3000, rng), pairs(train, 20000, rng)
for name, part, both in (("-test", test, test_pairs), ("", train, train_pairs)):
    write(f"packages{name}.tsv", ("description", "size"), [(d, f"{s:.4f}") for d, s, _ in part])
    write(f"pairs{name}.tsv", ("one", "other", "section"), both)


def words():
    return TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)


sizes, wanted = [r[1] for r in train], [r[1] for r in test]
mean = sum(sizes) / len(sizes)
for name, features in (("words", words()), ("words and characters", make_union(words(), TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True)))):
    start = time.process_time()
    x, z = features.fit_transform([r[0] for r in train]), features.transform([r[0] for r in test])
    answers = Ridge(alpha=1, solver="sparse_cg").fit(x, [s - mean for s in sizes]).predict(z) + mean
    print(f"ridge, {name}: R² {r2_score(wanted, answers):.4f}, mean absolute error {mean_absolute_error(wanted, answers):.4f}, {time.process_time() - start:.1f} s")

start = time.process_time()
features = words().fit([d for p in train_pairs for d in p[:2]])
parts = [features.transform([p[i] for p in some]) for some in (train_pairs, test_pairs) for i in (0, 1)]
for name, join in (("both", lambda a, b: sp.hstack([a, b])), ("both, product and distance", lambda a, b: sp.hstack([a, b, a.multiply(b), abs(a - b)]))):
    model = LogisticRegression(max_iter=1000).fit(join(*parts[:2]).tocsr(), [p[2] for p in train_pairs])
    print(f"logistic regression, {name}: accuracy {model.score(join(*parts[2:]).tocsr(), [p[2] for p in test_pairs]):.4f}, {time.process_time() - start:.1f} s")
