#!/usr/bin/env python3
"""Runs random tiny models under random targets of memory, and counts runs that went over, died or lost steps.

    bench/target_runs.py BIN [RUNS] [SEED] > RESULT.json

Each run is `train --target-memory` of a model, batch, length and strategy drawn by seed, on one or two ranks. A run counts
as kept if it made all its steps within the target, as refused if it was refused and a target named that works (too_slow: since the strategy
allows no steps that are so slow). That target is run with the same strategy; a refusal of it counts as failed. A target that is 1 % less must be refused
(less_refused): less_runs are those that run.
"""
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile

STEPS = 3
DOES_NOT_FIT = 69


def draw(rng):
    width, heads = rng.choice([(64, 2), (96, 3), (128, 4), (192, 4)])
    config = {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": 256, "n_positions": 256,
              "n_embd": width, "n_head": heads, "n_layer": rng.randint(2, 8)}
    flags = ["--sequence-length", str(rng.choice([64, 128, 256])), "--global-batch", str(rng.choice([4, 8, 12, 16, 24])),
             "--strategy", rng.choice(["conservative", "balanced", "balanced", "aggressive", "maximum"])]
    if rng.random() < 0.3:
        flags += ["--dtype", "bf16"]
    if rng.random() < 0.3:
        flags += ["--nvme-path", "drive"]
    return config, flags, rng.choice([1, 1, 2]), rng.randint(46, 200)


def run(binaries, home, flags, ranks, target):
    metrics = home / "metrics"
    metrics.unlink(missing_ok=True)
    command = [str(binaries / "mlaunch"), "-np", str(ranks), str(binaries / "train"), "--model", "model.json", "--device", "cpu",
               "--threads", "1", "--calibrate", "off", "--steps", str(STEPS), "--metrics", "metrics", "--target-memory", target, *flags]
    done = subprocess.run(command, cwd=home, capture_output=True, text=True, timeout=300)
    lines = [json.loads(line) for line in metrics.read_text().splitlines()] if metrics.exists() else []
    steps = [line for line in lines if "loss" in line]
    return done, len(steps), max((line["peak_rss_bytes"] for line in steps), default=0)


def main():
    binaries = pathlib.Path(sys.argv[1]).resolve()
    runs, seed = int(sys.argv[2]) if len(sys.argv) > 2 else 100, int(sys.argv[3]) if len(sys.argv) > 3 else 1
    counts = {"runs": 0, "kept": 0, "refused": 0, "too_slow": 0, "floors_run": 0, "less_refused": 0, "less_runs": 0, "over": 0, "failed": 0}
    wrong = []
    for i in range(runs):
        config, flags, ranks, megabytes = draw(random.Random(f"{seed} {i}"))
        with tempfile.TemporaryDirectory() as folder:
            home = pathlib.Path(folder)
            (home / "drive").mkdir()
            (home / "model.json").write_text(json.dumps(config))
            counts["runs"] += 1
            done, steps, peak = run(binaries, home, flags, ranks, f"{megabytes}MB")
            bytes_allowed = megabytes * 10**6
            floor = re.search(r"the least that works is --target-memory ([\d.]+)MB", done.stderr)
            if done.returncode == DOES_NOT_FIT and floor:
                counts["refused"] += 1
                counts["too_slow"] += "allows steps that are at most" in done.stderr
                done, steps, peak = run(binaries, home, flags, ranks, f"{floor[1]}MB")
                bytes_allowed = round(float(floor[1]) * 10**6)
                counts["floors_run"] += done.returncode == 0
                less = run(binaries, home, flags, ranks, f"{int(float(floor[1]) * 990)}KB")[0]
                counts["less_refused"] += less.returncode == DOES_NOT_FIT
                counts["less_runs"] += less.returncode == 0
                if less.returncode != DOES_NOT_FIT:
                    wrong.append([i, config, flags, ranks, megabytes, f"1 % less than {floor[1]}MB ends with {less.returncode}", less.stderr[-400:]])
            if done.returncode != 0 or steps != STEPS:
                counts["failed"] += 1
                wrong.append([i, config, flags, ranks, megabytes, done.stderr[-400:]])
            elif peak > bytes_allowed:
                counts["over"] += 1
                wrong.append([i, config, flags, ranks, megabytes, peak])
            else:
                counts["kept"] += 1
        if counts["runs"] % 25 == 0:
            print(json.dumps(counts), *wrong[-1:], file=sys.stderr, flush=True)
    json.dump({"command": sys.argv[1:], **counts, "wrong": wrong}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
