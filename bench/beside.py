#!/usr/bin/env python3
"""Compares the speed of two builds: trains the same jobs with both, turn by turn, and prints medians.

    bench/beside.py BEFORE_BIN AFTER_BIN [--repeat 5] [--only one,zero0,zero3,offload] [--results FILE]

The bins are folders of programs, build/bin of two clones. Which build goes first changes with each turn. Seconds per step are the median of a run's
steps but the first three, then the median of the runs; a ratio above 1 says that AFTER is faster.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile

STEPS, LEFT_OUT = 16, 3
JOB = ["--model", "gpt2-bytes-10m", "--sequence-length", "256", "--micro-batch", "4", "--steps", str(STEPS)]
CASES = {"one": (1, []), "zero0": (2, ["--zero", "0"]), "zero3": (2, ["--zero", "3"]),
         "offload": (1, ["--offload-optimizer", "nvme", "--nvme-path", ".", "--dtype", "bf16"])}


def seconds_of(binaries, ranks, flags):
    """Returns the median and the least seconds of a run's steps."""
    with tempfile.TemporaryDirectory() as folder:
        command = [str(binaries / "mlaunch"), "-np", str(ranks), str(binaries / "train"), *JOB, *flags, "--metrics", "metrics"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(command)}\n{done.stdout[-2000:]}{done.stderr}")
        rows = [json.loads(line) for line in pathlib.Path(folder, "metrics").read_text().splitlines()]
    seconds = [row["seconds"] for row in rows if "seconds" in row and "loss" in row][LEFT_OUT:]
    return statistics.median(seconds), min(seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=pathlib.Path)
    parser.add_argument("after", type=pathlib.Path)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--only", default=",".join(CASES))
    parser.add_argument("--results", help="file for the rows, as JSON lines")
    arguments = parser.parse_args()
    builds = {"before": arguments.before.resolve(), "after": arguments.after.resolve()}
    for case in arguments.only.split(","):
        ranks, flags = CASES[case]
        found = {name: [] for name in builds}
        for turn in range(arguments.repeat):
            for name in sorted(builds, reverse=turn % 2 == 0):
                found[name].append(seconds_of(builds[name], ranks, flags))
                if arguments.results:
                    with open(arguments.results, "a") as file:
                        file.write(json.dumps({"case": case, "turn": turn, "build": name, "median": found[name][-1][0], "least": found[name][-1][1]}) + "\n")
        median, least = ({name: statistics.median(run[which] for run in runs) for name, runs in found.items()} for which in (0, 1))
        print(f"{case}: before {median['before']:.4f} ({least['before']:.4f}) s, after {median['after']:.4f} ({least['after']:.4f}) s, "
              f"before / after {median['before'] / median['after']:.3f} ({least['before'] / least['after']:.3f})", flush=True)


if __name__ == "__main__":
    main()
