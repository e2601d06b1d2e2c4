"""The tables of docs/memory.md say what the programs say, and the plans of docs/workstation.md can be made. Rows of the largest models, which take
minutes, are a part of scripts/rota."""
import pathlib
import re
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

    def test_a_process_takes_beside_its_arenas_what_is_said(self):
        told = {}
        for page, words in (("memory", r"counts (\d+) MiB of a process beside its arenas and (\d+) MiB for each of its threads \(.*?\), (\d+) MiB more with "
                                       r"`--output`, and (\d+) MiB more with `--trace`"),
                            ("foresight", r"or (\d+) MiB of a process and (\d+) MiB for each of its threads \((\d+) MiB more with `--output`, (\d+) MiB with `--trace`;")):
            told[page] = [int(number) for number in re.search(words, pathlib.Path(ROOT, f"docs/{page}.md").read_text()).groups()]
        run, thread, saving, tracing = told["memory"]
        self.assertEqual(told["foresight"], told["memory"])
        many, busy = (int(number) for number in re.search(r"of more than ten: (\d+) MiB, and (\d+) MiB for each", pathlib.Path(ROOT, "docs/memory.md").read_text()).groups())
        with tempfile.TemporaryDirectory() as folder:
            for threads, flags, more in ((1, [], 0), (3, [], 0), (16, [], many - run + 16 * (busy - thread)), (1, ["--output", "out"], saving), (1, ["--trace", "trace.json"], tracing)):
                done = subprocess.run([str(BIN / "train"), "--model", "gpt2-tiny", "--device", "cpu", "--steps", "0", "--print-plan", "--target-memory", "400MB",
                                       "--threads", str(threads), *flags], capture_output=True, text=True, cwd=folder)
                beside = re.search(r"[(; ]([\d.]+) MiB of it beside its arenas;", done.stdout)
                self.assertTrue(beside, done.stdout + done.stderr)
                self.assertAlmostEqual(float(beside[1]), run + threads * thread + more, delta=0.5)

    def test_the_plans_of_the_tutorial_can_be_made(self):
        lines = [line.strip() for line in pathlib.Path(ROOT, "docs/workstation.md").read_text().splitlines() if line.startswith("    plan --")]
        self.assertGreaterEqual(len(lines), 6)
        with tempfile.TemporaryDirectory() as folder:
            for line in lines:
                done = subprocess.run([str(BIN / "plan"), *shlex.split(line)[1:]], capture_output=True, text=True, cwd=folder)
                self.assertEqual(done.returncode, 0, f"{line}\n{done.stdout}{done.stderr}")
                self.assertIn("is foreseen to take", done.stdout)
            self.assertTrue(pathlib.Path(folder, "report/report.html").exists() and pathlib.Path(folder, "ds_planned.json").exists())

    def test_the_run_of_the_tutorial_goes_on_when_it_is_typed_again(self):
        [line] = [line.strip() for line in pathlib.Path(ROOT, "docs/workstation.md").read_text().splitlines()
                  if line.startswith("    train --") and "--target-memory" in line]
        words = shlex.split(line)[1:]
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "corpus.txt").write_text("The same command goes on. " * 400)
            small = {"--model": "gpt2-tiny", "--sequence-length": "16", "--target-memory": "400MB"}
            for at, word in enumerate(words[:-1]):
                words[at + 1] = small.get(word, words[at + 1])
            for steps in ("2", "4"):
                done = subprocess.run([str(BIN / "train"), *words, "--device", "cpu", "--threads", "1", "--tokenizer", "bytes", "--steps", steps],
                                      capture_output=True, text=True, cwd=folder)
                self.assertEqual(done.returncode, 0, f"{line}\n{done.stdout}{done.stderr}")
            self.assertTrue(pathlib.Path(folder, "out/tuned/step-00000004").exists())


if __name__ == "__main__":
    unittest.main(verbosity=2)
