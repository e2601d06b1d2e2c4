#!/usr/bin/env python3
"""How much of the disk's time a step hides: ZeRO-3 over two ranks, optimizer state on the drive or not.

    bench/overlap.py --model FOLDER --data TEXT --nvme-path DIR [--build build] [--repeat 3]

overlap = 1 - (with - without - added core-seconds / cores) / transfers alone
`with`, `without`: seconds per step, and core-seconds per step as the kernel counts them for both ranks: medians of the timed steps, the first
and the last one left out (the last one drains). `transfers alone`: bytes that a step moves, at the rate of
fio reading and writing at once (swap_bench measures it in the same run, and the step of the optimizer alone beside it).
"""
import argparse, json, os, re, statistics, subprocess, tempfile, time

STEPS = 12


def core_seconds(pid):
    """Of the processes that `pid` has started, by now."""
    def fields(of):
        return open(f"/proc/{of}/stat").read().rsplit(")", 1)[1].split()
    seconds = 0
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            stat = fields(entry)
        except OSError:
            continue  # it has gone meanwhile
        if int(stat[1]) == pid:
            seconds += (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")
    return seconds


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

    def run(offload):
        if os.path.exists(metrics):
            os.remove(metrics)
        launched = subprocess.Popen([program("mlaunch"), "-np", "2", program("train"), "--model", args.model, "--data", args.data,
                                     "--sequence-length", "256", "--micro-batch", "2", "--steps", str(STEPS), "--zero", "3",
                                     "--gradient-clipping", "0", "--metrics", metrics, *offload],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        used = []  # core-seconds when each line of the metrics came
        while launched.poll() is None:
            time.sleep(0.02)
            lines = open(metrics).read().count("\n") if os.path.exists(metrics) else 0
            if lines > len(used) and lines < STEPS:
                used += [core_seconds(launched.pid)] * (lines - len(used))
        if launched.returncode != 0:
            raise SystemExit(f"train ended with {launched.returncode}")
        steps = [line for line in map(json.loads, open(metrics)) if "loss" in line][1:-1]
        return {"core_seconds": statistics.median(b - a for a, b in zip(used, used[1:])),
                "seconds": statistics.median(step["seconds"] for step in steps),
                "bytes": 2 * sum(steps[-1].get("moved_bytes", {}).get(k, 0) for k in ("disk_read", "disk_write")),
                "bound_reached": statistics.median(step.get("bound_reached", 0) for step in steps)}

    overlaps, cores = [], os.cpu_count()
    for repetition in range(args.repeat):
        swap = subprocess.run([program("swap_bench"), args.nvme_path, args.model, "5"], check=True, stdout=subprocess.PIPE, text=True).stdout
        moved = 2e9 * float(re.search(r"([0-9.]+) GB read", swap).group(1))
        fio = float(re.search(r"median: .* fio ([0-9.]+) s", swap).group(1))
        drive = ["--offload-optimizer", "nvme", "--nvme-path", args.nvme_path]
        ways = {name: run(offload) for name, offload in (("without", []), ("with", drive))}
        alone = fio * ways["with"]["bytes"] / moved
        added = (ways["with"]["core_seconds"] - ways["without"]["core_seconds"]) / cores
        overlaps.append(1 - (ways["with"]["seconds"] - ways["without"]["seconds"] - added) / alone)
        print(json.dumps({"repetition": repetition, "overlap": round(overlaps[-1], 3), "transfers_alone": round(alone, 3),
                          "added_core_seconds_per_core": round(added, 3), **ways}), flush=True)
    print(f"overlap, median of {args.repeat}: {statistics.median(overlaps):.3f}")


if __name__ == "__main__":
    main()
