"""Tests that every test which scripts/rota runs is one of this build: a part takes its turn long after a test was renamed."""
import json
import os
import pathlib
import re
import subprocess
import unittest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]


def tests_of_rota(script):
    """Returns the names of the tests that `test_preset` and `ctest -R` are called with."""
    joined = script.replace("\\\n", " ")
    names = {word for line in re.findall(r"^ +test_preset \w+ (.*)$", joined, re.MULTILINE) for word in line.split()}
    for prefix, choices, suffix in re.findall(r"-R '\^(\w+)\(([\w|]+)\)(\w+)\$'", joined):
        names |= {prefix + choice + suffix for choice in choices.split("|")}
    return names


class Rota(unittest.TestCase):
    def test_names_are_found(self):
        self.assertEqual(tests_of_rota("  test_preset asan a_test \\\n    b_test\n  ctest \\\n    -R '^p_(c|d)_test$'\n"),
                         {"a_test", "b_test", "p_c_test", "p_d_test"})

    def test_every_test_of_a_part_exists(self):
        build = pathlib.Path(os.environ["STRATA_BIN"]).parent
        listed = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], check=True, capture_output=True, text=True)
        known = {test["name"] for test in json.loads(listed.stdout)["tests"]}
        self.assertEqual(sorted(tests_of_rota((REPOSITORY / "scripts" / "rota").read_text()) - known), [])


if __name__ == "__main__":
    unittest.main()
