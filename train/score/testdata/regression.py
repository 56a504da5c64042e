"""Writes regression.json for regression_test.go: scores by SciPy 1.17 and scikit-learn 1.9.

    pip install scipy scikit-learn
    python3 regression.py > regression.json
"""
import json

import numpy as np
from scipy.stats import pearsonr, spearmanr
from sklearn.metrics import mean_absolute_error, r2_score

rng = np.random.default_rng(1)
cases = []
for n, mean, size, error, digits in [(2, 0, 1, 1, 3), (3, 5, 2, 1, 1), (20, -3, 4, 9, 0), (50, 2000, 3, 1, 1), (200, 1e9, 1, 0.5, 2), (40, 1e-9, 1e-10, 1e-11, 12), (60, 0, 1, 0, 0)]:
    references = (mean + rng.normal(size=n) * size).round(digits)
    answers = (references + rng.normal(size=n) * error).round(digits)
    cases.append({
        "answers": answers.tolist(), "references": references.tolist(),
        "mae": mean_absolute_error(references, answers), "r2": r2_score(references, answers),
        "pearson": pearsonr(answers, references).statistic, "spearman": spearmanr(answers, references).statistic,
    })
print(json.dumps(cases))
