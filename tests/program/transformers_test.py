"""transformers loads every checkpoint of a run with the bits that it holds, and computes the logits that Strata computes from it.
Needs torch and transformers, in this Python or in the environment that STRATA_PEERS names."""
import array
import json
import os
import pathlib
import random
import subprocess
import sys
import unittest

from programs import BIN, ProgramTest, missing_packages, mlaunch, train

LOOK = str(pathlib.Path(__file__).with_name("loaded_in_transformers.py"))
GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden"
PEERS = os.environ.get("STRATA_PEERS")
PYTHON = str(pathlib.Path(PEERS, "bin/python")) if PEERS else sys.executable
SKIPPED = 77
TOLERANCE = 1e-5
# There is a model per family; the last one comes in several files with an index.
MODELS = ["gpt2", "llama", "llama3", "llama-yarn", "mistral", "qwen2", "qwen3", "llama-sharded"]
VOCABULARY = 96


class LoadsInTransformers(ProgramTest):
    def setUp(self):
        super().setUp()
        draw = random.Random(1)
        self.write("tokens.bin", array.array("H", [draw.randrange(VOCABULARY) for _ in range(4000)]).tobytes())

    def job(self, model, *arguments):
        return ["--device", "cpu", "--threads", 1, "--sequence-length", 16, "--data", "tokens.bin", "--model",
                GOLDEN / model, "--save-every", 1, "--async-save", "false", "--learning-rate", "3e-3", *arguments]

    def look_at(self, pairs):
        words = [str(word) for pair in pairs for word in pair]
        done = subprocess.run([PYTHON, LOOK, *words], cwd=self.home, env=os.environ | {"OMP_NUM_THREADS": "1"}, text=True,
                              capture_output=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]

    def logits(self, checkpoint, model):
        reference = GOLDEN / ("llama" if model == "llama-sharded" else model) / "golden.safetensors"
        output = pathlib.Path(str(checkpoint) + ".logits.safetensors")
        self.run_program([str(BIN.parent / "tests/write_logits"), str(checkpoint), str(reference), str(output)])
        return output

    def test_every_family_at_every_step(self):
        """Takes two steps on two ranks that own parts of tensors, and two more on one rank that resumes."""
        pairs = []
        for model in MODELS:
            self.run_program(mlaunch(2, *self.job(model, "--micro-batch", 1, "--zero", 3, "--steps", 2, "--output", model)))
            self.run_program(train(*self.job(model, "--micro-batch", 2, "--steps", 4, "--output", model,
                                             "--resume", "required")))
            checkpoints = sorted((self.home / model).glob("step-*"))
            self.assertEqual([path.name for path in checkpoints], [f"step-{step:08d}" for step in range(1, 5)])
            pairs += [(path, self.logits(path, model)) for path in checkpoints]
        found = self.look_at(pairs)
        self.assertEqual(len(found), len(pairs))
        for one in found:
            print(f"{pathlib.Path(one['directory']).relative_to(self.home)}: {one['tensors']} tensors the same, "
                  f"logits {one['logits']:.1e}", flush=True)
            self.assertEqual(one["differ"], [])
            self.assertEqual(one["tensors"], one["held"])
            self.assertLess(one["logits"], TOLERANCE)
        # Steps differ, so a comparison with another step's logits fails.
        crossed = self.look_at([(pairs[0][0], pairs[3][1])])
        self.assertGreater(crossed[0]["logits"], 100 * TOLERANCE)

    def test_16_bit_weights(self):
        pairs = []
        for dtype in ("bf16", "fp16"):
            self.run_program(mlaunch(2, *self.job("llama", "--micro-batch", 1, "--zero", 2, "--steps", 2, "--dtype", dtype,
                                                  "--output", dtype)))
            pairs += [(path, "-") for path in sorted((self.home / dtype).glob("step-*"))]
        found = self.look_at(pairs)
        self.assertEqual(len(found), 4)
        for one in found:
            self.assertEqual((one["differ"], one["tensors"]), ([], one["held"]))


if __name__ == "__main__":
    missing = missing_packages(PYTHON, ["torch", "transformers", "safetensors"])
    if missing:
        print(f"skipped: {PYTHON} lacks {', '.join(missing)}; STRATA_PEERS names an environment that has them "
              "(`scripts/dev rota peers` makes one)")
        sys.exit(1 if PEERS else SKIPPED)
    unittest.main()
