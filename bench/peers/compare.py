#!/usr/bin/env python3
"""Runs the same training job in Strata and in PyTorch or DeepSpeed: interleaved repetitions, medians, ratios, losses.

    bench/peers/compare.py --peers FOLDER_WITH_train.py --python PEERS_PYTHON --data TEXT [--repeat 5] [--cases one,two] --out NAME

Cases, joined by commas (`name:dtype` for another dtype than fp32, as in `one:bf16`):
`one` = one process, two threads (eager, torch.compile); `two` = two ranks of one thread, each on its own core (DDP, FSDP2,
DeepSpeed ZeRO 1-3); `offload` = two ranks, ZeRO-3, state on the device, in host memory, on the drive of --nvme-path
(DeepSpeed with the same offload, which at stage 3 moves parameters, too).
Peers run at their best (--mkl best of train.py); `one` and `two` show torch.compile and DeepSpeed ZeRO-3 as they are shipped, too.
Every engine starts from the same Hugging Face folder, written by Strata, and sees the same samples
(`--shuffle false --no-decay none`), so the losses must agree. Writes NAME.json (raw) and NAME.md in bench/results.
"""
import argparse, json, os, platform, statistics, subprocess, sys, tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SEQUENCE, GLOBAL_BATCH = 256, 4


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--peers", required=True, help="folder that holds the peers' train.py")
    p.add_argument("--python", required=True, help="interpreter with torch, transformers, deepspeed")
    p.add_argument("--data", required=True)
    p.add_argument("--build", default=os.path.join(ROOT, "build"))
    p.add_argument("--model", default="gpt2-124m")
    p.add_argument("--cases", default="one,two")
    p.add_argument("--repeat", type=int, default=5)
    p.add_argument("--steps", type=int, default=4, help="timed")
    p.add_argument("--warmup", type=int, default=2)
    p.add_argument("--nvme-path", default="/tmp/strata-peers-nvme")
    p.add_argument("--out", required=True)
    return p.parse_args()


def strata(args, folder, ranks, stage, metrics, offload=(), dtype="fp32"):
    train = [os.path.join(args.build, "bin", "train")]
    if ranks > 1:
        # Each rank gets its own core, as the peers' train.py does it.
        train = [os.path.join(args.build, "bin", "mlaunch"), "-np", str(ranks), "sh", "-c", 'exec taskset -c $LOCAL_RANK "$@"', "rank"] + train
    return train + ["--model", folder, "--data", args.data, "--tokenizer", "bytes", "--shuffle", "false", "--no-decay", "none",
                    "--sequence-length", str(SEQUENCE), "--micro-batch", str(GLOBAL_BATCH // ranks),
                    "--steps", str(args.warmup + args.steps), "--learning-rate", "3e-4", "--scheduler", "constant", "--betas", "0.9", "0.95",
                    "--weight-decay", "0.1", "--gradient-clipping", "0", "--zero", str(stage), "--dtype", dtype, "--output", "", "--metrics", metrics, *offload]


def run_strata(args, folder, ranks, stage, scratch, offload=(), dtype="fp32"):
    metrics = os.path.join(scratch, "metrics.jsonl")
    subprocess.run(strata(args, folder, ranks, stage, metrics, offload, dtype), check=True, stdout=subprocess.DEVNULL)
    lines = [line for line in map(json.loads, open(metrics)) if "loss" in line]
    timed = lines[args.warmup:]
    return {"tokens_per_second": GLOBAL_BATCH * SEQUENCE / statistics.median(l["seconds"] for l in timed),
            "losses": [l["loss"] for l in lines], "peak_rss_bytes": lines[-1]["peak_rss_bytes"],
            "arena_bytes": lines[-1]["arena_bytes"],
            "bound_reached": [line["bound_reached"] for line in timed if "bound_reached" in line]}


def run_peer(args, folder, engine, ranks, stage, offload="none", dtype="fp32", mkl="best"):
    command = [args.python, os.path.join(args.peers, "train.py"), "--engine", engine, "--model", folder, "--data", args.data,
               "--ranks", str(ranks), "--batch", str(GLOBAL_BATCH // ranks), "--seq", str(SEQUENCE), "--steps", str(args.steps),
               "--warmup", str(args.warmup), "--zero", str(stage), "--offload", offload, "--nvme-path", args.nvme_path,
               "--dtype", dtype, "--mkl", mkl]
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    result = json.loads([line for line in out.splitlines() if line.startswith("{")][-1])
    return {key: result[key] for key in ("tokens_per_second", "losses", "peak_rss_bytes")}


def ceiling(args):
    """Measures GFLOP/s of PyTorch's products at this model's shapes on two threads, which a step of products alone would reach."""
    code = """
import torch, time
torch.set_num_threads(2)
N, shapes = 1024, [(768, 2304, 12), (768, 768, 12), (768, 3072, 12), (3072, 768, 12), (768, 50304, 1)]
seconds, flops = 0.0, 0.0
for k, m, count in shapes:
    x, w, d = torch.randn(N, k), torch.randn(m, k), torch.randn(N, m)
    for call in (lambda: x @ w.T, lambda: d @ w, lambda: d.T @ x):
        call(); best = 1e9
        for _ in range(4):
            t = time.perf_counter(); call(); best = min(best, time.perf_counter() - t)
        seconds += best * count; flops += 2.0 * N * k * m * count
print(flops / seconds / 1e9, seconds)
"""
    preload = os.path.join(os.path.dirname(os.path.dirname(args.python)), "mkl_all_cpus.so")
    environment = dict(os.environ, **({"LD_PRELOAD": preload} if os.path.exists(preload) else {}))
    out = subprocess.run([args.python, "-c", code], check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout
    gflops, seconds = map(float, out.split())
    return {"gflops": gflops, "tokens_per_second": 1024 / seconds}


def one_process(args, folder, scratch, dtype):
    jobs = [(f"strata {dtype}, 1 process", lambda: run_strata(args, folder, 1, 0, scratch, dtype=dtype)),
            (f"torch.compile {dtype}", lambda: run_peer(args, folder, "compile", 1, 0, dtype=dtype))]
    if dtype == "fp32":
        jobs += [("PyTorch eager fp32", lambda: run_peer(args, folder, "eager", 1, 0)),
                 ("torch.compile fp32, as shipped", lambda: run_peer(args, folder, "compile", 1, 0, mkl="as-shipped"))]
    return jobs


def two_ranks(args, folder, scratch, dtype):
    jobs = [(f"PyTorch DDP {dtype}, 2 ranks", lambda: run_peer(args, folder, "eager", 2, 0, dtype=dtype)),
            (f"PyTorch FSDP2 {dtype}, 2 ranks", lambda: run_peer(args, folder, "fsdp2", 2, 0, dtype=dtype))]
    for stage in (0, 1, 2, 3):
        jobs.append((f"strata ZeRO-{stage} {dtype}, 2 ranks",
                     lambda stage=stage: run_strata(args, folder, 2, stage, scratch, dtype=dtype)))
        if stage:
            jobs.append((f"DeepSpeed ZeRO-{stage} {dtype}, 2 ranks",
                         lambda stage=stage: run_peer(args, folder, "deepspeed", 2, stage, dtype=dtype)))
    if dtype == "fp32":
        jobs.append(("DeepSpeed ZeRO-3 fp32, 2 ranks, as shipped",
                     lambda: run_peer(args, folder, "deepspeed", 2, 3, mkl="as-shipped")))
    return jobs


def offloaded(args, folder, scratch, dtype):
    os.makedirs(args.nvme_path, exist_ok=True)
    nvme = ["--nvme-path", args.nvme_path]
    places = [("no offload", []), ("optimizer in host memory", ["--offload-optimizer", "cpu"]),
              ("optimizer on the drive", ["--offload-optimizer", "nvme", *nvme]),
              ("optimizer and parameters in host memory", ["--offload-optimizer", "cpu", "--offload-param", "cpu"]),
              ("optimizer and parameters on the drive", ["--offload-optimizer", "nvme", "--offload-param", "nvme", *nvme])]
    jobs = [(f"strata ZeRO-3, {name}", lambda flags=flags: run_strata(args, folder, 2, 3, scratch, flags, dtype)) for name, flags in places]
    return jobs + [(f"DeepSpeed ZeRO-3, offload {target}", lambda target=target: run_peer(args, folder, "deepspeed", 2, 3, target, dtype))
                   for target in ("cpu", "nvme")]


CASES = {"one": one_process, "two": two_ranks, "offload": offloaded}


def machine():
    """Describes the CPU: model, widest instructions, number of cores."""
    lines = open("/proc/cpuinfo").read().splitlines()
    model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    flags = next((line.split() for line in lines if line.startswith("flags")), [])
    wide = [flag for flag in ("avx2", "avx512f", "avx512_bf16", "amx_bf16") if flag in flags]
    family = [line.split(":")[1].strip() for line in lines if line.startswith(("cpu family", "model\t"))][:2]
    return f"{os.cpu_count()} cores of {model} (family {', model '.join(family)}; {' '.join(wide)})"


def main():
    args = arguments()
    scratch = tempfile.mkdtemp(prefix="strata-compare-")
    subprocess.run([os.path.join(args.build, "bin", "train"), "--model", args.model, "--data", args.data, "--tokenizer", "bytes", "--steps", "1",
                    "--learning-rate", "0", "--weight-decay", "0", "--sequence-length", "32", "--micro-batch", "1",
                    "--output", os.path.join(scratch, "start")], check=True, stdout=subprocess.DEVNULL)
    folder = os.path.join(scratch, "start", "step-00000001")
    jobs = []
    for case in args.cases.split(","):
        name, dtype = (case.split(":") + ["fp32"])[:2]
        jobs += CASES[name](args, folder, scratch, dtype)
    runs, ceilings = {name: [] for name, _ in jobs}, []
    for repetition in range(args.repeat):
        ceilings.append(ceiling(args))
        for name, job in jobs:
            runs[name].append(job())
            print(repetition, name, round(runs[name][-1]["tokens_per_second"], 1), flush=True)
        if all(runs.values()):
            report(args, runs, ceilings)  # reports after each repetition, so that an early end loses nothing


def report(args, runs, ceilings):
    results = os.path.join(ROOT, "bench", "results")
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], stdout=subprocess.PIPE, text=True).stdout.strip()
    top = statistics.median(c["tokens_per_second"] for c in ceilings)
    reference = next(iter(runs.values()))[0]["losses"]
    lines = [f"# {args.model}, global batch {GLOBAL_BATCH} x {SEQUENCE}: Strata and its peers", "",
             f"Commit {commit}, {len(ceilings)} interleaved repetitions, median of {args.steps} timed steps each; {machine()}. "
             f"PyTorch's fp32 products alone (at their best, two threads, same shapes) would allow "
             f"{top:.0f} tokens/s ({statistics.median(c['gflops'] for c in ceilings):.0f} GFLOP/s).", "",
             "| engine | tokens/s median (min-max) | of PyTorch's products | peak GB per rank | largest relative loss difference |", "|---|---|---|---|---|"]
    for name, results_of in runs.items():
        speeds = sorted(r["tokens_per_second"] for r in results_of)
        worst = max(abs(a - b) / abs(b) for r in results_of for a, b in zip(r["losses"], reference))
        median = statistics.median(speeds)
        lines.append(f"| {name} | {median:.0f} ({speeds[0]:.0f}-{speeds[-1]:.0f}) | {median / top:.2f} | "
                     f"{max(r['peak_rss_bytes'] for r in results_of) / 1e9:.2f} | {worst:.1e} |")
    lines += ["", "Command: `" + " ".join(["bench/peers/compare.py"] + [a for a in sys.argv[1:] if not a.startswith("/")]) + "`", ""]
    json.dump({"runs": runs, "ceiling": ceilings}, open(os.path.join(results, args.out + ".json"), "w"), indent=1)
    open(os.path.join(results, args.out + ".md"), "w").write("\n".join(lines))


if __name__ == "__main__":
    main()
