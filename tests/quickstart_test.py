#!/usr/bin/env python3
"""`scripts/dev quickstart` builds three programs on a machine without a GPU, and no test, benchmark or CUDA kernel."""
import json
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent


def run(*command):
    done = subprocess.run(list(map(str, command)), cwd=ROOT, capture_output=True, text=True, timeout=250)
    if done.returncode != 0:
        raise AssertionError(f"{command} ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


class Quickstart(unittest.TestCase):
    def test_builds_only_what_it_runs(self):
        presets = json.loads((ROOT / "CMakePresets.json").read_text())["buildPresets"]
        (targets,) = [preset["targets"] for preset in presets if preset["name"] == "quickstart"]
        self.assertEqual(sorted(targets), ["generate", "mlaunch", "train"])
        (cuda,) = set(re.findall(r"cuda=(\w+)$", (ROOT / "scripts/dev").read_text(), re.M))
        with tempfile.TemporaryDirectory(prefix="strata-quickstart-") as build:
            run("cmake", "--preset", "quickstart", "-B", build, f"-DSTRATA_CUDA={cuda}")
            commands = run("ninja", "-C", build, "-t", "commands", *targets)
            sources = [pathlib.Path(name) for name in re.findall(r" -c (\S+)", commands)]
            unities = [source for source in sources if source.name.startswith("unity_")]  # files that include a dozen others
            for unity in unities:
                sources += map(pathlib.Path, re.findall(r'#include "(.*)"', unity.read_text()))
        self.assertTrue(unities)
        self.assertIn("training_run.cpp", {source.name for source in sources})
        self.assertFalse([s for s in sources if s.suffix == ".cu" or re.search(r"_(test|bench|fuzz)\.cpp$", s.name)
                          or "testing" in s.parts])


if __name__ == "__main__":
    unittest.main()
