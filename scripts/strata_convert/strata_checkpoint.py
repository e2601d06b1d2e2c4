"""Writes and reads Strata's checkpoints."""
import json
import os

import torch
import xxhash

from folders import appearing_folder, output_lock, write_file
from manifest import make_manifest, parse_manifest
from refused import Refused
from tensor_files import index_name, write_tensors
from tensors import DTYPES

STATE_VERSION = 1  # trainer_state.json's


def hash_of(data):
    return xxhash.xxh3_128(data).hexdigest()


def write_checkpoint(output, step, model, optimizer, texts, facts):
    """Writes OUTPUT/step-00001000 from lists of entries and small files, {name: bytes}; returns its path."""
    os.makedirs(output, exist_ok=True)
    target = os.path.join(output, "step-%08d" % step)
    with output_lock(output), appearing_folder(target) as staging:
        block_files, whole_files = [], dict(texts)
        for base, entries in (("model", model), ("optimizer", optimizer)):
            files, index = write_tensors(staging, base, entries, xxhash.xxh3_128)
            block_files += files
            if index is not None:
                whole_files[index_name(base)] = index.encode()
        for name, data in whole_files.items():
            write_file(os.path.join(staging, name), data)
        write_file(os.path.join(staging, "manifest.json"),
                   make_manifest(step, facts, block_files, whole_files, hash_of))
    return target


class StrataCheckpoint:
    """A step folder with every byte verified. `tensors` has "model" and "optimizer", each by name."""

    def __init__(self, folder):
        self.folder = folder
        manifest = parse_manifest(self._read("manifest.json"), self._path("manifest.json"), hash_of)
        self.step = manifest["step"]
        for entry in manifest["block_files"]:
            self._verify(entry, manifest["block_bytes"], entry["block_hashes"])
        for entry in manifest["whole_files"]:
            self._verify(entry, max(1, entry["bytes"]), entry["hash"])
        self.state = json.loads(self._read("trainer_state.json"))
        if self.state.get("version") != STATE_VERSION:
            raise Refused("%s: version %s, this script reads version %d" % (
                self._path("trainer_state.json"), self.state.get("version"), STATE_VERSION))
        self.tensors = {"model": {}, "optimizer": {}}
        for entry in manifest["block_files"]:
            part = "model" if entry["name"].startswith("model") else "optimizer"
            self.tensors[part].update(self._map(entry["name"]))

    def master(self, name):
        """Returns the fp32 master, whatever the state recipe keeps."""
        weight, kept = self.tensors["model"][name], self.tensors["optimizer"]
        if "master." + name in kept:
            return kept["master." + name].float()
        if "remainder." + name in kept:
            bits = (weight.view(torch.int16).to(torch.int32) << 16) + kept["remainder." + name].to(torch.int32)
            return bits.view(torch.float32)
        return weight.float()

    def moment(self, kind, name):
        """Returns the fp32 moment, or None if the optimizer has no such moment."""
        if "%s_scale.%s" % (kind, name) in self.tensors["optimizer"]:
            raise Refused("%s: keeps 8-bit moments, which only Strata reads; resume it for a step with --state-recipe "
                          "fp32-master, and convert what that saves" % self.folder)
        found = self.tensors["optimizer"].get("%s.%s" % (kind, name))
        return None if found is None else found.float()

    def scalar(self, name):
        """Returns a field of kernels/ops/step_state.h."""
        return self.state["scalars"]["step_state." + name]

    def _path(self, name):
        return os.path.join(self.folder, name)

    def _read(self, name):
        try:
            with open(self._path(name), "rb") as file:
                return file.read()
        except FileNotFoundError:
            raise Refused("%s: no such file; name a step folder that Strata wrote" % self._path(name)) from None

    def _verify(self, entry, block_bytes, hashes):
        path = self._path(entry["name"])
        size = os.path.getsize(path) if os.path.isfile(path) else -1
        if size != entry["bytes"]:
            raise Refused("%s: %s, expected %d bytes; use another checkpoint" % (
                path, "has %d bytes" % size if size >= 0 else "is missing", entry["bytes"]))
        with open(path, "rb") as file:
            for block in range(len(hashes) // 32):
                if hash_of(file.read(block_bytes)) != hashes[32 * block:32 * block + 32]:
                    raise Refused("%s: bytes %d to %d are damaged; use another checkpoint" % (
                        path, block * block_bytes, min(size, (block + 1) * block_bytes)))

    def _map(self, name):
        """Maps the file's tensors, which are read when they are looked at."""
        path = self._path(name)
        with open(path, "rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(length))
        data = torch.from_file(path, size=os.path.getsize(path), dtype=torch.uint8)[8 + length:]
        tensors = {}
        for tensor, place in header.items():
            if tensor == "__metadata__":
                continue
            begin, end = place["data_offsets"]
            tensors[tensor] = data[begin:end].view(getattr(torch, DTYPES[place["dtype"]])).view(place["shape"])
        return tensors
