"""Ranks die, stop or are told to end: nothing is left, and the last lines say where the rank was."""
import json
import os
import pathlib
import re
import shutil
import signal
import time
import unittest
import unittest.mock

from programs import BIN, HAS_MPI, LIMIT_S, SOON_S, ProgramTest, children, living, mlaunch

ENDLESS = ["--zero", "3", "--steps", "1000000", "--threads", "1", "--sequence-length", "32",
           "--micro-batch", "1", "--metrics", "metrics"]
WORLD = 4
PLACE = (r"step (\d+), (forward|backward|update|planning|loading), "
         r"(instruction \d+ '[^']+'|in collective \d+ '[^']+')")


class Failure(ProgramTest):
    def setUp(self):
        super().setUp()
        # mlaunch status and mlaunch stop see no other run.
        environment = unittest.mock.patch.dict(os.environ, {"STRATA_RUNS_DIR": str(self.home / "runs")})
        environment.start()
        self.addCleanup(environment.stop)

    def steps_done(self):
        try:
            return len(self.read("metrics").splitlines())
        except FileNotFoundError:
            return 0

    def steps_when_still(self):
        """Waits until no step has been added for a second, since steps under way may take time to end."""
        def still():
            before = self.steps_done()
            time.sleep(1)
            return self.steps_done() == before
        self.wait_until(still, "steps to stand still")
        return self.steps_done()

    def start_training(self):
        """Starts a run and waits for some steps; returns the process and its ranks' pids, rank 0 first."""
        process = self.start(mlaunch(WORLD, *ENDLESS))
        self.wait_until(lambda: self.steps_done() >= 5, "five steps")
        ranks = children(process.pid)
        self.assertEqual(len(ranks), WORLD)
        return process, ranks

    def ended(self, process, ranks):
        """Checks that all ended in time; returns the lines of standard error."""
        begin = time.monotonic()
        _, error = process.communicate(timeout=SOON_S)
        self.wait_until(lambda: not living(ranks), "all ranks end", 5)
        self.assertLess(time.monotonic() - begin, 10)
        return error.splitlines()

    # Fault 1.
    def test_a_killed_rank_ends_the_run_and_is_described(self):
        process, ranks = self.start_training()
        os.kill(ranks[2], signal.SIGKILL)
        lines = self.ended(process, ranks)
        self.assertEqual(process.returncode, 128 + signal.SIGKILL)
        start = next(i for i, line in enumerate(lines) if line.startswith("mlaunch: "))
        report = lines[start:]
        self.assertRegex(report[0], r"rank 2 of 4 failed: .*train was killed by signal 9 \(SIGKILL\)")
        self.assertRegex(report[1], "^  where   " + PLACE)
        self.assertRegex(report[2], r"^  others  rank 0.*step \d+")
        self.assertRegex(report[-2], "^  advice  .*out-of-memory killer")
        self.assertRegex(report[-1], "^mlaunch: the ranks do not start again by themselves, as nothing has been saved yet .*--save-every")
        self.assertEqual(start, 0, lines)  # no rank reports that another one went away

    # Faults 1, 7.
    def test_a_restart_goes_on_from_the_run_s_own_checkpoint(self):
        """The options do not ask to resume; attempts of one run do, and lose nothing but the steps since the last save."""
        steps = 150
        job = ["--device", "cpu", "--zero", "3", "--steps", str(steps), "--threads", "1", "--sequence-length", "32",
               "--micro-batch", "1", "--save-every", "4", "--metrics", "metrics", "--dump-state"]
        whole = self.run_program(mlaunch(2, *job, "whole", "--output", "undisturbed"))
        self.assertNotIn("attempt", whole.stdout)
        said = {signal.SIGKILL: r"mlaunch: starting the ranks again from step \d+, saved in /.*/out/step-\d+ \(restart 1 of 3 in an hour\)",
                signal.SIGSTOP: r"mlaunch: rank 1 has been stopped or frozen for 5 s; it is at step \d+"}
        for number, report in said.items():
            with self.subTest(number):
                process = self.start(mlaunch(2, *job, "resumed", "--output", "out", "--overwrite-output-dir"))
                self.wait_until(lambda: (self.home / "out" / "latest").exists(), "a checkpoint")
                os.kill(children(process.pid)[1], number)
                output, error = process.communicate(timeout=LIMIT_S)
                self.assertEqual(process.returncode, 0, error)
                self.assertRegex(error, report)
                self.assertNotIn("--resume", error)  # nobody has to do anything
                self.assertRegex(output, r"attempt 1: goes on from step \d+ of this run")
                self.assertEqual(self.read("whole"), self.read("resumed"))
                told = [json.loads(line) for line in self.read("metrics").splitlines()]
                self.assertEqual([line["step"] for line in told if "loss" in line], list(range(1, steps + 1)))
                shutil.rmtree(self.home / "out")

    def freezer(self, groups, name):
        """Makes a control group whose file `name` freezes its processes."""
        group = groups / f"strata-test-{os.getpid()}"
        try:
            group.mkdir()
        except OSError as error:
            self.skipTest(f"control groups cannot be made here: {error}")
        self.addCleanup(lambda: (self.wait_until(lambda: not (group / "cgroup.procs").read_text(), "an empty group"), group.rmdir()))
        if not (group / name).exists():
            self.skipTest("this host has no such control groups that freeze")
        return group

    def freeze(self, group, rank, name, word):
        try:
            (group / "cgroup.procs").write_text(str(rank))
        except OSError as error:
            self.skipTest(f"processes cannot be moved to control groups here: {error}")
        (group / name).write_text(word)
        self.addCleanup(lambda: (group / name).write_text({"1": "0", "FROZEN": "THAWED"}[word]))

    # Fault 7.
    def test_a_frozen_rank(self):
        """In a control group of version 2, which container engines and schedulers freeze, a process still can be killed."""
        groups = pathlib.Path("/sys/fs/cgroup/unified")
        group = self.freezer(groups if groups.exists() else groups.parent, "cgroup.freeze")
        process, ranks = self.start_training()
        frozen_at = time.monotonic()
        self.freeze(group, ranks[1], "cgroup.freeze", "1")
        _, said = process.communicate(timeout=SOON_S)
        self.assertLess(time.monotonic() - frozen_at, 20)  # named after 5 s; this machine may be busy
        self.assertRegex(said, r"mlaunch: rank 1 has been stopped or frozen for \d+ s")
        self.assertIn("held    in a frozen control group", said)
        self.assertRegex(said, r"docker unpause thaws it, or echo 0 > /sys/fs/cgroup/.*/cgroup.freeze")

    # Fault 7.
    def test_a_rank_that_is_frozen_so_that_it_cannot_be_killed(self):
        """In a control group of version 1 a killed process stays: the last lines say which one, and how it ends."""
        group = self.freezer(pathlib.Path("/sys/fs/cgroup/freezer"), "freezer.state")
        process = self.start(mlaunch(2, *ENDLESS, "--save-every", "5", "--output", "out", options=["--log-dir", str(self.home / "logs")]))
        self.wait_until(lambda: (self.home / "out" / "latest").exists(), "a checkpoint")
        rank = children(process.pid)[1]
        self.freeze(group, rank, "freezer.state", "FROZEN")
        shown = []
        self.wait_until(lambda: shown.append(self.shown_by_status()) or "(frozen)" in shown[-1], "mlaunch status to say so", 5)
        _, said = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 75, said)
        (report,) = (self.home / "logs").rglob("report.txt")
        for text in (said, report.read_text()):
            self.assertRegex(text, r"\n  threads (\d+ of )?'train' (is|are) frozen")
            self.assertNotIn("for a device", text)
            self.assertRegex(text, r"\n  resume  step \d+ is saved in .*; the same command with --resume auto")
            self.assertRegex(text, rf"\n  left    rank 1 \(process {rank}\) was killed but does not end: its control group is frozen\. "
                             rf"It ends once that is thawed: echo THAWED > {group}/freezer.state\n")
        self.assertRegex(report.read_text(), r"^run [0-9a-f]{16}, attempt 0, ended at 20\d\d-.*Z on host ")

    def shown_by_status(self):
        return self.run_program([str(BIN / "mlaunch"), "status"]).stdout

    # Fault 7.
    def test_several_stopped_ranks_are_named(self):
        process = self.start(mlaunch(WORLD, *ENDLESS, options=["--max-restarts", "0"]))
        self.wait_until(lambda: self.steps_done() >= 5, "five steps")
        ranks = children(process.pid)
        for rank in (1, 3):
            os.kill(ranks[rank], signal.SIGSTOP)
        asked = self.run_program([str(BIN / "mlaunch"), "stop"])
        self.assertRegex(asked.stdout, r"run \w+ is asked to save and end\nranks 1, 3 are stopped or frozen, so nothing can be saved until they go on "
                         r"\(kill -CONT \d+ \d+\); after 5 s they are killed\n")
        _, said = process.communicate(timeout=SOON_S)
        self.assertRegex(said, r"mlaunch: ranks 1, 3 are stopped or frozen, rank 1 for \d+ s")
        self.assertRegex(said, r"\n  held    rank 1: stopped by a signal .*\n          rank 3: stopped by a signal")

    # Fault 8.
    def test_a_search_for_a_plan_is_seen_to_get_on(self):
        """It may take longer than any limit: the page of its rank changes with each Plan that is tried."""
        process = self.start(mlaunch(1, "--model", "llama-3.1-405b", "--sequence-length", "512", "--micro-batch", "8", "--threads", "1",
                                     "--target-memory", "8GB", options=["--hang-timeout", "1"]))
        self.wait_until(lambda: "planning" in self.shown_by_status(), "planning")
        time.sleep(1)  # what comes before the search shows signs of life, too
        files = pathlib.Path(f"/proc/{process.pid}/fd").iterdir()
        [page] = [file.open("rb", buffering=0) for file in files if os.readlink(file).startswith("/memfd:strata-status")]
        pages = set()
        with page:
            while process.poll() is None and len(pages) < 5:
                page.seek(0)
                pages.add(page.read())
                time.sleep(0.1)
        process.kill()
        process.communicate(timeout=SOON_S)
        self.assertEqual(len(pages), 5, "the search ended before")

    # Fault 1.
    def test_a_crashed_rank(self):
        process, ranks = self.start_training()
        os.kill(ranks[1], signal.SIGSEGV)
        lines = self.ended(process, ranks)
        self.assertEqual(process.returncode, 128 + signal.SIGSEGV)
        self.assertRegex("\n".join(lines), r"rank 1 of 4 failed: .*signal 11 \(SIGSEGV\)")

    def test_ctrl_c(self):
        process, ranks = self.start_training()
        os.killpg(process.pid, signal.SIGINT)  # a terminal signals the whole group
        lines = self.ended(process, ranks)
        self.assertEqual(process.returncode, 130)
        self.assertRegex(lines[-1], "mlaunch: ended by Ctrl-C; rank 0 was at " + PLACE)

    def test_ctrl_c_says_how_to_go_on(self):
        process = self.start(mlaunch(2, *ENDLESS, "--save-every", "5", "--output", "out"))
        self.wait_until(lambda: (self.home / "out" / "latest").exists(), "a checkpoint")
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=SOON_S)
        self.assertEqual(process.returncode, 130)
        self.assertRegex(said.splitlines()[-1], r"^  resume  step \d+ is saved in /.*/out/step-\d+; the same command with --resume auto")

    def test_stop_now_ends_a_run_in_the_background_at_once(self):
        """Shells start such a run with SIGINT ignored."""
        ignoring = ["sh", "-c", "trap '' INT; exec \"$@\"", "sh"]
        process = self.start([*ignoring, *mlaunch(2, *ENDLESS, "--save-every", "1000000", "--output", "out")])
        self.wait_until(lambda: self.steps_done() >= 5, "five steps")
        stopped = self.run_program([str(BIN / "mlaunch"), "stop", "--now"])
        self.assertIn("has ended with code 130", stopped.stdout)
        _, said = process.communicate(timeout=SOON_S)
        self.assertRegex(said.splitlines()[-1], "mlaunch: ended by mlaunch stop --now; rank 0 was at " + PLACE)
        self.assertNotIn("ended by Ctrl-C", said)
        self.assertFalse((self.home / "out" / "latest").exists())

    # Fault 36.
    def test_the_scheduler_s_sigterm(self):
        process, ranks = self.start_training()
        process.send_signal(signal.SIGTERM)
        lines = self.ended(process, ranks)
        self.assertEqual(process.returncode, 75)
        self.assertRegex(lines[-1], "mlaunch: stopped on request")

    def test_a_stopped_rank_is_waited_for(self):
        process, ranks = self.start_training()
        os.kill(ranks[1], signal.SIGSTOP)
        steps = self.steps_when_still()
        self.assertIsNone(process.poll())
        os.kill(ranks[1], signal.SIGCONT)
        self.wait_until(lambda: self.steps_done() > steps + 3, "steps after SIGCONT")
        os.kill(ranks[1], signal.SIGSTOP)
        process.send_signal(signal.SIGINT)
        self.ended(process, ranks)
        self.assertEqual(process.returncode, 130)

    # Fault 7.
    def test_a_rank_that_stays_stopped_is_ended(self):
        process = self.start(mlaunch(WORLD, *ENDLESS, options=["--max-restarts", "0", "--log-dir", str(self.home / "logs")]))
        self.wait_until(lambda: self.steps_done() >= 5, "five steps")
        ranks = children(process.pid)
        os.kill(ranks[1], signal.SIGSTOP)
        _, said = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 75, said)
        self.assertRegex(said, r"mlaunch: rank 1 has been stopped or frozen for \d+ s")
        (report,) = (self.home / "logs").rglob("report.json")
        told = json.loads(report.read_text())
        self.assertEqual((told["cause"], told["rank"], told["exit_code"]), ("hang", 1, 75))

    # Fault 12.
    def test_mlaunch_itself_killed(self):
        process, ranks = self.start_training()
        process.kill()
        self.wait_until(lambda: not living(ranks), "ranks end with their launcher", 10)

    @unittest.skipUnless(HAS_MPI, "no mpirun here")
    def test_a_killed_rank_under_mpirun(self):
        process = self.start(mlaunch(2, *ENDLESS, options=["--launcher", "mpi"]))
        self.wait_until(lambda: self.steps_done() >= 5, "five steps")
        ranks = children(process.pid)
        self.assertGreaterEqual(len(ranks), 2)
        os.kill(ranks[-1], signal.SIGKILL)
        lines = self.ended(process, ranks)
        self.assertNotEqual(process.returncode, 0)
        self.assertTrue(re.search("signal 9", "\n".join(lines)), lines)


if __name__ == "__main__":
    unittest.main()
