#!/usr/bin/env python3
"""Measures how soon Strata has said what is wrong, with the tests that docs/faults.md names.

    bench/fault_figures.py [--build build] [--repeat 3] [--out bench/results/NAME] NUMBER...

Runs the tests of these faults, one at a time, and writes NAME.md and NAME.jsonl. Tests of programs tell themselves how long something took
(ProgramTest.figure in tests/program/programs.py); of a test in C++ its own time counts. A test that fails or skips itself is an error.
"""
import argparse
import collections
import json
import os
import pathlib
import re
import statistics
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
from fault_markers import marked_tests  # noqa: E402
from faults import ROWS  # noqa: E402
from run_faults import Programs, run_test  # noqa: E402

HEAD = """# How soon faults are named

`bench/fault_figures.py --repeat {repeat} {numbers}`, {machine}; each time of each test in {raw}. Load average: {load} before, {after} after.
Programs that end with an error code are measured from their start to their end, so that the figure includes whatever the test lets the program do first.

| fault | what | times | median | longest |
|---|---|---|---|---|
"""


def measure(programs, test):
    """Yields what a test measured and the seconds, once."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "figures")
        os.environ["STRATA_FIGURES"] = str(path)
        outcome = run_test(programs.of(test), test)
        if outcome.word != "passed":
            sys.exit(f"{test.file} {test.name} {outcome.word}: {outcome.why}")
        if test.file.endswith(".cpp"):
            yield "the test itself", outcome.seconds
        elif path.exists():
            for line in path.read_text().splitlines():
                figure = json.loads(line)
                yield figure["what"], figure["seconds"]


def load():
    return f"{os.getloadavg()[0]:.1f}"


def machine():
    found = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return f"{os.cpu_count()} cores of {found[1] if found else 'an unknown processor'}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("numbers", type=int, nargs="+")
    arguments = parser.parse_args()
    programs, before = Programs(arguments.build.resolve()), load()
    figures = collections.defaultdict(list)
    raw = arguments.out.with_suffix(".jsonl")
    with raw.open("w") as lines:
        for test in marked_tests(ROOT)[0]:
            for number in sorted(set(test.faults) & set(arguments.numbers)):
                if programs.of(test) is None:
                    print(f"not built: {test.file} {test.name}", file=sys.stderr)
                    continue
                for _ in range(arguments.repeat):
                    for what, seconds in measure(programs, test):
                        figures[number, what].append(seconds)
                        lines.write(json.dumps({"fault": number, "test": f"{test.file} {test.name}", "what": what, "seconds": round(seconds, 4)}) + "\n")
    text = HEAD.format(repeat=arguments.repeat, numbers=" ".join(map(str, arguments.numbers)), machine=machine(), raw=raw.name, load=before, after=load())
    faults = {row.number: row.fault for row in ROWS}
    for (number, what), seconds in sorted(figures.items()):
        text += f"| {number}. {faults[number]} | {what} | {len(seconds)} | {statistics.median(seconds):.2f} s | {max(seconds):.2f} s |\n"
    arguments.out.with_suffix(".md").write_text(text)


if __name__ == "__main__":
    main()
