"""A rank for which all others wait is named, and one that is slow is not taken for one that is stopped."""
import contextlib
import os
import signal
import threading
import unittest

from programs import BIN, SOON_S, ProgramTest, children, mlaunch


class Slowed:
    """Lets a process run for a fifth of the time: its core is as good as shared with four others, on however busy a machine."""

    def __init__(self, pid, runs_s=0.01, stands_s=0.04):
        self.pid, self.runs_s, self.stands_s = pid, runs_s, stands_s
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    def run(self):
        with contextlib.suppress(ProcessLookupError):  # it has ended
            while not self.over.wait(self.runs_s):
                os.kill(self.pid, signal.SIGSTOP)
                self.over.wait(self.stands_s)
                os.kill(self.pid, signal.SIGCONT)


class Stragglers(ProgramTest):
    # Fault 9.
    def test_a_rank_that_runs_for_a_fifth_of_the_time_is_named(self):
        run = self.start(mlaunch(2, "--steps", 100000, "--micro-batch", 1, "--sequence-length", 128, "--threads", 1, "--calibrate", "off",
                                 "--metrics", "metrics", "--device", "cpu", options=["--log-dir", "logs"]))
        self.wait_until(lambda: (self.home / "metrics").exists() and (self.home / "metrics").read_text().count("loss") > 2, "steps")
        with Slowed(sorted(children(run.pid))[1]):
            self.wait_until(lambda: "all ranks wait for rank" in self.log() or run.poll() is not None, f"a straggler's name in {self.home}", 90)
        self.assertIn("all ranks wait for rank 1 on host", self.log())

    # Fault 9.
    def test_a_rank_that_waits_and_is_found_stopped_at_every_look_is_not_ended(self):
        run = self.start([str(BIN / "mlaunch"), "-np", "2", "sleep", "12"])
        self.wait_until(lambda: len(children(run.pid)) == 2, "ranks")
        with Slowed(sorted(children(run.pid))[1], runs_s=0.002, stands_s=0.2):
            _, error = run.communicate(timeout=SOON_S)
        self.assertEqual((run.returncode, error), (0, ""), "it has run between its stops")

    def log(self):
        return "".join(path.read_text() for path in (self.home / "logs").glob("*/mlaunch.log"))


if __name__ == "__main__":
    unittest.main()
