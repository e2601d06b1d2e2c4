"""Loads checkpoints in transformers; transformers_test.py starts it in a Python that has transformers.

Arguments are pairs of a checkpoint and a file with its input_ids and logits ("-": none). Prints a JSON object per pair: how many
tensors are stored and held, which of them differ in type or bits, and |a - b| / |b| of the logits.
"""
import json
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "golden"))
import torch
from check_directory import load_model, load_reference
from safetensors.torch import load_file


def logits_difference(model, reference):
    ids, expected = load_reference(reference)
    with torch.no_grad():
        logits = model(input_ids=ids, use_cache=False).logits.double()
    return ((logits - expected).norm() / expected.norm()).item()


def look(directory, reference):
    stored = {}
    for file in sorted(pathlib.Path(directory).glob("model*.safetensors")):
        stored |= load_file(file)
    model = load_model(directory, "auto")
    held = dict(model.named_parameters())
    differ = [name for name, tensor in stored.items()
              if held[name].dtype != tensor.dtype or not torch.equal(held[name], tensor)]
    return {"directory": directory, "tensors": len(stored), "held": len(held), "differ": differ,
            "logits": None if reference == "-" else logits_difference(model, reference)}


def main():
    for directory, reference in zip(sys.argv[1::2], sys.argv[2::2]):
        print(json.dumps(look(directory, reference)), flush=True)


if __name__ == "__main__":
    main()
