#!/usr/bin/env python3
"""Loads a model directory in transformers and compares its logits with given ones.

    check_directory.py DIRECTORY REFERENCE [--dtype fp32|fp64] [--tolerance 1e-5]

REFERENCE is a .safetensors or .npz file with `input_ids` [B, T] and `logits` [B, T, V]: a golden.safetensors, or what another
program computed. Prints |a - b| / |b| and exits 1 when it is above the tolerance, when a weight is missing or unexpected, or
when a shape differs. For use by hand and in measurements; needs PyTorch, transformers and safetensors.
"""
import argparse
import os
import sys

os.environ.setdefault("HF_HUB_OFFLINE", "1")
import numpy
import torch
import transformers
from safetensors.torch import load_file


def load_reference(path):
    if path.endswith(".npz"):
        with numpy.load(path) as arrays:
            tensors = {name: torch.from_numpy(arrays[name]) for name in ("input_ids", "logits")}
    else:
        tensors = load_file(path)
    return tensors["input_ids"].long(), tensors["logits"].double()


def load_model(directory, dtype):
    """Ends the program if any weight does not match, since transformers would put random weights in place of missing ones."""
    model, report = transformers.AutoModelForCausalLM.from_pretrained(
        directory, dtype=dtype, attn_implementation="eager", output_loading_info=True)
    # Old GPT-2 files have causal masks as buffers, which are not weights.
    unexpected = [key for key in report["unexpected_keys"] if not key.endswith((".attn.bias", ".attn.masked_bias"))]
    problems = {"missing": report["missing_keys"], "unexpected": unexpected, "mismatched": report["mismatched_keys"]}
    for what, keys in problems.items():
        if keys:
            sys.exit(f"{directory}: {what} weights: {sorted(map(str, keys))}")
    return model.eval()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory")
    parser.add_argument("reference")
    parser.add_argument("--dtype", choices=["fp32", "fp64"], default="fp32")
    parser.add_argument("--tolerance", type=float, default=1e-5)
    args = parser.parse_args()
    input_ids, expected = load_reference(args.reference)
    model = load_model(args.directory, torch.float64 if args.dtype == "fp64" else torch.float32)
    with torch.no_grad():
        logits = model(input_ids=input_ids, use_cache=False).logits.double()
    if logits.shape != expected.shape:
        sys.exit(f"{args.directory}: logits {list(logits.shape)}, expected {list(expected.shape)}")
    difference = ((logits - expected).norm() / expected.norm()).item()
    print(f"{args.directory}: |a-b|/|b| = {difference:.2e} (tolerance {args.tolerance:.0e})")
    sys.exit(0 if difference <= args.tolerance else 1)


if __name__ == "__main__":
    main()
