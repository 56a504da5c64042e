"""Writes entities.json for entities_test.go: entities by seqeval 1.2.2 and by the script conlleval.pl of CoNLL-2000.

    pip install seqeval
    pip download --no-deps --no-binary :all: seqeval    # its tests contain conlleval.pl
    python3 entities.py seqeval-1.2.2/tests/conlleval.pl > entities.json

The sequences come from a generator that the test has too, so the file holds only the results: for each case the prefixes,
the number of types and, of all entities and of each type, the right, answered and wanted entities, and the F1 score.
Each case has 100 sequences. conlleval.pl knows the prefixes B and I; there, both must agree.
"""
import json
import re
import subprocess
import sys
import warnings

from seqeval.metrics import classification_report, f1_score
from seqeval.metrics.sequence_labeling import get_entities

warnings.simplefilter("ignore")
state = 1


def draw(n):
    global state
    state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
    return (state >> 33) % n


def tag(prefixes, types):
    prefix = prefixes[draw(len(prefixes))]
    return prefix if prefix == "O" else prefix + "-" + "abc"[draw(types)]


def conlleval(right, answers):
    lines = []
    for r, a in zip(right, answers):
        lines += [f"w {x} {y}" for x, y in zip(r, a)] + [""]
    out = subprocess.run(["perl", sys.argv[1]], input="\n".join(lines) + "\n", capture_output=True, text=True, check=True).stdout
    found = re.search(r"with (\d+) phrases; found: (\d+) phrases; correct: (\d+)", out)
    f1 = re.search(r"FB1: +([\d.]+)", out)
    return [int(found[3]), int(found[2]), int(found[1])], float(f1[1])


cases = []
for i in range(40):
    prefixes, types = ["IO", "BIO", "BIIOO", "BIESO"][i % 4], 1 + draw(3)
    right, answers = [], []
    for _ in range(100):
        right.append([tag(prefixes, types) for _ in range(1 + draw(8))])
        answers.append([tag(prefixes, types) if draw(4) == 0 else t for t in right[-1]])
    report = classification_report(right, answers, output_dict=True, zero_division=0)
    wanted, answered = set(get_entities(right)), set(get_entities(answers))
    scores = {}
    for name in ["micro avg"] + list("abc"[:types]):
        matching = lambda entities: {e for e in entities if name in (e[0], "micro avg")}
        counts = [len(matching(wanted) & matching(answered)), len(matching(answered)), len(matching(wanted))]
        assert name not in report or counts[2] == report[name]["support"]
        scores[name.replace("micro avg", "")] = counts + [float(report[name]["f1-score"])]
    assert scores[""][3] == f1_score(right, answers)
    if set(prefixes) <= set("BIO"):
        counts, f1 = conlleval(right, answers)
        assert counts == scores[""][:3] and abs(f1 - 100 * scores[""][3]) < 0.00501, (counts, f1, scores)
    cases.append({"prefixes": prefixes, "types": types, "scores": scores})
print("[" + ",\n".join(json.dumps(c) for c in cases) + "]")
