#!/usr/bin/env python3
"""Times one update of AdamW on the host: Strata, PyTorch, DeepSpeed and the memory bound, interleaved round by round.

    PEERS_PYTHON bench/peers/adam.py [--elements N] [--threads T] [--repeat R] [--only strata,torch,deepspeed] [--cases A;B] [--out NAME]

The interpreter must have torch and deepspeed. Strata's updates run in build/bench/adam_bench, which waits between its
turns. The bound is one in-place loop over the streams of fp32 AdamW (four read, three of them written: 28 bytes per element),
compiled here. "16-bit": gradients arrive as bf16 and parameters leave as bf16; the peers convert in passes of their own.
Writes NAME.json (raw) and NAME.md in bench/results.
"""
import argparse, ctypes, json, os, platform, statistics, subprocess, sys, tempfile, time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WARMUP = 2

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--elements", type=int, default=64 << 20)
parser.add_argument("--threads", type=int, default=os.cpu_count())
parser.add_argument("--repeat", type=int, default=15)
parser.add_argument("--only", default="strata,torch,deepspeed")
parser.add_argument("--build", default=os.path.join(ROOT, "build"))
parser.add_argument("--cases", default="adamw;adamw 16-bit;adamw 16-bit, bf16 moments;adamw_packed 16-bit;adamw_packed 16-bit, bf16 moments;"
                    "adamw_8bit 16-bit;lion;lion 16-bit;lion 16-bit, bf16 moment;adamw_bf16", help="names of adam_bench, between semicolons")
parser.add_argument("--out")
args = parser.parse_args()
os.environ["OMP_NUM_THREADS"] = str(args.threads)
import torch  # only now, because it reads the number of threads

torch.set_num_threads(args.threads)

LOOP = r"""
#include <cstddef>
extern "C" void loop(float* p, float* m, float* v, const float* g, size_t n) {
#pragma omp parallel for simd schedule(static)
    for (size_t i = 0; i < n; ++i) {
        m[i] = 0.9f * m[i] + g[i];
        v[i] = 0.9f * v[i] + g[i] * g[i];
        p[i] -= 1e-6f * m[i] * v[i];
    }
}
"""


def problem():
    p = torch.nn.Parameter(torch.randn(args.elements) * 0.02)
    p.grad = torch.randn(args.elements) * 1e-3
    return p


def timed(step):
    def run():
        begin = time.perf_counter()
        step()
        return time.perf_counter() - begin
    return run


def in_place():
    with tempfile.TemporaryDirectory() as folder:
        library = os.path.join(folder, "loop.so")
        subprocess.run(["g++", "-O3", "-march=native", "-ffast-math", "-mprefer-vector-width=512", "-fopenmp", "-shared", "-fPIC",
                        "-x", "c++", "-", "-o", library], input=LOOP.encode(), check=True)
        loop = ctypes.CDLL(library).loop
    p = problem()
    arrays = [p.detach(), torch.zeros_like(p), torch.zeros_like(p), p.grad]
    pointers = [ctypes.c_void_p(a.data_ptr()) for a in arrays]
    return timed(lambda: (loop(*pointers, ctypes.c_size_t(args.elements)), arrays)[0])


def peer(name, make):
    """Returns an update of fp32 tensors, and the same between the conversions that 16-bit training needs."""
    p = problem()
    optimizer = make(p)
    gradient, parameter = p.grad.bfloat16(), p.detach().bfloat16()

    def sixteen_bit():
        p.grad.copy_(gradient)
        optimizer.step()
        parameter.copy_(p.detach())

    return {name: timed(optimizer.step), name + " 16-bit": timed(sixteen_bit)}


def deepspeed_adam(p):
    from deepspeed.ops.adam import DeepSpeedCPUAdam
    return DeepSpeedCPUAdam([p], lr=1e-4, weight_decay=0.01, adamw_mode=True)


def strata():
    server = subprocess.Popen([os.path.join(args.build, "bench", "adam_bench"), "--serve", str(args.elements), str(args.threads)],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def run(case):
        server.stdin.write(case + "\n")
        return float(server.stdout.readline())

    return {"strata " + case: lambda case=case: run(case) for case in args.cases.split(";")}


def main():
    contenders = {"in place": in_place()}
    if "strata" in args.only:
        contenders |= strata()
    if "torch" in args.only:
        contenders |= peer("torch fused", lambda p: torch.optim.AdamW([p], lr=1e-4, weight_decay=0.01, fused=True))
    if "deepspeed" in args.only:
        contenders |= peer("DeepSpeedCPUAdam", deepspeed_adam)
    seconds = {name: [] for name in contenders}
    for round_ in range(args.repeat + WARMUP):
        for name, run in contenders.items():
            time.sleep(0.02)  # OpenMP threads of the previous contender spin on these cores for some milliseconds
            taken = run()
            if round_ >= WARMUP:
                seconds[name].append(taken)
    report(seconds)


def ratio(seconds, name, reference):
    """Returns how many times as fast as `reference` it is, as a median over rounds."""
    return statistics.median(b / a for a, b in zip(seconds[name], seconds[reference]))


def report(seconds):
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], stdout=subprocess.PIPE, text=True).stdout.strip()
    references = [name for name in seconds if not name.startswith("strata")]
    lines = [f"# One update of AdamW on the host, {args.elements >> 20} Mi elements, {args.threads} threads", "",
             f"Commit {commit}, {platform.machine()}, torch {torch.__version__}, {args.repeat} rounds in which each runs once. Columns: "
             "median over rounds of how many times as many elements per second as that one.", "",
             "| update | ms median (min-max) | " + " | ".join(f"/ {name}" for name in references) + " |", "|---" * (2 + len(references)) + "|"]
    for name, times in seconds.items():
        ms = sorted(1e3 * t for t in times)
        lines.append(f"| {name} | {statistics.median(ms):.1f} ({ms[0]:.1f}-{ms[-1]:.1f}) | "
                     + " | ".join(f"{ratio(seconds, name, reference):.2f}" for reference in references) + " |")
    bandwidth = 28 * args.elements / statistics.median(seconds["in place"]) / 1e9
    lines += ["", f"The loop in place moves {bandwidth:.1f} GB/s (28 bytes per element).", "",
              "Command: `" + " ".join(["bench/peers/adam.py"] + [a for a in sys.argv[1:] if not a.startswith("/")]) + "`", ""]
    print("\n".join(lines))
    if args.out:
        results = os.path.join(ROOT, "bench", "results", args.out)
        json.dump({"elements": args.elements, "threads": args.threads, "commit": commit, "torch": torch.__version__, "seconds": seconds},
                  open(results + ".json", "w"), indent=1)
        open(results + ".md", "w").write("\n".join(lines))


if __name__ == "__main__":
    main()
