"""Reads files of torch.save without running anything from them."""
import os
import pickle

import torch

from refused import Refused


class Record:
    """An object with attributes and nothing else, whatever its class was."""

    def __new__(cls, *arguments, **keywords):
        return super().__new__(cls)

    def __init__(self, *arguments, **keywords):
        pass

    def __setstate__(self, state):
        if isinstance(state, dict):
            self.__dict__.update(state)


class Stage(int):
    """The value of an enumeration."""


# These are all classes that DeepSpeed's checkpoints hold beside tensors and plain values.
STAND_INS = {
    "deepspeed.runtime.zero.config.ZeroStageEnum": Stage,
    "deepspeed.utils.tensor_fragment.fragment_address": Record,
    "deepspeed.runtime.fp16.loss_scaler.LossScaler": Record,
    "deepspeed.runtime.fp16.loss_scaler.DynamicLossScaler": Record,
}


class Unpickler:
    """Reads files; `opaque` names more classes to be read as Records."""

    def __init__(self, opaque=()):
        for name in opaque:
            if "." not in name:
                raise Refused("--opaque %s: expected a name with its module, as in argparse.Namespace" % name)
        known = STAND_INS | dict.fromkeys(opaque, Record)
        # Each name gets a class of its own, because torch also looks classes up by themselves.
        self.allowed = [(type(name.rsplit(".", 1)[1], (kind,), {}), name) for name, kind in known.items()]

    def load(self, path):
        """Returns what torch.save wrote, with tensors mapped from the file."""
        with torch.serialization.safe_globals(self.allowed):
            self._refuse_foreign(path)
            try:
                return self._load(path)
            except (RuntimeError, ValueError, EOFError, pickle.UnpicklingError) as error:
                raise Refused("%s: cannot be read as a file of torch.save: %s" % (
                    path, str(error).strip().split("\n")[0])) from None

    @staticmethod
    def _refuse_foreign(path):
        if not os.path.isfile(path):
            raise Refused("%s: no such file" % path)
        try:
            foreign = torch.serialization.get_unsafe_globals_in_checkpoint(path)
        except (ValueError, RuntimeError):  # not a zip file, or a damaged one: torch.load's message says more
            return
        if foreign:
            raise Refused("%s: holds objects of %s, and making them would run code from outside; save the checkpoint "
                          "without them, or add --opaque NAME for each to have its attributes read and nothing else" % (
                              path, ", ".join(sorted(foreign))))

    @staticmethod
    def _load(path):
        try:
            return torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        except RuntimeError as error:
            if "mmap" not in str(error):
                raise
            return torch.load(path, map_location="cpu", weights_only=True)  # the format before PyTorch 1.6
