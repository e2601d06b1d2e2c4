#!/usr/bin/env python3
"""Measures how much of the disk's time a step hides: ZeRO-3 over two ranks, optimizer state on the drive or not.

    bench/overlap.py --model FOLDER --data TEXT --nvme-path DIR [--build build] [--repeat 3]

overlap of waiting alone = 1 - (with - without - added core-seconds / cores) / transfers alone
overlap of seconds = 1 - (with - without) / transfers alone: processor time that offloading adds counts as not hidden, too. Both are printed.
`with`, `without`: seconds per step. Core-seconds: of all threads of both ranks, as the scheduler counts them, so hashing, copies and updates are in
and sleeping is not. Both are read at the same moments, when a step's line of metrics comes; hence what is exposed is the difference of `idle` =
seconds - core-seconds / cores, of which each run gives the median over its steps, the first and the last one left out (the last one drains).
`transfers alone`: bytes that a step moves, at the better rate of two that swap_bench measures in the same repetition: fio reading and writing at once,
and the swapped optimizer step alone. Every second repetition has the runs in the other order.
`others`: core-seconds per step that the machine spent on anything else, the kernel's own work for the drive included; `others_bytes`: further bytes to
and from the drive's file system. A repetition is reported as disturbed by more than 0.15 core-seconds in the run without offload, by 0.15 more than that
in the run with it, or by a twentieth of the bytes of a step.
"""
import argparse, json, os, re, statistics, subprocess, tempfile, time

STEPS = 12
CORES = os.cpu_count()
DISTURBED_SECONDS, DISTURBED_BYTES = 0.15, 0.05


def ranks_of(launcher):
    def parent(pid):
        return int(open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[1])
    children = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if parent(pid) == launcher:
                children.append(pid)
        except OSError:
            continue  # the process has ended
    return children


def passed_bytes(directory):
    """Returns the bytes read and written so far on the block device below the directory, 0 if there is none."""
    device = os.stat(directory).st_dev
    try:
        fields = open(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/stat").read().split()
    except OSError:
        return 0
    return 512 * (int(fields[2]) + int(fields[6]))


def sample(ranks, directory):
    """Returns the time, core-seconds of the ranks, core-seconds of the machine, bytes of the drive."""
    of_ranks = sum(int(open(f"/proc/{pid}/task/{thread}/schedstat").read().split()[0])
                   for pid in ranks for thread in os.listdir(f"/proc/{pid}/task")) / 1e9
    user, nice, system, _, _, irq, softirq, steal = map(int, open("/proc/stat").readline().split()[1:9])
    of_machine = (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")
    return time.monotonic(), of_ranks, of_machine, passed_bytes(directory)


def train(command, metrics, directory):
    """Runs a job; returns medians over steps 2 to STEPS - 1."""
    if os.path.exists(metrics):
        os.remove(metrics)
    launched = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    samples, ranks = [], []  # a sample is taken when a line of the metrics appears
    while launched.poll() is None:
        time.sleep(0.01)
        lines = open(metrics).read().count("\n") if os.path.exists(metrics) else 0
        if len(samples) < lines < STEPS:
            if lines != len(samples) + 1:
                raise SystemExit("two steps ended between two looks at the metrics: the model is too small for this measurement")
            ranks = ranks or ranks_of(launched.pid)
            samples.append(sample(ranks, directory))
    if launched.returncode != 0:
        raise SystemExit(f"train ended with {launched.returncode}")
    steps = [line for line in map(json.loads, open(metrics)) if "loss" in line][1:-1]
    seconds, used, machine, passed = zip(*([b - a for a, b in zip(*pair)] for pair in zip(samples, samples[1:])))
    result = {"seconds": statistics.median(seconds), "core_seconds": statistics.median(used),
              "idle": statistics.median(s - u / CORES for s, u in zip(seconds, used)),
              "others": statistics.mean(m - u for m, u in zip(machine, used))}
    moved = 2 * sum(steps[-1].get("moved_bytes", {}).get(key, 0) for key in ("disk_read", "disk_write"))
    result |= {"bytes": moved, "others_bytes": round(statistics.mean(passed)) - moved}
    if moved:
        result |= {"bound_reached": statistics.median(step["bound_reached"] for step in steps),
                   "waited_for_disk": statistics.median(step["waited_seconds"]["disk_read"] for step in steps)}
    return {key: round(value, 4) for key, value in result.items()}


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
    common = [program("mlaunch"), "-np", "2", program("train"), "--model", args.model, "--data", args.data, "--tokenizer", "bytes", "--sequence-length", "256",
              "--micro-batch", "2", "--steps", str(STEPS), "--zero", "3", "--gradient-clipping", "0", "--metrics", metrics]
    ways = {"without": [], "with": ["--offload-optimizer", "nvme", "--nvme-path", args.nvme_path]}

    overlaps, of_seconds, quiet = [], [], []
    for repetition in range(args.repeat):
        swap = subprocess.run([program("swap_bench"), args.nvme_path, args.model, "5"], check=True, stdout=subprocess.PIPE, text=True).stdout
        moved = 2e9 * float(re.search(r"([0-9.]+) GB read", swap).group(1))
        alone = [float(s) for s in re.search(r"median: step ([0-9.]+) s, fio ([0-9.]+) s", swap).groups()]
        order = list(ways) if repetition % 2 == 0 else list(reversed(ways))
        runs = {way: train(common + ways[way], metrics, args.nvme_path) for way in order}
        without, swapped = runs["without"], runs["with"]
        disturbed = (without["others"] > DISTURBED_SECONDS or swapped["others"] - without["others"] > DISTURBED_SECONDS
                     or max(run["others_bytes"] for run in runs.values()) > DISTURBED_BYTES * swapped["bytes"])
        transfers = min(alone) * swapped["bytes"] / moved
        exposed = swapped["idle"] - without["idle"]
        overlaps.append(1 - exposed / transfers)
        of_seconds.append(1 - (swapped["seconds"] - without["seconds"]) / transfers)
        quiet += [] if disturbed else [overlaps[-1]]
        print(json.dumps({"repetition": repetition, "overlap": round(overlaps[-1], 3), "of_seconds": round(of_seconds[-1], 3), "exposed": round(exposed, 4), "transfers_alone": round(transfers, 3),
                          "alone": {"step": alone[0], "fio": alone[1]}, "disturbed": disturbed, **runs}), flush=True)
    for name, values in (("overlap, all", overlaps), ("overlap, undisturbed", quiet), ("of seconds, all", of_seconds)):
        if values:
            print(f"{name} {len(values)}: median {statistics.median(values):.3f}, {min(values):.3f} to {max(values):.3f}")


if __name__ == "__main__":
    main()
