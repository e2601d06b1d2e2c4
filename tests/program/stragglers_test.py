"""A rank for which all others wait is named."""
import os
import pathlib
import subprocess
import sys
import unittest

from programs import ProgramTest, children, mlaunch

CORES = sorted(os.sched_getaffinity(0))


class Stragglers(ProgramTest):
    # Fault 9.
    @unittest.skipIf(len(CORES) < 2, "needs two cores")
    def test_a_rank_whose_core_others_use_is_named(self):
        run = self.start(mlaunch(2, "--steps", 100000, "--micro-batch", 1, "--sequence-length", 256, "--threads", 1, "--calibrate", "off",
                                 "--metrics", "metrics", "--device", "cpu"))
        self.wait_until(lambda: (self.home / "metrics").exists() and (self.home / "metrics").read_text().count("loss") > 2, "steps")
        for rank, pid in enumerate(sorted(children(run.pid))):
            for thread in pathlib.Path(f"/proc/{pid}/task").iterdir():
                os.sched_setaffinity(int(thread.name), {CORES[rank]})
        for _ in range(4):
            burner = subprocess.Popen([sys.executable, "-c", f"import os; os.sched_setaffinity(0, {{{CORES[1]}}})\nwhile True: pass"])
            self.addCleanup(self._end, burner)
        lines = []
        self.wait_until(lambda: lines.append(run.stderr.readline()) or "all ranks wait for rank" in lines[-1], "a straggler's name", 120)
        self.assertIn("rank 1 on host", lines[-1])
        self.assertIn("it computes", lines[-1])


if __name__ == "__main__":
    unittest.main()
