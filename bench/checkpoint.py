#!/usr/bin/env python3
"""Measures saving and loading beside fio, torch and DeepSpeed on the same bytes, and what a save costs a run that goes on.

    bench/checkpoint.py --model FOLDER --data TEXT --folder DIR [--python PEERS_PYTHON] [--build build] [--repeat 3] [--only files|cost]

files: two ranks, ZeRO-2, fp32, AdamW, while training stands still: seconds that `train` prints, to the commit. fio writes and reads
as many bytes in the same folder (1 MiB, 16 at a time, O_DIRECT, fsync at the end; one job or two, whichever is faster); torch.save and
torch.load of the same tensors, DeepSpeed's save_checkpoint and load_checkpoint of the same model over two ranks (bench/peers/saving.py).
All saves end in fsync, loads are cold. Contenders are interleaved; medians are printed.
cost: a job of 4 x 256 tokens per step that saves once, from a snapshot, and one that does not: added seconds over all steps as a share of 50
steps, and the seconds for which training stood still beside those of copying as many bytes per rank, both ranks at once.
"""
import argparse, json, os, re, shutil, statistics, subprocess, sys, tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COPY = """
import sys, time
a, b = bytearray(int(sys.argv[1])), bytearray(int(sys.argv[1]))
a[:] = b; b[0:1] = b"1"
seconds = []
for _ in range(5):
    begin = time.perf_counter(); memoryview(a)[:] = b; seconds.append(time.perf_counter() - begin)
print(sorted(seconds)[2])
"""


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model", required=True)
    p.add_argument("--data", required=True)
    p.add_argument("--folder", required=True, help="on the disk that is measured; made and removed")
    p.add_argument("--python", help="interpreter with torch, transformers, deepspeed; without it no peers")
    p.add_argument("--build", default=os.path.join(ROOT, "build"))
    p.add_argument("--repeat", type=int, default=3)
    p.add_argument("--only", choices=["files", "cost"])
    return p.parse_args()


def train(args, *more):
    command = [os.path.join(args.build, "bin", "mlaunch"), "-np", "2", os.path.join(args.build, "bin", "train"), "--model", args.model,
               "--data", args.data, "--tokenizer", "bytes", "--zero", "2", "--gradient-clipping", "0", "--output", os.path.join(args.folder, "strata"), *map(str, more)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout


def fio(args, mode, size):
    """Returns the seconds of one fio job, or of two with half of the bytes each (as there are two ranks), whichever is faster."""
    seconds = []
    for jobs in (1, 2):
        command = ["fio", f"--name=x{jobs}", f"--directory={args.folder}", f"--rw={mode}", f"--size={size // jobs}", f"--numjobs={jobs}", "--bs=1M",
                   "--iodepth=16", "--direct=1", "--ioengine=io_uring", "--output-format=json",
                   *(["--end_fsync=1", "--create_on_open=1"] if mode == "write" else [])]
        out = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
        seconds.append(max(job["job_runtime"] for job in out["jobs"]) / 1e3)
    return min(seconds)


def peers(args, way):
    folder = os.path.join(args.folder, way)
    start = [args.python] if way == "torch" else [args.python, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    environment = dict(os.environ, OMP_NUM_THREADS="2" if way == "torch" else "1")
    out = subprocess.run([*start, os.path.join(ROOT, "bench/peers/saving.py"), way, args.model, folder], check=True, stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, text=True, env=environment).stdout
    shutil.rmtree(folder)
    return json.loads([line for line in out.splitlines() if line.startswith("{")][-1])


def files(args):
    found = []
    for repetition in range(args.repeat):
        shutil.rmtree(args.folder, ignore_errors=True)
        os.makedirs(args.folder)
        small = ["--sequence-length", 32, "--micro-batch", 1]
        out = train(args, *small, "--steps", 1)
        size, unit, saved = re.search(r"wrote .*: ([0-9.]+) ([KMGT])iB in ([0-9.]+) s", out).groups()
        size = int(float(size) * 1024 ** (1 + "KMGT".index(unit))) >> 20 << 20
        out = train(args, *small, "--steps", 2, "--resume", "required")
        one = {"bytes": size, "strata": {"save": float(saved), "load": float(re.search(r"loaded in ([0-9.]+) s", out).group(1))},
               "fio": {"save": fio(args, "write", size), "load": fio(args, "read", size)}}
        if args.python:
            one |= {way: peers(args, way) for way in ("torch", "deepspeed")}
        found.append(one)
        print(json.dumps({"repetition": repetition, **one}), flush=True)
    for what in ("save", "load"):
        median = {way: statistics.median(one[way][what] for one in found) for way in found[0] if way != "bytes"}
        ratios = {way: statistics.median(one[way][what] / one["strata"][what] for one in found) for way in median}
        print(f"{what}: " + ", ".join(f"{way} {seconds:.2f} s" + (f" ({ratios[way]:.2f} x ours)" if way != "strata" else "")
                                      for way, seconds in median.items()))


def cost(args):
    job = ["--sequence-length", 256, "--micro-batch", 2, "--steps", 10]
    metrics = os.path.join(tempfile.mkdtemp(), "metrics.jsonl")
    found = []
    for repetition in range(args.repeat):
        one = {}
        for way, more in (("without", ["--save-every", 1000]), ("with", ["--save-every", 2])):
            shutil.rmtree(args.folder, ignore_errors=True)
            os.makedirs(args.folder)
            train(args, *job, *more, "--metrics", metrics)
            lines = list(map(json.loads, open(metrics)))
            steps = [line for line in lines if "loss" in line]
            one[way] = sum(line["seconds"] for line in steps[1:])
            one["step"] = statistics.median(line["seconds"] for line in steps[1:])
            saves = [line for line in lines if "checkpoint_bytes" in line]
            if way == "with":
                one |= {"saves": len(saves), "blocked": statistics.median(line["checkpoint_blocked_seconds"] for line in saves),
                        "until_commit": statistics.median(line["checkpoint_seconds"] for line in saves)}
                size = saves[0]["checkpoint_bytes"]
        copies = [subprocess.Popen([sys.executable, "-c", COPY, str(size // 2)], stdout=subprocess.PIPE, text=True) for _ in range(2)]
        one["copy"] = max(float(copy.communicate()[0]) for copy in copies)
        one["share_of_50_steps"] = (one["with"] - one["without"]) / one["saves"] / (50 * one["step"])
        found.append(one)
        print(json.dumps({"repetition": repetition, **one}), flush=True)
    print(f"a save every 50 steps costs {100 * statistics.median(one['share_of_50_steps'] for one in found):.2f} %; training stands still for "
          f"{statistics.median(one['blocked'] / one['copy'] for one in found):.2f} x the time of copying as many bytes")


def main():
    args = arguments()
    for name, body in (("files", files), ("cost", cost)):
        if args.only in (None, name):
            body(args)
    shutil.rmtree(args.folder, ignore_errors=True)


if __name__ == "__main__":
    main()
