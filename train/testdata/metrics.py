"""Writes metrics.json for metric_test.go: macro F1, the area under the ROC curve and R² by scikit-learn 1.9.

    pip install scikit-learn
    python3 metrics.py > metrics.json
"""
import json
import warnings

import numpy as np
from sklearn.metrics import f1_score, r2_score, roc_auc_score

warnings.simplefilter("ignore")
rng = np.random.default_rng(1)
f1, auc = [], []
for n, classes in [(1, 2), (4, 3), (10, 2), (10, 9), (12, 4), (16, 3), (24, 5)]:
    logits = rng.normal(size=(n, classes)).round(2)
    targets = np.where(rng.random(n) < 0.5, logits.argmax(1), rng.integers(0, classes, n))
    targets[rng.random(n) < 0.2] = -1
    targets[0] = 0
    counts = targets >= 0
    f1.append({
        "classes": classes, "logits": logits.flatten().tolist(), "targets": targets.tolist(),
        "want": f1_score(targets[counts], logits[counts].argmax(1), average="macro", zero_division=0),
    })
for n, apart, digits in [(2, 1, 2), (5, 0, 2), (20, 1, 0), (40, 1, 3), (60, 3, 1), (80, 0.1, 4)]:
    targets = (rng.random(n) < 0.4).astype(int)
    targets[:2] = 0, 1
    logits = (rng.normal(size=n) * 2 + apart * (targets - 0.5)).round(digits)
    weights = rng.integers(0, 4, n)
    weights[:2] = 1
    auc.append({
        "logits": logits.tolist(), "targets": targets.tolist(), "weights": weights.tolist(),
        "want": roc_auc_score(targets, logits), "weighted": roc_auc_score(targets, logits, sample_weight=weights),
    })
r2 = []
for n, mean, error in [(2, 0, 1), (5, 3, 0.5), (20, -40, 0.1), (60, 2000, 3), (100, 100000, 0.25)]:
    targets = mean + (rng.normal(size=n) * 8).round() / 8  # exact as float32, too
    outputs = targets + (rng.normal(size=n) * error * 8).round() / 8
    weights = rng.integers(0, 4, n)
    weights[:2] = 1, 2
    r2.append({
        "outputs": outputs.tolist(), "targets": targets.tolist(), "weights": weights.tolist(),
        "want": r2_score(targets, outputs), "weighted": r2_score(targets, outputs, sample_weight=weights),
    })
print(json.dumps({"f1": f1, "auc": auc, "r2": r2}))
