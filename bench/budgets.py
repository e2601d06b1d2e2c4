#!/usr/bin/env python3
"""Plans many budgets of memory, and counts plans that exceed theirs and larger budgets whose steps are slower than a smaller one's.

    bench/budgets.py [--bin build/bin] [--count 1000] [--pairs NAME,...] [--results FILE]

Budgets of a pair of model and machine lie between its smallest and its largest at equal ratios. Some hundred of them are planned by one call of
`plan --target-memory A,B,...`. Prints per pair what was refused, exceeded, and how much slower a step is than one of a smaller budget, at worst.
Ends with 1 if a plan exceeds its budget, or if none was made.
"""
import argparse
import json
import pathlib
import subprocess

MEGABYTE = 1_000_000
PER_CALL = 250
# The flags of a pair, and its smallest and largest budget in megabytes.
PAIRS = {
    "1b-rtx4080": (["--model", "llama-3.2-1b", "--bf16", "--sequence-length", "4096", "--micro-batch", "1", "--hardware", "rtx4080"], 3_000, 16_000),
    "7b-rtx4090": (["--model", "llama-2-7b", "--bf16", "--sequence-length", "4096", "--global-batch", "4", "--hardware", "rtx4090"], 4_300, 24_000),
    "7b-8xh100": (["--model", "llama-2-7b", "--bf16", "--sequence-length", "4096", "--global-batch", "32", "--hardware", "8xh100"], 5_000, 80_000),
    "124m-two-cores": (["--model", "gpt2-124m", "--sequence-length", "512", "--global-batch", "4", "--hardware", "two-cores"], 2_200, 5_000),
}


def budgets_between(least, most, count):
    """Returns at most `count` different numbers of megabytes at equal ratios, ascending."""
    steps = max(count - 1, 1)
    return sorted({round(least * (most / least) ** (i / steps)) for i in range(count)})


def planned(binaries, flags, budgets):
    """Returns for each budget what `plan` says of it."""
    found = []
    for first in range(0, len(budgets), PER_CALL):
        some = budgets[first:first + PER_CALL]
        command = [str(binaries / "plan"), *flags, "--json", "--target-memory", ",".join(f"{budget}MB" for budget in some)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode not in (0, 1):  # 1: some have no plan
            raise SystemExit(f"{' '.join(command)}\n{done.stdout[-1000:]}{done.stderr}")
        found += [{"budget": budget * MEGABYTE, **one} for budget, one in zip(some, json.loads(done.stdout), strict=True)]
    return found


def judged(rows):
    """Returns the plans, those that exceed their budgets, and those that are slower than one of a smaller budget, with the factor."""
    made = [row for row in rows if row["fits"]]
    exceeded = [row for row in made if row["device_bytes"] > row["budget"]]
    slower, best = [], None
    for row in made:
        if best and row["seconds_per_step"] > best["seconds_per_step"]:
            slower.append((row["seconds_per_step"] / best["seconds_per_step"], row, best))
        else:
            best = row
    return made, exceeded, slower


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/bin", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=1000, help="budgets of all pairs together")
    parser.add_argument("--pairs", default=",".join(PAIRS), help="some of " + ",".join(PAIRS))
    parser.add_argument("--results", help="file for the plans, as JSON lines")
    arguments = parser.parse_args()
    names = arguments.pairs.split(",")
    if unknown := [name for name in names if name not in PAIRS]:
        parser.error(f"--pairs: {unknown[0]} is none of {', '.join(PAIRS)}")
    all_made = all_exceeded = 0
    for number, name in enumerate(names):
        flags, least, most = PAIRS[name]
        count = arguments.count * (number + 1) // len(names) - arguments.count * number // len(names)
        rows = planned(arguments.bin.resolve(), flags, budgets_between(least, most, count))
        made, exceeded, slower = judged(rows)
        all_made, all_exceeded = all_made + len(made), all_exceeded + len(exceeded)
        print(f"{name}: {len(rows)} budgets, {len(rows) - len(made)} refused, {len(exceeded)} exceeded, {len(slower)} slower than a smaller one", flush=True)
        for row in exceeded:
            print(f"  {row['budget'] // MEGABYTE} MB: needs {row['device_bytes']} bytes with {row['flags']}")
        if slower:
            factor, row, best = max(slower, key=lambda one: one[0])
            print(f"  at worst by {100 * (factor - 1):.2f} %: {row['budget'] // MEGABYTE} MB {row['seconds_per_step']:.5g} s, "
                  f"{best['budget'] // MEGABYTE} MB {best['seconds_per_step']:.5g} s\n    {row['flags']}\n    {best['flags']}")
        if arguments.results:
            with open(arguments.results, "a") as file:
                file.writelines(json.dumps({"pair": name, **row}) + "\n" for row in rows)
    print(f"{all_made} plans, {all_exceeded} exceed their budgets")
    return 1 if all_exceeded or not all_made else 0


if __name__ == "__main__":
    raise SystemExit(main())
