"""Reads DeepSpeed's universal checkpoint: a folder per parameter."""
import os

from deepspeed_files import MOMENTS, Contents, Parameter, natural_key
from refused import Refused


def read_universal(files):
    contents, zero = Contents("universal"), os.path.join(files.folder, "zero")
    state = files.load(os.path.join(zero, "optimizer_state.pt"))
    contents.groups, contents.scaler = state.get("param_groups") or [], state.get("loss_scaler")
    places = {name: place for place, name in enumerate(files.module)}
    names = [name for name in os.listdir(zero) if os.path.isdir(os.path.join(zero, name))]
    for name in sorted(names, key=lambda name: (places.get(name, len(places)), natural_key(name))):
        folder = os.path.join(zero, name)
        contents.parameters.append(read_parameter(files, folder, name))
        step = os.path.join(folder, "step.pt")
        contents.steps += [files.load(step)] if os.path.isfile(step) else []
    return contents


def read_parameter(files, folder, name):
    def tensor(kind):
        state = files.load(os.path.join(folder, kind + ".pt"))
        if not isinstance(state, dict) or "param" not in state:
            raise Refused("%s/%s.pt: has no 'param'; write it again with DeepSpeed's ds_to_universal.py" % (folder, kind))
        return state["param"]

    moments = {ours: lambda theirs=theirs: tensor(theirs).float() for theirs, ours in MOMENTS.items()
               if os.path.isfile(os.path.join(folder, theirs + ".pt"))}
    return Parameter(name, tensor("fp32").shape, master=lambda: tensor("fp32").float(), moments=moments)
