#!/usr/bin/env python3
"""Measures what recording a run costs its steps: processor time with `--profile` and with `--trace` beside that of the plain run, on one thread.

    bench/recording.py [--bin build/bin] [--rounds 7] [OUTPUT.json]

What a run does once (loading, measuring the machine, writing files) is taken off: each way runs with few and with many steps, turn by turn, and the
difference is divided by the steps between. Medians. Time in the kernel is not counted, so that a busy machine disturbs little.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

WAYS = {"plain": [], "--profile": ["--profile", "profile.json"], "--trace": ["--trace", "trace.json"]}
JOB = ["--device", "cpu", "--threads", "1", "--micro-batch", "1", "--calibrate", "off"]
# A model, the tokens of its step, and the few and the many steps. Steps of the tiny one are short, which shows what an instruction costs.
MODELS = [("gpt2-tiny", 32, 100, 1100), ("gpt2-bytes-10m", 128, 4, 28)]


def user_seconds(command, folder):
    run = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(run.pid, 0)
    if status:
        raise SystemExit(f"recording.py: {' '.join(command)} failed")
    return used.ru_utime


def step_seconds(binaries, folder, rounds, model, tokens, few, many):
    """Returns for each way the seconds of a step in each round."""
    found = {way: [] for way in WAYS}
    for _ in range(rounds):
        for way, flags in WAYS.items():
            job = [str(binaries / "train"), "--model", model, "--sequence-length", str(tokens), *JOB, *flags]
            low, high = (user_seconds([*job, "--steps", str(steps)], folder) for steps in (few, many))
            found[way].append((high - low) / (many - few))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/bin", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("output", nargs="?", help="file for all figures, as JSON")
    arguments = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for model, tokens, few, many in MODELS:
            found = step_seconds(arguments.bin.resolve(), folder, arguments.rounds, model, tokens, few, many)
            results.append({"model": model, "tokens": tokens, "user_seconds_per_step": found})
            plain = statistics.median(found["plain"])
            for way, seconds in found.items():
                median = statistics.median(seconds)
                print(f"{model} {way}: {1e3 * median:.3f} ms of a processor per step ({min(seconds) * 1e3:.3f} to {max(seconds) * 1e3:.3f}), "
                      f"{1e6 * (median - plain):+.1f} us, {100 * (median / plain - 1):+.2f} %", flush=True)
    if arguments.output:
        pathlib.Path(arguments.output).write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
