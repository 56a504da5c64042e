"""Several labels per row: Debian's packages with their tags, and scikit-learn's linear models of them.

    python3 docs/labels.py make SEED DIR   writes train.jsonl, valid.jsonl and test.jsonl from apt-cache: a short description, and its
                                           tags among the 100 most frequent
    python3 docs/labels.py learn DIR       prints the scores of one-vs-rest logistic regression over TF-IDF of words and characters,
                                           with the usual threshold of 0.5, and with thresholds per label from the validation rows
"""
import json
import random
import resource
import subprocess
import sys
import time
from collections import Counter


def make(seed, folder):
    found, package = {}, {}
    for line in subprocess.run(["apt-cache", "dumpavail"], capture_output=True, text=True, errors="replace").stdout.splitlines() + [""]:
        if line[:1] == " " and key == "Tag":  # further lines
            package[key] += line
        elif ":" in line and line[0] != " ":
            key, value = line.split(":", 1)
            package[key] = value
        elif not line:
            text = (package.get("Description") or package.get("Description-en") or "").strip()
            if text and "Tag" in package:  # one row per text
                found.setdefault(text, sorted(tag.strip() for tag in package["Tag"].split(",")))
            package = {}
    frequent = {tag for tag, _ in Counter(tag for tags in found.values() for tag in tags).most_common(100)}
    rows = [dict(text=text, labels=[tag for tag in tags if tag in frequent]) for text, tags in sorted(found.items())]
    random.Random(int(seed)).shuffle(rows)
    for name, part in dict(train=rows[:14000], valid=rows[14000:15500], test=rows[15500:]).items():
        with open(f"{folder}/{name}.jsonl", "w") as f:
            f.writelines(json.dumps(row) + "\n" for row in part)
        print(name, len(part), "rows,", sum(not row["labels"] for row in part), "without labels,", sum(len(row["labels"]) for row in part), "labels")


def learn(folder):
    import numpy as np
    from scipy.sparse import hstack
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import accuracy_score, average_precision_score, f1_score
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.preprocessing import MultiLabelBinarizer

    parts = {name: [json.loads(line) for line in open(f"{folder}/{name}.jsonl")] for name in ("train", "valid", "test")}
    binarizer = MultiLabelBinarizer().fit(row["labels"] for row in parts["train"])
    y = {name: binarizer.transform(row["labels"] for row in rows) for name, rows in parts.items()}
    texts = {name: [row["text"] for row in rows] for name, rows in parts.items()}
    start = time.process_time()
    features = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True), TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True)
    x = {name: hstack([(f.fit_transform if name == "train" else f.transform)(some) for f in features]).tocsr() for name, some in texts.items()}
    best = None
    for c in (1, 4, 16):  # chosen on the validation rows
        model = OneVsRestClassifier(LogisticRegression(C=c, solver="liblinear")).fit(x["train"], y["train"])
        p = model.predict_proba(x["valid"])
        value = f1_score(y["valid"], p >= 0.5, average="micro")
        print(f"C {c}: micro F1 {value:.4f} of the validation rows, {time.process_time() - start:.0f} s")
        if best is None or value > best[0]:
            best = value, model, p
    _, model, valid = best
    thresholds = np.array([max((f1_score(t, q >= level, zero_division=0), level) for level in np.arange(0.05, 0.95, 0.05))[1] for t, q in zip(y["valid"].T, valid.T)])
    p, t = model.predict_proba(x["test"]), y["test"]
    for name, chosen in {"0.5": p >= 0.5, "per label": p >= thresholds}.items():
        print(f"threshold {name}: micro F1 {f1_score(t, chosen, average='micro'):.4f}, macro F1 {f1_score(t, chosen, average='macro', zero_division=0):.4f}, "
              f"subset accuracy {accuracy_score(t, chosen):.4f}")
    print(f"average precision {average_precision_score(t, p, average='micro'):.4f}, mean of the labels {average_precision_score(t, p, average='macro'):.4f}")
    print(f"{time.process_time() - start:.0f} s of processor time, {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    dict(make=make, learn=learn)[sys.argv[1]](*sys.argv[2:])
