#!/usr/bin/env python3
"""Runs the tests that show what Strata does about faults (docs/faults.md), one at a time, and says how each went.

    scripts/run_faults.py [--build build] [--out out/faults.md] [NUMBER...]     all faults, or those of these numbers

A test runs as ctest would run it, but alone. Ends with 1 if one failed.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import typing

from fault_markers import marked_tests
from faults import ROOT, ROWS

HEAD = "| faults | test | seconds | |\n|---|---|---|---|\n"


class Outcome(typing.NamedTuple):
    word: str  # passed, failed, skipped
    why: str
    seconds: float


class Programs:
    """What ctest would start for the sources of a build folder."""

    def __init__(self, build):
        listed = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], check=True, capture_output=True, text=True)
        self.tests = [test for test in json.loads(listed.stdout)["tests"] if test.get("command")]
        # The object of a source lies in a folder that is named for its target, as the test is.
        commands = json.loads((build / "compile_commands.json").read_text())
        self.targets = {entry["file"]: found[1] for entry in commands if (found := re.search(r" -o \S*CMakeFiles/(\w+)\.dir/", entry["command"]))}

    def of(self, test):
        """Returns the entry of ctest for a marked test; None: it is not built."""
        path = str(ROOT / test.file)
        for entry in self.tests:
            if entry["command"][-1] == path if path.endswith(".py") else entry["name"] == self.targets.get(path):
                return entry
        return None


def command_of(entry, test):
    """Returns the command for this test alone."""
    if test.file.endswith(".py"):
        return [*entry["command"], "-v", test.name]
    if test.name.endswith("_fuzz"):
        return entry["command"]
    return [*entry["command"], f"--gtest_filter={test.name}:*/{test.name}/*"]


def judge(code, output):
    """Returns how a test ended, and why it did not pass."""
    if code:
        words = [line.strip() for line in output.splitlines() if re.search(r"Failure$|^FAIL|^ERROR|Error: |^\S+Error\b", line)]
        return "failed", words[-1] if words else f"it ended with code {code}"
    if (skips := re.search(r"(?m)^OK \(skipped=\d+\)$", output)) or re.search(r"\[  SKIPPED \] [1-9]", output):
        said = re.search(r"\.\.\. skipped ['\"](.*)['\"]", output) if skips else re.search(r": Skipped\n(.*)", output)
        if skips or "[       OK ]" not in output:
            return "skipped", said[1] if said else "it does not say why"
    if re.search(r"Ran 0 tests|Running 0 tests|NO TESTS RAN", output):
        return "failed", "there is no such test in this build"
    return "passed", ""


def run_test(entry, test):
    """Runs one test; what it printed goes to standard error if it failed."""
    properties = {item["name"]: item["value"] for item in entry["properties"]}
    environment = os.environ | dict(item.split("=", 1) for item in properties.get("ENVIRONMENT", []))
    begin = time.monotonic()
    try:
        done = subprocess.run(command_of(entry, test), cwd=properties["WORKING_DIRECTORY"], env=environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=properties["TIMEOUT"])
    except subprocess.TimeoutExpired:
        return Outcome("failed", f"it ran past its {properties['TIMEOUT']:.0f} s", time.monotonic() - begin)
    word, why = judge(done.returncode, done.stdout)
    if word == "failed":
        print(done.stdout[-20000:], file=sys.stderr, flush=True)
    return Outcome(word, why, time.monotonic() - begin)


def line_of(test, outcome):
    said = f"{outcome.word}: {outcome.why}".replace("|", "/") if outcome.why else outcome.word
    return f"| {', '.join(map(str, test.faults))} | {test.file} {test.name} | {outcome.seconds:.1f} | {said} |\n"


def run_all(build, tests, out):
    """Runs tests, shows a row of each and keeps them in `out`; returns their outcomes."""
    programs, outcomes = Programs(build), []
    with open(out, "w") as report:
        for text in (HEAD, *tests):
            if not isinstance(text, str):
                entry = programs.of(text)
                outcomes.append(run_test(entry, text) if entry and pathlib.Path(entry["command"][0]).exists()
                                else Outcome("failed", "it is not built", 0))
                text = line_of(text, outcomes[-1])
            print(text, end="", flush=True)
            report.write(text)
            report.flush()
        counts = [f"{sum(outcome.word == word for outcome in outcomes)} {word}" for word in ("passed", "failed", "skipped")]
        total = f"\n{', '.join(counts)}; {sum(outcome.seconds for outcome in outcomes) / 60:.0f} minutes\n"
        print(total, end="")
        report.write(total)
    return outcomes


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("numbers", nargs="*", type=int, metavar="NUMBER")
    parser.add_argument("--build", default=ROOT / "build", type=pathlib.Path)
    parser.add_argument("--out", default=ROOT / "out/faults.md", type=pathlib.Path)
    arguments = parser.parse_args()
    tests, problems = marked_tests(ROOT)
    problems += [f"there is no fault {number} in scripts/faults.py" for number in sorted(set(arguments.numbers) - {row.number for row in ROWS})]
    if problems:
        sys.exit("\n".join(problems))
    chosen = [test for test in tests if not arguments.numbers or set(test.faults) & set(arguments.numbers)]
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    outcomes = run_all(arguments.build.resolve(), sorted(chosen, key=lambda test: test.faults), arguments.out)
    return int(any(outcome.word == "failed" for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
