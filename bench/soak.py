#!/usr/bin/env python3
"""Lets 500 random harms happen to runs over three hosts that are namespaces of this machine (root): ranks, mlaunch processes and hosts are killed or
stand still, cables are cut (tests/hosts/harm.py). Each run must end with the bits of one that nothing happened to and leave nothing.

    bench/soak.py RESULTS.jsonl [--harms 500] [--first-seed 1] [--lane 0] [--table]

Each run has a seed, ten harms, and a line for each of them and for itself in RESULTS.jsonl; seeds that have theirs are not run again. `--lane N`
takes other names and addresses, so that several soaks run at a time (with seeds of their own). `--table` prints the figures of RESULTS.jsonl only.
Start it after `scripts/dev build`; STRATA_BIN names another folder of programs. What a run with a wrong end said is kept beside RESULTS.jsonl.
"""
import argparse
import json
import os
import pathlib
import statistics
import sys
import traceback

ROOT = pathlib.Path(__file__).resolve().parent.parent
os.environ.setdefault("STRATA_BIN", str(ROOT / "build" / "bin"))
sys.path.insert(0, str(ROOT / "tests" / "hosts"))
from harm import KINDS, Harmed, Scenario  # noqa: E402 (after its folder is known)
from namespaces import why_not  # noqa: E402

HARMS_OF_A_RUN = 10
# What the rules take (launcher/control/coordinator.h, agent.h, hang_watch.h), seconds. What happens at any time between two heartbeats comes half
# of one too late in the mean.
HEARTBEAT = 1.0
LEASE = 5.0
LOST = 6.5 - HEARTBEAT / 2      # from the last sign of life until a host is lost
HELD = 5.0 + 2 * HEARTBEAT / 2  # until a heartbeat tells of a stopped rank, and a look at that
RETRANSMISSIONS = [0.2 * (2 ** k - 1) for k in range(1, 8)]  # of TCP after a cut


class Soak(Harmed):
    """Hosts for one run; the test machinery makes and removes them."""

    def runTest(self):
        pass


def read(path):
    """Returns the records of harms and of runs."""
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [line for line in lines if "kind" in line], [line for line in lines if "kind" not in line]


def run_seed(seed, path):
    """Runs one seed and adds its records."""
    hosts = Soak()
    try:
        hosts.setUp()
        try:
            events, record = hosts.endure(Scenario.draw(seed, HARMS_OF_A_RUN))
        except Exception:  # whatever it is, it is a wrong end of this seed, and the others go on
            events, record = [], {"seed": seed, "wrong": [traceback.format_exc()]}
        if record["wrong"]:
            said = "".join(f"--- {file.name}\n{file.read_text(errors='replace')}" for file in sorted(hosts.home.glob("said*")))
            path.with_name(f"{path.stem}_seed-{seed}.txt").write_text("\n".join([*map(json.dumps, events), *record["wrong"], said]))
            record["wrong"] = [text.splitlines()[0][:300] for text in record["wrong"]]
    finally:
        hosts.doCleanups()
    with open(path, "a") as results:
        results.write("".join(json.dumps(line) + "\n" for line in [*events, record]))
    print(f"seed {seed}: {len(events)} harms in {record.get('seconds', 0):.0f} s: {record['wrong'] or 'right'}", flush=True)


def allowed(event, run):
    """Returns the seconds that the rules take for a harm: noticing it, starting again, computing again what was not saved."""
    kind, lasts = event["kind"], event["seconds"]
    if not event["resumed_from"] and kind != "kill the first mlaunch":
        if kind == "cut a cable":
            return next(time for time in RETRANSMISSIONS if time >= lasts)
        return {"stop a host": lasts}.get(kind, 0.0)
    again = run["start_s"] + sum(event["reached"] - step for step in event["resumed_from"][-1:]) * run["step_s"]
    noticed = {"kill a rank": 0.0, "stop a rank": HELD, "kill an mlaunch": LOST, "kill a host": LOST, "stop an mlaunch": max(lasts, LOST),
               "stop a host": lasts, "cut a cable": max(lasts, LOST), "kill the first mlaunch": 0.0}[kind]
    if kind in ("kill an mlaunch", "kill a host", "stop an mlaunch", "stop a host", "cut a cable"):
        noticed += HEARTBEAT / 2  # a host that comes back gets its lease with its next heartbeat
    return noticed + again


def print_table(path):
    events, runs = read(path)
    by_seed = {run["seed"]: run for run in runs if "step_s" in run}
    print("| harm | times | s until a new step: median (worst) | lost beside what the rules take |\n|---|---|---|---|")
    useful, lost, least = 0.0, 0.0, 0.0
    for kind in KINDS:
        ones = [event for event in events if event["kind"] == kind]
        if not ones:
            continue
        took = [event["new_step_after_s"] for event in ones]
        mine = sum(event["new_step_after_s"] - (event["reached"] - event["last_step"]) * by_seed[event["seed"]]["step_s"] for event in ones)
        rules = sum(allowed(event, by_seed[event["seed"]]) for event in ones)
        print(f"| {kind} | {len(ones)} | {statistics.median(took):.1f} ({max(took):.1f}) | {mine:.0f} s, {rules:.0f} s |")
        lost, least = lost + mine, least + rules
    for run in by_seed.values():
        useful += run["steps"] * run["step_s"]
    wrong = [run for run in runs if run["wrong"]]
    print(f"\n{len(events)} harms in {len(runs)} runs: {len(wrong)} with a wrong end" + "".join(f"\n- seed {run['seed']}: {run['wrong']}" for run in wrong))
    if useful:
        print(f"goodput {useful / (useful + lost):.3f}, by the rules {useful / (useful + least):.3f}: {(useful + least) / (useful + lost):.3f} of it")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("--harms", type=int, default=500)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--lane", type=int, default=0)
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    if not options.table:
        if reason := why_not():
            raise SystemExit(f"soak.py: {reason}")
        Soak.NAME, Soak.NETWORK = f"soak{options.lane}", f"10.213.{90 + options.lane}"
        done = {run["seed"] for run in read(options.results)[1]}
        for seed in range(options.first_seed, options.first_seed + -(-options.harms // HARMS_OF_A_RUN)):
            if seed not in done:
                run_seed(seed, options.results)
    print_table(options.results)


if __name__ == "__main__":
    main()
