"""`inspect` describes checkpoints and other Hugging Face directories, whole and damaged."""
import json
import os
import re
import shutil
import struct
import unittest

from programs import BIN, ProgramTest, SafetensorsFile, mlaunch

DIFFERENT, USAGE, DATA, IO = 1, 2, 65, 74
NORM, MATRIX = "transformer.ln_f.weight", "transformer.h.0.mlp.c_fc.weight"
# The weights take two blocks, the optimizer's state four.
SHAPE = {"model_type": "gpt2", "vocab_size": 256, "n_positions": 64, "n_embd": 128, "n_layer": 2, "n_head": 2,
         "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
BLOCK = 1 << 20


def inspect(*arguments):
    return [str(BIN / "inspect"), *map(str, arguments)]


class Inspect(ProgramTest):
    def train(self, *arguments, steps=2, ranks=1):
        """Trains and saves after each step; returns the path of the last checkpoint."""
        self.write("shape/config.json", json.dumps(SHAPE))
        self.run_program(mlaunch(ranks, "--model", "shape/config.json", "--steps", steps, "--sequence-length", 16,
                                 "--micro-batch", 1, "--threads", 1, "--output", "out", "--save-every", 1, "--async-save", "false",
                                 *arguments))
        return f"out/step-{steps:08}"

    def plain(self, checkpoint, name):
        """Copies the weights as other programs write them, without a manifest."""
        (self.home / name).mkdir()
        for file in ("config.json", "model.safetensors"):
            shutil.copy(self.home / checkpoint / file, self.home / name / file)
        return name

    def change(self, model, action):
        """Replaces the data of the model's weights by action(header, data)."""
        path = self.home / model / "model.safetensors"
        file = SafetensorsFile(path)
        file.data = action(file.header, file.data)
        path.write_bytes(file.bytes())

    def change_tensor(self, model, name, action):
        def splice(header, data):
            begin, end = header[name]["data_offsets"]
            return data[:begin] + action(data[begin:end]) + data[end:]
        self.change(model, splice)

    def flip(self, path, offset):
        with open(self.home / path, "r+b") as file:
            file.seek(offset)
            byte = file.read(1)[0]
            file.seek(offset)
            file.write(bytes([byte ^ 16]))

    def say(self, *arguments, expect=0):
        return self.run_program(inspect(*arguments), expect=expect).stdout

    def refuse(self, words, *arguments, code=DATA):
        done = self.run_program(inspect(*arguments), expect=code)
        self.assertEqual(done.stdout, "")
        self.assertRegex(done.stderr, rf"\Ainspect: .*{words}.*\n\Z")

    def test_lists_checkpoints_and_models(self):
        checkpoint = self.train(ranks=2)
        page = self.say(checkpoint)
        self.assertRegex(page, rf"\A{checkpoint}: checkpoint of step 2, \d+ bytes\n(  .*\n)*  world: 2\n(  .*\n)*tensor +dtype +shape +bytes +file\n")
        self.assertRegex(page, rf"(?m)^{MATRIX} +fp32 +\[128, 512\] +262144  model\.safetensors$")
        self.assertRegex(page, rf"(?m)^moment2\.{MATRIX} +fp32 +\[128, 512\] +262144  optimizer\.safetensors$")
        self.assertRegex(page, r"\n84 tensors, 1313280 elements, 5253120 bytes\n\Z")
        page = self.say(self.plain(checkpoint, "model"))
        self.assertRegex(page, r"\Amodel: no manifest.json, so nothing tells whether")
        self.assertRegex(page, r"\n28 tensors, 437760 elements, 1751040 bytes\n\Z")

    def test_statistics(self):
        checkpoint = self.train()
        page = self.say(checkpoint, "--statistics")
        self.assertEqual(page, self.say("--statistics", checkpoint, "--threads", "4"))
        values = [0.0, -2.0, float("inf"), float("nan")] + [0.5] * 124
        model = self.plain(checkpoint, "model")
        self.change_tensor(model, NORM, lambda _: struct.pack("<128f", *values))
        row = next(line for line in self.say(model, "--statistics").splitlines() if line.startswith(NORM)).split()
        self.assertEqual([float(cell) for cell in row[5:]],
                         [-2, 0.5, 60 / 126, (4 + 124 * 0.25) ** 0.5, 2, 1])  # min, max, mean, norm, not finite, zeros

    def test_digests_are_those_of_the_run(self):
        for arguments in (["--zero", 2], ["--zero", 3, "--dtype", "bf16", "--state-recipe", "8bit"],
                          ["--zero", 1, "--dtype", "bf16", "--state-recipe", "packed-master"], ["--dtype", "fp16"]):
            with self.subTest(arguments=arguments):
                shutil.rmtree(self.home / "out", ignore_errors=True)
                checkpoint = self.train(*arguments, "--dump-state", "state.txt", ranks=2)
                for threads in (1, 3):
                    self.assertEqual(self.say("digest", checkpoint, "--threads", threads), self.read("state.txt"))

    def test_digests_of_tensors_that_begin_within_a_cell(self):
        """A cell has 1,024 elements; a tensor of more than four million is read in parts, which begin at cells."""
        shape = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 256, "hidden_size": 1040, "intermediate_size": 4112,
                 "num_hidden_layers": 1, "num_attention_heads": 10, "num_key_value_heads": 10, "max_position_embeddings": 64}
        self.write("large/config.json", json.dumps(shape))
        self.run_program(mlaunch(1, "--model", "large/config.json", "--steps", "1", "--sequence-length", 16, "--micro-batch", 1, "--output", "out",
                                 "--dump-state", "state.txt"))
        self.assertEqual(self.say("digest", "out/step-00000001"), self.read("state.txt"))

    def test_digests_need_the_tensors_of_the_configuration(self):
        checkpoint = self.train("--dump-state", "state.txt")
        model = self.plain(checkpoint, "model")
        parameters = [line for line in self.read("state.txt").splitlines() if " parameter " in line]
        self.assertEqual(self.say("digest", model).splitlines(), parameters)
        shape = json.loads(self.read("model/config.json"))
        for change, words in (({"n_layer": 1}, r"tensor 'transformer\.h\.1\.\S+' is none of the model of config\.json"),
                              ({"n_layer": 3}, r"misses tensor 'transformer\.h\.2\.\S+', which config\.json asks for"),
                              ({"vocab_size": 255}, r"'transformer\.wte\.weight' has shape \[256, 128\], but .* \[255, 128\]"),
                              ({"model_type": "mamba"}, r"model/config\.json.*mamba")):
            self.write("model/config.json", json.dumps(shape | change))
            self.refuse(words, "digest", model)
        os.remove(self.home / model / "config.json")
        self.refuse("has no config.json", "digest", model)

    def test_diff(self):
        checkpoint = self.train()
        self.assertEqual(self.say("diff", checkpoint, checkpoint), "84 of 84 tensors the same: no difference\n")
        page = self.say("diff", "out/step-00000001", checkpoint, expect=DIFFERENT)
        self.assertRegex(page, rf"(?m)^moment1\.{MATRIX} +65536 +65536 +0\.\d+$")
        # A difference that was found is no failure to mlaunch.
        done = self.run_program([str(BIN / "mlaunch"), "inspect", "diff", "out/step-00000001", checkpoint],
                                expect=DIFFERENT)
        self.assertEqual((done.stdout, done.stderr), (page, ""))
        done = self.run_program([str(BIN / "mlaunch"), "inspect", "diff", "nowhere", checkpoint], expect=DATA)
        self.assertRegex(done.stderr, r"\Amlaunch: rank 0 of 1 failed: inspect exited with code 65 ")
        a, b = self.plain(checkpoint, "a"), self.plain(checkpoint, "b")
        self.change_tensor(b, MATRIX, lambda data: data[:400] + struct.pack("<2f", 7, -9) + data[408:])
        page = self.say("diff", checkpoint, b, expect=DIFFERENT)
        self.assertEqual(len(re.findall(f"(?m)^only in {checkpoint}: moment[12]\\.", page)), 56)
        row = re.search(rf"(?m)^{MATRIX} +2 +65536 +(\S+)$", page)
        self.assertAlmostEqual(float(row[1]), 9, delta=0.2)
        self.assertTrue(page.endswith("27 of 84 tensors the same\n"), page)

        def reshape(header, data):
            header[MATRIX]["shape"] = [512, 128]
            header[NORM]["dtype"] = "I32"
            return data
        self.change(b, reshape)
        page = self.say("diff", a, b, expect=DIFFERENT)
        self.assertIn(f"{MATRIX}: fp32 [128, 512] in a, fp32 [512, 128] in b\n", page)
        self.assertIn(f"{NORM}: fp32 [128] in a, int32 [128] in b\n", page)
        self.assertTrue(page.endswith("26 of 28 tensors the same\n"), page)

    def test_verify_names_all_damage_and_the_newest_older_whole_one(self):
        checkpoint = self.train(steps=4)
        size = sum(path.stat().st_size for path in (self.home / checkpoint).iterdir() if path.name != "manifest.json")
        self.assertEqual(self.say("verify", checkpoint),
                         f"{checkpoint}: whole: step 4, 6 blocks, {size} bytes, each as it was saved\n")
        self.flip(f"{checkpoint}/model.safetensors", BLOCK + 7)
        self.flip(f"{checkpoint}/optimizer.safetensors", 2 * BLOCK)
        self.flip(f"{checkpoint}/config.json", 10)
        self.flip("out/step-00000003/optimizer.safetensors", BLOCK)
        done = self.run_program(inspect("verify", checkpoint + "/"), expect=DATA)
        found = done.stdout.splitlines()
        self.assertEqual(len(found), 3, found)
        self.assertIn("config.json", found[0])
        self.assertRegex(found[1], r"model\.safetensors: block 1 \(bytes 1048576 to \d+, tensor 'transformer\.\S+' elements \d+ to \d+")
        self.assertIn("optimizer.safetensors: block 2 ", found[2])
        self.assertRegex(done.stderr, rf"\Ainspect: {checkpoint}: damaged in 3 places; "
                                      r"the newest older checkpoint that verifies is /\S+/out/step-00000002\n\Z")
        (self.home / "out/step-00000001/config.json").unlink()
        done = self.run_program(inspect("verify", "out/step-00000001"), expect=DATA)
        self.assertIn("step-00000001/config.json: is missing", done.stdout)
        self.assertIn("damaged in 1 place; there is no older checkpoint in /", done.stderr)
        os.truncate(self.home / "out/step-00000002/manifest.json", 100)
        done = self.run_program(inspect("verify", "out/step-00000002"), expect=DATA)
        self.assertIn("none of the 1 older checkpoint in", done.stderr)

    def test_what_was_never_saved_cannot_be_verified(self):
        checkpoint = self.train()
        self.refuse("nothing can be verified: it is no checkpoint", "verify", self.plain(checkpoint, "model"))
        self.refuse("is a folder of checkpoints, not one of them", "verify", "out")
        (self.home / checkpoint / "manifest.json").unlink()
        self.refuse("nothing can be verified: .*; the newest older checkpoint .* is /.*/out/step-00000001", "verify", checkpoint)

    def test_damage_is_found_by_all_that_read(self):
        checkpoint = self.train()
        model = self.plain(checkpoint, "model")
        self.flip(f"{checkpoint}/model.safetensors", BLOCK + 20000)
        for command in (["digest", checkpoint], [checkpoint, "--statistics"], ["diff", model, checkpoint]):
            with self.subTest(command=command):
                self.refuse(r"model\.safetensors: block 1 ", *command)

    def test_list(self):
        self.train(steps=3)
        for one in ("out/step-00000001", "out/step-00000001/", "out/latest"):
            self.refuse(f"{one}: is a checkpoint itself; use: inspect list out", "list", one, code=USAGE)
        out = self.home / "out"
        (out / "step-00000002/config.json").unlink()
        shutil.move(out / "step-00000003", out / "step-00000600")
        (out / "step-00000700.tmp-run-1").mkdir()
        rows = self.say("list", "out").splitlines()
        self.assertRegex(rows[0], "^step +bytes +age +state$")
        self.assertRegex(rows[1], r"^ +1 +\d{6,} +\d+ s +whole by its sizes$")
        self.assertRegex(rows[2], r"^ +2 +- +\d+ s +out/step-00000002/config.json: is missing")
        self.assertRegex(rows[3], r"^ +600 +\d{6,} +\d+ s +its manifest is of step 3$")
        self.assertRegex(rows[4], r"^ +700 +- +- +step-00000700.tmp-run-1: is being written, or")
        (self.home / "empty").mkdir()
        self.assertEqual(self.say("list", "empty"), "empty: no checkpoints\n")
        self.refuse("nowhere", "list", "nowhere", code=IO)

    def test_a_wrong_command_line(self):
        checkpoint = self.train()
        for arguments in ([], ["verify"], ["diff", checkpoint], ["--nosuch", checkpoint], [checkpoint, "--threads", "0"],
                          ["digest", checkpoint, "--statistics"], [checkpoint, "another"]):
            with self.subTest(arguments=arguments):
                self.run_program(inspect(*arguments), expect=USAGE)
        self.refuse("name one, such as out/step-00000002, or use: inspect list out", "out")
        self.refuse("nowhere: no such model directory", "nowhere")

    def test_through_mlaunch(self):
        checkpoint = self.train()
        start = [str(BIN / "mlaunch"), "inspect"]
        self.assertIn("84 tensors", self.run_program([*start, checkpoint]).stdout)
        self.flip(f"{checkpoint}/model.safetensors", BLOCK + 20000)
        done = self.run_program([*start, "verify", checkpoint], expect=DATA)
        self.assertEqual(done.stderr.count("damaged in 1 place;"), 1, done.stderr)
        done = self.run_program([start[0], "-np", "2", "inspect", checkpoint], expect=USAGE)
        self.assertIn("start it without -np", done.stderr)


if __name__ == "__main__":
    unittest.main()
