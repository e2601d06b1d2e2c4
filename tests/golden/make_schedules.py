"""Writes schedules.json: learning rates of transformers' own schedulers, and the flags of train that ask for the same.
Needs torch and transformers:  python make_schedules.py
"""
import json
import pathlib

import torch
from transformers import get_scheduler

RATE, TOTAL, WARMUP = 3e-4, 100, 10
STEPS = [0, 1, 5, 9, 10, 11, 25, 40, 50, 69, 70, 71, 85, 99]

# Name, --lr_scheduler_kwargs and warm-up steps of each --lr_scheduler_type.
CASES = [
    ("constant", {}, 0),
    ("constant_with_warmup", {}, WARMUP),
    ("linear", {}, WARMUP),
    ("linear", {}, 0),
    ("cosine", {}, WARMUP),
    ("cosine", {"num_cycles": 1.5}, WARMUP),
    ("cosine_with_min_lr", {"min_lr": 3e-5}, WARMUP),
    ("cosine_with_min_lr", {"min_lr_rate": 0.25, "num_cycles": 1.0}, 0),
    ("cosine_warmup_with_min_lr", {"min_lr": 3e-5}, WARMUP),
    ("cosine_warmup_with_min_lr", {"min_lr_rate": 0.1, "warmup_lr_rate": 0.05}, WARMUP),
    ("cosine_with_restarts", {}, WARMUP),
    ("cosine_with_restarts", {"num_cycles": 3}, WARMUP),
    ("polynomial", {}, WARMUP),
    ("polynomial", {"lr_end": 1e-5, "power": 2}, WARMUP),
    ("inverse_sqrt", {}, WARMUP),
    ("inverse_sqrt", {"timescale": 40}, WARMUP),
    ("inverse_sqrt", {}, 0),
    ("warmup_stable_decay", {"num_decay_steps": 30}, WARMUP),
    ("warmup_stable_decay", {"num_stable_steps": 20, "num_decay_steps": 30, "min_lr_ratio": 0.1}, WARMUP),
    ("warmup_stable_decay", {"num_decay_steps": 30, "warmup_type": "cosine", "decay_type": "linear"}, WARMUP),
    ("warmup_stable_decay", {"num_decay_steps": 30, "warmup_type": "1-sqrt", "decay_type": "1-sqrt",
                             "min_lr_ratio": 0.05}, WARMUP),
    ("warmup_stable_decay", {"num_decay_steps": 95, "decay_type": "linear"}, WARMUP),
]


def rates(name, arguments, warmup):
    optimizer = torch.optim.AdamW([torch.zeros(1, requires_grad=True)], lr=RATE)
    scheduler = get_scheduler(name, optimizer, warmup, TOTAL, scheduler_specific_kwargs=dict(arguments))
    return [[step, RATE * scheduler.lr_lambdas[0](step)] for step in STEPS]


def flags(name, arguments, warmup):
    words = ["--lr_scheduler_type", name, "--learning_rate", repr(RATE), "--max_steps", str(TOTAL)]
    if warmup:
        words += ["--warmup_steps", str(warmup)]
    return words + (["--lr_scheduler_kwargs", json.dumps(arguments)] if arguments else [])


if __name__ == "__main__":
    lines = [json.dumps({"flags": flags(*case), "points": rates(*case)}) for case in CASES]
    pathlib.Path(__file__).with_name("schedules.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")
