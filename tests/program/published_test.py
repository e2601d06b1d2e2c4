"""Published DeepSpeed files and command lines are treated as docs/configuration.md says: accepted ones run two steps on two ranks,
others are refused with what to change.

published/files.json and published/commands.json hold them as keys and values. In commands MODEL, DATA, EVAL, OUT and
DS stand for a folder with weights, text files, a new folder and a DeepSpeed JSON; "|" stands for a space inside a word."""
import json
import pathlib
import unittest

from programs import ProgramTest, mlaunch, train

USAGE, CONFIGURATION = 2, 78
TABLES = pathlib.Path(__file__).parent / "published"
# These flags make any of them quick: two steps, however long it was to train.
SHORT = ["--max_steps", "2", "--threads", "1"]
SMALL = ["--sequence-length", "16", *SHORT]
# These flags answer what "auto" in a file leaves open.
ANSWERS = ["--per_device_train_batch_size", "2", "--learning_rate", "1e-4"]


def rows(name):
    return json.loads((TABLES / name).read_text())


def normal(flag):
    return "--" + flag.lstrip("-").split("=")[0].replace("-", "_")


def without(words, flags):
    """Returns the command line without these flags and the words that follow each."""
    kept, dropping = [], False
    for word in words:
        if word.startswith("--"):
            dropping = normal(word) in flags
        if not dropping:
            kept.append(word)
    return kept


class Published(ProgramTest):
    def setUp(self):
        super().setUp()
        self.write("data.txt", "All that is gold does not glitter, not all those who wander are lost.\n" * 200)
        self.write("eval.txt", "The old that is strong does not wither.\n" * 60)
        self.write("ds.json", json.dumps(next(row["config"] for row in rows("files.json"))))

    def runs(self, arguments, ranks=2):
        done = self.run_program(mlaunch(ranks, *arguments))
        self.assertRegex(done.stdout, r"step 2/2\b")
        return done

    def refused(self, code, parts, arguments):
        done = self.run_program(train(*arguments), expect=code)
        for part in parts:
            self.assertIn(part, done.stderr)
        self.assertNotIn("step 1/", done.stdout)
        return done

    def test_files(self):
        for row in rows("files.json"):
            with self.subTest(name=row["name"]):
                self.write("file.json", json.dumps(row["config"]))
                arguments = ["--deepspeed", "file.json", *SMALL]
                text = json.dumps(row["config"])
                if '"auto"' in text:
                    arguments += ANSWERS
                if '"train_micro_batch_size_per_gpu"' not in text and '"train_batch_size"' not in text:
                    arguments += ANSWERS[:2]
                arguments += row.get("flags", [])
                if "refused" in row:
                    self.refused(CONFIGURATION, row["refused"], arguments)
                else:
                    self.runs(arguments, row.get("ranks", 2))

    def test_commands(self):
        self.run_program(train("--steps", "1", "--sequence-length", "16", "--micro-batch", "1", "--output", "made"))
        for number, row in enumerate(rows("commands.json")):
            with self.subTest(name=row["name"]):
                names = {"MODEL": "made/latest", "DATA": "data.txt", "EVAL": "eval.txt", "OUT": f"out{number}",
                         "DS": "ds.json"}
                words = [names.get(word, word.replace("|", " ")) for word in row["flags"].split()]
                refused = row.get("refused", {})
                if refused:
                    said = self.refused(USAGE, refused.values(), words).stderr
                    for flag in refused:  # all are named at once
                        self.assertIn(flag, said)
                    words = without(words, refused)
                if "--train_file" not in words and "--data" not in words:
                    words += ["--train_file", "data.txt"]
                self.runs([*words, *SHORT])

    def test_epochs_and_warm_up_follow_the_data(self):
        """Trains on 14,000 bytes, which are 218 samples of 64; a step takes 8 of them, so 28 steps are an epoch."""
        job = ["--train_file", "data.txt", "--block_size", "64", "--per_device_train_batch_size", "2",
               "--gradient_accumulation_steps", "2", "--threads", "1", "--metrics", "m"]
        size = (self.home / "data.txt").stat().st_size
        samples = (size - 1) // 64
        per_epoch = -(-samples // 8)
        done = self.run_program(mlaunch(2, *job, "--num_train_epochs", "1.5", "--warmup_ratio", "0.1",
                                        "--lr_scheduler_type", "linear", "--learning_rate", "1e-3"))
        steps = -(-3 * per_epoch // 2)
        warmup = -(-steps // 10)
        self.assertIn(f"1.5 epochs of {samples} samples, 8 per step: {steps} steps, {warmup} of them warm-up",
                      done.stdout)
        lines = self.step_metrics("m")
        self.assertEqual(len(lines), steps)
        rates = [line["learning_rate"] for line in lines]
        self.assertEqual(rates.index(max(rates)), warmup)
        self.assertAlmostEqual(rates[-1], 1e-3 / (steps - warmup), places=9)


class StoredModel(ProgramTest):
    """A folder with weights decides the type, and the defaults of fine-tuning."""

    JOB = ["--data", "data.txt", "--sequence-length", "64", "--micro-batch", "4", "--threads", "1"]

    def setUp(self):
        super().setUp()
        self.write("data.txt", "Not all those who wander are lost.\n" * 40)
        self.run_program(train("--steps", "1", "--sequence-length", "16", "--micro-batch", "1", "--dtype", "bf16",
                               "--output", "made"))

    def test_defaults_are_those_of_fine_tuning_and_are_printed(self):
        done = self.run_program(train(*self.JOB, "--model", "made/latest/", "--metrics", "m", "--print-config"))
        self.assertIn("defaults for a stored model: bf16 as stored, learning rate 2e-5, linear decay, 3 epochs, "
                      "--output latest-tuned", done.stdout)
        self.assertRegex(done.stdout, r"optimizer.learning_rate +2e-05 +default for a stored model")
        self.assertIn("3 epochs of 21 samples, 4 per step: 18 steps", done.stdout)
        self.assertEqual(json.loads(self.read("latest-tuned/latest/config.json"))["dtype"], "bfloat16")
        rates = [line["learning_rate"] for line in self.step_metrics("m")]
        self.assertEqual(len(rates), 18)
        self.assertAlmostEqual(rates[0], 2e-5)
        self.assertAlmostEqual(rates[-1], 2e-5 / 18)

    def test_going_on_keeps_them(self):
        job = [*self.JOB, "--model", "made/latest", "--output", "run", "--save-every", "4", "--async-save", "false"]
        whole = self.run_program(train(*job, "--metrics", "whole"))
        self.assertIn("18 steps", whole.stdout)
        for folder in (self.home / "run").glob("step-*"):
            if folder.name not in ("step-00000008",):
                for part in sorted(folder.rglob("*"), reverse=True):
                    part.unlink() if part.is_file() else part.rmdir()
                folder.rmdir()
        (self.home / "run/latest").unlink()
        resumed = self.run_program(train(*job, "--metrics", "again", "--resume", "required"))
        self.assertNotIn("which are kept", resumed.stdout)
        self.assertEqual([line["loss"] for line in self.step_metrics("again")],
                         [line["loss"] for line in self.step_metrics("whole")][8:])

    def test_a_run_that_began_with_other_defaults_goes_on_as_it_was(self):
        """Keeps rate, schedule, length and type of a new model, because the checkpoint says that the run began with these."""
        job = [*self.JOB, "--output", "run"]
        self.run_program(train(*job, "--steps", "3", "--model", "made/latest/config.json"))
        done = self.run_program(train(*job, "--metrics", "m", "--resume", "auto", "--model", "made/latest"))
        self.assertIn("the checkpoint is of a run with other defaults, which are kept: steps 100, dtype fp32, "
                      "optimizer.learning_rate 0.001, scheduler.type constant", done.stdout)
        self.assertEqual({line["learning_rate"] for line in self.step_metrics("m")}, {1e-3})
        self.assertEqual(self.step_metrics("m")[-1]["step"], 100)


if __name__ == "__main__":
    unittest.main()
