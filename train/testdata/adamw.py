"""Writes adamw.json: steps of torch.optim.AdamW in float64, for adamw_test.go.

    /usr/bin/python3 adamw.py > adamw.json
"""
import json
import torch

torch.manual_seed(1)
cases = []
for lr, betas, eps, decay, clip in [
    (1e-3, (0.9, 0.999), 1e-8, 0.01, 0.0),
    (3e-2, (0.8, 0.98), 1e-6, 0.3, 0.0),
    (1e-2, (0.9, 0.99), 1e-8, 0.1, 0.5),
]:
    matrix = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    vector = torch.randn(4, dtype=torch.float64, requires_grad=True)
    opt = torch.optim.AdamW(
        [{"params": [matrix], "weight_decay": decay}, {"params": [vector], "weight_decay": 0.0}], lr=lr, betas=betas, eps=eps
    )
    case = {"lr": lr, "beta1": betas[0], "beta2": betas[1], "eps": eps, "decay": decay, "clip": clip,
            "matrix": matrix.flatten().tolist(), "vector": vector.tolist(), "steps": []}
    for _ in range(5):
        matrix.grad, vector.grad = torch.randn_like(matrix), torch.randn_like(vector)
        step = {"matrix_grad": matrix.grad.flatten().tolist(), "vector_grad": vector.grad.tolist()}
        if clip:
            # clip_grad_norm_ adds 1e-6 to the norm, which the paper doesn't.
            norm = torch.sqrt(sum((g ** 2).sum() for g in (matrix.grad, vector.grad)))
            if norm > clip:
                matrix.grad *= clip / norm
                vector.grad *= clip / norm
        opt.step()
        step["matrix"], step["vector"] = matrix.flatten().tolist(), vector.tolist()
        case["steps"].append(step)
    cases.append(case)
print(json.dumps(cases, indent=1))
