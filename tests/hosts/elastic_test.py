"""Runs whose hosts come and go: they go on with those that are left, take in those that come, and keep every bit."""
import json
import os
import signal
import unittest

from several_hosts import BIN, SOON_S, HostsTest, children

JOB = ["--device", "cpu", "--threads", "1", "--sequence-length", "32", "--micro-batch", "1", "--calibrate", "off"]


class Elastic(HostsTest):
    def train(self, *arguments):
        return [str(BIN / "train"), *JOB, *map(str, arguments)]

    def start_host(self, node, hosts, program, options=(), ranks=1):
        """Starts the mlaunch of one host; `hosts` is what --nnodes gets."""
        command = self.command(node, hosts, ranks, program, options)
        return self.start(command)

    def metrics(self, name):
        """Returns what was written of each step."""
        try:
            lines = (self.home / name).read_text().splitlines()
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in lines if '"loss"' in line and line.endswith("}")]

    def undisturbed(self, *job):
        self.run_program([str(BIN / "mlaunch"), "-np", "2", *self.train(*job, "--output", "out0", "--dump-state", "undisturbed")])
        return (self.home / "undisturbed").read_text()

    # Fault 10.
    def test_a_host_goes_and_comes_back(self):
        job = ["--zero", 3, "--virtual-ranks", 2, "--steps", 3000, "--save-every", 150]
        run = self.train(*job, "--output", "out", "--metrics", "metrics", "--dump-state", "digest")
        first, second = (self.start_host(node, "1:2", run) for node in range(2))
        self.wait_until(lambda: (self.home / "out" / "latest").exists(), "a checkpoint")
        second.kill()
        for words in ("host 1 (", "starting the ranks again"):
            self.wait_for_lines(first.stderr, words)
        before = len(self.metrics("metrics"))
        self.wait_until(lambda: len(self.metrics("metrics")) > before, "steps of one host")
        again = self.start_host(1, "1:2", run)
        ends = [self.ended(host) for host in (first, again)]
        self.assertEqual([end[0] for end in ends], [0, 0], ends)
        text = ends[0][2]
        for words in ("2 ranks instead of 1", "start again on all hosts that are there"):
            self.assertIn(words, text)
        self.assertEqual((self.home / "digest").read_text(), self.undisturbed(*job))

    # Faults 12, 13.
    def test_host_0_dies_and_is_started_again(self):
        job = ["--zero", 3, "--steps", 3000, "--save-every", 150]
        run = self.train(*job, "--output", "out", "--dump-state", "digest")
        first, second = (self.start_host(node, "2", run, ["--log-dir", "logs"]) for node in range(2))
        self.wait_until(lambda: (self.home / "out" / "latest").exists(), "a checkpoint")
        first.kill()
        first.communicate()
        again = self.start_host(0, "2", run, ["--log-dir", "logs"])
        ends = [self.ended(host) for host in (again, second)]
        self.assertEqual([end[0] for end in ends], [0, 0], ends)
        self.assertRegex(ends[0][2], r"run \w+, in which other hosts have taken part, goes on here instead of run \w+\n")
        goes_on = r"attempt 1: goes on from step \d+ of this run"
        self.assertRegex(ends[0][1] + ends[0][2], goes_on)
        [logs] = (self.home / "logs").iterdir()
        self.assertEqual({path.name for path in logs.iterdir()},
                         {"attempt_0", "attempt_1", "mlaunch.log", "mlaunch.1.log", "mlaunch.again_1.log"})
        self.assertRegex(self.run_program([str(BIN / "mlaunch"), "logs", logs.name]).stdout, goes_on)
        self.assertEqual((self.home / "digest").read_text(), self.undisturbed(*job))

    # Fault 13.
    def test_host_0_is_started_again_with_another_command(self):
        run = self.train("--zero", 3, "--steps", 1000, "--save-every", 100, "--output", "out")
        first, second = (self.start_host(node, "2", run) for node in range(2))
        self.wait_until(lambda: (self.home / "out" / "latest").exists(), "a checkpoint")
        first.kill()
        first.communicate()
        code, _, said = self.ended(self.start_host(0, "2", self.train("--zero", 2)))
        self.assertEqual(code, 78, said)
        self.assertRegex(said, r"host 1 \(.+ at 127\.0\.0\.1\) has had ranks of a run .*: --zero is '3' there and '2' on this host;")
        self.assertIsNone(second.poll(), "it waits for the right one")
        again = self.start_host(0, "2", run)
        ends = [self.ended(host) for host in (again, second)]
        self.assertEqual([end[0] for end in ends], [0, 0], ends)
        self.assertRegex(ends[1][2], r"is not host 0 of this run: .*: --zero is '3' on this host and '2' there;.* up to 60 s\n")

    # Faults 13, 36.
    def test_a_host_that_ends_without_host_0_says_where_the_run_goes_on(self):
        first, second = (self.start_host(node, "2", self.train("--steps", 100000, "--save-every", 50, "--output", "out")) for node in range(2))
        latest = self.home / "out" / "latest"
        self.wait_until(latest.exists, "a checkpoint")
        before = os.readlink(latest)
        self.wait_until(lambda: os.readlink(latest) != before, "another one, so that all ranks know of one")
        first.kill()
        first.communicate()
        second.send_signal(signal.SIGTERM)
        code, _, said = self.ended(second)
        self.assertEqual(code, 75, said)
        self.assertRegex(said, r"(?m)^mlaunch: step \d+ is saved in .*out/.*; the same command with --resume auto goes on from there$")

    def test_a_spare_host_says_that_it_is_one_and_is_shown_when_it_has_left(self):
        run = self.train("--steps", 100000000)
        first, second = (self.start_host(node, "1:2", run, ["--elastic", "1:1"]) for node in range(2))
        said = []
        while "host 1 is a spare: the run goes on without it" not in "".join(said[-1:]):
            said.append(second.stderr.readline())
            self.assertTrue(said[-1], said)
        second.send_signal(signal.SIGTERM)
        self.assertEqual(self.ended(second)[0], 75)
        runs = json.loads(self.run_program([str(BIN / "mlaunch"), "status", "--json"]).stdout)["runs"]
        [hosts] = [run["hosts"] for run in runs if run["process"] == first.pid]
        self.assertEqual([host["state"] for host in hosts], ["ranks", "left"])

    # Fault 36.
    def test_a_host_that_is_told_to_end_leaves_alone(self):
        job = ["--virtual-ranks", 2, "--steps", 3000, "--save-every", 1000000]
        run = self.train(*job, "--output", "out", "--dump-state", "digest", "--metrics", "metrics")
        first, second = (self.start_host(node, "1:2", run) for node in range(2))
        self.wait_until(lambda: len(self.metrics("metrics")) > 10, "steps of two hosts")
        second.send_signal(signal.SIGTERM)
        code, _, said = self.ended(second, SOON_S)
        self.assertEqual(code, 75, said)
        self.assertIn("it was told to end, and the run goes on without it", said)
        code, _, said = self.ended(first)
        self.assertEqual(code, 0, said)
        self.assertRegex(said, r"host 1 \(.+\) got SIGTERM: it leaves, and the run goes on as 1 rank on the other hosts once all have saved")
        self.assertNotIn("restart 1 of", said)
        self.assertEqual((self.home / "digest").read_text(), self.undisturbed(*job))

    def test_ranks_that_do_not_fit(self):
        run = self.train("--global-batch", 4, "--steps", 3, "--metrics", "metrics")
        hosts = [self.start_host(node, "1:3", run) for node in range(3)]
        ends = [self.ended(host) for host in hosts]
        self.assertEqual([end[0] for end in ends], [0, 0, 0], ends)
        self.assertIn("3 ranks do not fit the configuration; of fewer it admits 1 or 2 ranks", ends[0][2])
        self.assertIn("2 ranks (hosts)", ends[0][1])
        self.assertIn("attempt 1: begins as the first attempt did; no step of this run was seen yet", ends[0][1] + ends[0][2])

    def test_a_run_that_no_host_may_leave_says_so(self):
        run = self.train("--global-batch", 3, "--steps", 3)
        ends = [self.ended(host) for host in [self.start_host(node, "2:3", run) for node in range(3)]]
        self.assertEqual([end[0] for end in ends], [0, 0, 0], ends)
        self.assertIn("mlaunch: the configuration admits only 3 ranks: the run ends when it loses a host that does not come back within 60 s\n", ends[0][2])

    # Fault 10.
    def test_a_run_begins_with_one_host_and_grows(self):
        job = ["--virtual-ranks", 2, "--steps", 4000, "--save-every", 100]
        run = self.train(*job, "--output", "out", "--dump-state", "digest")
        first = self.start_host(0, "1:2", run)
        self.wait_until(lambda: (self.home / "out" / "latest").exists(), "a checkpoint of one host")
        second = self.start_host(1, "1:2", run)
        ends = [self.ended(host) for host in (first, second)]
        self.assertEqual([end[0] for end in ends], [0, 0], ends)
        self.assertIn("2 ranks instead of 1", ends[0][2])
        self.assertIn("start again on all hosts that are there", ends[0][2])
        self.assertEqual((self.home / "digest").read_text(), self.undisturbed(*job))

    def test_one_host_with_too_many_ranks(self):
        host = self.start_host(0, "1:2", self.train("--global-batch", 4, "--steps", 3), ranks=3)
        code, output, error = self.ended(host)
        self.assertEqual(code, 0, error)
        self.assertIn("3 ranks do not fit the configuration; of fewer it admits 1 or 2 ranks", error)

    def test_bounds_of_the_number_of_ranks(self):
        run = self.train("--global-batch", 4, "--steps", 3)
        hosts = [self.start_host(node, "1:2", run, ["--elastic", "1:1"]) for node in range(2)]
        ends = [self.ended(host) for host in hosts]
        self.assertEqual([end[0] for end in ends], [0, 0], ends)
        self.assertIn("1 rank", ends[0][1])

    # Fault 10.
    def test_too_few_are_left(self):
        run = self.train("--steps", 100000, "--save-every", 10, "--output", "out", "--metrics", "metrics")
        hosts = [self.start_host(node, "2:3", run, ["--rejoin", "2"]) for node in range(3)]
        self.wait_until(lambda: (self.home / "out" / "latest").exists(), "a checkpoint")
        hosts[1].kill()
        hosts[2].kill()
        code, _, error = self.ended(hosts[0])
        self.assertEqual(code, 75, error)
        self.assertIn("1 of 3 hosts are there, and the run needs 2", error)
        self.assertRegex(error, r"Start it again when they are: --resume auto goes on from step \d+, saved in .*out/")

    # Fault 10.
    def test_a_run_of_other_programs_goes_on_with_fewer(self):
        script = self.home / "program.sh"
        script.write_text('#!/bin/sh\necho "$RANK of $WORLD_SIZE" >> worlds\n[ "$WORLD_SIZE" = 1 ] && exit 0\nsleep 60\n')
        script.chmod(0o755)
        first, second = (self.start_host(node, "1:2", [str(script)], ["--max-restarts", "3"]) for node in range(2))
        self.wait_until(lambda: (self.home / "worlds").exists() and len((self.home / "worlds").read_text().splitlines()) == 2, "two ranks")
        for rank in children(second.pid):
            self.assertGreater(rank, 0)
        second.send_signal(signal.SIGKILL)
        code, _, error = self.ended(first)
        self.assertEqual(code, 0, error)
        self.assertEqual((self.home / "worlds").read_text().splitlines()[-1], "0 of 1")

    def test_wrong_ranges(self):
        for options, text in ((["--nnodes", "3:2"], "MIN 3 is above MAX 2"), (["--nnodes", "0:2"], "expected"), (["--nnodes", "x"], "expected"),
                              (["--elastic", "1:2"], "--nnodes MIN:MAX"), (["--rejoin", "0"], "--rejoin")):
            done = self.run_program([str(BIN / "mlaunch"), *options, "train"], expect=2)
            self.assertIn(text, done.stderr)


if __name__ == "__main__":
    unittest.main()
