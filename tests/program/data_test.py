"""Training data is read as the user meant it: plain text through the right tokenizer, and the model's directory whole in the output."""
import json
import os
import re
import shutil
import struct
import unittest

from programs import BIN, QUICK, SOON_S, ProgramTest, SafetensorsFile, mlaunch, train

QUICK = [*QUICK, "--output", ""]  # these runs keep nothing of a stored model

USAGE, DATA, CONFIGURATION = 2, 65, 78
TEXT = "What is trained on, line by line.\n" * 40
# Stands for the package `tokenizers`: token = byte + offset. Each start of Python leaves a trace.
TOKENIZERS = r"""
import json, os
__version__ = "test"
class Encoding:
    def __init__(self, ids): self.ids, self.tokens, self.offsets = ids, [str(i) for i in ids], [(i, i + 1) for i in range(len(ids))]
class Tokenizer:
    @staticmethod
    def from_file(path):
        t = Tokenizer()
        t.offset = json.load(open(path))["offset"]
        open(os.path.join(os.path.dirname(path), "..", "starts"), "a").write("x")
        return t
    def no_truncation(self): pass
    def no_padding(self): pass
    def token_to_id(self, text): return 1 if text == "<end>" else None
    def id_to_token(self, id): return str(id)
    def get_vocab(self, with_added_tokens=True): return {"last": self.offset + 255}
    def encode(self, text, add_special_tokens=True): return Encoding([b + self.offset for b in text.encode()])
    def encode_batch(self, texts, add_special_tokens=True): return [self.encode(text) for text in texts]
"""


class DataTest(ProgramTest):
    def refuse(self, code, words, *arguments):
        done = self.run_program(train(*arguments), expect=code, limit_s=SOON_S)
        for word in words:
            self.assertIn(word, done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertNotIn("arena", done.stdout)
        return done

    def make_model(self, name="model", tokenizer_offset=None, **changes):
        """Makes a tiny trained directory, with a tokenizer if an offset is given."""
        shape = {"model_type": "gpt2", "vocab_size": 300, "n_positions": 128, "n_embd": 16, "n_layer": 1, "n_head": 2,
                 "resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0} | changes
        self.write("shape/config.json", json.dumps(shape))
        self.write("t.bin", struct.pack("<400H", *[i % 200 for i in range(400)]))
        self.run_program(train(*QUICK, "--model", "shape/config.json", "--data", "t.bin", "--output", "out"))
        shutil.copytree((self.home / "out/latest").resolve(), self.home / name)
        for left in ["out", "shape"]:
            shutil.rmtree(self.home / left)
        if tokenizer_offset is not None:
            self.use_tokenizer(name, tokenizer_offset)
        return self.home / name

    def use_tokenizer(self, folder, offset):
        self.write("python/tokenizers.py", TOKENIZERS)
        self.write(f"{folder}/tokenizer.json", json.dumps({"offset": offset}))
        self.write(f"{folder}/tokenizer_config.json", json.dumps({"eos_token": "<end>"}))
        for name, value in [("PYTHONPATH", str(self.home / "python")), ("XDG_CACHE_HOME", str(self.home / "cache"))]:
            before = os.environ.get(name)
            os.environ[name] = value
            self.addCleanup(lambda name=name, before=before: os.environ.pop(name) if before is None
                            else os.environ.__setitem__(name, before))


class WhatIsNoText(DataTest):
    def test_refused_by_name_and_by_content(self):
        self.make_model(tokenizer_offset=1)
        records = '{"text": "a"}\n' * 100
        for name, content, word in [("a.jsonl", records, "found a file named .jsonl"), ("a.json", records, ".json"),
                                    ("a.csv", TEXT, ".csv"), ("a.parquet", TEXT, ".parquet"), ("a.arrow", TEXT, ".arrow"),
                                    ("a.txt.gz", TEXT, ".gz"), ("a.txt", "PAR1" + TEXT, "Parquet"),
                                    ("b.txt", records, "begins like JSON"), ("marked", "\ufeff" + records, "begins like JSON"),
                                    ("lists", '["a", "b"]\n' * 100, "begins like JSON"),
                                    ("c.txt", TEXT + "\0", "byte 1360 is 0")]:
            with self.subTest(name=name):
                self.write(name, content)
                self.refuse(DATA, [f"{name}: ", word], *QUICK, "--model", "model", "--data", name)
        self.write("good.txt", TEXT)
        self.refuse(DATA, ["a.jsonl: found"], *QUICK, "--model", "model", "--data", "good.txt", "--eval-data", "a.jsonl")
        self.refuse(DATA, ["model: found a folder", "--data model/*.txt"], *QUICK, "--data", "model")
        self.run_program(train(*QUICK, "--model", "model", "--data", "b.txt", "--data-is-text"))

    def test_every_rank_says_it_once(self):
        self.write("a.csv", TEXT)
        done = self.run_program(mlaunch(2, *QUICK, "--data", "a.csv"), expect=DATA)
        self.assertEqual(done.stderr.count("found a file named .csv"), 1, done.stderr)


class WhatMakesTokens(DataTest):
    def test_bytes_only_where_the_vocabulary_is_bytes_or_asked_for(self):
        self.write("a.txt", TEXT)
        self.refuse(USAGE, ["--model gpt2-124m has 50257 tokens and no tokenizer", "--tokenizer DIR", "--tokenizer bytes"],
                    *QUICK, "--model", "gpt2-124m", "--data", "a.txt")
        self.make_model()
        self.refuse(USAGE, ["--model model has 300 tokens and no tokenizer"], *QUICK, "--model", "model", "--data", "a.txt")
        self.run_program(train(*QUICK, "--model", "model", "--data", "a.txt", "--tokenizer", "bytes"))
        self.run_program(train(*QUICK, "--model", "gpt2-tiny", "--data", "a.txt"))
        self.refuse(USAGE, ["--tokenizer: found 'nowhere'"], *QUICK, "--data", "a.txt", "--tokenizer", "nowhere")

    def test_one_start_of_python_for_all_files_and_ranks(self):
        self.make_model(tokenizer_offset=1)
        for name in ["a.txt", "b.txt", "c.txt"]:
            self.write(name, TEXT + name)
        done = self.run_program(mlaunch(3, *QUICK, "--model", "model", "--data", "a.txt", "b.txt", "--eval-data", "c.txt"))
        self.assertEqual(self.read("starts"), "x")
        self.assertIn("the end token <end> (1) stands between data files, as model/tokenizer_config.json says", done.stdout)

    def test_a_tokenizer_of_another_directory_reaches_the_output(self):
        self.make_model("other")
        self.use_tokenizer("tokenizer", 1)
        self.write("a.txt", TEXT)
        self.run_program(train(*QUICK, "--model", "other", "--data", "a.txt", "--tokenizer", "tokenizer", "--output", "run"))
        self.assertEqual(self.read("run/latest/tokenizer.json"), self.read("tokenizer/tokenizer.json"))

    def test_the_shape_of_a_directory_keeps_its_tokenizer(self):
        self.make_model(tokenizer_offset=1)
        self.write("a.txt", TEXT)
        self.run_program(train(*QUICK, "--model", "model/config.json", "--data", "a.txt", "--output", "run"))
        self.assertEqual(self.read("starts"), "x")
        self.assertEqual(self.read("run/latest/tokenizer.json"), self.read("model/tokenizer.json"))

    def test_a_cache_elsewhere(self):
        self.make_model(tokenizer_offset=1)
        self.write("a.txt", TEXT)
        job = train(*QUICK, "--model", "model", "--data", "a.txt")
        os.environ["XDG_CACHE_HOME"] = str(self.write("file", ""))
        done = self.run_program(job, expect=74)
        self.assertIn("name another folder with --token-cache DIR", done.stderr)
        self.run_program([*job, "--token-cache", "tokens"])
        self.assertEqual(len(list((self.home / "tokens").glob("*.bin"))), 1)

    def test_faults_name_the_users_file(self):
        self.make_model(tokenizer_offset=200)
        self.write("a.txt", TEXT)
        self.refuse(DATA, ["a.txt:1: '287' is token 287, expected less than the model's vocabulary of 260"],
                    *QUICK, "--model", self.make_model("small", vocab_size=260), "--tokenizer", "model", "--data", "a.txt")
        self.use_tokenizer("model", 1)
        self.write("short.txt", "abc")
        done = self.run_program(train(*QUICK, "--model", "model", "--data", "short.txt"), expect=DATA)
        self.assertIn("short.txt: too little text: 3 tokens", done.stderr)


class ModelDirectories(DataTest):
    def test_trained_weights_need_data(self):
        self.make_model()
        self.refuse(USAGE, ["--model model holds trained weights: say with --data FILE"], *QUICK, "--model", "model")
        done = self.run_program(train(*QUICK, "--model", "model", "--steps", "0", "--eval-data", "t.bin"))
        self.assertIn("held-out loss", done.stdout)

    def test_other_formats_and_hub_names(self):
        self.make_model()
        self.write("X.GGUF", "x")
        self.write("weights", "GGUF")
        for model, word in [("Qwen/Qwen2.5-0.5B", "hf download Qwen/Qwen2.5-0.5B --local-dir Qwen2.5-0.5B"),
                            ("Mistral-7B-v0.1", "hf download mistralai/Mistral-7B-v0.1 --local-dir Mistral-7B-v0.1"),
                            ("X.GGUF", "llama.cpp's format is not read"), ("weights", "llama.cpp's format is not read"),
                            ("model/model.safetensors", "--model model")]:
            with self.subTest(model=model):
                done = self.refuse(CONFIGURATION, [word], *QUICK, "--model", model, "--data", "t.bin")
                self.assertNotIn("did you mean", done.stderr)

    def with_tensor(self, name, shape, data):
        (self.home / "model/manifest.json").unlink(missing_ok=True)  # the changed file would be refused
        path = self.home / "model/model.safetensors"
        file = SafetensorsFile(path)
        file.header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(file.data), len(file.data) + len(data)]}
        file.data += data
        path.write_bytes(file.bytes())

    def test_a_tied_model_with_another_head(self):
        self.make_model()
        file = SafetensorsFile(self.home / "model/model.safetensors")
        embedding = file.header["transformer.wte.weight"]
        head = bytearray(file.data[slice(*embedding["data_offsets"])])
        self.with_tensor("lm_head.weight", embedding["shape"], bytes(head))
        job = [*QUICK, "--model", "model", "--data", "t.bin"]
        self.assertNotIn("no part of this model", self.run_program(mlaunch(2, *job)).stdout)
        path = self.home / "model/model.safetensors"
        whole = bytearray(path.read_bytes())
        whole[-4:] = struct.pack("<f", 7)
        path.write_bytes(whole)
        done = self.run_program(mlaunch(2, *job, "--output", "other"), expect=DATA)
        self.assertIn("config.json says tie_word_embeddings true, but tensor 'lm_head.weight' holds other values", done.stderr)

    def test_a_checkpoint_of_links_as_a_hub_s_cache_has_it(self):
        self.make_model()
        self.assertTrue((self.home / "model/manifest.json").exists())
        (self.home / "snapshot").mkdir()
        for path in (self.home / "model").iterdir():
            (self.home / "snapshot" / path.name).symlink_to(path.rename(self.home / f"blob-{path.name}"))
        self.run_program(train(*QUICK, "--model", "snapshot", "--data", "t.bin"))
        blob = self.home / "blob-model.safetensors"
        blob.write_bytes(blob.read_bytes()[:-1] + b"?")
        done = self.run_program(train(*QUICK, "--model", "snapshot", "--data", "t.bin"), expect=DATA)
        self.assertIn("is damaged", done.stderr)

    def test_tensors_that_nothing_uses(self):
        self.make_model()
        self.with_tensor("visual.patch_embed.weight", [2], bytes(8))
        self.with_tensor("transformer.h.0.attn.masked_bias", [1], bytes(4))
        done = self.run_program(train(*QUICK, "--model", "model", "--data", "t.bin"))
        self.assertIn("model: 1 stored tensor is no part of this model, neither trained nor saved: "
                      "'visual.patch_embed.weight'", done.stdout)

    def test_every_file_beside_the_weights_reaches_the_output(self):
        self.make_model()
        beside = {"chat_template.jinja": "{{ messages }}", "tokenizer.model": "m", "added_tokens.json": "{}", "README.md": "r",
                  "LICENSE": "l", "generation_config.json": "{}", "additional_chat_templates/tool_use.jinja": "{{ tools }}"}
        for name, content in beside.items():
            self.write(f"model/{name}", content)
        self.write("model/onnx/model.txt", "x")
        self.write("model/pytorch_model.bin", "x")
        job = [*QUICK, "--model", "model", "--data", "t.bin", "--output", "run"]
        done = self.run_program(mlaunch(2, *job))
        self.assertEqual(done.stdout.count("not copied to the output: onnx (a folder)"), 1)
        self.run_program(mlaunch(2, *job, "--steps", "3", "--resume", "required", "--keep", "1"))
        self.run_program(train(*QUICK, "--model", "run/latest", "--data", "t.bin", "--output", "again"))
        for output in ("run/step-00000003", "again/step-00000002"):
            for name, content in beside.items():
                self.assertEqual(self.read(f"{output}/{name}"), content)
            self.assertFalse((self.home / output / "pytorch_model.bin").exists())
            self.run_program([str(BIN / "inspect"), "verify", output])
        self.assertFalse((self.home / "run/step-00000002").exists())

    def test_lines_come_after_parts_of_all_steps_once_these_are_known(self):
        self.write("t.txt", TEXT * 4)
        done = self.run_program(train("--model", "gpt2-tiny", "--data", "t.txt", "--tokenizer", "bytes", "--sequence-length", "32", "--micro-batch", "4",
                                      "--threads", "1", "--epochs", "1", "--logging_steps", "0.25", "--output", ""))
        steps = [int(step) for step in re.findall(r"step +(\d+)/\d+", done.stdout)]
        self.assertGreater(steps[-1], 20, done.stdout)
        self.assertLessEqual(len(steps), 6, steps)

    def test_the_output_may_be_a_link_to_a_folder(self):
        (self.home / "far").mkdir()
        os.symlink("far", self.home / "near")
        for steps in ("2", "3"):
            self.run_program(train(*QUICK[:-2], "--steps", steps, "--model", "gpt2-tiny", "--output", "near", "--save-every", "1", "--resume", "auto"))
        self.assertEqual(sorted(name for name in os.listdir(self.home / "far") if name.startswith("step-")), [f"step-{step:08}" for step in (1, 2, 3)])

    def test_a_manifest_of_another_program(self):
        manifest = self.make_model() / "manifest.json"
        ours = manifest.read_text()
        job = [*QUICK, "--model", "model", "--data", "t.bin", "--output", "run"]
        for broken in ("", ours[:10], ours[:-1], ours.replace('"strata_checkpoint"', '"strata_checkpoinx"')):
            manifest.write_text(broken)
            self.assertIn("the manifest is truncated or was changed", self.run_program(train(*job), expect=DATA).stderr)
        manifest.write_text('{"name":"my model","version":"1.0"}')
        done = self.run_program(mlaunch(2, *job))
        self.assertIn("not copied to the output: manifest.json (each checkpoint has its own)", done.stdout)
        self.run_program([str(BIN / "inspect"), "verify", "run/latest"])
        self.run_program([str(BIN / "generate"), "--model", "model", "--tokenizer", "bytes", "--tokens", "2"])


if __name__ == "__main__":
    unittest.main()
