"""gpu-check runs every check to its end or its limit, whatever the others do, and reports each at once."""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SCRIPT = ROOT / "scripts/gpu_check.py"
LIMIT_S = int(re.search(r"^LIMIT_S = (\d+)", SCRIPT.read_text(), re.M)[1])
# A fake nvidia-smi that does not know event reasons nor the power of this GPU, and with -lms answers until it is killed.
FAKE_SMI = """#!/bin/sh
case "$*" in
  *event_reasons*) exit 6 ;;
  *clocks_throttle*-lms*)
    echo "1980, 3201, [N/A], 61, 99, 0x0000000000000004"
    echo "1830, 3201, [N/A], 63, 99, 0x0000000000000024"
    exec sleep 1000 ;;
  *clocks_throttle*) echo "345, 3201, [N/A], 30, 0, 0x0000000000000001"; exit ;;
esac
echo "NVIDIA Test, 580.1, 1000 MiB, 1 MiB, 9.0, 5, 700 W, 1980 MHz, 3201 MHz, 345 MHz, 30, Enabled, Disabled"
"""
LISTS = ("gpu_check", "gpu_check_more", "gpu_bench", "gpu_bench_more", "gpu_foresight")
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
        self.executable("tools/nvidia-smi", "#!/bin/sh\nexit 9\n")  # fails as if there were no driver

    def command(self, entries, *arguments):
        (self.root / "list.json").write_text(json.dumps(entries))
        return [sys.executable, SCRIPT, "list.json", "--root", self.root, *arguments]

    def environment(self):
        return os.environ | {"PATH": f"{self.root / 'tools'}:/usr/bin:/bin"}

    def lines(self, output="lines.jsonl"):
        self.facts, *lines = [json.loads(line) for line in (self.root / output).read_text().splitlines()]
        return lines

    def run_list(self, entries, *arguments, expect, limit_s=60):
        """Returns the lines of the checks; leaves the facts in self.facts."""
        done = subprocess.run(self.command(entries, "--output", "lines.jsonl", *arguments), cwd=self.root,
                              env=self.environment(), capture_output=True, text=True, timeout=limit_s,
                              stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        self.printed = done.stdout
        return self.lines()

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
            # This check reads the lines that the checks before it left on disk.
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
        rows = [{"step": i, "loss": 9.0 - i, "seconds": 1.0, "tokens_per_second": 100.0 * i, "mfu": None,
                 "arena_bytes": 7} for i in range(1, 9)]
        text = "\\n".join(json.dumps(row) for row in rows)
        lines = self.run_list([shell("trains", f"printf '{text}\\n' > {{work}}/metrics.jsonl")], expect=0)
        self.assertEqual(lines[0]["metrics"], {"steps": 8, "counted_steps": 4, "first_loss": 8.0, "last_loss": 1.0,
                                               "seconds": 1.0, "foreseen_seconds": None, "tokens_per_second": 650.0, "mfu": None,
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
        # A program that cannot use an existing GPU has failed.
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

    def test_all_but_the_excepted(self):
        for name in ("b_test", "a_test"):
            self.executable(f"tests/{name}", "#!/bin/sh\n")
        entry = {"stage": "ops", "name": "all", "each": "tests/*_test", "except": ["a_test"], "command": ["{file}"],
                 "limit_s": 20}
        self.assertEqual([line["name"] for line in self.run_list([entry], expect=0)], ["b_test"])

    def test_what_a_check_needs_beside_files(self):
        self.executable("tools/sanitizer", "#!/bin/sh\n")
        lines = self.run_list([shell("there", "sanitizer", needs=["program sanitizer", "module json"]),
                               shell("no program", "true", needs=["program no-such-program"]),
                               shell("no module", "true", needs=["module no_such_module"])], expect=0)
        self.assertEqual([line["status"] for line in lines], ["passed", "skipped", "skipped"])
        self.assertIn("no-such-program is neither in PATH", lines[1]["reason"])
        self.assertEqual(lines[2]["reason"], "python3 has no module no_such_module")

    def test_a_check_finds_what_an_earlier_one_kept(self):
        self.run_list([shell("writes", "echo choice > {kept}/choices"), shell("reads", "grep choice {kept}/choices")],
                      expect=0)

    def test_the_gpu_is_watched_meanwhile(self):
        self.with_a_gpu()
        watched, other = self.run_list([shell("watched", "sleep 0.5", watch=True), shell("other", "true")], expect=0)
        self.assertEqual(watched["gpu"], {
            "samples": 2, "clocks.sm": {"min": 1830, "median": 1905, "max": 1980},
            "clocks.mem": {"min": 3201, "median": 3201, "max": 3201},
            "temperature.gpu": {"min": 61, "median": 62, "max": 63}, "utilization.gpu": {"min": 99, "median": 99, "max": 99},
            "clocks_held_by": ["power cap", "thermal (software)"]})
        self.assertNotIn("gpu", other)
        self.assertIn("1905 MHz (power cap, thermal (software))", self.printed)
        # An nvidia-smi that fails gives no summary and does no harm.
        self.executable("tools/nvidia-smi", "#!/bin/sh\nexit 9\n")
        self.assertNotIn("gpu", self.run_list([shell("watched", "true", watch=True)], expect=0)[0])

    def test_a_killed_command_leaves_what_there_was(self):
        process = subprocess.Popen(
            self.command([shell("done", "true"),
                          shell("under way", "echo '{\"case\": 1}'; echo $$ > {root}/new; mv {root}/new {root}/begun; sleep 1000")]),
            cwd=self.root, env=self.environment() | {"OUT": str(self.root)}, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 30
        while not (self.root / "begun").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        process.kill()
        process.wait()
        os.killpg(int((self.root / "begun").read_text()), signal.SIGKILL)
        self.assertEqual([line["name"] for line in self.lines("gpu-check.jsonl")], ["done"])
        self.assertEqual((self.root / "gpu-check.jsonl.log").read_text(),
                         '== ops/done\n== ops/under way\n{"case": 1}\n')


class Lists(unittest.TestCase):
    """Checks the lists of the bundle."""

    def read(self, name):
        return json.loads((ROOT / f"scripts/{name}.json").read_text())

    def gpu_tests(self):
        """Returns the names of the programs tests/gpu_*_test that the CMake files define."""
        text = "".join(path.read_text() for path in ROOT.glob("*/**/CMakeLists.txt") if "build" not in path.parts[-3:])
        operations = re.search(r"set\(cuda_tested_operations ([^)]*)\)", text)[1].split()
        return {f"gpu_{operation}_test" for operation in operations} | set(
            re.findall(r"strata_gpu_test\((gpu_\w+_test)", text))

    def test_they_are_complete(self):
        bundled = (ROOT / "scripts/bundle.py").read_text()
        for name in LISTS:
            self.assertIn(f'"scripts/{name}.json"', bundled)
            for entry in self.read(name):
                self.assertTrue(entry["stage"] and entry["name"] and entry["command"])
                for word in entry["command"]:
                    if word.startswith("{root}/") and not word.startswith(("{root}/bin", "{root}/tests/gpu_")):
                        self.assertTrue((ROOT / word.removeprefix("{root}/")).exists(), word)

    def test_limits_fit_the_limit_of_the_command(self):
        facts_s = 15  # spent before the first check begins
        tests = self.gpu_tests()
        self.assertGreater(len(tests), 15)
        for name in LISTS:
            total = 0
            for entry in self.read(name):
                self.assertGreater(entry["limit_s"], 0)
                files = len(tests - set(entry["except"])) if "each" in entry else 1
                total += files * entry["limit_s"]
            self.assertLessEqual(total + facts_s, LIMIT_S, name)

    def test_every_gpu_test_is_run(self):
        named = {word.rpartition("/")[2] for name in ("gpu_check", "gpu_check_more") for entry in self.read(name)
                 for word in entry["command"]}
        for entry in self.read("gpu_check"):
            for name in entry.get("except", []):
                self.assertIn(name, named)

    def test_rows_count_steps_that_are_warm(self):
        rows = [entry for name in ("gpu_bench", "gpu_bench_more") for entry in self.read(name)
                if entry["command"][0] == "bin/train"]
        models = [row["command"][row["command"].index("--model") + 1] for row in rows]
        self.assertEqual(models[:4], ["qwen2.5-3b", "qwen2.5-7b", "qwen2.5-1.5b", "qwen2.5-0.5b"])
        for row in rows:
            self.assertGreaterEqual(int(row["command"][row["command"].index("--steps") + 1]), 6)
            self.assertIn("{kept}/strata_choices.json", row["command"])
            self.assertTrue(row["watch"])
        self.assertEqual(rows[1]["command"][rows[1]["command"].index("--micro-batch") + 1], "8")


if __name__ == "__main__":
    unittest.main()
