"""The tables of docs/memory.md say what the programs say, and the plans of docs/workstation.md can be made. Rows of the largest models, which take
minutes, are a part of scripts/rota."""
import pathlib
import shlex
import subprocess
import sys
import tempfile
import unittest

from programs import BIN

ROOT = __file__.rsplit("/tests/", 1)[0]


class MemoryDocs(unittest.TestCase):
    def test_the_tables_are_what_the_programs_say(self):
        done = subprocess.run([sys.executable, f"{ROOT}/scripts/memory_tables.py", "--bin", str(BIN), "--skip", "70b|405b"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, f"run scripts/memory_tables.py --write, and read what changed:\n{done.stdout}{done.stderr}")

    def test_the_plans_of_the_tutorial_can_be_made(self):
        lines = [line.strip() for line in pathlib.Path(ROOT, "docs/workstation.md").read_text().splitlines() if line.startswith("    plan --")]
        self.assertGreaterEqual(len(lines), 6)
        with tempfile.TemporaryDirectory() as folder:
            for line in lines:
                done = subprocess.run([str(BIN / "plan"), *shlex.split(line)[1:]], capture_output=True, text=True, cwd=folder)
                self.assertEqual(done.returncode, 0, f"{line}\n{done.stdout}{done.stderr}")
                self.assertIn("is foreseen to take", done.stdout)
            self.assertTrue(pathlib.Path(folder, "report/report.html").exists() and pathlib.Path(folder, "ds_planned.json").exists())


if __name__ == "__main__":
    unittest.main(verbosity=2)
