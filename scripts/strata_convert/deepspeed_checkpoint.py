"""Reads a DeepSpeed checkpoint of any layout as parameters with weights, masters and moments."""
import math
import os

import torch

from deepspeed_files import Files, Parameter, same_bits
from deepspeed_plain import read_plain
from deepspeed_universal import read_universal
from deepspeed_zero import read_zero
from refused import Refused
from tensors import dtype_name

STRATA_DTYPES = {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16"}


class DeepSpeedCheckpoint:
    """A checkpoint: `parameters`, `groups` (hyperparameters), `scaler` (of the loss), `layout`; `common` is what save_checkpoint
    stored beside tensors, client_state included; `dtype` is torch's type of the weights."""

    def __init__(self, root, tag, unpickler):
        self.files = Files(root, tag, unpickler)
        self.folder, self.common = self.files.folder, self.files.common
        if os.path.isdir(os.path.join(self.folder, "zero")):
            contents = read_universal(self.files)
        elif self.files.has("*zero_pp_rank_*_optim_states.pt"):
            contents = read_zero(self.files)
        else:
            contents = read_plain(self.files)
        self.parameters, self.groups, self.scaler = contents.parameters, contents.groups, contents.scaler
        self.layout, self._steps = contents.layout, contents.steps
        self.dtype = self._find_dtype()
        self._find_weights()

    def updates(self):
        """Returns the optimizer's steps without skipped ones; refuses parameters that disagree."""
        steps = {int(step) for step in self._steps}
        if len(steps) > 1:
            raise Refused("%s: parameters have made different numbers of updates, %s; use --weights-only" % (
                self.folder, sorted(steps)))
        return steps.pop() if steps else self.common.get("global_steps", 0) - self.common.get("skipped_steps", 0)

    def _find_dtype(self):
        types = {tensor.dtype for tensor in self.files.module_parameters.values()}
        if not types:  # a universal checkpoint need not have the module
            config = self.common.get("ds_config") or {}
            enabled = [kind for kind in ("bf16", "bfloat16", "fp16")
                       if isinstance(config.get(kind), dict) and config[kind].get("enabled")]
            types = {torch.float16 if enabled == ["fp16"] else torch.bfloat16 if enabled else torch.float32}
        if len(types) > 1 or not types <= set(STRATA_DTYPES):
            raise Refused("%s: weights of types %s, expected one of float32, bfloat16 and float16" % (
                self.folder, ", ".join(sorted(dtype_name(dtype) for dtype in types))))
        return types.pop()

    def _find_weights(self):
        """Takes the module's bits if the files have them, or else the master, rounded as DeepSpeed rounds it."""
        stored = dict(self.files.module_parameters)
        for parameter in self.parameters:
            tensor = stored.pop(parameter.name, None)
            if tensor is not None and list(tensor.shape) == parameter.shape:
                parameter.weight = lambda p=parameter, t=tensor: self._checked(p, t)
            else:
                parameter.weight = lambda p=parameter: p.master().to(self.dtype)
        self.parameters += self._untrained(stored)
        places = {name: place for place, name in enumerate(self.files.module)}
        self.parameters.sort(key=lambda parameter: places.get(parameter.name, len(places)))

    def _untrained(self, stored):
        """Yields parameters that no optimizer has, from {name: tensor}; ZeRO 3 keeps them in parts, too."""
        shapes = self.common.get("frozen_param_shapes") or {}
        ranks = [self.files.load(path)["frozen_param_fragments"] for path in self.files.models] if shapes else []
        for name, tensor in stored.items():
            if name not in shapes or tensor.numel() == math.prod(shapes[name]):
                yield Parameter(name, tensor.shape, weight=lambda t=tensor: t)
                continue
            shape, parts = list(shapes[name]), [rank[name].reshape(-1) for rank in ranks]
            yield Parameter(name, shape, weight=lambda s=shape, p=parts: torch.cat(p)[:math.prod(s)].view(s))

    def _checked(self, parameter, tensor):
        """Returns a weight, and refuses one that is not its fp32 copy rounded: then something was put together wrongly."""
        if parameter.master is not None and not same_bits(parameter.master().to(tensor.dtype), tensor):
            raise Refused("%s: the optimizer's fp32 copy of '%s' is not what its weight was rounded from; take the weights "
                          "alone with --weights-only" % (self.folder, parameter.name))
        return tensor

    def drop_optimizer(self):
        """Leaves weights alone, unchecked, and makes them from masters only where the files have no others."""
        for parameter in self.parameters:
            tensor = self.files.module_parameters.get(parameter.name)
            if tensor is not None and list(tensor.shape) == parameter.shape:
                parameter.weight = lambda t=tensor: t
