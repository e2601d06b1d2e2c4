"""Hosts that do not mean the same run are told so before anything is trained. Each has a folder of its own here."""
import os
import pathlib
import shutil
import unittest

from several_hosts import BIN, HostsTest

JOB = ["--device", "cpu", "--threads", "1", "--sequence-length", "16", "--micro-batch", "1", "--steps", "2", "--calibrate", "off"]


class AlikeHosts(HostsTest):
    def setUp(self):
        super().setUp()
        self.folders = [self.home / "a", self.home / "b"]
        for folder in self.folders:
            folder.mkdir()

    def write(self, name, texts):
        for folder, text in zip(self.folders, texts):
            (folder / name).write_text(text)

    def run_hosts(self, *arguments, program=str(BIN / "train")):
        """Returns exit code and standard error of each host's mlaunch, each in its folder."""
        words = [program, *JOB, *map(str, arguments)]
        hosts = []
        for node, folder in enumerate(self.folders):
            command = self.command(node, 2, 1, words, secret=str(self.home / "secret"))
            hosts.append(self.start_host(["env", "-C", str(folder), *command]))
        return [(code, error) for code, _, error in [self.ended(host) for host in hosts]]

    def expect_done(self, ends):
        self.assertEqual([code for code, _ in ends], [0, 0], ends)

    def expect_refused(self, ends, *texts):
        self.assertEqual([code for code, _ in ends], [78, 78], ends)
        for text in ("the ranks do not mean the same run", *texts):
            self.assertIn(text, ends[0][1])
        self.assertRegex(ends[0][1], r"mlaunch: all \d ranks failed alike: (?s:.*)\n  hosts   0 \(.+\), 1 \(.+\)\n")

    # Fault 35.
    def test_copies_of_one_run(self):
        self.run_program([str(BIN / "train"), *JOB, "--output", "model"])
        for folder in self.folders:
            shutil.copytree(self.home / "model" / "latest", folder / "model")
        self.write("text", ["some text to learn from " * 40] * 2)
        self.write("config", ['{"optimizer": {"type": "AdamW", "params": {"lr": 0.002}}}'] * 2)
        job = ["--model", "model", "--data", "text", "--tokenizer", "bytes", "--config", "config", "--output"]
        self.expect_done(self.run_hosts(*job, self.home / "out"))
        weights = self.folders[1] / "model" / "model.safetensors"
        changed = bytearray(weights.read_bytes())
        changed[8 + int.from_bytes(changed[:8], "little")] ^= 1  # the first weight
        weights.unlink()  # a checkpoint's files may be links
        weights.write_bytes(changed)
        self.expect_refused(self.run_hosts(*job, self.home / "another"), "the weights: ", f" of {self.folders[0]}/model on rank 0 (", f" of {self.folders[1]}/model on rank 1 (")

    # Fault 35.
    def test_settings(self):
        self.write("config", ['{"optimizer": {"type": "AdamW", "params": {"lr": %s}}}' % rate for rate in ("0.002", "0.003")])
        ends = self.run_hosts("--config", "config", "--output", "out")
        self.expect_refused(ends, "optimizer.learning_rate: 0.002 on rank 0 (", ", 0.003 on rank 1 (")
        self.assertNotIn("scheduler", ends[0][1], "what is equal is not listed")
        self.assertEqual([(folder / "out").exists() for folder in self.folders], [False, False], "folders that were made for nothing")

    # Fault 35.
    def test_data(self):
        self.write("text", ["some text to learn from " * 40, "another text to learn by " * 40])
        self.expect_refused(self.run_hosts("--data", "text"), "the data: 960 tokens", "1000 tokens",
                            f" of {self.folders[0]}/text on rank 0 (", f" of {self.folders[1]}/text on rank 1 (")

    # Fault 35.
    def test_models(self):
        self.run_program([str(BIN / "train"), *JOB, "--output", "model"])
        config = (self.home / "model" / "latest" / "config.json").read_text()
        self.write("config.json", [config, config.replace('"initializer_range": 0.02', '"initializer_range": 0.03')])
        self.expect_refused(self.run_hosts("--model", "config.json"), "the model's initializer_range: 0.02 on rank 0 (")

    # Fault 35.
    def test_programs(self):
        for folder in self.folders:
            (folder / "bin").mkdir()
            shutil.copy(BIN / "train", folder / "bin" / "train")
            os.symlink(BIN.parent / "lib", folder / "lib")
            os.symlink(pathlib.Path(__file__).resolve().parents[2] / "configs", folder / "configs")
        self.expect_done(self.run_hosts(program="./bin/train"))
        with open(self.folders[1] / "bin" / "train", "ab") as program:
            program.write(b"another build")
        self.expect_refused(self.run_hosts(program="./bin/train"), "the program: hash ")

    # Fault 35.
    def test_modules(self):
        for folder in self.folders:
            shutil.copytree(BIN, folder / "bin", ignore=lambda _, names: set(names) - {"train"})
            shutil.copytree(BIN.parent / "lib", folder / "lib")
            os.symlink(pathlib.Path(__file__).resolve().parents[2] / "configs", folder / "configs")
        self.expect_done(self.run_hosts(program="./bin/train"))
        with open(self.folders[1] / "lib/libstrata_gloo.so", "ab") as module:
            module.write(b"another build")
        ends = self.run_hosts(program="./bin/train")
        self.expect_refused(ends, "the module libstrata_gloo.so: hash ")
        self.assertNotIn("the program", ends[0][1], "what is equal is not listed")

    # Fault 35.
    def test_ranks_of_one_host(self):
        script = pathlib.Path(self.home, "train.sh")
        script.write_text(f'#!/bin/sh\nexec {BIN}/train {" ".join(JOB)} --seed "$RANK"\n')
        script.chmod(0o755)
        done = self.run_program([str(BIN / "mlaunch"), "-np", "3", str(script)], expect=78)
        self.assertIn("seed: 0 on rank 0 (", done.stderr)
        self.assertIn("1 on rank 1 (", done.stderr)


if __name__ == "__main__":
    unittest.main()
