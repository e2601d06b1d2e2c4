"""from-torch: makes a folder with safetensors from one with pytorch_model.bin."""
import json
import os
import re

import torch

from deepspeed_files import natural_key
from model_folder import write_model_folder
from pickles import Unpickler
from refused import Refused, note
from tensors import tensor_entry

WEIGHTS = "pytorch_model.bin"
INDEX = WEIGHTS + ".index.json"
NOT_COPIED = re.compile(r"^\.|\.(bin|pt|pth|ckpt|safetensors|h5|msgpack|ot|onnx|gguf|index\.json)$")


def run(arguments):
    entries = list_tensors(arguments.dir, Unpickler(arguments.opaque))
    files = {}
    for name in sorted(os.listdir(arguments.dir)):
        path = os.path.join(arguments.dir, name)
        if os.path.isfile(path) and not NOT_COPIED.search(name):
            with open(path, "rb") as file:
                files[name] = file.read()
    write_model_folder(arguments.out, entries, files)
    return arguments.out


def weight_files(folder):
    if os.path.isfile(os.path.join(folder, WEIGHTS)):
        return [os.path.join(folder, WEIGHTS)]
    index = os.path.join(folder, INDEX)
    if not os.path.isfile(index):
        raise Refused("%s: has neither %s nor %s" % (folder, WEIGHTS, INDEX))
    try:
        with open(index, "rb") as file:
            names = set(json.load(file)["weight_map"].values())
        leading_out = [name for name in names if os.path.basename(name) != name]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise Refused("%s: not an index with a weight_map" % index) from None
    if leading_out:
        raise Refused("%s: '%s' is not the name of a file in the index's folder" % (index, leading_out[0]))
    return [os.path.join(folder, name) for name in sorted(names, key=natural_key)]


def list_tensors(folder, unpickler):
    """Returns the entries of all files; of tied tensors only the first."""
    entries, views = {}, {}
    for path in weight_files(folder):
        state = unpickler.load(path)
        state = state.get("state_dict", state) if isinstance(state, dict) else {}
        for name, tensor in state.items():
            if not torch.is_tensor(tensor):
                note("%s: '%s' is no tensor; left out" % (path, name))
                continue
            if name in entries:
                raise Refused("%s: tensor '%s' is in another file, too" % (path, name))
            view = (path, tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype)
            if tensor.numel() and view in views:
                note("'%s' is tied to '%s'; left out" % (name, views[view]))
                continue
            views[view] = name
            entries[name] = tensor_entry(name, tensor.dtype, tensor.shape, lambda tensor=tensor: tensor)
    if not entries:
        raise Refused("%s: has no tensors" % folder)
    return list(entries.values())
