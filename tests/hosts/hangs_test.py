"""Ranks that hang, on one host and on several: mlaunch names rank, host and collective in time, and nobody else.

    hangs_test.py                a few cases
    hangs_test.py all [FILE]     20 skipped collectives at random places; FILE gets a table of them
"""
import json
import os
import pathlib
import random
import re
import socket
import sys
import threading
import time
import unittest
import unittest.mock

from namespaces import Namespaces
from several_hosts import ACTOR, BIN, HostsTest, free_port

LIMIT_S = 8
TRIES = 3
NAMED = "mlaunch: rank "


class Lines:
    """Reads the lines of a stream as they come, with their times."""

    def __init__(self, stream):
        self.lines = []
        self.thread = threading.Thread(target=self.read, args=[stream], daemon=True)
        self.thread.start()

    def read(self, stream):
        for line in stream:
            self.lines.append((time.monotonic(), line.rstrip()))

    def text(self):
        return "\n".join(line for _, line in self.lines)

    def find(self, words):
        return next(((when, line) for when, line in list(self.lines) if words in line), None)


def draw(random_source, hosts):
    """Returns the ranks of each host, and which rank does not come to which collective of which step."""
    ranks = [random_source.randint(1, 2) for _ in range(hosts)] if hosts > 1 else [random_source.randint(2, 4)]
    return ranks, random_source.randrange(sum(ranks)), random_source.randint(20, 60), random_source.randrange(4)


class SkippedCollectives:
    """What tests on one host and on several have in common: start(ranks, program, options) gives host 0's mlaunch and all."""

    def check_skipped(self, ranks, rank, step, collective):
        """Returns the seconds from the skipped collective until its rank was named."""
        options = ["--hang-timeout", str(LIMIT_S), "--max-restarts", "0"]
        hosts = self.launch(ranks, [ACTOR, "skip", str(rank), str(step), str(collective)], options)
        outputs = [Lines(host.stdout) for host in hosts]
        error = Lines(hosts[0].stderr)
        for host in hosts[1:]:
            Lines(host.stderr)
        name = f"gather layer{collective}"
        self.wait_until(lambda: any(output.find("skipped " + name) for output in outputs), "the skipped collective", 60)
        skipped = next(filter(None, (output.find("skipped " + name) for output in outputs)))[0]
        self.wait_until(lambda: error.find(NAMED), "the rank's name", LIMIT_S + 20)
        for host in hosts:
            self.assertEqual(host.wait(30), 75, error.text())
        error.thread.join(10)  # its last lines have come then
        named, line = error.find(NAMED)
        host = sum(rank >= sum(ranks[:node + 1]) for node in range(len(ranks)))
        where = rf" on host {host} \(.+\)" if len(ranks) > 1 else ""
        self.assertRegex(line, rf"rank {rank}{where} has not come to collective {4 * step + collective + 1} '{name}', in which")
        self.assertRegex(error.text(), rf"mlaunch: rank {rank} of {sum(ranks)} hung\n")
        return named - skipped


class OnOneHost(SkippedCollectives, HostsTest):
    def launch(self, ranks, program, options):
        return [self.start([str(BIN / "mlaunch"), "-np", str(ranks[0]), *options, *program])]

    # Fault 8.
    def test_a_skipped_collective(self):
        seed = random.randrange(10**6)
        for number in range(2):
            with self.subTest(seed=seed, number=number):
                took = self.check_skipped(*draw(random.Random(seed + number), 1))
                self.assertLess(took, LIMIT_S + 4)

    # Fault 7.
    def test_a_rank_that_is_stopped_before_it_says_anything(self):
        script = 'if [ $RANK = 1 ]; then kill -STOP $$; fi; exec "$@"'
        for program in ([ACTOR, "fail", "7", "1"], ["sleep", "30"]):
            with self.subTest(program[0]):
                mlaunch = self.launch([2], ["sh", "-c", script, "sh", *program], ["--max-restarts", "0"])[0]
                begin = time.monotonic()
                code, _, error = self.ended(mlaunch)
                self.assertLess(time.monotonic() - begin, 14)
                self.assertEqual(code, 75, error)
                self.assertIn("mlaunch: rank 1 has been stopped or frozen for 5 s", error)

    # Fault 7.
    def test_a_rank_that_is_stopped_after_its_work(self):
        code, _, error = self.ended(self.launch([2], [ACTOR, "linger", "1", "stopped"], [])[0])
        self.assertEqual(code, 75, error)
        self.assertIn("mlaunch: rank 1 has been stopped or frozen for 5 s; it is at step 12, done", error)

    # Fault 8.
    def test_a_rank_that_does_not_end_after_its_work(self):
        mlaunch = self.launch([2], [ACTOR, "linger", "1"], ["--hang-timeout", "10", "--max-restarts", "3"])[0]
        code, _, error = self.ended(mlaunch)
        self.assertEqual(code, 75, error)
        self.assertIn("mlaunch: rank 1 has ended its work, but its process does not end; nothing got done for 60 s", error)
        self.assertNotIn("starting the ranks again", error, "all is done")

    # Fault 8.
    def test_a_reader_that_stops_makes_no_rank_hang(self):
        mlaunch = self.launch([2], [ACTOR, "chatter", "0", "40000"], ["--hang-timeout", "6"])[0]
        error = Lines(mlaunch.stderr)
        time.sleep(18)
        self.assertIsNone(mlaunch.poll(), error.text())
        self.assertIn("mlaunch: nobody reads standard output", error.text())
        output = mlaunch.stdout.read()
        self.assertEqual((mlaunch.wait(20), output.count("\n")), (0, 40000), error.text())
        self.assertEqual(error.text().count("nobody reads"), 1, error.text())

    # Fault 8.
    def test_the_report_has_all_in_its_members_and_is_kept(self):
        mlaunch = self.launch([3], [ACTOR, "skip", "1", "20", "2"], ["--hang-timeout", "8", "--max-restarts", "0"])[0]
        _, _, error = self.ended(mlaunch)
        path = re.search(r"(?m)^  report  (/.+/attempt_0/report\.json)$", error)
        self.assertTrue(path, error)
        report = json.loads(pathlib.Path(path[1]).read_text())
        known = {key: report[key] for key in ("cause", "rank", "phase", "step", "collective", "exit_code")}
        self.assertEqual(known, {"cause": "hang", "rank": 1, "phase": "backward", "step": 20, "collective": 82, "exit_code": 75})
        self.assertIn("--hang-timeout", report["advice"])
        hang = report["hang"]
        self.assertEqual((hang["kind"], hang["collective"], hang["collective_name"], hang["waiting"]),
                         ("behind", 83, "gather layer2", [0, 2]))
        [evidence] = report["evidence"]
        for words in ("  held    rank 1: asleep", "  waits   rank 0: step 20, backward, in collective 83", "rank 2: step 20"):
            self.assertIn(words, evidence["text"])
        text = pathlib.Path(path[1]).with_suffix(".txt").read_text()
        self.assertIn(evidence["text"], text)
        self.assertEqual(re.findall(r"(?m)^rank \d+:$", evidence["details"]), ["rank 0:", "rank 1:", "rank 2:"])
        for words in (r"collective 83 'gather layer2', not ended\nrank 1:\n", r"collective 82 '.*', ended after \d+\.\d\d s\nrank 2:\n"):
            self.assertRegex(evidence["details"], words)
        self.assertIn("collective 83 'gather layer2', not ended", text)
        self.assertNotIn("collective 83 'gather layer2', not ended", error, "events are for the files")
        self.assertEqual(error.count("has not come to collective"), 2, "once at once, and in the report at the end")

    def test_the_report_has_what_nccl_says(self):
        """Ranks listen where NCCL's service does, and a process of theirs answers; a busy machine may be too late for mlaunch's 2 s."""
        ranks = [sys.executable, str(pathlib.Path(__file__).with_name("serves_as_nccl.py")), str(free_port()), "Rank 1 has launched 82 of 83",
                 ACTOR, "skip", "1", "20", "2"]
        for number in range(TRIES):
            with unittest.mock.patch.dict(os.environ, NCCL_RAS_ADDR=f"127.0.0.1:{ranks[2]}"):
                mlaunch = self.launch([2], ranks, ["--hang-timeout", "8", "--max-restarts", "0", "--log-dir", f"logs-{number}"])[0]
            code, _, error = self.ended(mlaunch)
            self.assertEqual(code, 75, error)
            self.assertNotIn("has launched", error, "it is for the files")
            [report] = (self.home / f"logs-{number}").glob("*/attempt_0/report.txt")
            if "has launched" in (text := report.read_text()):
                break
        self.assertRegex(text, r"NCCL says at 127\.0\.0\.1:\d+:\n +Rank 1 has launched 82 of 83\n")

    def test_a_silent_nccl_costs_no_stacks(self):
        """A rank listens where NCCL's service does, and answers nothing; a tool takes 1.5 of mlaunch's 3 s, for which a busy machine may be too late."""
        silent = ("import os, socket, sys; place = socket.create_server(('127.0.0.1', int(sys.argv[1])), reuse_port=True); "
                  "place.set_inheritable(True); os.execvp(sys.argv[2], sys.argv[2:])")
        self.write_tool("eu-stack", "sleep 1.5; echo 'TID 1:'; echo '#0  0x1 slowly_found'")
        for _ in range(TRIES):
            port = str(free_port())
            with unittest.mock.patch.dict(os.environ, NCCL_RAS_ADDR=f"127.0.0.1:{port}", PATH=f"{self.home / 'tools'}:{os.environ['PATH']}"):
                mlaunch = self.launch([2], [sys.executable, "-c", silent, port, ACTOR, "skip", "1", "20", "2"],
                                      ["--hang-timeout", "8", "--max-restarts", "0"])[0]
            code, _, error = self.ended(mlaunch)
            self.assertEqual(code, 75, error)
            if "slowly_found" in error:
                break
        self.assertIn("slowly_found", error)

    def write_tool(self, name, script):
        path = self.home / "tools" / name
        path.parent.mkdir()
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o700)

    def test_nobody_else_is_asked_what_nccl_says(self):
        """What listens there is of no rank."""
        with socket.create_server(("127.0.0.1", 0)) as stranger:
            with unittest.mock.patch.dict(os.environ, NCCL_RAS_ADDR=f"127.0.0.1:{stranger.getsockname()[1]}"):
                mlaunch = self.launch([2], [ACTOR, "skip", "1", "20", "2"], ["--hang-timeout", "8", "--max-restarts", "0"])[0]
            code, _, error = self.ended(mlaunch)
            self.assertEqual(code, 75, error)
            stranger.settimeout(0)
            self.assertRaises(BlockingIOError, stranger.accept)

class OverHosts(SkippedCollectives, Namespaces):
    # Fault 8.
    def test_a_skipped_collective(self):
        seed = random.randrange(10**6)
        with self.subTest(seed=seed):
            self.assertLess(self.check_skipped(*draw(random.Random(seed), 2)), LIMIT_S + 4)

    # Fault 8.
    def test_a_reader_on_another_host_that_stops(self):
        hosts = self.launch([1, 1], [ACTOR, "chatter", "1", "40000"], ["--hang-timeout", "6"])
        said = [Lines(host.stderr) for host in hosts]
        time.sleep(18)
        self.assertEqual([host.poll() for host in hosts], [None, None], said[0].text())
        self.assertIn("nobody reads standard output", said[1].text())
        hosts[1].stdout.read()
        self.assertEqual([host.wait(20) for host in hosts], [0, 0], said[0].text())


def run_all(file):
    """Runs 20 cases and prints a table of them; returns how many were named in time."""
    lines = ["| case | ranks of hosts | rank | step | collective | named after s |", "|---|---|---|---|---|---|"]
    good = 0
    for number in range(20):
        hosts = 1 if number < 15 else 2
        test = (OnOneHost if hosts == 1 else OverHosts)("test_a_skipped_collective")
        case = draw(random.Random(number), hosts)
        result = unittest.TestResult()
        took = []
        test.test_a_skipped_collective = lambda: took.append(test.check_skipped(*case))
        test.run(result)
        for _, why in [*result.failures, *result.errors, *result.skipped]:
            print(why, file=sys.stderr)
        good += bool(took) and took[0] <= LIMIT_S + 2
        ranks, rank, step, collective = case
        seconds = f"{took[0]:.2f}" if took else "not named"
        lines.append(f"| {number} | {' + '.join(map(str, ranks))} | {rank} | {step} | {collective} | {seconds} |")
        print(lines[-1], flush=True)
    lines.append(f"\n{good} of 20 were named, with host and collective, within the limit of {LIMIT_S} s + 2 s.")
    print(lines[-1])
    if file:
        pathlib.Path(file).write_text("\n".join(lines) + "\n")
    return good


if __name__ == "__main__":
    if sys.argv[1:2] == ["all"]:
        sys.exit(run_all(sys.argv[2] if len(sys.argv) > 2 else "") != 20)
    unittest.main()
