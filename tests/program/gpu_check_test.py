"""gpu-check runs every check to its end or its limit, whatever the others do, and tells of each at once."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SCRIPT = ROOT / "scripts/gpu_check.py"
FAKE_SMI = """#!/bin/sh
echo "NVIDIA Test, 580.1, 1000 MiB, 1 MiB, 9.0, 5, 700 W, 1980 MHz, 3201 MHz, 345 MHz, 30, Enabled, Disabled"
"""
REPORT = {"testsuites": [{"testsuite": [
    {"name": "Fine", "classname": "Add"},
    {"name": "Wrong", "classname": "Add", "last_call": "add(fp32[2], fp32[2]) -> fp32[2]",
     "failures": [{"failure": "worst at 1 of fp32[2]: 0.5 for 0.25"}]}]}]}


def shell(name, text, **more):
    return {"stage": "ops", "name": name, "command": ["sh", "-c", text], "limit_s": 20} | more


def alive(pid):
    try:
        return pathlib.Path("/proc", str(pid), "stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


class GpuCheck(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="strata-gpu-check-")
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.executable("tools/nvidia-smi", "#!/bin/sh\nexit 9\n")  # as where no driver runs

    def run_list(self, entries, *arguments, expect, limit_s=60):
        """Lines of the checks; the facts are left in self.facts."""
        (self.root / "list.json").write_text(json.dumps(entries))
        environment = os.environ | {"PATH": f"{self.root / 'tools'}:/usr/bin:/bin"}
        done = subprocess.run([sys.executable, SCRIPT, "list.json", "--root", self.root, "--output", "lines.jsonl",
                               *arguments], cwd=self.root, env=environment, capture_output=True, text=True,
                              timeout=limit_s, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        self.printed = done.stdout
        self.facts, *lines = [json.loads(line) for line in (self.root / "lines.jsonl").read_text().splitlines()]
        return lines

    def executable(self, name, text):
        path = self.root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def with_a_gpu(self):
        self.executable("tools/nvidia-smi", FAKE_SMI)

    def test_nothing_stops_the_rest(self):
        lines = self.run_list([
            shell("fails", "echo the reason; exit 3"),
            shell("hangs", "trap '' TERM INT; sleep 1000 & echo $! > {root}/child; wait; sleep 1000", limit_s=0.5),
            shell("crashes", "kill -SEGV $$"),
            {"stage": "ops", "name": "absent", "command": ["tests/absent"], "limit_s": 1},
            shell("cannot", "exit 77"),
            # Reads what the checks before it left on disk.
            shell("passes", "test $(wc -l < {root}/lines.jsonl) = 6"),
        ], expect=1)
        self.assertEqual([(line["name"], line["status"]) for line in lines],
                         [("fails", "failed"), ("hangs", "timed out"), ("crashes", "crashed"), ("absent", "failed"),
                          ("cannot", "skipped"), ("passes", "passed")])
        self.assertEqual(lines[0]["exit_code"], 3)
        self.assertIn("the reason", lines[0]["output"])
        self.assertLess(lines[1]["seconds"], 15)
        self.assertFalse(alive((self.root / "child").read_text().strip()), "its child lives on")
        self.assertEqual(lines[2]["signal"], "SIGSEGV")
        self.assertIn("cannot start", lines[3]["reason"])
        self.assertIn("2 failed, 1 timed out, 1 crashed, 1 skipped, 1 passed", self.printed)

    def test_what_a_check_leaves_running_is_ended(self):
        lines = self.run_list([shell("leaves", "sleep 1000 & echo $! > {root}/child")], expect=0)
        self.assertEqual(lines[0]["status"], "passed")
        self.assertFalse(alive((self.root / "child").read_text().strip()))

    def test_the_time_for_all_is_limited(self):
        lines = self.run_list([shell("hangs", "sleep 1000", limit_s=600), shell("late", "true")],
                              "--limit", "3", expect=1)
        self.assertEqual([line["status"] for line in lines], ["timed out", "not run"])

    def test_failures_of_test_programs_name_the_operation(self):
        report = json.dumps(REPORT)
        lines = self.run_list([shell("gtest", f"echo '{report}' > ${{GTEST_OUTPUT#json:}}; exit 1")], expect=1)
        self.assertEqual(lines[0]["failed_tests"], [{
            "test": "Add.Wrong", "message": "worst at 1 of fp32[2]: 0.5 for 0.25",
            "last_call": "add(fp32[2], fp32[2]) -> fp32[2]"}])

    def test_metrics_are_summed_up(self):
        rows = [{"step": i, "loss": 5.0 - i, "seconds": 1.0, "tokens_per_second": 100.0 * i, "mfu": None, "arena_bytes": 7}
                for i in range(1, 5)]
        text = "\\n".join(json.dumps(row) for row in rows)
        lines = self.run_list([shell("trains", f"printf '{text}\\n' > {{work}}/metrics.jsonl")], expect=0)
        self.assertEqual(lines[0]["metrics"], {"steps": 4, "first_loss": 4.0, "last_loss": 1.0, "seconds": 1.0,
                                               "tokens_per_second": 350.0, "mfu": None,
                                               "arena_bytes": 7, "peak_rss_bytes": None})

    def test_rows_of_benchmarks_are_kept(self):
        lines = self.run_list([shell("bench", """echo '{"case": "copy", "GB/s": 4300}'; echo noise; echo '{cut}'""")],
                              expect=0)
        self.assertEqual(lines[0]["rows"], [{"case": "copy", "GB/s": 4300}])

    def test_what_needs_a_gpu_is_skipped_without_one(self):
        entry = shell("kernel", "exit 77", needs=["gpu"])
        lines = self.run_list([entry], expect=0)
        self.assertEqual(lines[0]["status"], "skipped")
        self.assertIn("no GPU", lines[0]["reason"])
        self.assertEqual(self.facts["gpus"], [])
        # With one, a program that cannot use it has failed.
        self.with_a_gpu()
        lines = self.run_list([entry], expect=1)
        self.assertEqual((lines[0]["status"], lines[0]["exit_code"]), ("failed", 77))
        self.assertEqual(self.facts["gpus"][0]["name"], "NVIDIA Test")
        self.assertEqual(self.facts["gpus"][0]["driver_version"], "580.1")

    def test_one_check_per_file(self):
        for name in ("b_test", "a_test"):
            self.executable(f"tests/{name}", "#!/bin/sh\necho $0\n")
        entry = {"stage": "ops", "name": "all", "each": "tests/*_test", "command": ["{file}"], "limit_s": 20}
        self.assertEqual([line["name"] for line in self.run_list([entry], expect=0)], ["a_test", "b_test"])
        self.assertEqual([line["name"] for line in self.run_list([entry], "--only", "ops/b", expect=0)], ["b_test"])
        lines = self.run_list([entry | {"each": "tests/gpu_*"}], expect=0)
        self.assertIn("the bundle has no tests/gpu_*", lines[0]["reason"])

    def test_lists_of_the_bundle_are_complete(self):
        for name in ("gpu_check", "gpu_bench"):
            for entry in json.loads((ROOT / f"scripts/{name}.json").read_text()):
                self.assertGreater(entry["limit_s"], 0)
                self.assertTrue(entry["stage"] and entry["name"] and entry["command"])


if __name__ == "__main__":
    unittest.main()
