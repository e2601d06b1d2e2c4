"""Files that train and plan read are not written over by what they write, whichever flag names them."""
import os
import pathlib
import unittest

from programs import BIN, QUICK, ProgramTest, train

USAGE = 2
CONFIGS = pathlib.Path(__file__).parents[2] / "configs"
CONFIG = '{\n  // ours\n  "train_micro_batch_size_per_gpu": 1\n}\n'


def plan(*arguments):
    return [str(BIN / "plan"), *map(str, arguments)]


class KeptInputsTest(ProgramTest):
    JOB = ["--model", "llama-bytes-1m", "--sequence-length", "16"]

    def setUp(self):
        super().setUp()
        self.write("mine.json", CONFIG)
        self.write("text.txt", "The quick brown fox jumps over the lazy dog. " * 40)

    def refuses(self, command, written, read):
        """Expects that the file of the first flag and path is found to be that of the second, and stays as it was."""
        path = self.home / read.split()[1]
        before = path.read_bytes()
        said = self.run_program(command, expect=USAGE).stderr
        self.assertIn(f"{written} is the file of {read}, which would be overwritten; name another", said)
        self.assertEqual(path.read_bytes(), before)
        self.assertFalse(path.with_name(path.name + ".old").exists())

    def test_train_keeps_its_settings(self):
        job = [*self.JOB, *QUICK, "--data", "text.txt", "--config", "mine.json"]
        for flag in ("--write-plan", "--dump-state", "--trace", "--metrics", "--profile", "--choices"):
            self.refuses(train(*job, flag, "mine.json"), f"{flag} mine.json", "--config mine.json")
        os.link(self.home / "mine.json", self.home / "hard.json")
        os.symlink("mine.json", self.home / "soft.json")
        for link in ("hard.json", "soft.json", "./mine.json"):
            self.refuses(train(*job, "--trace", link), f"--trace {link}", "--config mine.json")
        self.refuses(train(*job, "--steps", "0", "--print-plan", "--write-plan", "mine.json"), "--write-plan mine.json", "--config mine.json")

    def test_what_another_flag_reads(self):
        self.write("report/summary.txt", CONFIG)
        self.refuses(train(*self.JOB, *QUICK, "--config", "report/summary.txt", "--memory-report", "report"), "--memory-report report/summary.txt", "--config report/summary.txt")
        self.write("m.old", "text " * 400)
        self.write("m", '{"step": 1}\n')
        self.run_program(train(*self.JOB, *QUICK, "--data", "m.old", "--metrics", "m"))
        self.assertEqual((self.home / "m.old").read_text(), "text " * 400)
        self.assertEqual((self.home / "m.old.2").read_text(), '{"step": 1}\n')
        self.run_program(train(*self.JOB, *QUICK, "--data", "text.txt", "--output", "out", "--write-plan", "p.json"))
        job = [*QUICK, "--sequence-length", "16", "--data", "text.txt"]
        self.refuses(train(*job, *self.JOB, "--plan", "p.json", "--trace", "p.json"), "--trace p.json", "--plan p.json")
        for file in ("config.json", "model.safetensors"):
            self.refuses(train(*job, "--model", "out", "--trace", f"out/latest/{file}"), f"--trace out/latest/{file}", f"--model out/latest/{file}")
        self.refuses(train(*job, *self.JOB, "--resume", "out/step-00000002", "--output", "out", "--dump-state", "out/latest/trainer_state.json"),
                     "--dump-state out/latest/trainer_state.json", "--resume out/step-00000002/trainer_state.json")
        tokenizer = self.write("words/tokenizer.json", "{}").parent
        for said in (tokenizer.name, f"{tokenizer.name}/tokenizer.json"):
            self.refuses(train(*job, *self.JOB, "--tokenizer", said, "--profile", "words/tokenizer.json"), "--profile words/tokenizer.json", "--tokenizer words/tokenizer.json")

    def test_nothing_is_written_into_checkpoints(self):
        job = ["--model", "gpt2-tiny", "--threads", "1", "--sequence-length", "16", "--data", "text.txt", "--steps"]
        self.run_program(train(*job, "2", "--output", "oa"))
        step = self.home / "oa/step-00000002"
        before = {file.name: file.read_bytes() for file in step.iterdir()}
        os.symlink("oa/step-00000002/trainer_state.json", self.home / "soft.json")
        for resume in ("auto", "required", "never"):
            for file, folder in (("oa/step-00000002/trainer_state.json", "oa/step-00000002"), ("oa/latest/model.safetensors", "oa/step-00000002"),
                                 ("oa/step-00000003/new.json", "oa/step-00000003"), ("soft.json", "oa/step-00000002")):
                flag = "--metrics" if "new" in file else "--trace"
                said = self.run_program(train(*job, "3", "--output", "oa", "--resume", resume, flag, file), expect=USAGE).stderr
                self.assertIn(f"{flag} {file} would write into {folder}, which is for checkpoints of --output oa alone; name a file elsewhere", said)
        said = self.run_program(train(*job, "3", "--output", "oa", "--resume", "auto", "--report-to", "csv", "--logging-dir", "oa/step-00000002"), expect=USAGE).stderr
        self.assertIn("--logging-dir oa/step-00000002 would write into oa/step-00000002, which is for checkpoints of --output oa alone", said)
        said = self.run_program(train(*job, "3", "--output", "new/", "--write-plan", "new/latest/plan.json"), expect=USAGE).stderr
        self.assertIn("--write-plan new/latest/plan.json would write into new/latest, which is for checkpoints of --output new/ alone", said)
        self.assertEqual({file.name: file.read_bytes() for file in step.iterdir()}, before)
        self.run_program(train(*job, "3", "--output", "oa", "--resume", "auto", "--trace", "oa/trace.json"))

    def test_plan_keeps_what_it_reads(self):
        self.write("mdl/config.json", (CONFIGS / "models/llama-bytes-1m.json").read_bytes())
        self.write("hw.json", (CONFIGS / "hardware/rtx4090.json").read_bytes())
        for flag in ("--write-config", "--write-plan"):
            self.refuses(plan(*self.JOB, "--config", "mine.json", flag, "mine.json"), f"{flag} mine.json", "--config mine.json")
            self.refuses(plan("--model", "mdl", flag, "mdl/config.json"), f"{flag} mdl/config.json", "--model mdl/config.json")
            for changed in ("", ",link=12GB/s"):
                self.refuses(plan(*self.JOB, "--hardware", "hw.json" + changed, flag, "hw.json"), f"{flag} hw.json", "--hardware hw.json")

    def test_other_files_may_lie_beside_a_model(self):
        self.write("mdl/config.json", (CONFIGS / "models/llama-bytes-1m.json").read_bytes())
        self.write("mdl/strata_choices.json", "{}")
        for _ in range(2):
            self.run_program(plan("--model", "mdl", "--choices", "mdl/strata_choices.json", "--write-plan", "mdl/plan.json", "--write-config", "mdl/ds.json"))
        self.run_program(train("--model", "mdl/config.json", *QUICK, "--data", "text.txt", "--trace", "mdl/plan.json", "--metrics", "/dev/null", "--dump-state", "/dev/null"))


if __name__ == "__main__":
    unittest.main()
