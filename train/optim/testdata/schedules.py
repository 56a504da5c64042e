"""Writes schedules.json for schedule_test.go: learning rates of PyTorch's schedulers, which start from a rate of 1.

    /usr/bin/python3 schedules.py > schedules.json
"""
import json
import torch
from torch.optim import lr_scheduler


def rates(make, steps=60, metrics=None):
    opt = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    scheduler = make(opt)
    out = []
    for step in range(steps):
        out.append(opt.param_groups[0]["lr"])
        opt.step()
        if metrics:
            scheduler.step(metrics[step])
        else:
            scheduler.step()
    return out


metrics = [5, 4, 4.0001, 3.9999, 3.9, 3.9, 3.9, 3.9, 3, 3, 3, 3, 3.1, 3, 2.99999, 3, 3, 3, 2, 2.5, 2.5, 2.5, 2.5, 2.5, 2.5,
           2.5, 2.5, 2.5, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]
print("{\n" + ",\n".join(f'"{name}": {json.dumps(values)}' for name, values in {
    "linear": rates(lambda o: lr_scheduler.LinearLR(o, start_factor=0.25, end_factor=0.75, total_iters=20)),
    "cosine": rates(lambda o: lr_scheduler.CosineAnnealingLR(o, T_max=59, eta_min=0.1)),
    "restarts": rates(lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, T_0=10, T_mult=1, eta_min=0.1)),
    "growing restarts": rates(lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, T_0=8, T_mult=2)),
    "staircase": rates(lambda o: lr_scheduler.StepLR(o, step_size=15, gamma=0.3)),
    "one cycle": rates(lambda o: lr_scheduler.OneCycleLR(o, max_lr=1.0, total_steps=61, pct_start=21 / 61)),
    "constant, then linear": rates(lambda o: lr_scheduler.SequentialLR(o, [
        lr_scheduler.ConstantLR(o, factor=0.5, total_iters=1000),
        lr_scheduler.LinearLR(o, start_factor=0.9, end_factor=0.1, total_iters=30)], milestones=[12])),
    "product": rates(lambda o: lr_scheduler.ChainedScheduler([
        lr_scheduler.StepLR(o, step_size=10, gamma=0.5),
        lr_scheduler.LinearLR(o, start_factor=0.2, end_factor=1.0, total_iters=25)])),
    "plateau": rates(lambda o: lr_scheduler.ReduceLROnPlateau(o, factor=0.5, patience=2, min_lr=0.01), len(metrics), metrics),
    "plateau with cooldown": rates(lambda o: lr_scheduler.ReduceLROnPlateau(
        o, mode="max", factor=0.5, patience=1, cooldown=3, threshold=0.2), len(metrics), [10 - m for m in metrics]),
    "metrics": metrics,
}.items()) + "\n}")
