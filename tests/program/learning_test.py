"""Eight ranks learn the bundled text on whatever cores there are, and their output can be used."""
import pathlib
import random
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


class Sampling(ProgramTest):
    def learn(self, text):
        self.write("text", text)
        self.run_program(train("--data", "text", "--sequence-length", "32", "--micro-batch", "8", "--steps", "200",
                               "--learning-rate", "0.003", "--threads", "1", "--output", "out"))

    def sample(self, tokens, *options):
        """Returns what follows the prompt `ab`."""
        said = self.run_program([str(BIN / "generate"), "--model", "out", "--prompt", "ab", "--tokens", str(tokens),
                                 "--threads", "1", *options]).stdout
        self.assertTrue(said.startswith("ab"), said)
        return said.rstrip("\n")[2:]

    def test_letters_come_as_often_as_model_and_temperature_say(self):
        self.learn("".join(random.Random(1).choices("ab", (3, 1), k=20000)))
        greedy, half, whole = (self.sample(1000, "--temperature", temperature, "--sequence-length", "4", "--seed", "7")
                               for temperature in ("0", "0.5", "1"))
        self.assertEqual(greedy, "a" * 1000)
        odds = whole.count("a") / whole.count("b")
        self.assertTrue(2.2 < odds < 4.2, odds)
        for sample, expected in ((whole, odds), (half, odds**2)):
            self.assertEqual(set(sample), {"a", "b"})
            after_b = [after for before, after in zip(sample, sample[1:]) if before == "b"]
            for letters in (sample, after_b):  # no draw depends on the one before
                self.assertAlmostEqual(letters.count("a") / len(letters), expected / (1 + expected), delta=0.06)

    def test_a_seed_has_a_text_of_its_own(self):
        self.learn("abcdefgh" * 2000)
        first, again, other = (self.sample(40, "--temperature", "100", "--seed", seed) for seed in ("7", "7", "8"))
        self.assertEqual(first, again)
        self.assertNotEqual(first, other)

    def test_the_last_tokens_count_where_the_context_is_short(self):
        self.learn("abc" * 5000)
        self.assertEqual(self.sample(9, "--temperature", "0", "--sequence-length", "1"), "cabcabcab")


if __name__ == "__main__":
    unittest.main()
