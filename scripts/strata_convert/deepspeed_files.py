"""Finds the files of a DeepSpeed checkpoint, and defines what its readers return."""
import functools
import glob
import os
import re

import torch

from refused import Refused

MOMENTS = {"exp_avg": "moment1", "exp_avg_sq": "moment2"}  # DeepSpeed's names and ours


class Parameter:
    """A parameter. `weight`, `master` and `moments` ({our kind: ...}) are functions that return a whole tensor of `shape`, so that
    nothing is put together before its turn; masters and moments are fp32. None means that the files do not have it."""

    def __init__(self, name, shape, weight=None, master=None, moments=None):
        self.name, self.shape, self.weight, self.master, self.moments = name, list(shape), weight, master, moments or {}


class Contents:
    """The contents that a reader found in one layout: parameters, the optimizer's groups, every step number, the loss scaler."""

    def __init__(self, layout):
        self.layout, self.parameters, self.groups, self.steps, self.scaler = layout, [], [], [], None


class Files:
    """The files of one global_step folder."""

    def __init__(self, root, tag, unpickler):
        self.folder, self.load = find_folder(root, tag), unpickler.load
        self._refuse_parallel()
        self.models = self.listed("*mp_rank_00_model_states.pt")
        self.common = self.load(self.models[0])
        self.module = self.common.get("module") or {}

    def listed(self, pattern):
        """Returns paths, at least one, with ascending numbers in their names."""
        found = glob.glob(os.path.join(glob.escape(self.folder), pattern))
        if not found:
            raise Refused("%s: has no %s; name the folder that save_checkpoint wrote to" % (self.folder, pattern))
        return sorted(found, key=natural_key)

    def has(self, pattern):
        return bool(glob.glob(os.path.join(glob.escape(self.folder), pattern)))

    @functools.cached_property
    def module_parameters(self):
        """Returns {name: tensor} in the module's order, without buffers and without second names of tied tensors."""
        buffers, listed, tied = set(self.common.get("buffer_names") or []), {}, self.common.get("shared_params") or {}
        for name, tensor in self.module.items():
            if name not in buffers and name not in tied and torch.is_tensor(tensor) and not is_tied(name, tensor, listed):
                listed[name] = tensor
        return listed

    def _refuse_parallel(self):
        parallel = [name for name in sorted(os.listdir(self.folder))
                    if re.search(r"mp_rank_(?!00_)\d+_|^layer_\d+|expert_\d+", name)]
        # A universal checkpoint has joined the parts already.
        if parallel and not os.path.isdir(os.path.join(self.folder, "zero")):
            raise Refused("%s: written with tensor, pipeline or expert parallelism (%s); convert it with DeepSpeed's "
                          "ds_to_universal.py and import that" % (self.folder, parallel[0]))


def is_tied(name, tensor, others):
    """True for a head that is the embedding, even if it was cloned on its way into the file."""
    return name.endswith("lm_head.weight") and any(
        other.endswith(("wte.weight", "embed_tokens.weight")) and same_bits(embedding, tensor)
        for other, embedding in others.items())


def find_folder(root, tag):
    for latest in ("latest", "latest_universal"):
        path = os.path.join(root, latest)
        if tag is None and os.path.isfile(path):
            with open(path) as file:
                tag = file.read().strip()
    folder = os.path.join(root, tag) if tag else root
    if not os.path.isdir(folder):
        raise Refused("%s: no such folder; name the one that save_checkpoint wrote to, or one of its global_step folders" %
                      folder)
    return folder


def natural_key(text):
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", text)]


def same_bits(a, b):
    return a.shape == b.shape and a.dtype == b.dtype and torch.equal(
        a.contiguous().reshape(-1).view(torch.uint8), b.contiguous().reshape(-1).view(torch.uint8))


def note_groups(contents, optimizer):
    """Notes the optimizer's hyperparameters and steps; returns its states by position in the groups."""
    contents.groups = optimizer["param_groups"]
    contents.steps += [group["step"] for group in contents.groups if "step" in group]
    states = [optimizer["state"].get(index, {}) for group in contents.groups for index in group["params"]]
    # Groups are the older place of step numbers and may lag, so those of states win.
    if any("step" in state for state in states):
        contents.steps = [state["step"] for state in states if "step" in state]
    return states
