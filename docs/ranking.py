"""Ranking: which descriptions of Debian's packages belong to the same software as a query.

    python3 docs/ranking.py make SEED DIR           writes train.csv, valid.csv and test.csv from apt-cache, with 300, 60 and 150 queries: a
                                                    query describes a package, its relevant documents describe packages
                                                    from the same source, and the others are the most similar ones from other sources
    python3 docs/ranking.py peers DIR               scores the cosine of TF-IDF and logistic regression on test.csv
    python3 docs/ranking.py recipe DIR MODEL RATE   trains sentence-transformers' CrossEncoder, 3 epochs with batches of 16, and scores it
    python3 docs/ranking.py score DIR ANSWERS       scores what heed predict --data wrote for test.csv

MRR is the mean of 1/rank of the first relevant document of each query, with its standard error. AUC is the share of pairs of a relevant and
another document of a query that are in order, the mean of the queries. Times are processor seconds, and memory is the largest of the process.
"""
import csv
import os
import random
import resource
import subprocess
import sys
import time

RELEVANT, OTHERS = 3, 7  # documents per query, at most


def make(seed, folder):
    from sklearn.feature_extraction.text import TfidfVectorizer

    os.makedirs(folder, exist_ok=True)
    rng, sources = random.Random(int(seed)), {}
    for block in subprocess.run(["apt-cache", "dumpavail"], capture_output=True, text=True, errors="replace").stdout.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.split("\n") if line[:1] != " " and ": " in line)
        text = fields.get("Description", "").strip()
        if text and "transitional" not in text and "dummy" not in text:
            sources.setdefault(fields.get("Source", fields["Package"]).split()[0], set()).add(text)
    texts = sorted({text: source for source, some in sources.items() for text in some}.items())
    x = TfidfVectorizer(sublinear_tf=True).fit_transform(text for text, _ in texts)
    groups = {}
    for i, (text, source) in enumerate(texts):
        groups.setdefault(source, []).append(i)
    chosen = sorted(source for source, some in groups.items() if 2 <= len(some) <= 12)
    rng.shuffle(chosen)
    for name, queries in dict(train=300, valid=60, test=150).items():
        count = 0
        with open(f"{folder}/{name}.csv", "w", newline="") as f:
            rows = csv.writer(f)
            rows.writerow(["query", "document", "relevant"])
            for _ in range(queries):
                source = chosen.pop()
                query, *relevant = rng.sample(groups[source], min(len(groups[source]), 1 + RELEVANT))
                near = (x @ x[query].T).toarray().ravel()
                others = [i for i in near.argsort(kind="stable")[::-1][:60] if texts[i][1] != source]
                others = [int(i) for i in rng.sample(others[:30], OTHERS)]
                for i in rng.sample(relevant + others, len(relevant) + len(others)):
                    rows.writerow([texts[query][0], texts[i][0], int(i in relevant)])
                    count += 1
        print(name, queries, "queries,", count, "rows")


def read(folder, name):
    with open(f"{folder}/{name}.csv", newline="") as f:
        rows = list(csv.DictReader(f))
    return [row["query"] for row in rows], [row["document"] for row in rows], [int(row["relevant"]) for row in rows]


def report(name, folder, scores, began=None):
    queries = {}
    for query, _, right, score in zip(*read(folder, "test"), scores, strict=True):
        queries.setdefault(query, []).append((float(score), right))
    ranks, areas = [], []
    for rows in queries.values():  # a relevant document comes after others with the same score
        good, bad = [s for s, right in rows if right], [s for s, right in rows if not right]
        ranks.append(1 / (1 + sum(s >= max(good) for s in bad)))
        areas.append(sum((g > b) + (g == b) / 2 for g in good for b in bad) / len(good) / len(bad))
    n, text = len(ranks), name
    for what, values in (("MRR", ranks), ("AUC", areas)):
        mean = sum(values) / n
        text += f", {what} {mean:.3f} ± {(sum((v - mean) ** 2 for v in values) / (n - 1) / n) ** 0.5:.3f}"
    if began is not None:
        text += f", {time.process_time() - began:.1f} s, {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB"
    print(text)


def peers(folder):
    import numpy as np
    from scipy.sparse import hstack
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    (q, d, y), (tq, td, _) = read(folder, "train"), read(folder, "test")
    began, cosines = time.process_time(), []
    for name, options in {"words": {}, "2 to 5 characters": dict(analyzer="char_wb", ngram_range=(2, 5))}.items():
        v = TfidfVectorizer(sublinear_tf=True, **options).fit(q + d)
        a, b, ta, tb = (v.transform(texts) for texts in (q, d, tq, td))
        for one, two in (a, b), (ta, tb):
            cosines.append(one.multiply(two).sum(1).A1)
        report(f"cosine of TF-IDF of {name}", folder, cosines[-1], began)
    model = LogisticRegression(max_iter=1000).fit(hstack([a, b, a.multiply(b), cosines[2][:, None]]).tocsr(), y)
    scores = model.decision_function(hstack([ta, tb, ta.multiply(tb), cosines[3][:, None]]).tocsr())
    report("logistic regression of characters, their products and their cosine", folder, scores, began)
    x, tx = (np.stack(some + [c * c for c in some], 1) for some in (cosines[::2], cosines[1::2]))
    report("logistic regression of both cosines and their squares", folder, LogisticRegression(C=10).fit(x, y).decision_function(tx), began)


def recipe(folder, path, rate):
    from datasets import Dataset
    from sentence_transformers.cross_encoder import CrossEncoder, CrossEncoderTrainer, CrossEncoderTrainingArguments
    from sentence_transformers.cross_encoder.losses import BinaryCrossEntropyLoss

    model = CrossEncoder(path, num_labels=1)
    rows = Dataset.from_dict(dict(zip(("query", "document", "label"), read(folder, "train"))))
    options = CrossEncoderTrainingArguments(
        output_dir=f"{folder}/recipe", num_train_epochs=3, per_device_train_batch_size=16, learning_rate=float(rate), warmup_ratio=0.1,
        seed=1, save_strategy="no", report_to="none", use_cpu=True)
    CrossEncoderTrainer(model=model, args=options, train_dataset=rows, loss=BinaryCrossEntropyLoss(model)).train()
    q, d, _ = read(folder, "test")
    report(f"CrossEncoder at a rate of {rate}", folder, model.predict(list(zip(q, d)), batch_size=16), 0)


def score(folder, path):
    with open(path, newline="") as f:
        report(path, folder, [row["answer"] for row in csv.DictReader(f)])


if __name__ == "__main__":
    dict(make=make, peers=peers, recipe=recipe, score=score)[sys.argv[1]](*sys.argv[2:])
