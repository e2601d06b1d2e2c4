"""Tests scripts/strata_convert with Python alone and, if the environment variable STRATA_PEERS names a Python environment with torch,
transformers, deepspeed and xxhash, whole ways there and back with DeepSpeed itself."""
import fcntl
import hashlib
import importlib
import json
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import unittest

from programs import missing_packages

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TOOL = ROOT / "scripts/strata_convert"
PEERS = os.environ.get("STRATA_PEERS")
PYTHON = pathlib.Path(PEERS or "/", "bin/python")
PACKAGES = ["torch", "transformers", "deepspeed", "xxhash", "safetensors", "numpy"]
SKIPPED = 77
sys.path.append(str(TOOL))
folders, manifest, model_folder, names, tensor_files = (
    importlib.import_module(name) for name in ("folders", "manifest", "model_folder", "names", "tensor_files"))
Refused = importlib.import_module("refused").Refused


class ConvertTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="strata-convert-")
        self.addCleanup(folder.cleanup)
        self.home = pathlib.Path(folder.name)

    def run_tool(self, *arguments, expect=0, python=(PYTHON,)):
        done = subprocess.run([*map(str, python), str(TOOL), *map(str, arguments)], cwd=self.home, timeout=120,
                              capture_output=True, text=True, env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"})
        self.assertEqual(done.returncode, expect, f"{arguments}\n{done.stdout}\n{done.stderr}")
        return done


class CommandLineTest(ConvertTest):
    BARE = (sys.executable, "-S")  # without site-packages, whatever this machine has

    def test_explains_every_command(self):
        self.assertIn("load_universal", self.run_tool("--help", python=self.BARE).stdout)
        for command, option in [("from-deepspeed", "--consumed-samples"), ("from-torch", "--opaque"),
                                ("to-deepspeed-universal", "--torch-adam")]:
            self.assertIn(option, self.run_tool(command, "--help", python=self.BARE).stdout)

    def test_output_that_is_lost_is_said(self):
        command = [*self.BARE, str(TOOL), "--help"]
        buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}  # else argparse drops it
        with open("/dev/full", "w") as full:
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120, env=buffered)
        self.assertEqual((done.returncode, done.stderr),
                         (74, "strata_convert: standard output: text is lost: No space left on device\n"))
        reader, writer = os.pipe()
        os.close(reader)
        with open(writer, "w") as pipe:
            done = subprocess.run(command, stdout=pipe, stderr=subprocess.PIPE, text=True, timeout=120)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_names_the_missing_package(self):
        said = self.run_tool("from-torch", "a", "b", python=self.BARE, expect=69).stderr
        self.assertIn("`numpy` is missing", said)
        self.assertIn("pip install numpy", said)

    def test_refuses_numbers_out_of_range(self):
        said = self.run_tool("from-deepspeed", "a", "b", "--model", "c", "--global-batch", "0", python=self.BARE, expect=2)
        self.assertIn("--global-batch: expected at least 1, found 0", said.stderr)


class TensorFilesTest(ConvertTest):
    @staticmethod
    def entry(name, elements):
        return tensor_files.Entry(name, "BF16", [elements], lambda: bytes([len(name)]) * (2 * elements))

    def test_header_is_the_one_that_train_writes(self):
        train = pathlib.Path(os.environ["STRATA_BIN"]) / "train"
        subprocess.run([train, "--steps", "1", "--sequence-length", "16", "--micro-batch", "1", "--threads", "1", "--output",
                        "out"], cwd=self.home, check=True, capture_output=True, timeout=60)
        data = next(self.home.glob("out/step-*/model.safetensors")).read_bytes()
        (length,) = struct.unpack_from("<Q", data)
        tensors = json.loads(data[8:8 + length])
        tensors.pop("__metadata__")
        entries = [tensor_files.Entry(name, t["dtype"], t["shape"], None) for name, t in tensors.items()]
        self.assertEqual(tensor_files.make_header(entries), data[:8 + length])

    def test_blocks_are_hashed_from_the_first_byte_of_the_file(self):
        block = tensor_files.BLOCK_BYTES
        [(name, file)], index = tensor_files.write_tensors(
            self.home, "model", [self.entry("a", 3), self.entry("bc", block)], hashlib.md5)
        self.assertEqual((name, index), ("model.safetensors", None))
        data = (self.home / name).read_bytes()
        self.assertEqual(len(data), file.size)
        self.assertEqual(data[4096:4096 + 8], b"\1\1\1\1\1\1\2\2")
        self.assertEqual(len(data) // block, 2)
        self.assertEqual(file.hashes, [hashlib.md5(data[i:i + block]).hexdigest() for i in range(0, len(data), block)])

    def test_shards_end_before_the_limit_and_are_indexed(self):
        entries = [self.entry(name, elements) for name, elements in [("a", 10), ("b", 30), ("c", 5), ("d", 5)]]
        files, index = tensor_files.write_tensors(self.home, "optimizer", entries, limit_bytes=30)
        self.assertEqual([name for name, _ in files], ["optimizer-0000%d-of-00003.safetensors" % i for i in (1, 2, 3)])
        self.assertEqual(json.loads(index), {"metadata": {"total_size": 100}, "weight_map": {
            "a": files[0][0], "b": files[1][0], "c": files[2][0], "d": files[2][0]}})

    def test_manifest_comes_back_and_a_changed_one_does_not(self):
        def hash_of(data):
            return hashlib.md5(data).hexdigest()
        files, _ = tensor_files.write_tensors(self.home, "model", [self.entry("a", 3)], hashlib.md5)
        data = manifest.make_manifest(7, {"world": "2"}, files, {"config.json": b"{}"}, hash_of)
        found = manifest.parse_manifest(data, "m", hash_of)
        self.assertEqual(found["step"], 7)
        self.assertEqual(found["block_files"][0]["block_hashes"], files[0][1].hashes[0])
        self.assertEqual(found["whole_files"], [{"name": "config.json", "bytes": 2, "hash": hash_of(b"{}")}])
        for changed in (data[:-1], data.replace(b'"step": 7', b'"step": 8'), b""):
            with self.assertRaisesRegex(Refused, "truncated or changed"):
                manifest.parse_manifest(changed, "m", hash_of)


class FoldersTest(ConvertTest):
    def test_appears_whole_or_not_at_all(self):
        with self.assertRaises(ZeroDivisionError), folders.appearing_folder(self.home / "out") as staging:
            folders.write_file(os.path.join(staging, "a"), b"1")
            1 / 0
        self.assertEqual(os.listdir(self.home), [])
        with folders.appearing_folder(self.home / "out") as staging:
            folders.write_file(os.path.join(staging, "a"), b"1")
            self.assertEqual(os.listdir(self.home), [os.path.basename(staging)])
        self.assertEqual(os.listdir(self.home), ["out"])
        with self.assertRaisesRegex(Refused, "exists already"), folders.appearing_folder(self.home / "out"):
            pass

    def test_chat_templates_with_names_go_along(self):
        model = self.home / "model"
        (model / "additional_chat_templates").mkdir(parents=True)
        (model / "additional_chat_templates/tool_use.jinja").write_text("{{ tools }}")
        (model / "chat_template.jinja").write_text("{{ messages }}")
        files = model_folder.small_files(model, {}, "float32")
        model_folder.write_model_folder(self.home / "out", [], {name: data for name, data in files.items()})
        self.assertEqual((self.home / "out/additional_chat_templates/tool_use.jinja").read_text(), "{{ tools }}")
        self.assertEqual((self.home / "out/chat_template.jinja").read_text(), "{{ messages }}")

    def test_keeps_out_of_a_folder_that_a_run_has(self):
        with open(self.home / ".strata-lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            with self.assertRaisesRegex(Refused, "in use by a run"), folders.output_lock(self.home):
                pass
        with folders.output_lock(self.home):
            pass


class NamesTest(unittest.TestCase):
    def test_wrappers_go_and_the_model_s_prefix_comes(self):
        gpt2 = ["transformer.wte.weight", "transformer.h.0.ln_1.bias", "lm_head.weight"]
        for front in ("", "module.", "_forward_module.model."):
            found = names.hugging_face_names([front + name for name in gpt2], "gpt2")
            self.assertEqual(list(found.values()), gpt2)
        found = names.hugging_face_names(["module.wte.weight", "module.h.0.ln_1.bias"], "gpt2")
        self.assertEqual(list(found.values()), gpt2[:2])
        llama = ["model.embed_tokens.weight", "model.norm.weight", "lm_head.weight"]
        self.assertEqual(list(names.hugging_face_names(llama, "llama").values()), llama)
        self.assertEqual(list(names.hugging_face_names(["model." + name for name in llama], "llama").values()), llama)

    def test_refuses_names_of_another_model(self):
        with self.assertRaisesRegex(Refused, "no single parameter is called embed_tokens.weight"):
            names.hugging_face_names(["transformer.wte.weight"], "llama")
        with self.assertRaisesRegex(Refused, "'visual.weight' does not begin with 'module.'"):
            names.hugging_face_names(["module.transformer.wte.weight", "visual.weight"], "gpt2")

    def test_head_is_tied_as_the_configuration_says(self):
        names.check_head(["a"], {"model_type": "gpt2"})
        names.check_head(["a", "lm_head.weight"], {"model_type": "llama"})
        with self.assertRaisesRegex(Refused, '"tie_word_embeddings": true'):
            names.check_head(["lm_head.weight"], {"model_type": "gpt2"})
        with self.assertRaisesRegex(Refused, "missing, or tied"):
            names.check_head(["a"], {"model_type": "llama"})


@unittest.skipUnless(PEERS, f"STRATA_PEERS names no Python environment with {', '.join(PACKAGES)}")
class PeersTest(ConvertTest):
    """Compares tensors in that environment."""

    def peer(self, code, *arguments):
        """Runs Python code that has torch, `convert` (the tool's folder on the path) and sys.argv[1:]."""
        program = f"import sys, torch\nsys.path.append({str(TOOL)!r})\n" + code
        done = subprocess.run([PYTHON, "-c", program, *map(str, arguments)], cwd=self.home, timeout=120,
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def make_model(self):
        config = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 97, "n_layer": 2, "n_head": 2,
                  "n_embd": 36, "n_positions": 32, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0,
                  "bos_token_id": None, "eos_token_id": None, "use_cache": False}
        (self.home / "hf").mkdir(exist_ok=True)
        (self.home / "hf/config.json").write_text(json.dumps(config))

    def deepspeed(self, **spec):
        """Runs two ranks of deepspeed_job.py; returns the dump's file."""
        spec = {"dtype": "fp32", "groups": False, "offload": False, "load": None, "save": None, "steps": 0, "more": 2,
                "model": "hf", "dump": "dump-%d.pt" % len(list(self.home.glob("dump-*"))), **spec}
        self.make_model()
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = str(s.getsockname()[1])
        ranks, log = [], self.home / "log"
        for rank in "01":
            environment = os.environ | {
                "RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": "2", "LOCAL_SIZE": "2", "LOCAL_WORLD_SIZE": "2",
                "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1",
                "DS_ACCELERATOR": "cpu", "PATH": f"{PYTHON.parent}:{os.environ['PATH']}"}
            with open(log if rank == "0" else os.devnull, "w") as out:
                ranks.append(subprocess.Popen([PYTHON, ROOT / "tests/program/deepspeed_job.py", json.dumps(spec)],
                                              cwd=self.home, env=environment, stdout=out, stderr=out))
        try:
            codes = [rank.wait(timeout=300) for rank in ranks]
        finally:
            for rank in ranks:
                rank.kill()
        self.assertEqual(codes, [0, 0], log.read_text()[-3000:])
        return spec["dump"]

    def import_and_compare(self, source, out, dump, dtype):
        """Imports a checkpoint and returns its folder; its tensors must have the bits of the dump and of DeepSpeed's own zero_to_fp32."""
        folder = self.run_tool("from-deepspeed", source, out, "--model", "hf").stdout.strip()
        self.peer(COMPARE_IMPORTED, folder, dump, source, dtype)
        return folder

    def there_and_back(self, **spec):
        saved = self.deepspeed(save="ds", steps=3, **spec)
        folder = self.import_and_compare("ds", "out", saved, spec.get("dtype", "fp32"))
        state = json.loads((self.home / folder / "trainer_state.json").read_text())
        self.assertEqual((state["step"], state["consumed_samples"], state["global_batch"]), (3, 17, 4))
        flags = [] if spec.get("offload") else ["--torch-adam"]
        rate = self.peer("print(torch.load(sys.argv[1])['rate'][0])", saved).strip()
        self.run_tool("to-deepspeed-universal", folder, "universal", "--learning-rate", rate, *flags)
        loaded = self.deepspeed(load="universal", **spec)
        self.peer(COMPARE_DUMPS, saved, loaded)
        # Importing the universal checkpoint gives equal tensors.
        again = self.import_and_compare("universal", "again", saved, spec.get("dtype", "fp32"))
        for name in ("model.safetensors", "optimizer.safetensors"):
            self.assertEqual(self.tensors(folder, name), self.tensors(again, name))

    def tensors(self, folder, name):
        data = (self.home / folder / name).read_bytes()
        (length,) = struct.unpack_from("<Q", data)
        header = json.loads(data[8:8 + length])
        header.pop("__metadata__")
        return {tensor: (t["dtype"], t["shape"], data[8 + length:][slice(*t["data_offsets"])]) for tensor, t in header.items()}

    def test_zero_1_bf16_with_two_groups(self):
        self.there_and_back(stage=1, dtype="bf16", groups=True)

    def test_zero_2_fp32(self):
        self.there_and_back(stage=2)

    def test_zero_3_bf16_with_deepspeed_s_own_adam_and_two_groups(self):
        self.there_and_back(stage=3, dtype="bf16", groups=True, offload=True)

    def test_zero_3_fp32(self):
        self.there_and_back(stage=3)

    def test_zero_0(self):
        dump = self.deepspeed(stage=0, save="plain", steps=2, more=0)
        self.import_and_compare("plain", "out", dump, "fp32")

    def test_zero_0_bf16_with_two_groups(self):
        dump = self.deepspeed(stage=0, save="plain", steps=2, more=0, dtype="bf16", groups=True)
        self.import_and_compare("plain", "out", dump, "bf16")

    def test_refuses_what_is_damaged_or_foreign(self):
        self.deepspeed(stage=1, save="ds", steps=1, more=0)
        step = self.home / "ds/global_step1"

        def refused(what, *arguments):
            said = self.run_tool("from-deepspeed", "ds", "out", "--model", "hf", *arguments, expect=65).stderr
            self.assertIn(what, said)
            self.assertFalse(list(self.home.glob("out/step*")))

        model = step / "mp_rank_00_model_states.pt"
        kept = model.read_bytes()
        self.peer(ADD_TO_CHECKPOINT, model)
        refused("holds objects of argparse.Namespace")
        refused("holds objects of argparse.Namespace", "--opaque", "other.Class")
        self.run_tool("from-deepspeed", "ds", "opaque", "--model", "hf", "--opaque", "argparse.Namespace")
        self.peer(CHANGE_WEIGHT, model)
        refused("fp32 copy of 'transformer.ln_f.bias' is not what its weight was rounded from")
        model.write_bytes(kept[:len(kept) // 2])
        refused("cannot be read as a file of torch.save")
        model.write_bytes(kept)
        self.peer(SET_LOSS_SCALER, step / "zero_pp_rank_0_mp_rank_00_optim_states.pt")
        folder = self.home / self.run_tool("from-deepspeed", "ds", "scaled", "--model", "hf").stdout.strip()
        scalars = json.loads((folder / "trainer_state.json").read_text())["scalars"]
        self.assertEqual([scalars["step_state." + name] for name in
                          ("loss_scale", "hysteresis", "scale_step", "last_overflow")], [512.0, 2, 9, 4])
        (step / "zero_pp_rank_1_mp_rank_00_optim_states.pt").unlink()
        refused("1 files *_optim_states.pt, written by 2 ranks")
        self.run_tool("from-deepspeed", "ds", "weights", "--model", "hf", "--weights-only", expect=65)

        for name in ("model.safetensors", "optimizer.safetensors", "trainer_state.json"):
            data = bytearray((folder / name).read_bytes())
            data[len(data) // 2] ^= 1
            damaged = self.home / ("damaged-" + name)
            shutil.copytree(folder, damaged)
            (damaged / name).write_bytes(data)
            said = self.run_tool("to-deepspeed-universal", damaged, "universal", expect=65).stderr
            self.assertIn(name + ": bytes ", said)
            self.assertFalse((self.home / "universal").exists())

    def test_masters_come_back_from_packed_ones(self):
        self.peer(PACKED_MASTERS)

    def test_torch_folder_becomes_safetensors(self):
        (self.home / "bin").mkdir()
        (self.home / "bin/config.json").write_text("{}")
        self.peer(WRITE_TORCH_FOLDER)
        said = self.run_tool("from-torch", "bin", "out").stderr
        self.assertIn("'head' is tied to 'a'; left out", said)
        self.assertEqual(sorted(os.listdir(self.home / "out")), ["config.json", "model.safetensors"])
        found = self.tensors("out", "model.safetensors")
        self.assertEqual({name: (dtype, shape) for name, (dtype, shape, _) in found.items()},
                         {"a": ("BF16", [2, 3]), "b": ("F32", [3, 2]), "c": ("I64", [1])})
        self.assertEqual(struct.unpack("<6f", found["b"][2]), (0, 3, 1, 4, 2, 5))
        self.assertIn("exists already", self.run_tool("from-torch", "bin", "out", expect=65).stderr)


ADD_TO_CHECKPOINT = """
import argparse
path = sys.argv[1]
state = torch.load(path, weights_only=False)
torch.save(state | {"args": argparse.Namespace(a=1)}, path)
"""

CHANGE_WEIGHT = """
path = sys.argv[1]
state = torch.load(path, weights_only=False)
state.pop("args")
state["module"]["transformer.ln_f.bias"][3] += 1
torch.save(state, path)
"""

SET_LOSS_SCALER = """
from deepspeed.runtime.fp16.loss_scaler import DynamicLossScaler
path = sys.argv[1]
state = torch.load(path, weights_only=False)
scaler = DynamicLossScaler(512.0, 1000, 1.0, 2, False)
scaler.cur_iter, scaler.last_overflow_iter = 9, 4
state["optimizer_state_dict"]["loss_scaler"] = scaler
torch.save(state, path)
"""

# Bits of fp32 numbers: the upper half is rounded half away from zero to bf16, the rest is the remainder (kernels/).
PACKED_MASTERS = """
from strata_checkpoint import StrataCheckpoint
bits = torch.tensor([0x3f800000, 0x3f808000, 0x3f807fff, 0x3f818000, -0x407f8000, 0x00000001, 0x7f7fffff], dtype=torch.int64)
bits = bits.to(torch.int32)
upper = (bits.to(torch.int64) + 0x8000) >> 16
remainder = (bits.to(torch.int64) - (upper << 16)).to(torch.int16)
found = StrataCheckpoint.__new__(StrataCheckpoint)
found.folder = "x"
found.tensors = {"model": {"w": upper.to(torch.int16).view(torch.bfloat16)}, "optimizer": {"remainder.w": remainder}}
assert torch.equal(found.master("w").view(torch.int32), bits)
found.tensors["optimizer"] = {"moment1.w": torch.ones(7, dtype=torch.uint8), "moment1_scale.w": torch.ones(1)}
from refused import Refused
try:
    found.moment("moment1", "w")
    raise SystemExit("8-bit moments were not refused")
except Refused as error:
    assert "--state-recipe fp32-master" in str(error)
"""

WRITE_TORCH_FOLDER = """
import json
a = torch.arange(6.0).view(2, 3)
c = torch.tensor([5])
tied = a.bfloat16()
torch.save({"a": tied, "head": tied, "b": a.t()}, "bin/pytorch_model-00001-of-00002.bin")
torch.save({"c": c}, "bin/pytorch_model-00002-of-00002.bin")
places = {"a": 1, "head": 1, "b": 1, "c": 2}
json.dump({"weight_map": {k: f"pytorch_model-0000{v}-of-00002.bin" for k, v in places.items()}},
          open("bin/pytorch_model.bin.index.json", "w"))
"""

COMPARE_IMPORTED = """
import os
from strata_checkpoint import StrataCheckpoint
from deepspeed_files import same_bits
folder, dump, source, dtype = sys.argv[1:]
found, expected = StrataCheckpoint(folder), torch.load(dump)
state = expected["state"]
# In the module's order, which a universal checkpoint of ours does not have.
order = sorted if source == "universal" else list
assert order(found.tensors["model"]) == order(state), (list(found.tensors["model"]), list(state))
type = torch.bfloat16 if dtype == "bf16" else torch.float32
for name, kinds in state.items():
    assert same_bits(found.tensors["model"][name], kinds["fp32"].to(type)), name
    assert same_bits(found.master(name), kinds["fp32"]), name
    assert same_bits(found.moment("moment1", name), kinds["exp_avg"]), name
    assert same_bits(found.moment("moment2", name), kinds["exp_avg_sq"]), name
    assert kinds["exp_avg_sq"].any(), name
kinds = ["moment1", "moment2"] + ["master"] * (dtype == "bf16")
assert sorted(found.tensors["optimizer"]) == sorted(f"{k}.{n}" for k in kinds for n in state)
assert [found.scalar("updates")] == expected["steps"], (found.scalar("updates"), expected["steps"])
if os.path.exists(os.path.join(source, "zero_to_fp32.py")):
    from deepspeed.utils.zero_to_fp32 import get_fp32_state_dict_from_zero_checkpoint
    for name, tensor in get_fp32_state_dict_from_zero_checkpoint(source).items():
        assert name == "lm_head.weight" or same_bits(found.master(name), tensor), name
"""

COMPARE_DUMPS = """
from deepspeed_files import same_bits
saved, loaded = (torch.load(path) for path in sys.argv[1:])
assert list(saved["state"]) == list(loaded["state"])
for name, kinds in saved["state"].items():
    for kind, tensor in kinds.items():
        assert same_bits(tensor, loaded["state"][name][kind]), (name, kind)
for key in ("steps", "global_steps", "rate", "losses"):
    assert saved[key] == loaded[key], (key, saved[key], loaded[key])
assert loaded["consumed"] == 17, loaded["consumed"]
"""


if __name__ == "__main__":
    if sys.argv[1:] == ["PeersTest"]:
        if not PEERS:
            print(f"skipped: STRATA_PEERS names no Python environment with {', '.join(PACKAGES)} "
                  "(`scripts/dev rota peers` makes one)")
            sys.exit(SKIPPED)
        missing = missing_packages(PYTHON, PACKAGES)
        if missing:
            sys.exit(f"{PYTHON} lacks {', '.join(missing)}: {PYTHON} -m pip install {' '.join(missing)}")
    unittest.main()
