#!/usr/bin/env python3
"""Trains a model under a target of memory with the planner's settings and with many others, and compares their measured steps.

    bench/chosen.py [--bin build/bin] [--target 3GB] [--count 24] [--rounds 3] [--steps 5] [--results FILE]

The others are drawn by a seed from micro-batches, shares of recomputation, orders of micro-steps and homes of the optimizer's state; those that do
not fit into the target are left out. All learn from one set of measured instructions (--calibrate again in the first run, auto in the others).
In each round every setting runs once, the planner's before, between and after the others. Prints the median step of each, foreseen and measured,
and how much slower the planner's is than the best; ends with 1 if fewer than `--count` others fit.
"""
import argparse
import itertools
import json
import os
import pathlib
import random
import statistics
import subprocess
import tempfile

MODEL = ["--model", "gpt2-124m", "--sequence-length", "256", "--global-batch", "4"]
DOES_NOT_FIT = 69
ALTERNATIVES = list(itertools.product(
    [["--micro-batch", "4"], ["--micro-batch", "2"], ["--micro-batch", "1"]],
    [[], ["--recompute-norms"], *(["--activation-checkpointing", "--checkpoint-ratio", part] for part in ("0.25", "0.5", "0.75", "1"))],
    [[], ["--layer-major"]],
    [[], ["--offload-optimizer", "nvme", "--nvme-path", "drive"]]))


def train(binaries, home, flags, steps, calibrate):
    """Returns the foreseen seconds per step, the seconds of each step but the first two, and the largest resident bytes; None if it does not fit."""
    with tempfile.TemporaryDirectory(dir=home) as folder:
        metrics = pathlib.Path(folder, "metrics")
        pathlib.Path(folder, "drive").mkdir()
        command = [str(binaries / "train"), *MODEL, "--tokenizer", "bytes", "--device", "cpu", "--steps", str(steps), "--metrics", str(metrics),
                   "--calibrate", calibrate, *flags]
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=os.environ | {"XDG_CACHE_HOME": str(home / "cache")})
        if done.returncode == DOES_NOT_FIT:
            return None
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(command)}\n{done.stdout[-2000:]}{done.stderr}")
        rows = [json.loads(line) for line in metrics.read_text().splitlines()]
    rows = [row for row in rows if "foreseen_seconds" in row]
    return rows[-1]["foreseen_seconds"], [row["seconds"] for row in rows[2:]], max(row["peak_rss_bytes"] for row in rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/bin", type=pathlib.Path)
    parser.add_argument("--target", default="3GB")
    parser.add_argument("--count", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--seed", type=int, default=17)
    parser.add_argument("--results", help="file for the rows, as JSON lines")
    arguments = parser.parse_args()
    binaries = arguments.bin.resolve()
    target = ["--target-memory", arguments.target]
    others = [sum(parts, []) for parts in ALTERNATIVES if parts[2] == [] or parts[0] != ALTERNATIVES[0][0]]  # one micro-step has one order
    random.Random(arguments.seed).shuffle(others)
    rows = {"": {"flags": "(the planner's)", "foreseen": [], "measured": [], "bytes": 0}}
    with tempfile.TemporaryDirectory() as folder:
        home = pathlib.Path(folder)

        def measure(flags):
            found = train(binaries, home, [*target, *flags], arguments.steps, "auto")
            if found is None:
                return False
            row = rows.setdefault(" ".join(flags), {"flags": " ".join(flags), "foreseen": [], "measured": [], "bytes": 0})
            row["foreseen"].append(found[0])
            row["measured"] += found[1]
            row["bytes"] = max(row["bytes"], found[2])
            return True

        if train(binaries, home, target, 3, "again") is None:
            raise SystemExit(f"nothing fits into {arguments.target}")
        fitting = []
        for number in range(arguments.rounds):
            measure([])
            for place, flags in enumerate(fitting if number > 0 else others):
                if number == 0 and len(fitting) == arguments.count:
                    break
                if measure(flags) and number == 0:
                    fitting.append(flags)
                if place == arguments.count // 2:
                    measure([])
            measure([])
    median = {flags: statistics.median(row["measured"]) for flags, row in rows.items()}
    for flags in sorted(rows, key=median.get):
        row = rows[flags] | {"median": median[flags], "target": arguments.target}
        print(f"{row['median']:.4f} s measured, {statistics.median(row['foreseen']):.4f} s foreseen, {row['bytes'] / 1e6:.0f} MB: {row['flags']}")
        if arguments.results:
            with open(arguments.results, "a") as file:
                file.write(json.dumps(row) + "\n")
    best = min(time for flags, time in median.items() if flags)
    print(f"{len(rows) - 1} others fit into {arguments.target}; the planner's step is {100 * (median[''] / best - 1):+.1f} % beside the best of them")
    return 1 if len(rows) - 1 < arguments.count else 0


if __name__ == "__main__":
    raise SystemExit(main())
