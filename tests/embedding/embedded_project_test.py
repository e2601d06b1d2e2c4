#!/usr/bin/env python3
"""A project that uses this one with add_subdirectory: configures all of it, builds what a small program needs, and runs that."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(*command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=280)
    if done.returncode != 0:
        raise AssertionError(f"{command} ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


class Embedding(unittest.TestCase):
    def test_an_outside_project_builds(self):
        with tempfile.TemporaryDirectory(prefix="strata-outside-") as folder:
            build = pathlib.Path(folder)
            # The outside project has code that warns under this project's flags, so -Wall or -Werror of ours would show.
            run("cmake", "-S", ROOT / "tests/embedding/outside", "-B", build, "-G", "Ninja", f"-DSTRATA={ROOT}",
                "-DCMAKE_BUILD_TYPE=Debug", "-DSTRATA_CUDA=OFF", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON")
            commands = json.loads((build / "compile_commands.json").read_text())
            self.assertFalse([c["file"] for c in commands if "-Werror" in c["command"] or "-Wall" in c["command"]])
            names = {pathlib.Path(c["file"]).name for c in commands}
            self.assertIn("engine.cpp", names)
            self.assertFalse([n for n in names if n.endswith(("_test.cpp", "_bench.cpp", "_main.cpp", "_fuzz.cpp"))])
            run("cmake", "--build", build)
            self.assertEqual(run(build / "train"), "layers 2\n")


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
