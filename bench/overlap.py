#!/usr/bin/env python3
"""How much of the disk's time a step hides: ZeRO-3 over two ranks, optimizer state on the drive or not.

    bench/overlap.py --model FOLDER --data TEXT --nvme-path DIR [--build build] [--repeat 3]

overlap = 1 - (with - without - added core-seconds / cores) / transfers alone
`with`, `without`: seconds per step (median of the timed steps, the last one left out: it drains). Core-seconds per step: of a
long run less those of a short one, divided by the steps between them. `transfers alone`: bytes that a step moves, at the rate of
fio reading and writing at once (swap_bench measures it in the same run, and the step of the optimizer alone beside it).
"""
import argparse, json, os, re, resource, statistics, subprocess, tempfile

SHORT, LONG = 4, 12


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model", required=True)
    p.add_argument("--data", required=True)
    p.add_argument("--nvme-path", required=True)
    p.add_argument("--build", default="build")
    p.add_argument("--repeat", type=int, default=3)
    args = p.parse_args()
    program = lambda name: os.path.join(args.build, "bin", name)
    metrics = os.path.join(tempfile.mkdtemp(prefix="strata-overlap-"), "metrics.jsonl")

    def run(steps, offload):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([program("mlaunch"), "-np", "2", program("train"), "--model", args.model, "--data", args.data,
                        "--sequence-length", "256", "--micro-batch", "2", "--steps", str(steps), "--zero", "3",
                        "--gradient-clipping", "0", "--metrics", metrics, *offload], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        lines = [line for line in map(json.loads, open(metrics)) if "loss" in line]
        return {"core_seconds": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
                "seconds": statistics.median(line["seconds"] for line in lines[1:-1]),
                "bytes": 2 * sum(lines[-2].get("moved_bytes", {}).get(k, 0) for k in ("disk_read", "disk_write")),
                "bound_reached": statistics.median(line.get("bound_reached", 0) for line in lines[1:-1])}

    overlaps, cores = [], os.cpu_count()
    for repetition in range(args.repeat):
        swap = subprocess.run([program("swap_bench"), args.nvme_path, args.model, "5"], check=True, stdout=subprocess.PIPE, text=True).stdout
        moved = 2e9 * float(re.search(r"([0-9.]+) GB read", swap).group(1))
        fio = float(re.search(r"median: .* fio ([0-9.]+) s", swap).group(1))
        drive = ["--offload-optimizer", "nvme", "--nvme-path", args.nvme_path]
        ways = {}
        for name, offload in (("without", []), ("with", drive)):
            short, long = run(SHORT, offload), run(LONG, offload)
            ways[name] = {**long, "core_seconds": (long["core_seconds"] - short["core_seconds"]) / (LONG - SHORT)}
        alone = fio * ways["with"]["bytes"] / moved
        added = (ways["with"]["core_seconds"] - ways["without"]["core_seconds"]) / cores
        overlaps.append(1 - (ways["with"]["seconds"] - ways["without"]["seconds"] - added) / alone)
        print(json.dumps({"repetition": repetition, "overlap": round(overlaps[-1], 3), "transfers_alone": round(alone, 3),
                          "added_core_seconds_per_core": round(added, 3), **ways}), flush=True)
    print(f"overlap, median of {args.repeat}: {statistics.median(overlaps):.3f}")


if __name__ == "__main__":
    main()
