"""The tables of docs/memory.md say what the programs say."""
import subprocess
import sys
import unittest

from programs import BIN

ROOT = __file__.rsplit("/tests/", 1)[0]


class MemoryDocs(unittest.TestCase):
    def test_the_tables_are_what_the_programs_say(self):
        done = subprocess.run([sys.executable, f"{ROOT}/scripts/memory_tables.py", "--bin", str(BIN)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, f"run scripts/memory_tables.py --write, and read what changed:\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    unittest.main(verbosity=2)
