"""Ranks are killed at chosen places of a step: the run goes on by itself and ends with the bits of a run that nothing happened to."""
import fcntl
import json
import os
import pathlib
import shutil
import signal
import struct
import time
import unittest

from programs import BIN, ProgramTest, children, mlaunch

JOB = ["--device", "cpu", "--zero", "3", "--steps", "500", "--threads", "1", "--sequence-length", "8", "--micro-batch", "1", "--save-every", "20",
       "--calibrate", "off"]
GATHERED = ["--param-persistence-threshold", "0"]  # small parameters, too
F_OFD_SETLK = 37  # Python 3.11 has no name for it
LIMIT_S = 6  # from a kill to the next attempt, on a busy machine, too


class KilledRanks(ProgramTest):
    def told_of(self, launcher, pid):
        """Returns what `mlaunch status` tells of a rank, which is stopped."""
        self.wait_until(lambda: pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] in "TZ", "a rank to stop or end")
        runs = json.loads(self.run_program([str(BIN / "mlaunch"), "status", "--json"]).stdout)["runs"]
        [rank] = [rank for run in runs if run["process"] == launcher.pid for rank in run["ranks"] if rank["process"] == pid]
        return rank

    def start_and_kill_at(self, is_there, job):
        """Stops rank 1 of a run again and again until `is_there` says yes to what is told of it, and kills it there."""
        for _ in range(10):  # a run may end before its rank was there
            shutil.rmtree(self.home / "out", ignore_errors=True)
            launcher = self.start(job)
            self.wait_until(lambda: (self.home / "out/latest").exists(), "a checkpoint")
            pid = children(launcher.pid)[1]
            while launcher.poll() is None:
                try:
                    os.kill(pid, signal.SIGSTOP)
                    there = is_there(self.told_of(launcher, pid))
                    os.kill(pid, signal.SIGKILL if there else signal.SIGCONT)
                except (OSError, ValueError):
                    break  # the rank has ended
                if there:
                    return launcher
            launcher.communicate(timeout=60)
        self.fail("a rank was never there")

    def expect_same_bits(self, is_there, *arguments):
        self.run_program(mlaunch(2, *JOB, *arguments, "--output", "undisturbed", "--dump-state", "expected"))
        launcher = self.start_and_kill_at(is_there, mlaunch(2, *JOB, *arguments, "--output", "out", "--dump-state", "state"))
        begin, said = time.monotonic(), ""
        while "starting the ranks again" not in said:
            line = launcher.stderr.readline()
            self.assertTrue(line, said)
            said += line
        self.assertLess(time.monotonic() - begin, LIMIT_S)
        _, rest = launcher.communicate(timeout=60)
        self.assertEqual(launcher.returncode, 0, said + rest)
        self.assertRegex(said, r"rank 1 of 2 failed: .*killed by signal 9")
        self.assertEqual(self.read("state"), self.read("expected"))

    # Fault 1.
    def test_in_the_forward_pass(self):
        self.expect_same_bits(lambda rank: rank["phase"] == "forward" and not rank["collective_name"])

    # Fault 2.
    def test_while_parameters_are_gathered(self):
        self.expect_same_bits(lambda rank: rank["collective_name"].startswith("gather "), *GATHERED)

    # Fault 3.
    def test_while_gradients_are_added_up(self):
        self.expect_same_bits(lambda rank: rank["collective_name"].startswith("reduce "))

    # Fault 4.
    def test_in_the_update(self):
        self.expect_same_bits(lambda rank: rank["phase"] == "update")

    # Fault 10.
    def test_a_lock_that_outlives_its_host_delays_the_run_alone(self):
        """A file server keeps the locks of a host that is gone for a time, as this test does after a rank was killed."""
        launcher = self.start(mlaunch(1, *JOB, "--output", "out"))
        self.wait_until(lambda: (self.home / "out/latest").exists(), "a checkpoint")
        with open(self.home / "out/.strata-lock", "rb") as lock:
            shared = struct.pack("hhqqi4x", fcntl.F_RDLCK, os.SEEK_SET, 1, 1, 0)
            fcntl.fcntl(lock, F_OFD_SETLK, shared)
            os.kill(children(launcher.pid)[0], signal.SIGKILL)
            said = ""
            while "waiting up to 120 s for ranks of an earlier attempt to let go of out" not in said:
                line = launcher.stdout.readline()
                self.assertTrue(line, said)
                said += line
        _, errors = launcher.communicate(timeout=60)
        self.assertEqual(launcher.returncode, 0, errors)
        self.assertEqual(errors.count("but other ranks still live"), 1, errors)


if __name__ == "__main__":
    unittest.main()
