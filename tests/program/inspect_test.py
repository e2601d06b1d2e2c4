"""`inspect`: what it says about checkpoints and other Hugging Face directories, whole and damaged."""
import json
import os
import re
import shutil
import struct
import unittest

from programs import BIN, QUICK, ProgramTest, SafetensorsFile, train

DIFFERENT, USAGE, DATA, IO = 1, 2, 65, 74
NORM, MATRIX = "transformer.ln_f.weight", "transformer.h.0.mlp.c_fc.weight"
TRAINER_STATE = {"version": 1, "step": 2, "consumed_samples": 2, "seed": 42, "global_batch": 1, "sequence_length": 16,
                 "shuffle": True, "data_digest": "0" * 32, "data_tokens": 5, "optimizer": "adamw",
                 "state_recipe": "fp32-master", "dtype": "fp32",
                 "scalars": {"step_state.loss_scale": 1.0, "step_state.updates": 2}}


def inspect(*arguments):
    return [str(BIN / "inspect"), *map(str, arguments)]


class Inspect(ProgramTest):
    def setUp(self):
        super().setUp()
        self.run_program(train("--model", "gpt2-tiny", *QUICK, "--output", "out", "--dump-state", "state.txt"))
        self.model = "out/step-00000002"
        self.write(f"{self.model}/trainer_state.json", json.dumps(TRAINER_STATE))

    def make_checkpoint(self, step, output="saved"):
        self.run_program([str(BIN.parent / "tests/make_checkpoint"), self.model, output, str(step)])
        return f"{output}/step-{step:08}"

    def tensor_bytes(self, name, change):
        """Changes the bytes of one tensor of the model."""
        path = self.home / self.model / "model.safetensors"
        file = SafetensorsFile(path)
        begin, end = file.header[name]["data_offsets"]
        file.data = file.data[:begin] + change(file.data[begin:end]) + file.data[end:]
        path.write_bytes(file.bytes())

    def flip(self, path, offset):
        with open(self.home / path, "r+b") as file:
            file.seek(offset)
            byte = file.read(1)[0]
            file.seek(offset)
            file.write(bytes([byte ^ 16]))

    def say(self, *arguments, expect=0):
        return self.run_program(inspect(*arguments), expect=expect).stdout

    def test_lists_checkpoints_and_models(self):
        checkpoint = self.make_checkpoint(5)
        page = self.say(checkpoint)
        self.assertRegex(page, rf"\A{checkpoint}: checkpoint of step 5, \d+ bytes\n  world: 1\ntensor +dtype +shape +bytes +file\n")
        self.assertRegex(page, rf"(?m)^{MATRIX} +fp32 +\[64, 256\] +65536  model\.safetensors$")
        self.assertRegex(page, rf"(?m)^moment1\.{MATRIX} +fp32 +\[64, 256\] +65536  optimizer\.safetensors$")
        self.assertTrue(page.endswith("\n56 tensors, 249344 elements, 997376 bytes\n"), page)
        page = self.say(self.model)
        self.assertIn(f"{self.model}: no manifest.json, so nothing tells whether", page)
        self.assertTrue(page.endswith("\n28 tensors, 124672 elements, 498688 bytes\n"), page)
        self.assertEqual(page, self.say(self.model, "--threads", "3"))

    def test_statistics(self):
        values = [0.0, -2.0, float("inf"), float("nan")] + [0.5] * 60
        self.tensor_bytes(NORM, lambda _: struct.pack("<64f", *values))
        for folder in (self.make_checkpoint(5), self.model):
            with self.subTest(folder=folder):
                page = self.say(folder, "--statistics")
                self.assertEqual(page, self.say("--statistics", folder, "--threads", "4"))
                row = next(line for line in page.splitlines() if line.startswith(NORM)).split()
                mean, norm = 28 / 62, (4 + 60 * 0.25) ** 0.5
                self.assertEqual(row[5:7] + row[9:], ["-2", "0.5", "2", "1"])
                self.assertEqual([float(row[7]), float(row[8])], [mean, norm])

    def test_digests_are_those_of_the_run(self):
        said = self.read("state.txt").splitlines()
        self.assertEqual(self.say("digest", self.model).splitlines()[:-2],
                         [line for line in said if " parameter " in line])
        page = self.say("digest", self.make_checkpoint(5))
        self.assertEqual([line for line in page.splitlines() if "moment1" not in line],
                         [line for line in said if " parameter " in line or "loss_scale" in line or ".updates" in line])
        os.remove(self.home / self.model / "config.json")
        done = self.run_program(inspect("digest", self.model), expect=DATA)
        self.assertIn("has no config.json", done.stderr)

    def test_diff(self):
        before = self.make_checkpoint(5)
        page = self.say("diff", before, before)
        self.assertEqual(page, "56 of 56 tensors the same: no difference\n")
        self.tensor_bytes(MATRIX, lambda data: data[:400] + struct.pack("<2f", 7, -9) + data[408:])
        after = self.make_checkpoint(6)
        page = self.say("diff", before, after, expect=DIFFERENT)
        for name in (MATRIX, "moment1." + MATRIX):
            row = re.search(rf"(?m)^{re.escape(name)} +2 +16384 +(\S+)$", page)
            self.assertAlmostEqual(float(row[1]), 9, delta=0.2)
        self.assertTrue(page.endswith("54 of 56 tensors the same\n"), page)
        page = self.say("diff", self.model, after, expect=DIFFERENT)
        self.assertEqual(page.count(f"only in {after}: moment1."), 28)
        self.assertTrue(page.endswith("28 of 56 tensors the same\n"), page)

    def test_diff_of_other_shapes_and_types(self):
        shutil.copytree(self.home / self.model, self.home / "other")
        path = self.home / "other/model.safetensors"
        file = SafetensorsFile(path)
        file.header[MATRIX]["shape"] = [256, 64]
        file.header[NORM].update(dtype="I32")
        path.write_bytes(file.bytes())
        page = self.say("diff", self.model, "other", expect=DIFFERENT)
        self.assertIn(f"{MATRIX}: fp32 [64, 256] in {self.model}, fp32 [256, 64] in other\n", page)
        self.assertIn(f"{NORM}: fp32 [64] in {self.model}, int32 [64] in other\n", page)
        self.assertTrue(page.endswith("26 of 28 tensors the same\n"), page)

    def test_verify_names_all_damage_and_the_newest_older_whole_one(self):
        for step in (3, 4, 5, 6):
            checkpoint = self.make_checkpoint(step)
        self.assertRegex(self.say("verify", checkpoint), rf"\A{checkpoint}: whole: step 6, \d+ blocks, \d+ bytes, ")
        self.flip(f"{checkpoint}/model.safetensors", 3 * 4096 + 7)
        self.flip(f"{checkpoint}/optimizer.safetensors", 10 * 4096)
        self.flip(f"{checkpoint}/config.json", 10)
        self.flip("saved/step-00000005/optimizer.safetensors", 50000)
        done = self.run_program(inspect("verify", checkpoint + "/"), expect=DATA)
        found = done.stdout.splitlines()
        self.assertEqual(len(found), 3, found)
        self.assertIn("config.json", found[0])
        self.assertRegex(found[1], r"model\.safetensors: block 3 \(bytes 12288 to 16384, tensor 'transformer\.\S+' elements \d+ to \d+\)")
        self.assertIn("optimizer.safetensors: block 10", found[2])
        self.assertRegex(done.stderr, rf"\Ainspect: {checkpoint}: damaged in 3 places; "
                                      r"the newest older checkpoint that verifies is /\S+/saved/step-00000004\n\Z")
        (self.home / "saved/step-00000003/config.json").unlink()
        done = self.run_program(inspect("verify", "saved/step-00000003"), expect=DATA)
        self.assertIn("there is no older checkpoint", done.stderr)
        self.assertIn("step-00000003/config.json: is missing", done.stdout)
        os.truncate(self.home / "saved/step-00000004/manifest.json", 100)
        done = self.run_program(inspect("verify", "saved/step-00000004"), expect=DATA)
        self.assertIn("none of the 1 older checkpoint in", done.stderr)

    def test_what_was_never_saved_cannot_be_verified(self):
        done = self.run_program(inspect("verify", self.model), expect=DATA)
        self.assertIn("nothing can be verified", done.stderr)
        done = self.run_program(inspect("verify", "out"), expect=DATA)
        self.assertIn("is a folder of checkpoints, not one of them", done.stderr)
        checkpoint = self.make_checkpoint(5)
        (self.home / self.make_checkpoint(6) / "manifest.json").unlink()
        done = self.run_program(inspect("verify", "saved/step-00000006"), expect=DATA)
        self.assertRegex(done.stderr, f"nothing can be verified: .*; the newest older checkpoint .* is /.*/{checkpoint}\n")

    def test_damage_is_found_by_all_that_read(self):
        checkpoint = self.make_checkpoint(5)
        self.flip(f"{checkpoint}/model.safetensors", 20000)
        for command in (["digest", checkpoint], [checkpoint, "--statistics"], ["diff", self.model, checkpoint]):
            with self.subTest(command=command):
                done = self.run_program(inspect(*command), expect=DATA)
                self.assertEqual(done.stdout, "")
                self.assertIn("model.safetensors: block 4 ", done.stderr)

    def test_list(self):
        for step in (3, 40, 500):
            self.make_checkpoint(step)
        (self.home / "saved/step-00000040/config.json").unlink()
        shutil.move(self.home / "saved/step-00000500", self.home / "saved/step-00000600")
        (self.home / "saved/step-00000700.tmp-run-1").mkdir()
        rows = self.say("list", "saved").splitlines()
        self.assertRegex(rows[0], "^step +bytes +age +state$")
        self.assertRegex(rows[1], r"^ +3 +\d{6,} +\d+ s +whole by its sizes$")
        self.assertRegex(rows[2], r"^ +40 +- +\d+ s +saved/step-00000040/config.json: is missing")
        self.assertRegex(rows[3], r"^ +600 +\d{6,} +\d+ s +its manifest is of step 500$")
        self.assertRegex(rows[4], r"^ +700 +- +- +step-00000700.tmp-run-1: is being written, or")
        (self.home / "empty").mkdir()
        self.assertEqual(self.say("list", "empty"), "empty: no checkpoints\n")
        self.run_program(inspect("list", "nowhere"), expect=IO)

    def test_a_wrong_command_line(self):
        self.make_checkpoint(5)
        for arguments in ([], ["verify"], ["diff", self.model], ["--nosuch", self.model], [self.model, "--threads", "0"],
                          ["digest", self.model, "--statistics"], [self.model, "another"]):
            with self.subTest(arguments=arguments):
                self.run_program(inspect(*arguments), expect=USAGE)
        done = self.run_program(inspect("saved"), expect=DATA)
        self.assertIn("name one, such as saved/step-00000005, or use: inspect list saved", done.stderr)
        done = self.run_program(inspect("nowhere"), expect=DATA)
        self.assertIn("nowhere: no such model directory", done.stderr)

    def test_through_mlaunch(self):
        checkpoint = self.make_checkpoint(5)
        mlaunch = [str(BIN / "mlaunch")]
        self.assertIn("56 tensors", self.run_program([*mlaunch, "inspect", checkpoint]).stdout)
        self.flip(f"{checkpoint}/model.safetensors", 20000)
        done = self.run_program([*mlaunch, "inspect", "verify", checkpoint], expect=DATA)
        self.assertEqual(done.stderr.count("damaged in 1 place;"), 1, done.stderr)
        done = self.run_program([*mlaunch, "-np", "2", "inspect", checkpoint], expect=USAGE)
        self.assertIn("start it without -np", done.stderr)


if __name__ == "__main__":
    unittest.main()
