"""Writes metrics.json for metric_test.go: macro F1 and the area under the ROC curve by scikit-learn 1.9.

    pip install scikit-learn
    python3 metrics.py > metrics.json
"""
import json
import warnings

import numpy as np
from sklearn.metrics import f1_score, roc_auc_score

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
print(json.dumps({"f1": f1, "auc": auc}))
