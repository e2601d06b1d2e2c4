#!/usr/bin/env python3
"""Measures how tight the layouts of planned arenas are, and what planning costs: only plans, for a GPU that need not exist.

    bench/layouts.py [--bin build/bin] [--only WORD ...]

Prints a row per configuration: processor seconds of one Plan, the step that is foreseen, the way of saving, and of its worst training Program the bytes of the
device's arena within a step, the most of them in use at a time, and the ratio of these two.
"""
import argparse
import itertools
import json
import pathlib
import re
import resource
import subprocess
import tempfile

MODELS = {"124M": ("gpt2-124m", 1024), "7B": ("llama-2-7b", 4096), "70B": (None, 4096)}
LLAMA_70B = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 8192, "intermediate_size": 28672,
    "num_attention_heads": 64, "num_key_value_heads": 8, "num_hidden_layers": 80, "vocab_size": 32000,
    "max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu",
    "tie_word_embeddings": False, "torch_dtype": "bfloat16"}
TIERS = {
    "resident": [],
    "optimizer host": ["--offload-optimizer", "cpu"],
    "host": ["--offload-optimizer", "cpu", "--offload-param", "cpu"],
    "disk": ["--offload-optimizer", "nvme", "--offload-param", "nvme"],
    "searched": ["--offload-optimizer", "nvme"],  # keeps as many records in host memory as its limit allows
    "saved": ["--offload-optimizer", "nvme", "--output", "saved", "--save-every", "10"],  # searched, and how it is saved
}
HOST_MEMORY = {"124M": "2GB", "7B": "64GB", "70B": "600GB"}
BUDGETS = {"124M": ["", "4GB"], "7B": ["", "24GB", "40GB"], "70B": ["", "24GB", "80GB"]}
HEAD = re.compile(r"^program (\S+): .* device arena \d+ bytes: \d+ kept, (\d+) within a step, of these at most (\d+) in use", re.M)


def configurations():
    """All combinations, but few of what is saved: only the largest budget of the largest models."""
    for model, dtype, tiers, keeps, ranks in itertools.product(MODELS, ["bf16", "fp32"], TIERS, ["", "checkpointing"], [1, 8]):
        if tiers == "saved" and (model == "124M" or dtype == "fp32" or not keeps):
            continue
        for budget in BUDGETS[model][-1:] if tiers == "saved" else BUDGETS[model]:
            yield model, dtype, tiers, keeps, ranks, budget


def flags(model, dtype, tiers, keeps, ranks, budget, home):
    name, tokens = MODELS[model]
    host = HOST_MEMORY[model] if tiers in ("searched", "saved") else "9000GB"
    return (["--model", name or str(home), "--dtype", dtype, "--sequence-length", str(tokens), "--micro-batch", "1", "--device", "cuda",
             "--steps", "0", "--nvme-path", str(home), "--host-memory", host]
            + TIERS[tiers] + (["--activation-checkpointing"] if keeps else []) + (["--device-memory", budget] if budget else [])
            + (["--zero", "3", "--world-size", str(ranks)] if ranks > 1 else []))


def run(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/bin")
    parser.add_argument("--only", nargs="*", default=[], help="words that a row must have")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = pathlib.Path(folder)
        (home / "config.json").write_text(json.dumps(LLAMA_70B))
        print(f"{'model dtype tiers ranks card checkpointing':46} {'plan s':>7} {'foreseen s':>10} {'arena B':>13} {'in use B':>13} {'ratio':>6} saving")
        for row in configurations():
            model, dtype, tiers, keeps, ranks, budget = row
            name = f"{model} {dtype} {tiers} {ranks} {budget or '-'} {keeps or '-'}"
            if not all(word in name for word in arguments.only):
                continue
            command = [f"{arguments.bin}/train", *flags(*row, home)]
            planned, seconds = run([*command, "--print-plan"])
            if planned.returncode != 0:
                print(f"{name:46} {seconds:7.2f} does not fit" if "needs" in planned.stderr else f"{name:46} {planned.stderr.strip()[:120]}", flush=True)
                continue
            foreseen = re.search(r"foreseen: (\S+) s", planned.stdout)[1]
            saving = re.search(r'"saving": "(\w+)"', planned.stdout)[1]
            worst = max(((int(arena), int(held)) for _, arena, held in HEAD.findall(run([*command, "--print-program"])[0].stdout)),
                        key=lambda sizes: sizes[0] / max(sizes[1], 1))
            print(f"{name:46} {seconds:7.2f} {foreseen:>10} {worst[0]:13} {worst[1]:13} {worst[0] / worst[1]:6.3f} {saving}", flush=True)


if __name__ == "__main__":
    main()
