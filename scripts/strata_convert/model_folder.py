"""Reads and writes what Hugging Face folders have beside weights."""
import json
import os
import re

from folders import appearing_folder, write_file
from refused import Refused
from tensor_files import index_name, write_tensors

BESIDE_WEIGHTS = re.compile(r"(tokenizer|special_tokens|added_tokens|chat_template|vocab|merges|spiece|generation_config)")

NAMED_TEMPLATES = "additional_chat_templates"  # a folder


def read_config(folder):
    path = os.path.join(folder, "config.json")
    try:
        with open(path, "rb") as file:
            config = json.load(file)
    except (OSError, ValueError) as error:
        raise Refused("%s: %s; --model names a folder with the model's config.json" % (path, error)) from None
    if not isinstance(config, dict):
        raise Refused("%s: expected an object" % path)
    return config


def small_files(folder, config, dtype):
    """Returns {name: bytes} of config.json, for weights of type `dtype` ("bfloat16"), and of the tokenizer's files."""
    text = json.dumps(config | {"dtype": dtype, "torch_dtype": dtype}, indent=2) + "\n"
    files, names = {"config.json": text.encode()}, []
    for name in sorted(os.listdir(folder)):
        if BESIDE_WEIGHTS.match(name) and os.path.isfile(os.path.join(folder, name)):
            names.append(name)
    if os.path.isdir(os.path.join(folder, NAMED_TEMPLATES)):
        names += [NAMED_TEMPLATES + "/" + name for name in sorted(os.listdir(os.path.join(folder, NAMED_TEMPLATES)))]
    for name in names:
        with open(os.path.join(folder, name), "rb") as file:
            files[name] = file.read()
    return files


def write_model_folder(out, entries, files):
    with appearing_folder(out) as staging:
        _, index = write_tensors(staging, "model", entries)
        if index is not None:
            files = files | {index_name("model"): index.encode()}
        for name, data in files.items():
            os.makedirs(os.path.dirname(os.path.join(staging, name)), exist_ok=True)
            write_file(os.path.join(staging, name), data)
