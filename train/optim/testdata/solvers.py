"""Writes solvers.json for solver_test.go: 100 steps of PyTorch's optimizers in float64.

    /usr/bin/python3 solvers.py > solvers.json

At each step, the gradient of element i is sin(1.7·i + 0.3·step + phase)·(1 + step/50) + weight/4, and the test computes
the same. Weight decay applies to the matrix only, as in optim.Solver.
"""
import json
import torch

torch.set_default_dtype(torch.float64)


def gradient(weight, step, phase):
    i = torch.arange(weight.numel()).reshape(weight.shape)
    return torch.sin(1.7 * i + 0.3 * step + phase) * (1 + step / 50) + weight.detach() / 4


cases = []
for rule, decay, options, clip in [
    ("sgd", 0.0, {"lr": 1e-2}, {}),
    ("sgd", 0.1, {"lr": 1e-2, "momentum": 0.9}, {}),
    ("sgd", 0.1, {"lr": 1e-2, "momentum": 0.8, "nesterov": True}, {"norm": 0.5}),
    ("adam", 0.0, {"lr": 1e-2}, {}),
    ("adam", 0.3, {"lr": 3e-2, "betas": (0.8, 0.98), "eps": 1e-6}, {"norm": 1.5}),
    ("adamw", 0.01, {"lr": 1e-3}, {}),
    ("adamw", 0.3, {"lr": 3e-2, "betas": (0.8, 0.98), "eps": 1e-6}, {}),
    ("adamw", 0.1, {"lr": 1e-2, "betas": (0.9, 0.99)}, {"norm": 0.5}),
    ("adamw", 0.1, {"lr": 1e-2}, {"value": 0.4}),
    ("sgd", 0.1, {"lr": 1e-2, "momentum": 0.9}, {"norm": 1.5, "value": 0.4}),
]:
    matrix = torch.linspace(-1, 1, 6).reshape(2, 3).requires_grad_()
    vector = torch.linspace(0.5, -0.7, 4).requires_grad_()
    groups = [{"params": [matrix], "weight_decay": decay}, {"params": [vector], "weight_decay": 0.0}]
    opt = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[rule](groups, **options)
    steps = []
    for step in range(100):
        matrix.grad, vector.grad = gradient(matrix, step, 0), gradient(vector, step, 1)
        if "norm" in clip:
            # clip_grad_norm_ adds 1e-6 to the norm; optim.Solver doesn't.
            norm = torch.sqrt(sum((g ** 2).sum() for g in (matrix.grad, vector.grad)))
            if norm > clip["norm"]:
                matrix.grad *= clip["norm"] / norm
                vector.grad *= clip["norm"] / norm
        if "value" in clip:
            torch.nn.utils.clip_grad_value_([matrix, vector], clip["value"])
        opt.step()
        if step in (0, 1, 9, 49, 99):
            steps.append({"step": step, "matrix": matrix.flatten().tolist(), "vector": vector.tolist()})
    beta1, beta2 = options.get("betas", (0.0, 0.0))
    cases.append({
        "rule": rule, "lr": options["lr"], "decay": decay, "momentum": options.get("momentum", 0.0),
        "nesterov": options.get("nesterov", False), "beta1": beta1, "beta2": beta2, "eps": options.get("eps", 0.0),
        "clip_norm": clip.get("norm", 0.0), "clip_value": clip.get("value", 0.0), "steps": steps,
    })
print("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]")
