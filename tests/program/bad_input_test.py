"""Every mistake of a user is refused with one message, which says what is wrong, where, and what to change."""
import array
import json
import pathlib
import shutil
import struct
import unittest

from programs import HAS_MPI, LIMIT_S, QUICK, SOON_S, ProgramTest, SafetensorsFile, mlaunch, mpirun, train

USAGE, DATA, HOST, IO, CONFIGURATION = 2, 65, 69, 74, 78
WEIGHTS = "model.safetensors"
TENSOR = "transformer.h.0.mlp.c_fc.weight"


class BadInput(ProgramTest):
    def refuse(self, code, words, *arguments, ranks=2, limit_s=SOON_S):
        """Runs train on `ranks` ranks; expects an error that has all words, is printed once, and comes last."""
        done = self.run_program(mlaunch(ranks, *arguments), expect=code, limit_s=limit_s)
        lines = done.stderr.splitlines()
        for word in words:
            self.assertEqual(sum(word in line for line in lines), 1, f"{word!r} in {done.stderr}")
        self.assertRegex(lines[0], rf"^mlaunch: rank \d of {ranks} failed(, and the others likewise)?: .* exited with code {code}")
        self.assertRegex(lines[-1], "^  advice  ")
        self.assertNotIn("step 1/", done.stdout)
        return done

    def refuse_config(self, text, words, *arguments):
        self.write("ds.json", text)
        self.refuse(CONFIGURATION, words, "--config", "ds.json", *arguments)


class BadConfiguration(BadInput):
    # Fault 27.
    def test_json_syntax(self):
        self.refuse_config('{"train_batch_size": 4,\n "optimizer": {"type": "AdamW",, }}',
                           ["ds.json:2: expected a key in double quotes, found"])

    # Fault 27.
    def test_unknown_key_names_the_nearest(self):
        self.refuse_config('{"train_batch_size": 8, "zero_optimizatoin": {"stage": 3}}',
                           ["zero_optimizatoin: unknown key, did you mean 'zero_optimization'?"],
                           "--strict-config")
        done = self.run_program(mlaunch(2, *QUICK, "--config", "ds.json"))  # without the flag one warning
        self.assertEqual(done.stderr.count("did you mean 'zero_optimization'"), 1)

    # Fault 27.
    def test_all_problems_at_once(self):
        self.refuse_config('{"train_batch_size": "many", "zero_optimization": {"stage": 7}}',
                           ["train_batch_size: found string", "zero_optimization.stage: found '7', expected a whole number"])

    def test_batch_triple(self):
        self.refuse_config('{"train_batch_size": 10, "train_micro_batch_size_per_gpu": 3,'
                           ' "gradient_accumulation_steps": 2}',
                           ["train_batch_size 10 is not micro batch 3 x accumulation 2 x 2 ranks = 12",
                            "set train_batch_size to 12"])

    def test_world_that_does_not_divide(self):
        self.refuse_config('{"train_batch_size": 9, "train_micro_batch_size_per_gpu": 2}',
                           ["train_batch_size 9 is not divisible by", "nearest: 8"])

    def test_offload(self):
        self.refuse_config('{"train_batch_size": 8, "zero_optimization": {"stage": 3,'
                           ' "offload_param": {"device": "nvme"}}}',
                           ["zero_optimization.offload_param.device: found nvme without a folder", "--nvme-path DIR"])
        self.refuse_config('{"train_batch_size": 8, "zero_optimization": {"stage": 2,'
                           ' "offload_param": {"device": "nvme", "nvme_path": "/nowhere"}}}',
                           ["found nvme, where each of 2 ranks updates a part", "set stage 3"])
        self.refuse(USAGE, ["--offload-optimizer: found 'gpu', expected one of none, cpu, nvme"],
                    "--offload-optimizer", "gpu")

    def test_missing_config_file(self):
        self.refuse(CONFIGURATION, ["nosuch.json"], "--config", "nosuch.json")

    def test_command_line(self):
        for words, arguments in [
                (["--save-every: found '1fortnight'", "a time (30min, 45s, 2h)"], ["--save-every", "1fortnight"]),
                (["unknown flag --zerro, did you mean '--zero'?"], ["--zerro", "3"]),
                (["--steps: found 'x', expected a whole number"], ["--steps", "x"]),
                (["--do_predict is not supported: use generate"], ["--do_predict"])]:
            with self.subTest(arguments=arguments):
                self.refuse(USAGE, words, *arguments)

    def test_launcher_s_command_line(self):
        for word, options in [("--hostfile", ["--hostfile", "hosts"]), ("--host", ["--host", "a;b"]),
                              ("--num_nodes", ["--num_nodes", "2"]), ("--nosuch", ["--nosuch"])]:
            with self.subTest(options=options):
                done = self.run_program(mlaunch(2, options=options), expect=USAGE)
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
                self.assertIn(word, done.stderr)


class BadModel(BadInput):
    def setUp(self):
        super().setUp()
        self.run_program(train(*QUICK, "--output", "good"))
        self.model = self.home / "model"
        shutil.copytree((self.home / "good/latest").resolve(), self.model)
        self.write("text", "What is trained on. " * 20)
        self.job = [*QUICK, "--model", "model", "--data", "text"]

    def refuse_model(self, words, code=DATA):
        self.refuse(code, words, *self.job)

    def change_config(self, **changes):
        config = json.loads((self.model / "config.json").read_text()) | changes
        kept = {key: value for key, value in config.items() if value != "absent"}
        (self.model / "config.json").write_text(json.dumps(kept))

    def change_weights(self, change):
        file = SafetensorsFile(self.model / WEIGHTS)
        change(file)
        (self.model / WEIGHTS).write_bytes(file.bytes())

    def change_entry(self, **changes):
        self.change_weights(lambda file: file.header[TENSOR].update(changes))

    def test_the_undamaged_one_is_accepted(self):
        self.run_program(mlaunch(2, *self.job))

    def test_no_such_model(self):
        self.refuse(CONFIGURATION, ["'gpt-tiny': no such directory, file or preset",
                                    "did you mean 'gpt2-tiny'?"], "--model", "gpt-tiny")

    def test_directory_without_config(self):
        (self.model / "config.json").unlink()
        self.refuse_model(["model: found a directory without config.json"], CONFIGURATION)

    def test_directory_without_weights(self):
        (self.model / WEIGHTS).rename(self.model / "pytorch_model.bin")
        self.refuse_model(["model: found neither model.safetensors nor"])

    def test_unknown_model_type(self):
        self.change_config(model_type="lama")
        self.refuse_model(["config.json:1: model_type: unknown model type 'lama'",
                           "did you mean 'llama'?"], CONFIGURATION)

    def test_config_syntax(self):
        (self.model / "config.json").write_text('{"model_type": ')
        self.refuse_model(["model/config.json:1: expected a value"], CONFIGURATION)

    def test_config_values(self):
        for changes, words in [({"n_head": 5}, ["n_head: found 5 heads"]),
                               ({"n_head": 2, "n_embd": "64"}, ['n_embd: found string "64"']),
                               ({"n_embd": "absent"}, ["key 'n_embd': missing"])]:
            with self.subTest(changes=changes):
                self.change_config(**changes)
                self.refuse_model(words, CONFIGURATION)

    def test_config_of_another_model(self):
        self.change_config(n_embd=128)
        self.refuse_model(["tensor 'transformer.wte.weight' has shape [256, 64]", "[256, 128]"])

    # Fault 26.
    def test_truncated_weights(self):
        whole = (self.model / WEIGHTS).read_bytes()
        for size, word in [(len(whole) - 100, "the bytes that follow the header"), (100, "truncated"),
                           (4, "it has 4 bytes"), (0, "it has 0 bytes")]:
            with self.subTest(size=size):
                (self.model / WEIGHTS).write_bytes(whole[:size])
                self.refuse_model(["model/model.safetensors", word])

    def test_pointer_of_git_lfs(self):
        (self.model / WEIGHTS).write_text("version https://git-lfs.github.com/spec/v1\n"
                                          f"oid sha256:{'0' * 64}\nsize 548105171\n")
        self.refuse_model(["model/model.safetensors: a pointer of git-lfs", "git lfs pull"])

    # Fault 26.
    def test_lying_header_length(self):
        whole = (self.model / WEIGHTS).read_bytes()
        for length, word in [(1 << 60, "the header claims 1152921504606846976 bytes"),
                             (0, "the document is empty")]:
            with self.subTest(length=length):
                (self.model / WEIGHTS).write_bytes(struct.pack("<Q", length) + whole[8:])
                self.refuse_model(["model/model.safetensors", word])

    # Fault 26.
    def test_lying_offsets(self):
        self.change_entry(data_offsets=[10 ** 9, 10 ** 9 + 65536])
        self.refuse_model([TENSOR, "data_offsets [1000000000, 1000065536]"])

    # Fault 26.
    def test_overlapping_tensors(self):
        self.change_entry(data_offsets=[0, 65536])
        self.refuse_model(["it overlaps the one before"])

    def test_wrong_shape(self):
        self.change_entry(shape=[256, 64])
        self.refuse_model([f"tensor '{TENSOR}' has shape [256, 64], but config.json asks for [64, 256]"])

    def test_wrong_type(self):
        self.change_entry(dtype="I32")
        self.refuse_model([f"tensor '{TENSOR}' has type I32"])

    def test_type_that_does_not_fit_the_bytes(self):
        self.change_entry(dtype="BF16")
        self.refuse_model([TENSOR, "cover 65536 bytes, expected BF16 times shape"])

    # Fault 26.
    def test_missing_tensor(self):
        def rename(file):
            file.header = {("x" if name == TENSOR else name): entry
                           for name, entry in file.header.items()}
        self.change_weights(rename)
        self.refuse_model([f"tensor '{TENSOR}'"])

    # Fault 26.
    def test_index_that_names_a_missing_shard(self):
        (self.model / WEIGHTS).unlink()
        (self.model / "model.safetensors.index.json").write_text(
            json.dumps({"weight_map": {TENSOR: "model-00001-of-00002.safetensors"}}))
        self.refuse_model(["model-00001-of-00002.safetensors does not exist"])

    def test_sequence_beyond_the_model(self):
        self.refuse(CONFIGURATION, ["found 4096 tokens, expected at most 128"],
                    "--sequence-length", "4096")
        self.refuse(CONFIGURATION, ["found 8192 tokens, expected at most the model's sliding window"],
                    "--model", "mistral-7b", "--sequence-length", "8192")

    # Fault 23.
    def test_too_little_memory(self):
        """Refuses by the plan alone: none of the 100 GiB are touched."""
        done = self.refuse(HOST, ["out of memory", "2 ranks on this host plan 1", "changes of one setting, those first that save most"],
                           "--model", "qwen2.5-7b", "--zero", "0", limit_s=LIMIT_S)  # both ranks look for advice
        self.assertRegex(done.stdout, r"arena +1\d\d\.\d+ GiB")
        error = next(line for line in done.stderr.splitlines() if "out of memory" in line)
        self.assertNotRegex(error, r"\d{6}")  # people are not told bytes
        self.assertRegex(error, r"--offload-optimizer nvme.* (is the cheapest change that fits|needs about \d+\.\d+ GiB)")


class BadData(BadInput):
    @staticmethod
    def tokens(ids, claimed=None):
        count = len(ids) if claimed is None else claimed
        header = struct.pack("<256i", 20240520, 1, count, *[0] * 253)
        return header + array.array("H", ids).tobytes()

    def refuse_data(self, name, content, words):
        self.write(name, content)
        self.refuse(DATA, words, *QUICK, "--data", name)

    def test_the_undamaged_one_is_accepted(self):
        self.write("t.bin", self.tokens([1, 2, 3] * 50))
        self.run_program(mlaunch(2, *QUICK, "--data", "t.bin"))

    # Faults 29, 38.
    def test_token_beyond_the_vocabulary(self):
        """Finds the token before training, even if no step of the run would read it."""
        self.refuse_data("t.bin", self.tokens([1] * 70_000 + [999]),
                         ["t.bin: token 70000 (byte 141024) is 999", "vocabulary of 256"])

    # Fault 29.
    def test_token_file_shorter_than_it_says(self):
        self.refuse_data("t.bin", self.tokens([1] * 100, claimed=1000), ["t.bin", "1000"])

    def test_empty(self):
        self.refuse_data("empty.txt", "", ["empty.txt: the data file is empty"])

    def test_shorter_than_a_sample(self):
        self.refuse_data("short.txt", "brief", ["short.txt: too little text: 5 tokens",
                                                "expected at least 17"])
        self.run_program(train(*QUICK, "--data", "short.txt", "--output", "new/out"), expect=DATA)
        self.assertFalse((self.home / "new").exists(), "a folder that was made for nothing")

    def test_missing(self):
        self.refuse(DATA, ["data file nosuch.txt: cannot open"], *QUICK, "--data", "nosuch.txt")

    def test_outputs_that_cannot_be_written(self):
        self.write("file", "")
        for flag, path in [("--output", "file/out"), ("--metrics", "nosuch/m"),
                           ("--trace", "nosuch/t"), ("--dump-state", ".")]:
            with self.subTest(flag=flag):
                self.refuse(IO, [flag], *QUICK, flag, path)

    def test_output_that_exists(self):
        self.write("out/step-00000002/config.json", "mine")
        self.refuse(USAGE, ["out has checkpoints (the newest is out/step-00000002)", "--resume auto"], *QUICK, "--output", "out")
        self.assertEqual(self.read("out/step-00000002/config.json"), "mine")


class OneRankAlone(BadInput):
    """An error on one rank ends all ranks: the others do not wait for it for ever."""

    def refuse_on_rank_1(self, change):
        """Starts rank 1 in another directory, where `change` has spoilt a copy of the files."""
        self.run_program(train(*QUICK, "--output", "a"))
        shutil.copytree(self.home / "a", self.home / "b/a", symlinks=True)
        change(self.home / "b/a/latest")
        script = self.write("rank.sh", '#!/bin/sh\n[ "$RANK" != 1 ] || cd b\nexec "$@"\n')
        script.chmod(0o755)
        text = self.write("text", "What is trained on. " * 20)
        command = mlaunch(3, *QUICK, "--zero", "3", "--model", "a", "--data", text, "--output", self.home / "c")
        at = command.index("3") + 1
        done = self.run_program(command[:at] + [str(script)] + command[at:], expect=DATA, limit_s=SOON_S)
        self.assertRegex(done.stderr.splitlines()[0], "^mlaunch: rank 1 of 3 failed")
        return done.stderr

    def test_weights_missing_on_one_rank(self):
        self.assertIn("found neither model.safetensors",
                      self.refuse_on_rank_1(lambda model: (model / WEIGHTS).unlink()))

    # Fault 26.
    def test_weights_truncated_on_one_rank(self):
        def truncate(model: pathlib.Path):
            whole = (model / WEIGHTS).read_bytes()
            (model / WEIGHTS).write_bytes(whole[:-100])
        self.assertIn("model.safetensors", self.refuse_on_rank_1(truncate))


@unittest.skipUnless(HAS_MPI, "no mpirun here")
class UnderMpirun(BadInput):
    """Without a launcher that speaks for all ranks, one of them reports for all."""

    def test_ranks_that_fail_alike_say_it_once(self):
        self.write("ds.json", '{"train_batch_size": 9, "train_micro_batch_size_per_gpu": 2}')
        for code, word, arguments in [
                (USAGE, "unknown flag --zerro, did you mean '--zero'?", ["--zerro", "3"]),
                (CONFIGURATION, "train_batch_size 9 is not divisible by", ["--config", "ds.json"]),
                (DATA, "data file nosuch.txt: cannot open", [*QUICK, "--data", "nosuch.txt"]),
                (IO, "nosuch: cannot create the file of --metrics", [*QUICK, "--metrics", "nosuch/m"])]:
            with self.subTest(arguments=arguments):
                done = self.run_program(mpirun(4, *arguments), expect=code, limit_s=SOON_S)
                self.assertEqual(done.stderr.count(word), 1, done.stderr)

    def test_a_rank_that_fails_alone_is_heard(self):
        for rank in (0, 2):
            with self.subTest(rank=rank):
                script = self.write("rank.sh", '#!/bin/sh\n[ "$OMPI_COMM_WORLD_RANK" != '
                                    f'{rank} ] || exec "$@" --steps none\nexec "$@"\n')
                script.chmod(0o755)
                command = mpirun(3, *QUICK)
                at = command.index(train()[0])
                done = self.run_program(command[:at] + [str(script)] + command[at:],
                                        expect=USAGE, limit_s=SOON_S)
                self.assertEqual(done.stderr.count("--steps: found 'none'"), 1, done.stderr)


if __name__ == "__main__":
    unittest.main()
