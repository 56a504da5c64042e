"""Writes reference.json, results of scikit-learn that fit_test.go compares with ours.

Run it in this folder with scikit-learn 1.9 (pip install scikit-learn): python3 reference.py
"""
import json
import random

import numpy as np
import scipy.sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import Ridge
from sklearn.pipeline import FeatureUnion
from sklearn.svm import LinearSVC

random.seed(1)
topics = ["apples and pears, ripe (2 kg)", "trains from station 10 to 12", "small songs for two voices; loud"]
fillers = "the a of new old Big b2b very quick red x".split()


def text(topic):
    words = random.choices(topics[topic].split(), k=4) + random.choices(fillers + topics[random.randrange(3)].split(), k=4)
    random.shuffle(words)
    return " ".join(words)


labels = [random.randrange(3) for _ in range(70)]
texts = [text(label) for label in labels]
train, test = texts[:50], texts[:20]  # ours counts unknown n-grams in norms, so test with known ones
numbers = [len(t) / 10 + t.count("e") for t in train]

pattern = r"[^\W\d_]+|\d+|[^\w\s]|_"
union = FeatureUnion([
    ("words", TfidfVectorizer(token_pattern=pattern, sublinear_tf=True)),
    ("pairs", TfidfVectorizer(token_pattern=pattern, ngram_range=(2, 2), sublinear_tf=True)),
    ("characters", TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4), min_df=2, sublinear_tf=True)),
], transformer_weights={"pairs": 0.7})
x, z = union.fit_transform(train), union.transform(test)
vectors = np.array([[round(random.gauss(2 * (label == k), 1), 3) for k in range(3)] for label in labels])
mean = vectors[:50].mean(0)
scaled = (vectors - mean) * 1.25 / np.sqrt(((vectors[:50] - mean) ** 2).sum(1).mean())
x2, z2 = scipy.sparse.hstack([x, scaled[:50]]).tocsr(), scipy.sparse.hstack([z, scaled[:20]]).tocsr()


def svm_scores(x, z):
    return [[round(v, 7) for v in row] for row in LinearSVC(C=0.5, tol=1e-10, max_iter=1_000_000).fit(x, labels[:50]).decision_function(z)]


def ridge_numbers(x, z):
    return [round(v, 7) for v in Ridge(alpha=0.7, solver="sparse_cg", tol=1e-12).fit(x, numbers).predict(z)]


with open("reference.json", "w") as file:
    json.dump({
        "train": train, "labels": labels[:50], "numbers": numbers, "test": test, "features": x.shape[1],
        "svm": svm_scores(x, z), "ridge": ridge_numbers(x, z), "vectors": vectors.ravel().tolist(),
        "svm_vectors": svm_scores(x2, z2), "ridge_vectors": ridge_numbers(x2, z2),
        "svm_bare": svm_scores(scaled[:50], scaled[:20]), "ridge_bare": ridge_numbers(scaled[:50], scaled[:20]),
    }, file, indent=0)
    file.write("\n")
