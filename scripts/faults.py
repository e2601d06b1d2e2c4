#!/usr/bin/env python3
"""Makes docs/faults.md of the table below and of the tests that say which faults they show (scripts/fault_markers.py).

    scripts/faults.py           checks that each row has a test, each figure what backs it, and that the page is up to date
    scripts/faults.py --write   writes the page

`scripts/dev faults` runs the tests.
"""
import argparse
import itertools
import pathlib
import sys
import typing

from fault_markers import marked_tests

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = "docs/faults.md"
HEAD = """# Faults

What a run does when something breaks, and the tests that show it. `scripts/dev faults` runs all of these tests and says how each went. scripts/faults.py makes this page of its table and of the comments `Fault N.` above
tests; a row without a test fails, so does a figure whose source no longer has it. Limits are those that a test asserts, on busy machines, too; measured figures name their file.

| | what breaks | what Strata does | figures |
|---|---|---|---|
"""


class Figure(typing.NamedTuple):
    text: str  # what the page says
    file: str  # a file with a marked test of the row, or one below bench/results
    words: str  # what stands in that file while the figure is true


class Row(typing.NamedTuple):
    number: int
    fault: str
    promise: str
    figures: tuple = ()
    missing: str = ""  # why no test shows it; "": some do


def soon(text, words, machine="epyc"):
    """Returns a figure that was measured with those of most other faults, as test or run."""
    return Figure(text, f"bench/results/fault-figures_{machine}-2-cores_2026-11-28.md", words)


FAILURES = "tests/launcher/mlaunch_failures_test.cpp"
SIGNALS = "tests/launcher/mlaunch_signals_test.cpp"
HOSTS = "tests/hosts/hosts_test.py"
APART = "tests/hosts/namespaces_test.py"
KILLED = "tests/program/killed_ranks_test.py"
MEASURED = "bench/results/hosts_namespaces_2026-11-28.md"
NOTICED = "bench/results/hosts_noticed_namespaces_2026-11-28.md"
HANGS = "bench/results/hangs_epyc-2-cores_2026-11-28.md"
SOAK = "bench/results/checkpoint-faults_epyc-2-cores_2026-11-22.md"
HARMS = "bench/results/soak_namespaces_2026-11-28.md"
ENDED = Figure("killed until the next attempt starts: under 6 s", KILLED, "LIMIT_S = 6")

ROWS = (
    Row(1, "a rank is killed, or crashes, during a step",
        "the ranks of all hosts end, the report names rank, host, step and place, and the run goes on from its newest checkpoint to the bits of a run that nothing happened to",
        (Figure("a death until ranks of another host are told: 9 ms", MEASURED, "| 9 ms | 9 ms | 100 ms |"), ENDED,
         Figure("until the next new step of a tiny model: 0.4 s on 2 ranks, 1.0 s on 8", MEASURED, "| 1.05 s |"),
         Figure("500 random harms to ranks, hosts and cables: 500 ended with the same bytes", HARMS, "500 harms in 50 runs: 0 with a wrong end"),
         Figure("all hosts have ended: under 6 s", HOSTS, "self.assertLess(time.monotonic() - begin, 6)"))),
    Row(2, "a rank is killed while parameters are gathered",
        "peers learn of it from the broken connection, the host's board or the launcher's word, and wait for no timeout",
        (ENDED, Figure("peers on other hosts have noticed: under 2.1 s", "comm/gloo/gloo_conformance_test.cpp", "std::chrono::milliseconds(2100)"))),
    Row(3, "a rank is killed while gradients are added up",
        "as above; sums that are not whole are never applied",
        (ENDED, Figure("peers on the host have noticed: under 1 s", "comm/shm/shm_conformance_test.cpp", "std::chrono::seconds(1)"))),
    Row(4, "a rank is killed during the update", "the step counts for nobody: all ranks compute it again, bit for bit", (ENDED,)),
    Row(5, "a rank is killed while it writes offloaded state to a drive",
        "its files there have no name, so nothing is left; the next attempt reads checkpoints alone",
        (soon("killed until all has ended and 0 bytes are left: 0.3 s", "0 bytes are left | 2 | 0.31 s |"),)),
    Row(6, "a rank is killed, or power fails, while a checkpoint is written",
        "the old checkpoint stays whole and chosen until the new one is; what is left of a save goes at the next start",
        (Figure("500 seeds of kills at random times: 500 ended with the same bytes", SOAK, "500 of 500 seeds: same bytes"),)),
    Row(7, "a rank is stopped (SIGSTOP), or its control group frozen",
        "the report names it, where it was and what holds it; then the run goes on as after a crash. Debuggers are waited for",
        (Figure("named within 8 s", FAILURES, '"has been stopped", seconds(8)'), Figure("measured: 6.5 s", MEASURED, "| 6.5 s | 6.5 s | 8 s |"),
         Figure("ended within 14 s", FAILURES, "seconds(14)"))),
    Row(8, "a rank hangs though its process runs: a deadlock, a skipped collective, stuck input or output",
        "without any progress for max(`--hang-timeout`, 5 x the pause that 99 of 100 of the phase do not exceed, 5 x the pause that a rank foresees, and 300 s while starting, planning or loading, 120 s in the first step, evaluating or saving, 60 s when done) the first rank behind is named with its host, and the collective where others wait, "
        "or the rank that is done and does not end, or that has told nothing yet; then as above. Ranks that wait for who reads mlaunch's output do not hang",
        (Figure("named within `--hang-timeout` + 4 s", FAILURES, "kLimit + seconds(4)"),
         Figure("measured over hosts: `--hang-timeout` + 1.0 s, at most + 1.2 s, with rank, host and collective in 20 of 20", NOTICED, "| 20 | 1.03 s | 1.22 s | 2 s |"),
         Figure("at all times of heartbeats: within `--hang-timeout` + 1.6 s", "launcher/control/coordinator_control_test.cpp", "kLimit + Millis(1600)"),
         Figure("on one host and on two: 20 of 20 within `--hang-timeout` + 2 s", HANGS, "20 of 20 were named"),
         Figure("ranks that are done and do not end: after 60 s", "tests/hosts/hangs_test.py", "nothing got done for 60 s"),
         Figure("60 seeds of slow steps, saves and busy cores: no false alarm", "launcher/control/hang_watch_test.cpp", "seed < 60"))),
    Row(9, "a rank is slower than the others",
        "mlaunch names it once its own part of a step took 1.5 times as long as that of others for 20 steps and 10 s (on CPUs), and the run goes on",
        (Figure("a rank that runs for a fifth of the time is named: under 90 s", "tests/program/stragglers_test.py", 'name in {self.home}", 90'),)),
    Row(10, "a host is lost",
         "it is called silent when three of its heartbeats are missing, and lost when its lease must have ended. Then the run goes on with the hosts that are left or come (`--nnodes MIN:MAX`), else it ends with 75",
         (Figure("a silent host is named: after 3 s", "launcher/control/coordinator_leases_test.cpp", "host b has been silent for 3.0 s"),
          Figure("called lost: under 9 s", HOSTS, "4.5 < took < 9"),
          Figure("measured: the death of its mlaunch is said after 0.9 s", NOTICED, "| 5 | 0.93 s | 0.94 s | 1 s |"),
          Figure("a cut cable: silent after 2.2 s, at most 3.0 s", NOTICED, "| 5 | 2.2 s | 3.0 s | 5 s |"),
          Figure("lost after 6.7 s, at most 7.5 s", NOTICED, "| 5 | 6.7 s | 7.5 s |"))),
    Row(11, "the network between hosts is cut, loses or delays",
         "connections are made again and what was lost is said again; a host that gets no answer kills its ranks before others may start, and commits nothing",
         (Figure("a cut cable until the ranks behind it are gone: 4.1 s, at most 5.0 s", NOTICED, "| 5 | 4.1 s | 5.0 s |"),
          Figure("called lost: under 8 s, and after its ranks are gone", APART, "4 < lost.result() - begin < 8"))),
    Row(12, "mlaunch is killed",
         "its ranks die with it, and ranks on other hosts when their lease ends; the same command with `--resume auto` goes on, as `mlaunch status RUN` says",
         (Figure("ranks of its host are gone: under 5 s", SIGNALS, "mlaunch.all_gone(seconds(5))"),
          Figure("ranks of other hosts: under 6 s", HOSTS, "3 < time.monotonic() - begin < 6"))),
    Row(13, "the host that coordinates is lost",
         "all ranks end, and the others wait a minute for it: started again with the same command it goes on with the run, else they end with 75; what is needed to go on lies in the output folder alone. No other host takes its place",
         (Figure("ranks are gone: under 6 s", HOSTS, "3 < time.monotonic() - begin < 6"),)),
    Row(14, "the disk is full when a checkpoint is due",
         "room is reserved before a byte is written, old checkpoints stay, and training goes on with a warning or ends (`--on-save-error`); the last save waits for room (`--save-retry`), and `mlaunch status` and `stop` say so",
        (soon("refused at the start: 0.1 s", "ended with 69 | 4 | 0.09 s |"), soon("a run that its save ends, from start to end: 0.3 s", "ended with 74 | 6 | 0.32 s |"))),
    Row(15, "the disk is full when state is offloaded to it", "all of the space is reserved at the start, so it is refused before the first step with both numbers, or never fails",
        (soon("from start to end: 2.1 s", "ended with 74 | 2 | 2.07 s |"),)),
    Row(16, "a read or write transfers less than asked, or is interrupted", "the rest is asked for again; a device that never gives it is an error that names file and place",
        (soon("injected, named and mended: each test under 1.2 s", "the test itself | 8 | 0.46 s | 1.10 s |"),)),
    Row(17, "a drive reports an error", "a read is tried once more; a failed write or sync fails the save or the rank, with path and place, and is never taken for done later",
        (soon("injected and named: each test under 0.9 s", "the test itself | 8 | 0.26 s | 0.88 s |"),)),
    Row(18, "bytes of a checkpoint are flipped, cut off or of another one", "each byte is under a hash: the file, the tensor and the range are named, and `--resume auto` takes the newest checkpoint that is whole",
        (soon("refused with the names: 0.1 s, at most 0.8 s", "ended with 65 | 16 | 0.14 s | 0.76 s |"),)),
    Row(19, "bytes of offloaded state are flipped on the drive", "each range is hashed when it is written and checked when it is read; it is read once more, then the rank fails with the tensor's name",
        (soon("injected and named: each test under 0.3 s", "the test itself | 6 | 0.23 s | 0.28 s |"),)),
    Row(20, "a loss or a gradient is not finite", "fp16 and bf16 skip the step on all ranks; fp32, 20 such steps in a row, an overflow at the smallest loss scale, and updates at their own gradient (`--update-time gradient`) end the run with 93 (`--on-nonfinite` says otherwise for a type); the newest finite checkpoint is named and kept",
        (soon("a run of a few steps ends with 93: 1.0 s, at most 2.0 s", "ended with 93 | 10 | 1.01 s | 1.97 s |"),)),
    Row(21, "the loss jumps but stays finite", "notices it", missing="nothing looks for jumps; metrics and event files show the loss of each step"),
    Row(22, "a processor computes a wrong number", "finds it", missing="no step is computed twice; checksums cover bytes at rest, not arithmetic"),
    Row(23, "a device lacks memory", "refused before the first step, with settings that need less and how much each of them saves",
        (soon("refused, with settings that need less: 17 s", "ended with 69 | 2 | 16.81 s |"),)),
    Row(24, "the kernel kills a rank for lack of host memory", "what is planned is compared with the control group's limit first; a kill is told as one, with the rank's peak, and twice at one step ends the run",
        (soon("told, from the start of a run that takes too much: 1.2 s", "ended with 137 | 2 | 1.19 s |", "xeon"),
         soon("refused at the start: 0.2 s", "ended with 69 | 2 | 0.20 s |", "xeon"))),
    Row(25, "/dev/shm is small", "nothing lies there: ranks share unnamed memory files",
        (Figure("with 64 KiB of it: the bits of other runs", "tests/program/same_bits_test.py", "size=64k"),)),
    Row(26, "weights or their index are damaged", "refused by the names of file and tensor",
        (soon("refused: 0.2 s, at most 0.6 s", "ended with 65 | 22 | 0.17 s | 0.58 s |"),)),
    Row(27, "the configuration is broken", "all that is wrong is said at once, with line and nearest name",
        (soon("refused: 0.1 s", "ended with 78 | 6 | 0.11 s |"),)),
    Row(28, "a list of hosts is broken", "one strict grammar, and the line that breaks it; a name that ssh would take for an option is none",
        (soon("all wrong lists of the tests are named: 0.01 s", "the test itself | 4 | 0.01 s |"),)),
    Row(29, "a file of tokens is broken", "header, length and each token are checked before the first step",
        (soon("refused: 0.2 s, at most 0.3 s", "ended with 65 | 4 | 0.16 s | 0.28 s |"),)),
    Row(30, "there is no checkpoint to resume from, or `latest` leads nowhere", "`required` refuses; `auto` says what it passes over and at which step it starts",
        (soon("refused: 0.2 s, at most 0.3 s", "ended with 65 | 12 | 0.16 s | 0.33 s |"),)),
    Row(31, "something of an earlier attempt, or of another run, is still there",
         "words, keys, connections and checkpoints carry run and attempt: what is older or a stranger's is refused",
        (soon("each test under 0.7 s", "the test itself | 30 | 0.00 s | 0.66 s |", "xeon"),)),
    Row(32, "a port is taken", "the run ends with 69 and says which port of which address; by default a free one is found",
        (soon("refused: 0.02 s", "| 32. a port is taken | said, and ended with 69 | 2 | 0.02 s |", "xeon"),)),
    Row(33, "a run is started twice on one folder", "the second is refused with the first one's host and process; offloaded state of two runs keeps apart",
        (soon("refused, after it has waited 5 s for the lock: 5.2 s", "ended with 69 | 4 | 5.20 s |"),)),
    Row(34, "clocks of hosts differ or jump, a host sleeps", "nobody compares clocks of two hosts; a host that slept wakes with its lease ended and kills its ranks first",
        (Figure("clocks two hours off either way: runs end as others do", "tests/hosts/clocks_test.py", "for hours in (2, -2):"),)),
    Row(35, "hosts differ in build, command, settings, NCCL, model or data", "refused with 78 before anything is trained, with both values and both hosts",
        (soon("refused, from the start: 0.2 s, at most 0.4 s", "ended with 78 | 44 | 0.15 s | 0.36 s |", "xeon"),)),
    Row(36, "a scheduler asks to end (SIGTERM, SIGUSR1)", "all ranks finish the step, save and end with 75; a second signal ends them at once, and so does the end of the grace (75, too). One host of a run whose hosts come and go leaves alone",
        (Figure("ended under 5 s after the signal with `--grace 2`", "tests/program/resume_test.py", "self.assertLess(time.monotonic() - begin, 5)"),)),
    Row(37, "a run fails again and again alike", "three failures alike at one step, or three starts that commit nothing newer, end it with 93 and a folder of evidence; what would come again is never tried again, nor a start that a disk keeps out once it has failed a save (74)",
        (soon("three failures until the end with 93: at most 4.4 s", "the test itself | 20 | 0.01 s | 4.34 s |"),)),
    Row(38, "data are broken or vanish while they are read", "file and place are named, the step before is saved, and nothing is skipped silently",
        (soon("a run that meets a broken token, from start to end: 0.3 s", "ended with 65 | 2 | 0.28 s |"),)),
)


def tests_of(tests, number):
    """Returns {file: [names]} of the tests that show a fault, in the order of the repository."""
    return {file: list(dict.fromkeys(test.name for test in group))
            for file, group in itertools.groupby((test for test in tests if number in test.faults), key=lambda test: test.file)}


def page(rows, tests):
    """Returns the text of docs/faults.md."""
    covered = [row for row in rows if not row.missing]
    text = HEAD
    for row in covered:
        text += f"| {row.number} | {row.fault} | {row.promise} | {'; '.join(figure.text for figure in row.figures)} |\n"
    if sources := sorted({figure.file for row in covered for figure in row.figures if figure.file.startswith("bench/")}):
        text += f"\nMeasured: {', '.join(sources)}.\n"
    text += "\n## What is not covered yet\n\n"
    text += "".join(f"- {row.number}, {row.fault}: {row.missing}.\n" for row in rows if row.missing)
    text += "\n## Tests\n"
    for row in covered:
        text += f"\n### {row.number}. {row.fault}\n\n"
        text += "".join(f"- {file}: {', '.join(f'`{name}`' for name in names)}\n" for file, names in tests_of(tests, row.number).items())
    return text


def problems_of_row(root, row, tests):
    files = tests_of(tests, row.number)
    if not files and not row.missing:
        yield f"fault {row.number} ({row.fault}): no test has the comment `Fault {row.number}.` above it"
    if files and row.missing:
        yield f"fault {row.number} ({row.fault}): {next(iter(files))} has a test of it, so its row needs no `missing`"
    for figure in row.figures:
        path = root / figure.file
        if not figure.file.startswith("bench/results/") and figure.file not in files:
            yield f"fault {row.number}: its figure '{figure.text}' is of {figure.file}, which has no test of it"
        elif not path.is_file() or figure.words not in path.read_text():
            yield f"fault {row.number}: its figure '{figure.text}' is gone from {figure.file}, which lacks '{figure.words}'"


def check(root, rows):
    """Returns a line for everything that is wrong, and the page that should be."""
    tests, problems = marked_tests(root)
    known = {row.number for row in rows}
    problems += [f"{test.file}:{test.line}: there is no fault {number} in scripts/faults.py"
                 for test in tests for number in test.faults if number not in known]
    for row in rows:
        problems += problems_of_row(root, row, tests)
    return problems, page(rows, tests)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write docs/faults.md")
    arguments = parser.parse_args()
    problems, made = check(ROOT, ROWS)
    path = ROOT / PAGE
    if arguments.write:
        path.write_text(made)
    elif not path.is_file() or path.read_text() != made:
        problems.append(f"{PAGE} is not what its tests and table say: run scripts/faults.py --write, and read what changed")
    for problem in problems:
        print(problem)
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
