#!/usr/bin/env python3
"""Compares foreseen with measured steps: trains configurations drawn by a seed, none of which was measured before, and prints the errors.

    bench/foresight.py [--bin build/bin ...] [--seed 17] [--count 40] [--learn 12] [--results FILE]

First trains `--learn` configurations of another seed with --calibrate again, whose times of instructions are kept in a folder of its own. Then
trains `--count` others, which find these times and measure none (--calibrate auto, short runs), and compares the seconds per step that each
foresaw with the median of its steps. A configuration whose steps differ by more than a tenth is disturbed, and runs again, up to three times.

A virtual machine may be slower for minutes, by a fifth and more, by what others do on its host; no prediction can know that. Before and after each
of these runs the same small model is trained, whose steps tell how much slower (`drift` above 1) or faster the machine is than in the median while
it learned. Errors are printed as they are, and with `foreseen` times `drift` in place of `foreseen`.
"""
import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import tempfile

MODEL_TYPES = ["gpt2", "llama"]
# Some of what the forward pass of a layer saves (docs/formats/plan.md).
SAVED_VALUES = {"gpt2": ["0.norm", "2.attention", "4.residual_norm.1", "5.linear", "6.gelu"],
                "llama": ["0.norm", "4.attention", "6.residual_norm.1", "7.linear", "8.swiglu"]}
LEARNED_STEPS = 6  # first steps refine times until the fifth
DRIVE = ["--nvme-path", "drive"]  # a folder of the run's own
# Products, and an optimizer that reads as much memory, on all cores.
PROBE = ({"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": 4096, "n_positions": 1024, "n_embd": 512, "n_layer": 4,
          "n_head": 8, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0},
         1, ["--sequence-length", "128", "--micro-batch", "2", "--threads", "2"])
PROBE_STEPS = 14


def model_config(draw):
    """Returns a config.json with the numbers of a model of 1 to 60 million parameters."""
    heads = draw.choice([4, 8, 12])
    hidden = heads * draw.choice([32, 48, 64])
    layers = draw.choice([2, 3, 4, 6, 8])
    vocabulary = draw.choice([256, 1024, 8192, 20000])
    if draw.choice(MODEL_TYPES) == "gpt2":
        return {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": vocabulary, "n_positions": 1024, "n_embd": hidden,
                "n_layer": layers, "n_head": heads, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    return {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": vocabulary, "hidden_size": hidden,
            "intermediate_size": hidden * draw.choice([2, 3, 4]), "num_hidden_layers": layers, "num_attention_heads": heads,
            "num_key_value_heads": draw.choice([heads, heads // 2]), "max_position_embeddings": 1024, "rms_norm_eps": 1e-5}


def draw_actions(draw, model, ways):
    """Returns a flag that makes some saved values of the first layers again, or sends them away."""
    names = draw.sample(SAVED_VALUES[model["model_type"]], draw.choice([1, 2, 3]))
    layers = model["n_layer"] if "n_layer" in model else model["num_hidden_layers"]
    return ["--actions", json.dumps([{"blocks": [1, draw.randint(1, layers)], "actions": {name: draw.choice(ways) for name in names}}])]


def draw_configuration(draw):
    model, ranks, accumulation = model_config(draw), draw.choice([1, 2]), draw.choice([1, 1, 2, 3])
    flags = ["--sequence-length", draw.choice([64, 128, 192, 256, 512]), "--micro-batch", draw.choice([1, 2, 4]),
             "--dtype", draw.choice(["fp32", "fp32", "bf16"]), "--accumulation", accumulation, "--threads", 2 // ranks,
             "--zero", draw.choice([0, 1, 2, 3])]
    homes = draw.choice([[], [], ["--offload-optimizer", "cpu"], ["--offload-optimizer", "cpu", "--offload-param", "cpu"],
                         ["--offload-optimizer", "nvme", *DRIVE]])
    again = draw.choice([[], [], ["--activation-checkpointing"], ["--recompute-norms"], draw_actions(draw, model, ["recompute"]),
                         draw_actions(draw, model, ["recompute", "host"])])
    order = draw.choice([[], ["--layer-major"]]) if accumulation > 1 else []
    return model, ranks, [str(flag) for flag in flags + homes + again + order]


def train(binaries, home, configuration, steps, calibrate):
    """Returns the foreseen seconds per step and those of each step but the first two."""
    model, ranks, flags = configuration
    with tempfile.TemporaryDirectory(dir=home) as folder:
        config, metrics = pathlib.Path(folder, "config.json"), pathlib.Path(folder, "metrics.jsonl")
        config.write_text(json.dumps(model))
        pathlib.Path(folder, "drive").mkdir()
        command = [str(binaries / "train"), "--model", str(config), "--tokenizer", "bytes", "--steps", str(steps), "--metrics", str(metrics),
                   "--calibrate", calibrate, *flags]
        if ranks > 1:
            command = [str(binaries / "mlaunch"), "-np", str(ranks), *command]
        environment = os.environ | {"XDG_CACHE_HOME": str(home / "cache")}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
        rows = [json.loads(line) for line in metrics.read_text().splitlines()]
    steps = [row for row in rows if "seconds" in row and "foreseen_seconds" in row]
    return steps[-1]["foreseen_seconds"], [row["seconds"] for row in steps[2:]]


def probe(binaries, home):
    """Returns the seconds per step of the same small model as ever."""
    return statistics.median(train(binaries, home, PROBE, PROBE_STEPS, "off")[1])


def compare(binaries, home, configuration, usual_probe):
    """Runs a configuration until its steps agree, at most three times; returns the row of the least disturbed run."""
    best = None
    before = probe(binaries, home)
    for _ in range(3):
        foreseen, seconds = train(binaries, home, configuration, 6, "auto")
        if statistics.median(seconds) < 0.3:  # more of short steps
            foreseen, seconds = train(binaries, home, configuration, 2 + min(200, int(2 / statistics.median(seconds))), "auto")
        ordered = sorted(seconds)
        spread = (ordered[3 * len(ordered) // 4] - ordered[len(ordered) // 4]) / statistics.median(seconds)
        row = {"model": configuration[0], "ranks": configuration[1], "flags": configuration[2], "foreseen": foreseen,
               "measured": statistics.median(seconds), "spread": spread}
        after = probe(binaries, home)
        row["drift"], before = (before + after) / 2 / usual_probe, after
        if best is None or spread < best["spread"]:
            best = row
        if spread <= 0.1:
            break
    error = best["foreseen"] / best["measured"] - 1
    return best | {"error": error, "error_without_drift": (1 + error) * best["drift"] - 1}


def ordered_pairs(rows):
    """Returns of how many pairs whose measured steps are 10 % apart the foreseen ones are in the right order, and of how many."""
    right = pairs = 0
    for i, a in enumerate(rows):
        for b in rows[:i]:
            if max(a["measured"], b["measured"]) < 1.1 * min(a["measured"], b["measured"]):
                continue
            pairs += 1
            right += (a["measured"] < b["measured"]) == (a["foreseen"] < b["foreseen"])
    return right, pairs


def learn(binaries, home, arguments):
    """Trains configurations of another seed; returns the seconds of the probe's step in that time."""
    draw = random.Random(arguments.seed + 1_000_000)
    probes = [probe(binaries, home)]
    for _ in range(arguments.learn):
        train(binaries, home, draw_configuration(draw), LEARNED_STEPS, "again")
        probes.append(probe(binaries, home))
    return statistics.median(probes)


def print_row(number, row):
    print(f"{number:3} {row['model']['model_type']:5} {row['ranks']} rank(s) {' '.join(row['flags'])}: foreseen {row['foreseen']:.4f} s, "
          f"measured {row['measured']:.4f} s, {100 * row['error']:+.1f} % (spread {100 * row['spread']:.0f} %; drift {row['drift']:.3f}, without it {100 * row['error_without_drift']:+.1f} %)",
          flush=True)


def errors_text(rows, name):
    errors = sorted(abs(row[name]) for row in rows)
    return f"{100 * statistics.median(errors):.1f} % median, {100 * errors[-1]:.1f} % worst"


def print_summary(rows):
    right, pairs = ordered_pairs(rows)
    print(f"{len(rows)} configurations: error {errors_text(rows, 'error')}; without drift {errors_text(rows, 'error_without_drift')}; "
          f"{right} of {pairs} pairs 10 % apart in the right order")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=["build/bin"], nargs="+", help="several are compared, each with times of its own, in turns")
    parser.add_argument("--seed", type=int, default=17)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--learn", type=int, default=12)
    parser.add_argument("--results", help="file for the rows, as JSON lines")
    arguments = parser.parse_args()
    rows = {name: [] for name in arguments.bin}
    usual = {}
    with tempfile.TemporaryDirectory() as folder:
        homes = {name: pathlib.Path(folder, str(number)) for number, name in enumerate(arguments.bin)}
        for name, home in homes.items():
            home.mkdir()
            usual[name] = learn(pathlib.Path(name).resolve(), home, arguments)
        draw = random.Random(arguments.seed)
        for number in range(arguments.count):
            configuration = draw_configuration(draw)
            for name, home in homes.items():
                row = compare(pathlib.Path(name).resolve(), home, configuration, usual[name]) | {"bin": name}
                rows[name].append(row)
                print_row(number, row)
                if arguments.results:
                    with open(arguments.results, "a") as file:
                        file.write(json.dumps(row) + "\n")
    for name in arguments.bin:
        print(name, end=": ")
        print_summary(rows[name])


if __name__ == "__main__":
    main()
