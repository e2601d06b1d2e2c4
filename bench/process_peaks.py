#!/usr/bin/env python3
"""Compares the memory of whole processes with what was foreseen, over pairs of settings.

    bench/process_peaks.py [--bin build/bin] [--seed 1] [--runs 40] [--results FILE]

Each run is `train` of a small GPT-2 or Llama with settings drawn by seed: model, ranks, stage, type, recipe, length, batch, what is made again, where
state and saved values are, order of micro-steps. Foreseen is what `--target-memory` with a large target says that a process needs. Measured is the
kernel's count of the process's peak; of several ranks, whose resident pages include those of their peers' arenas that they read, the largest sum of
proportional shares (Pss) of all, sampled while they run.
"""
import argparse
import json
import pathlib
import random
import re
import statistics
import subprocess
import tempfile
import time

UNITS = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
STEPS = 3
GPT2 = {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": 8192, "n_positions": 512}
LLAMA = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 8192, "max_position_embeddings": 512, "rms_norm_eps": 1e-5}


def draw(rng):
    """Returns a model, flags and the number of ranks."""
    width, layers = rng.choice([128, 256, 384]), rng.randint(2, 8)
    if rng.random() < 0.5:
        model = GPT2 | {"n_embd": width, "n_head": width // 64, "n_layer": layers}
    else:
        model = LLAMA | {"hidden_size": width, "intermediate_size": width * 3, "num_hidden_layers": layers, "num_attention_heads": width // 64,
                         "num_key_value_heads": rng.choice([1, width // 64])}
    ranks, stage = rng.choice([1, 1, 2]), rng.randint(0, 3)
    flags = ["--zero", stage, "--sequence-length", rng.choice([64, 128, 256, 512]), "--micro-batch", rng.choice([1, 2, 4]),
             "--accumulation", rng.choice([1, 1, 2])]
    flags += rng.choice([[], ["--dtype", "bf16"], ["--dtype", "bf16", "--state-recipe", rng.choice(["8bit", "bf16-sr", "packed-bf16-moments"])]])
    flags += rng.choice([[], ["--recompute-norms"], ["--activation-checkpointing"]])
    optimizer = rng.choice(["none", "none", "cpu", "nvme"])
    parameters = rng.choice(["none", "none", "cpu"]) if stage in (1, 2) else rng.choice(["none", "none", "cpu", "nvme"])
    if optimizer != "none":
        flags += ["--offload-optimizer", optimizer]
    if parameters != "none":
        flags += ["--offload-parameters", parameters]
    if rng.random() < 0.25:
        flags += ["--offload-activations", rng.choice(["cpu", "nvme"])]
    if rng.random() < 0.3:
        flags += ["--layer-major"]
    flags += ["--threads", rng.choice([1, 1, 2, 4, 8])]
    return model, [str(flag) for flag in flags], ranks


def bytes_in(text, pattern):
    found = re.search(pattern, text)
    if not found:
        raise SystemExit(f"no {pattern!r} in\n{text}")
    return float(found[1]) * UNITS[found[2]]


def shares_of_children(pid):
    """Returns the bytes of all children of a process, each page counted once."""
    total = 0
    try:
        for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            found = re.search(r"^Pss: +(\d+) kB", pathlib.Path(f"/proc/{child}/smaps_rollup").read_text(), re.M)
            total += int(found[1]) * 1024 if found else 0
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return 0  # one has ended
    return total


def run_watched(command, home):
    """Runs a command; returns its exit code, output and error, and the largest sum of its children's memory."""
    with (home / "output").open("w") as output, (home / "error").open("w") as error:
        process = subprocess.Popen(command, cwd=home, stdout=output, stderr=error)
        most = 0
        while process.poll() is None:
            most = max(most, shares_of_children(process.pid))
            time.sleep(0.02)
    return process.returncode, (home / "output").read_text(), (home / "error").read_text(), most


def measure(binaries, index, seed):
    model, flags, ranks = draw(random.Random(f"{seed} {index}"))
    with tempfile.TemporaryDirectory() as folder:
        home = pathlib.Path(folder)
        (home / "swap").mkdir()
        (home / "model.json").write_text(json.dumps(model))
        command = [str(binaries / "mlaunch"), "-np", str(ranks), str(binaries / "train"), "--model", "model.json", "--device", "cpu", "--calibrate", "off", "--steps", str(STEPS), "--metrics", "metrics", "--target-memory", "8GB", "--nvme-path", "swap", *flags]
        code, output, error, shares = run_watched(command, home)
        row = {"model": model["model_type"], "flags": " ".join(flags), "ranks": ranks, "rc": code}
        if code != 0:
            return row | {"why": error[-400:]}
        foreseen = bytes_in(output, r"it needs ([\d.]+) (\w+) per process")
        lines = [json.loads(line) for line in (home / "metrics").read_text().splitlines()]
        measured = lines[-1]["peak_rss_bytes"] if "loss" in lines[-1] else lines[-2]["peak_rss_bytes"]
        if ranks > 1:
            measured = shares // ranks
    return row | {"foreseen": round(foreseen), "measured": measured, "difference": measured - round(foreseen)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/bin", type=pathlib.Path)
    parser.add_argument("--seed", default=1, type=int)
    parser.add_argument("--runs", default=40, type=int)
    parser.add_argument("--results", type=pathlib.Path)
    options = parser.parse_args()
    rows = []
    for index in range(options.runs):
        rows.append(measure(options.bin.resolve(), index, options.seed))
        print(json.dumps(rows[-1]), flush=True)
    ran = [row for row in rows if row["rc"] == 0]
    within = [row for row in ran if abs(row["difference"]) <= max(16 << 20, 0.02 * row["foreseen"])]
    print(f"{len(ran)} of {len(rows)} runs; {len(within)} within 2 % or 16 MiB; more than foreseen at worst "
          f"{max(row['difference'] for row in ran) / 2**20:.1f} MiB, less {-min(row['difference'] for row in ran) / 2**20:.1f} MiB, "
          f"median {statistics.median(row['difference'] for row in ran) / 2**20:.1f} MiB")
    if options.results:
        options.results.write_text("".join(json.dumps(row) + "\n" for row in rows))


if __name__ == "__main__":
    main()
