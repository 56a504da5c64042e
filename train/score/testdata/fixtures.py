"""Writes fixtures.json for score_test.go: scores by NLTK 3.8 and scikit-learn 1.2.

    apt-get install python3-nltk python3-sklearn
    /usr/bin/python3 fixtures.py > fixtures.json

NLTK's method3 smooths like sacreBLEU's "exp". If an answer has fewer tokens than n, NLTK counts one n-gram and sacreBLEU
none, so answers here have four tokens or more.
"""
import json
import random

from nltk.metrics.distance import edit_distance
from nltk.translate.bleu_score import SmoothingFunction, corpus_bleu
from sklearn.metrics import accuracy_score, confusion_matrix, precision_recall_fscore_support

rng = random.Random(1)


def text(symbols, least, most):
    return [rng.choice(symbols) for _ in range(rng.randint(least, most))]


def changed(tokens, symbols, share):
    out = []
    for t in tokens:
        r = rng.random() / share
        if r < 1 / 3:
            continue
        out.append(rng.choice(symbols) if r < 2 / 3 else t)
        if 2 / 3 < r < 1:
            out.append(rng.choice(symbols))
    return out


def bleu(symbols, share, rows, references):
    corpus = []
    while len(corpus) < rows:
        right = text(symbols, 4, 20)
        answer = changed(right, symbols, share)
        if len(answer) >= 4:
            corpus.append({"answer": answer, "references": [changed(right, symbols, share) for _ in range(rng.randint(1, references))]})
    value = corpus_bleu([c["references"] for c in corpus], [c["answer"] for c in corpus], smoothing_function=SmoothingFunction().method3)
    return {"corpus": corpus, "value": 100 * value}


def edits(symbols):
    a, b = text(symbols, 0, 15), text(symbols, 0, 15)
    if rng.random() < 0.5:
        b = changed(a, symbols, 0.4)
    return {"a": a, "b": b, "distance": edit_distance(a, b)}


def confusion(answered, right, rows, share):
    pairs = []
    for _ in range(rows):
        r = rng.choice(right)
        pairs.append((r if r in answered and rng.random() < share else rng.choice(answered), r))
    answers, rights = zip(*pairs)
    classes = sorted(set(answers) | set(rights))
    each = precision_recall_fscore_support(rights, answers, labels=classes, zero_division=0)
    macro = precision_recall_fscore_support(rights, answers, labels=classes, zero_division=0, average="macro")
    return {
        "seq2seq": pairs,
        "classes": classes,
        "precision": list(each[0]), "recall": list(each[1]), "f1": list(each[2]), "rows": [int(n) for n in each[3]],
        "macro": list(macro[:3]),
        "accuracy": accuracy_score(rights, answers),
        "matrix": confusion_matrix(rights, answers, labels=classes).tolist(),  # one row per right class
    }


letters = "abcdefgh"
print(json.dumps({
    "bleu": [bleu(letters, 0.3, 30, 1), bleu(letters, 0.6, 20, 3), bleu(letters[:2], 0.9, 10, 4), bleu("abcdefghijklmnopqrstuvwxyz", 0.9, 6, 1)],
    "edits": [edits(letters[:n]) for n in (1, 2, 2, 3, 3, 4, 4, 8, 8, 8) for _ in range(5)],
    "confusion": [
        confusion("abc", "abc", 60, 0.7),
        confusion("ab", "abcde", 40, 0.5),
        confusion("xyzab", "ab", 40, 0.2),
        confusion("a", "a", 3, 1),
        confusion("b", "a", 3, 1),
    ],
}))
