"""Directories as transformers saves them have the tokens, first loss and output contents of transformers, and texts read in pieces have
the tokens of whole texts. Needs transformers, torch, sentencepiece and jinja2, in this Python or in the environment that
STRATA_PEERS names."""
import array
import json
import os
import pathlib
import subprocess
import sys
import unittest

from programs import ProgramTest, missing_packages, train

HERE = pathlib.Path(__file__).resolve().parent
PEERS = os.environ.get("STRATA_PEERS")
PYTHON = str(pathlib.Path(PEERS, "bin/python")) if PEERS else sys.executable
NEEDED = ["torch", "transformers", "sentencepiece", "jinja2"]
SKIPPED = 77
TEXT = ("Hear me, don't stop: 123456 people came in 1987 to the towns' old walls.\n"
        "  Zürich, naïve café, 東京 😀 <|endoftext|> e\u0301 (x = y_0 + 3.14);\r\n\n\n\tAn end\nof lines.\n") * 40
JOB = ["--device", "cpu", "--dtype", "fp32", "--threads", 1, "--steps", 1, "--micro-batch", 1, "--sequence-length", 32, "--shuffle",
       "false"]


def run_python(script, *arguments, limit_s=600):
    done = subprocess.run([PYTHON, HERE / script, *map(str, arguments)], text=True, capture_output=True, timeout=limit_s,
                          env=os.environ | {"OMP_NUM_THREADS": "1"})
    if done.returncode != 0:
        raise AssertionError(done.stdout[-2000:] + done.stderr[-4000:])
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


class ModelDirectories(ProgramTest):
    def tokens(self, cache):
        ids = array.array("H")
        for file in sorted((self.home / cache).glob("*.bin")):
            ids.frombytes(file.read_bytes()[1024:])
        return list(ids)

    def test_as_transformers_saves_them(self):
        text = self.write("text.txt", TEXT)
        made = run_python("make_model_directories.py", "make", self.home / "models", text)
        self.assertEqual(len(made), 30)
        path, os.environ["PATH"] = os.environ["PATH"], str(pathlib.Path(PYTHON).parent) + ":" + os.environ["PATH"]
        self.addCleanup(os.environ.__setitem__, "PATH", path)
        outputs = []
        for model in made:
            name = pathlib.Path(model["directory"]).name
            with self.subTest(model=name):
                self.run_program(train(*JOB, "--model", model["directory"], "--data", "text.txt", "--output", f"out/{name}",
                                       "--metrics", f"{name}.jsonl", "--token-cache", f"cache/{name}"))
                outputs.append(self.home / f"out/{name}/latest")
                self.assertEqual(self.tokens(f"cache/{name}"), model["ids"])
                self.assertAlmostEqual(self.step_metrics(f"{name}.jsonl")[0]["loss"], model["loss"], delta=1e-5)
                for file in pathlib.Path(model["directory"]).rglob("*"):
                    if file.is_file() and file.name != "config.json" and not file.name.startswith("model"):
                        copy = outputs[-1] / file.relative_to(model["directory"])
                        self.assertEqual(copy.read_bytes(), file.read_bytes(), copy)
        found = run_python("make_model_directories.py", "look", *[word for output in outputs for word in (output, text)])
        for model, output in zip(made, found):
            with self.subTest(model=output["directory"]):
                for key in ("ids", "chat", "tools"):
                    self.assertEqual(output[key], model[key])
        self.assertGreater(sum(model["chat"] is not None for model in made), 15)
        self.assertGreater(sum(model["tools"] is not None for model in made), 4)


class Pieces(ProgramTest):
    def test_texts_in_pieces_have_the_tokens_of_the_whole(self):
        found = run_python("tokens_in_pieces.py", self.home)
        self.assertGreater(len(found), 40)
        for one in found:
            print(one)
            self.assertTrue(one["same"], one)
        self.assertGreater(sum(one["pieces"] > 10 for one in found), len(found) / 2)


if __name__ == "__main__":
    missing = missing_packages(PYTHON, NEEDED)
    if missing:
        print(f"skipped: {PYTHON} lacks {', '.join(missing)}; STRATA_PEERS names an environment that has them "
              "(`scripts/dev rota peers` makes one)")
        sys.exit(1 if PEERS else SKIPPED)
    unittest.main()
