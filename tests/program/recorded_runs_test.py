"""Sixty configurations, drawn once, must give what was recorded of them: digests of the state, losses, and the bytes that the plan needs
of each tier. Whoever changes how steps are planned, compiled or run sees here what changed with it.

    STRATA_BIN=build/bin python3 tests/program/recorded_runs_test.py --record      # writes the record anew
    STRATA_BIN=build/bin python3 tests/program/recorded_runs_test.py --draw SEED   # draws sixty others first
"""
import hashlib
import json
import pathlib
import random
import re
import subprocess
import sys
import unittest

from programs import LIMIT_S, ProgramTest, clean_environment, mlaunch

REFUSED = (2, 69, 78)  # wrong command line, too little memory, wrong configuration
RECORD = pathlib.Path(__file__).parent / "recorded/runs.json"
JOB = ["--device", "cpu", "--threads", "1", "--sequence-length", "16", "--micro-batch", "1", "--nvme-path", "drive"]
CHOICES = {
    "--model": ["gpt2-tiny", "llama-tiny"],
    "--zero": ["0", "1", "2", "3"],
    "--dtype": ["fp32", "fp32", "bf16", "fp16"],
    "--state-recipe": ["", "", "packed-master", "bf16-moments", "packed-bf16-moments", "8bit", "bf16-sr"],
    "--offload-optimizer": ["none", "none", "cpu", "nvme"],
    "--offload-param": ["none", "none", "none", "cpu", "nvme"],
    "--offload-activations": ["", "", "", "", "cpu", "nvme"],
    "--update-time": ["", "", "", "step_end", "next_step"],
    "--activation-checkpointing": ["", "", "true"],
    "--recompute-norms": ["", "", "", "true"],
    "--accumulation": ["", "", "2", "3"],
    "--layer-major": ["", "", "", "true"],
    "--virtual-ranks": ["", "", "", "2", "4"],
    "--save-every": ["", "", "1", "2"],
    "--async-save": ["", "false"],
    "--host-memory": ["", "", "", "40MB"],
    "--optimizer": ["", "", "", "lion", "sgd"],
    "--gradient-clipping": ["", "", "0"],
}


def drawn(draw):
    flags = {name: draw.choice(values) for name, values in CHOICES.items()}
    if flags["--save-every"]:
        flags["--output"] = "out"
    else:
        flags["--async-save"] = ""
    return {"ranks": draw.choice([1, 2, 2, 4]), "flags": [word for name, value in flags.items() if value for word in (name, value)]}


def arithmetic():
    """Says how this machine's products round: with AVX-512, fp32 products go through the library."""
    flags = set(re.search(r"(?m)^flags\s*:(.*)$", pathlib.Path("/proc/cpuinfo").read_text())[1].split())
    return "library" if "avx512f" in flags else "own tiles" if {"avx2", "fma"} <= flags else "not fused"


class RecordedRuns(ProgramTest):
    def outcome(self, run):
        """Returns what is recorded of a run. Memory is planned without measuring the drive, whose speed decides about windows."""
        home = self.home / f"run-{len(list(self.home.iterdir()))}"
        (home / "drive").mkdir(parents=True)
        outer, self.home = self.home, home
        try:
            job = [run["ranks"], *JOB, *run["flags"]]
            plan = self.run_program(mlaunch(*job, "--steps", "0", "--print-plan")).stdout
            self.run_program(mlaunch(*job, "--steps", "3", "--metrics", "metrics", "--dump-state", "state"))
            table = [re.split("  +", re.sub(r"^\[0\]", "", line).strip())
                     for line in plan[plan.index("memory planned for rank 0:"):].splitlines() if line.count("  ") > 2]
            return {"memory": {row[0].split(" (")[0]: row[1:] for row in table},
                    "losses": [line["loss"] for line in self.step_metrics("metrics")],
                    "state": hashlib.sha256(self.read("state").encode()).hexdigest()[:32]}
        finally:
            self.home = outer

    def test_nothing_changed(self):
        record = json.loads(RECORD.read_text())
        self.assertEqual(len(record["runs"]), 60)
        for run in record["runs"]:
            with self.subTest(ranks=run["ranks"], flags=" ".join(run["flags"])):
                found = self.outcome(run)
                self.assertEqual(found["memory"], run["memory"])
                if arithmetic() == record["arithmetic"]:
                    self.assertEqual((found["losses"], found["state"]), (run["losses"], run["state"]))
                else:  # the last bits differ, and a step of fp16 may be skipped because of that
                    for loss, recorded in zip(found["losses"], run["losses"], strict=True):
                        self.assertAlmostEqual(loss, recorded, delta=0.03 * abs(recorded))

    def is_refused(self, run):
        plan = subprocess.run(mlaunch(run["ranks"], *JOB, *run["flags"], "--steps", "0", "--print-plan"), cwd=self.home,
                              env=clean_environment(), capture_output=True, timeout=LIMIT_S)
        return plan.returncode in REFUSED

    def write_record(self, seed):
        """Writes a record of sixty newly drawn configurations, or with no seed of those already in it."""
        if seed is None:
            runs = [run | self.outcome(run) for run in json.loads(RECORD.read_text())["runs"]]
        else:
            runs, draw = [], random.Random(seed)
            while len(runs) < 60:
                run = drawn(draw)
                if not self.is_refused(run):  # two of its flags exclude one another
                    runs.append(run | self.outcome(run))
        lines = ",\n".join("  " + json.dumps(run) for run in runs)
        RECORD.parent.mkdir(exist_ok=True)
        RECORD.write_text(f'{{"arithmetic": "{arithmetic()}", "runs": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    if sys.argv[1:2] in (["--record"], ["--draw"]):
        runs = RecordedRuns("test_nothing_changed")
        runs.setUp()
        runs.write_record(int(sys.argv[2]) if sys.argv[1] == "--draw" else None)
        runs.doCleanups()
    else:
        unittest.main()
