"""Runs the examples as their READMEs say."""
import json
import os
import pathlib
import unittest

from programs import BIN, LIMIT_S, ProgramTest

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
os.environ["STRATA_BIN"] = str(BIN.resolve())


class Examples(ProgramTest):
    def run_example(self, folder, *arguments):
        return self.run_program([str(EXAMPLES / folder / "run.sh"), *map(str, arguments)], limit_s=LIMIT_S)

    def count_gathers(self, trace):
        events = json.loads(self.read(trace))["traceEvents"]
        return sum(event["ph"] == "X" and event["name"].startswith("gather ") for event in events)

    def test_a_book_is_learned_from_shards(self):
        done = self.run_example("00_learn_a_book", self.home / "out", "--steps", "4", "--warmup-steps", "0",
                                "--trace", self.home / "trace")
        self.assertGreaterEqual(self.count_gathers("trace"), 4 * 4)  # four layers' matrices, at least once a step
        losses = [line["loss"] for line in self.step_metrics("out.jsonl")]
        self.assertEqual(len(losses), 4)
        self.assertLess(losses[-1], losses[0])
        self.assertIn("  Alice ", done.stdout.split("a sample from")[1])

    def test_the_engine_runs_in_a_program(self):
        done = self.run_program([str(BIN / "example_engine")])
        losses = [float(line.split()[3]) for line in done.stdout.splitlines() if line.startswith("step ")]
        self.assertEqual(len(losses), 30)
        self.assertGreater(losses[0], 5)
        self.assertLess(losses[-1], losses[0] - 0.5)

    def test_a_session_is_held_by_a_program(self):
        flags = ["--steps", "6", "--sequence-length", "32", "--output", "out", "--threads", "1"]
        held = [line.split() for line in self.run_program([str(BIN / "example_session"), *flags]).stdout.splitlines()]
        self.assertEqual([line[:2] for line in held if line[0] == "step"], [["step", f"{i}/6"] for i in range(1, 7)])
        self.assertEqual([line for line in held if line[0] != "step"], [["saved", "out/step-00000006"]])
        self.run_program([str(BIN / "train"), *flags[:-4], "--threads", "1", "--metrics", "alone.jsonl"])
        self.assertEqual([float(line[3]) for line in held if line[0] == "step"],
                         [round(line["loss"], 6) for line in self.step_metrics("alone.jsonl")])
        stopped = self.run_program([str(BIN / "example_session"), *flags[2:-4], "--steps", "100000", "--output", "cut",
                                    "--threads", "1"], expect=75)
        self.assertIn("saved cut/step-00000202", stopped.stdout)
        refused = self.run_program([str(BIN / "example_session"), *flags, "--resume", "never"], expect=2)
        self.assertIn("out has checkpoints", refused.stderr)

    def test_a_program_plans(self):
        done = self.run_program([str(BIN / "example_plan"), "llama-3.2-1b", "rtx4090", "16GB", "1500MB"])
        self.assertRegex(done.stdout, r"(?m)^target memory 16GB \(balanced\): --.*\n  it needs .* GiB of the device\b")
        self.assertRegex(done.stdout, r"(?m)^nothing fits; the least that works is --target-memory [\d.]+MB")
        self.assertIn("'h1000' is not known", self.run_program([str(BIN / "example_plan"), "llama-tiny", "h1000", "1GB"], expect=78).stderr)

    def test_a_model_of_ones_own_goes_on_from_its_checkpoint(self):
        done = self.run_example("04_your_own_model", self.home / "out")
        losses = [line["loss"] for line in self.step_metrics("out.jsonl")]
        self.assertEqual(len(losses), 20)
        self.assertLess(losses[-1], losses[0] - 1)
        self.assertEqual([line["loss"] for line in self.step_metrics("out-again.jsonl")], losses[10:])
        self.assertTrue(done.stdout.split("== a sample\n")[1].startswith("Alice"))
        self.assertIn("whole", self.run_program([str(BIN / "inspect"), "verify", "out/step-00000010"]).stdout)
        config = json.loads(self.read("out/latest/config.json"))
        self.assertEqual((config["model_type"], config["intermediate_size"]), ("byte_pairs", 256))
        self.assertIn("unknown model type 'byte_pairs'", self.run_program(
            [str(BIN / "generate"), "--model", "out", "--tokens", "1"], expect=78).stderr)

    def test_eight_ranks_keep_an_eighth(self):
        self.run_example("02_zero3_on_eight_ranks", self.home / "out")
        self.assertGreater(self.count_gathers("out.trace.json"), 100)
        self.assertLess(self.step_metrics("out.jsonl")[-1]["loss"], 3.2)
        self.assertTrue((self.home / "out/latest/model.safetensors").is_file())

    def test_a_deepspeed_json_runs(self):
        done = self.run_example("03_existing_deepspeed_json")
        self.assertIn("ds_config.json", done.stdout)
        self.assertRegex(done.stdout, r"step +20/20")


if __name__ == "__main__":
    unittest.main()
