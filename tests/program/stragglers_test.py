"""A rank for which all others wait is named."""
import os
import pathlib
import sys
import unittest

from programs import ProgramTest, children, mlaunch

CORES = sorted(os.sched_getaffinity(0))


class Stragglers(ProgramTest):
    # Fault 9.
    @unittest.skipIf(len(CORES) < 2, "needs two cores")
    def test_a_rank_whose_core_others_use_is_named(self):
        run = self.start(mlaunch(2, "--steps", 100000, "--micro-batch", 1, "--sequence-length", 128, "--threads", 1, "--calibrate", "off",
                                 "--metrics", "metrics", "--device", "cpu", options=["--log-dir", "logs"]))
        self.wait_until(lambda: (self.home / "metrics").exists() and (self.home / "metrics").read_text().count("loss") > 2, "steps")
        for rank, pid in enumerate(sorted(children(run.pid))):
            for thread in pathlib.Path(f"/proc/{pid}/task").iterdir():
                os.sched_setaffinity(int(thread.name), {CORES[rank]})
                if rank == 1:
                    os.setpriority(os.PRIO_PROCESS, int(thread.name), 19)
        burn = f"import os, time; os.sched_setaffinity(0, {{{CORES[1]}}}); end = time.monotonic() + 100\nwhile time.monotonic() < end: pass"
        for _ in range(6):  # each in a session of its own, since some systems share cores out by sessions
            self.start([sys.executable, "-c", burn])
        self.wait_until(lambda: "all ranks wait for rank" in self.log(), f"a straggler's name in {self.home}", 90)
        self.assertIn("all ranks wait for rank 1 on host", self.log())

    def log(self):
        return "".join(path.read_text() for path in (self.home / "logs").glob("*/mlaunch.log"))


if __name__ == "__main__":
    unittest.main()
