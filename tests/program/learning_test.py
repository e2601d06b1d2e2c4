"""Eight ranks learn the bundled text on whatever cores there are, and their output can be used."""
import pathlib
import unittest

from programs import BIN, ProgramTest, mlaunch, train

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]


class Learning(ProgramTest):
    def test_eight_ranks_learn_the_bundled_text(self):
        self.run_program(mlaunch(8, "--zero", "3", "--steps", "100", "--micro-batch", "1",
                                 "--sequence-length", "64", "--learning-rate", "0.003",
                                 "--metrics", "metrics", "--eval-every", "50"))
        lines = self.metrics("metrics")
        losses = [line["loss"] for line in lines if "loss" in line]
        held_out = [line["eval_loss"] for line in lines if "eval_loss" in line]
        self.assertEqual(len(losses), 100)
        self.assertGreater(losses[0], 5.2)  # ln 256 = 5.55: nothing has been learned
        self.assertLess(sum(losses[-10:]) / 10, 3.4)  # a bound for this text
        self.assertEqual(len(held_out), 2)
        self.assertLess(held_out[1], held_out[0])
        for key in ["learning_rate", "grad_norm", "seconds", "foreseen_seconds", "tokens_per_second", "arena_bytes",
                    "peak_rss_bytes"]:
            self.assertGreater(lines[0][key], 0, key)

    def test_output_generates_and_trains_on(self):
        job = ["--sequence-length", "32", "--learning-rate", "0.003", "--metrics", "metrics",
               "--data", REPOSITORY / "docs/operations.md"]
        done = self.run_program(mlaunch(2, *job, "--zero", "3", "--steps", "40", "--save-every", "20",
                                        "--output", "out"))
        self.assertIn("wrote out/step-00000040", done.stdout)
        self.assertTrue((self.home / "out/step-00000020/model.safetensors").is_file())
        self.assertEqual((self.home / "out/latest").readlink().name, "step-00000040")
        last = self.step_metrics("metrics")[-1]["loss"]
        for model in ["out", "out/latest", "out/step-00000040"]:
            sample = self.run_program([str(BIN / "generate"), "--model", model, "--prompt", "The g",
                                       "--tokens", "8", "--temperature", "0"]).stdout
            self.assertTrue(sample.startswith("The g"), sample)
            self.assertGreaterEqual(len(sample), 5 + 8)
        # A run of another world and stage goes on from these weights.
        self.run_program(train(*job, "--zero", "0", "--steps", "5", "--model", "out",
                               "--output", "more"))
        self.assertLess(self.step_metrics("metrics")[0]["loss"], last + 0.5)
        self.assertEqual(self.read("out/latest/config.json"), self.read("more/latest/config.json"))


if __name__ == "__main__":
    unittest.main()
