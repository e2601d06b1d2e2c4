#!/usr/bin/env python3
"""Shows what fits where: models on cards and clusters by foresight, and GPT-2 124M with less memory, measured.

    bench/fits.py [--bin build/bin] [--only planned|measured] [--repeat 3] [--results FILE]

Planned: `plan` chooses settings for each model and machine; beside them stand the memory of the device if everything is kept there, and published
speeds of LLM.Q (bf16, T = 1,024, 524,288 tokens in a step) where there are some. Measured: gpt2-124m on this machine's processor with everything
kept, then within 60 % and 40 % of that arena, with settings that lose nothing; runs alternate, medians of steps.
"""
import argparse
import json
import pathlib
import re
import shlex
import statistics
import subprocess
import tempfile

UNITS = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
MODEL_OF_50B = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 32000, "hidden_size": 8192, "intermediate_size": 22016,
                "num_hidden_layers": 68, "num_attention_heads": 64, "num_key_value_heads": 8, "max_position_embeddings": 4096, "rms_norm_eps": 1e-5}
LONG = "--bf16 --sequence-length 4096 --micro-batch 1"
LLMQ = "--bf16 --state-recipe bf16-sr --sequence-length 1024 --global-batch 512"
# The model, what else it trains with, the machine with the memory that may be used, and published tokens per second.
PLANNED = [
    ("llama-3.2-1b", f"{LONG} --accumulation 8", "--hardware rtx4080 --target-memory 16GB", None),
    ("llama-2-7b", f"{LONG} --accumulation 8", "--hardware rtx4090 --target-memory 24GB", None),
    ("llama-2-7b", f"{LONG} --accumulation 8", "--hardware rtx5060ti-16gb,memory=192GB --target-memory 16GB", None),
    ("llama-2-13b", f"{LONG} --accumulation 8", "--hardware rtx4090,memory=256GB --target-memory 24GB", None),
    ("llama-2-13b", f"{LONG} --accumulation 8", "--hardware rtx5060ti-16gb,memory=256GB --target-memory 16GB", None),
    ("50b.json", f"{LONG} --accumulation 8 --nvme-path .", "--hardware rtx4090,memory=256GB --target-memory 24GB", None),
    ("llama-2-70b", LONG, "--hardware 8xh100 --target-memory 80GB", None),
    ("llama-3.1-405b", LONG + " --zero 3", "--hardware 16x8xh100 --target-memory 80GB", None),
    ("qwen2.5-0.5b", LLMQ, "--hardware rtx4090 --target-memory 24GB", 39_800),
    ("qwen2.5-1.5b", LLMQ, "--hardware rtx4090 --target-memory 24GB", 14_070),
    ("qwen2.5-3b", LLMQ, "--hardware rtx4090 --target-memory 24GB", 7_000),
    ("qwen2.5-7b", LLMQ, "--hardware rtx4090 --target-memory 24GB", 2_780),
    ("qwen2.5-14b", LLMQ, "--hardware rtx4090 --target-memory 24GB", 1_350),
    ("qwen2.5-7b", LLMQ, "--hardware rtx5060ti-16gb --target-memory 16GB", 889),
    ("qwen2.5-0.5b", LLMQ, "--hardware h100", 150_000),
    ("qwen2.5-1.5b", LLMQ, "--hardware h100", 58_900),
    ("qwen2.5-3b", LLMQ, "--hardware h100", 30_900),
    ("qwen2.5-7b", LLMQ, "--hardware h100", 13_900),
    ("qwen2.5-14b", LLMQ, "--hardware h100", 6_330),
]
# Settings that lose nothing, as the planner's neighbours have them; the first that fits is the fastest of them. All take 4 samples per step.
RECOMPUTE = ["--recompute-norms", *(f"--activation-checkpointing --checkpoint-ratio {part}" for part in (0.25, 0.5, 0.75, 1))]
BATCHES = ["--micro-batch 4", "--micro-batch 2 --accumulation 2", "--micro-batch 1 --accumulation 4"]
SAVINGS = [f"{batch} {tier}{recompute}" for batch in BATCHES for tier in ("", "--offload-optimizer cpu ") for recompute in RECOMPUTE]


def run(command, allowed=(0,), folder=None):
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    if done.returncode not in allowed:
        raise SystemExit(f"{shlex.join(command)}\n{done.stdout[-2000:]}{done.stderr}")
    return done.stdout


def arena_of(binaries, flags, folder):
    """Returns the bytes of the device's arena that a run with these flags would have."""
    printed = run([str(binaries / "train"), *flags, "--print-plan", "--steps", "0"], folder=folder)
    number, unit = re.search(r"^  arena +(\S+) (\S+)", printed, re.M).groups()
    return float(number) * UNITS[unit]


def planned(binaries, folder, report):
    for model, flags, machine, published in PLANNED:
        common = ["--model", model, *flags.split()]
        [answer] = json.loads(run([str(binaries / "plan"), *common, *machine.split(), "--json"], (0, 1), folder))
        kept = flags.replace("--global-batch 512", "--micro-batch 4 --accumulation 128").replace(" --nvme-path .", "").replace(" --zero 3", "")
        baseline = arena_of(binaries, ["--model", model, *kept.split(), "--device-memory", "90TB"], folder)
        row = {**answer, "model": model, "flags": flags, "machine": machine, "baseline_bytes": baseline, "published_tokens_per_second": published}
        report(row)
        if not answer["fits"]:
            print(f"{model} {machine}: refused: {answer['refusal'].splitlines()[0]}", flush=True)
            continue
        slower = f"{100 * (answer['slowdown'] - 1):.0f} %" if "slowdown" in answer else "unknown how much"
        beside = f", published {published:,} ({answer['tokens_per_second'] / published:.2f})" if published else ""
        print(f"{model} {machine}: all kept {baseline / 1e9:.1f} GB, planned {answer['device_bytes'] / 1e9:.1f} GB "
              f"({100 * (answer['device_bytes'] / baseline - 1):.0f} %), {slower} slower than without a limit, "
              f"{answer['tokens_per_second']:,.0f} tokens/s{beside}\n    {re.sub(chr(39) + '.*' + chr(39), '...', answer['flags']) or 'as asked'}", flush=True)


def seconds_of(binaries, flags, folder):
    """Returns the seconds of each step of a run but its first two."""
    metrics = pathlib.Path(folder, "metrics")
    metrics.unlink(missing_ok=True)
    run([str(binaries / "train"), *flags, "--steps", "6", "--metrics", str(metrics)], folder=folder)
    return [row["seconds"] for row in map(json.loads, metrics.read_text().splitlines()) if "loss" in row][2:]


def measured(binaries, folder, report, repeat):
    common = "--model gpt2-124m --tokenizer bytes --sequence-length 512 --device cpu".split()
    kept = [*common, "--micro-batch", "4"]
    baseline = arena_of(binaries, kept, folder)
    ways = {"all kept": (baseline, kept)}
    for part in (0.6, 0.4):
        for saving in SAVINGS:
            flags = [*common, *saving.split()]
            bytes_of_way = arena_of(binaries, flags, folder)
            if bytes_of_way <= part * baseline:
                ways[f"within {100 * part:.0f} %"] = (bytes_of_way, flags)
                break
    seconds = {name: [] for name in ways}
    for _ in range(repeat):
        for name, (_, flags) in ways.items():
            seconds[name] += seconds_of(binaries, flags, folder)
    for name, (bytes_of_way, flags) in ways.items():
        median = statistics.median(seconds[name])
        slower = median / statistics.median(seconds["all kept"]) - 1
        report({"way": name, "flags": shlex.join(flags), "arena_bytes": bytes_of_way, "seconds": seconds[name]})
        print(f"gpt2-124m {name}: arena {bytes_of_way / 1e9:.2f} GB ({100 * (bytes_of_way / baseline - 1):.0f} %), {median:.3f} s per step "
              f"({100 * slower:+.1f} %): {shlex.join(flags[len(common):])}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/bin", type=pathlib.Path)
    parser.add_argument("--only", choices=["planned", "measured"])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--results", help="file for the rows, as JSON lines")
    arguments = parser.parse_args()
    binaries = arguments.bin.resolve()

    def report(row):
        if arguments.results:
            with open(arguments.results, "a") as file:
                file.write(json.dumps(row) + "\n")

    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "50b.json").write_text(json.dumps(MODEL_OF_50B))
        if arguments.only != "measured":
            planned(binaries, folder, report)
        if arguments.only != "planned":
            measured(binaries, folder, report, arguments.repeat)


if __name__ == "__main__":
    main()
