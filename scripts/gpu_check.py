#!/usr/bin/env python3
"""Runs a list of checks, each in its own process with a time limit, and writes one JSON line per check as it ends.

    gpu_check.py LIST.json [--output FILE] [--limit SECONDS] [--only REGEX] [--root DIR]

A check that fails, hangs or crashes never stops the rest. The first line holds facts about the machine. Nothing of the
machine's settings is changed. Exit code 0 when no check failed; skipped ones say what they lacked.

LIST is an array of
    {"stage": "ops", "name": "gpu_add_test",     what is reported; the order is that of the list
     "command": ["tests/gpu_add_test"],          the first word relative to the root; {root} and {work} (an empty folder)
     "each": "tests/gpu_*_test",                 optional: one check per file; its name, and {file} in the command
     "limit_s": 60,
     "needs": ["gpu", "tests/golden"],           optional: a GPU; files of the root
     "environment": {"NAME": "value"}}           optional; {root} and {work} as in the command
What a check leaves in {work}/metrics.jsonl (train --metrics) is summed up in its line; lines that it prints as JSON objects,
as benchmarks do, are kept whole.
"""
import argparse
import ctypes.util
import glob
import json
import os
import pathlib
import platform
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

SKIPPED = 77  # a test program's exit code for "cannot run here"
TAIL_CHARACTERS = 4000
LIBRARIES = ["cuda", "nvidia-ml", "cublasLt", "cudnn", "nccl"]
SMI_FIELDS = ("name,driver_version,memory.total,memory.used,compute_cap,pcie.link.gen.current,power.limit,"
              "clocks.max.sm,clocks.max.memory,clocks.sm,temperature.gpu,ecc.mode.current,mig.mode.current")


def output_of(command, limit_s=20):
    """Standard output, or None when the command is missing, fails or hangs."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit_s, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def gpus():
    smi = shutil.which("nvidia-smi") or "/usr/local/nvidia/bin/nvidia-smi"
    text = output_of([smi, f"--query-gpu={SMI_FIELDS}", "--format=csv,noheader"])
    if text is None:  # an old nvidia-smi refuses the whole query for one unknown field
        text = output_of([smi, "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"])
    if text is None:
        return []
    return [dict(zip(SMI_FIELDS.split(","), map(str.strip, line.split(",")))) for line in text.splitlines() if line]


def library_folders():
    """Where CUDA's libraries may lie beside what the loader knows."""
    folders = [os.environ.get("STRATA_CUDA_PATH", ""), *os.environ.get("LD_LIBRARY_PATH", "").split(":")]
    folders += ["/usr/local/cuda/lib64", "/usr/local/nvidia/lib64", "/usr/local/nvidia/lib"]
    sites = output_of(["python3", "-c", "import sys; print('\\n'.join(sys.path))"]) or ""
    for site in sites.split("\n"):
        folders += sorted(glob.glob(os.path.join(site, "nvidia", "*", "lib"))) if site else []
    return [folder for folder in folders if folder]


def libraries():
    """Name to the paths of that library, and to what the loader finds by itself."""
    folders, found = library_folders(), {}
    for name in LIBRARIES:
        paths = sorted({path for folder in folders for path in glob.glob(os.path.join(folder, f"lib{name}.so*"))})
        found[name] = {"loader": ctypes.util.find_library(name), "files": paths}
    return found


def processor():
    try:
        text = pathlib.Path("/proc/cpuinfo").read_text()
    except OSError:
        return {}
    model = re.search(r"model name\s*: (.*)", text)
    flags = set((re.search(r"flags\s*: (.*)", text) or ["", ""])[1].split())
    wanted = ["avx2", "fma", "f16c", "avx512f", "avx512_bf16", "amx_bf16"]
    return {"model": model[1] if model else None, "flags": [f for f in wanted if f in flags]}


def facts(root):
    description = root / "bundle.json"
    return {
        "bundle": json.loads(description.read_text()) if description.is_file() else None,
        "gpus": gpus(),
        "libraries": libraries(),
        "processor": processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": platform.release(),
        "libc": " ".join(platform.libc_ver()),
        "python": platform.python_version(),
        "nvcc": (output_of(["nvcc", "--version"]) or "").strip().split("\n")[-1] or None,
    }


def expanded(entries, root):
    """The list with one entry per file where an entry says `each`; none found: one that needs such files."""
    for entry in entries:
        if "each" not in entry:
            yield entry
            continue
        files = sorted(root.glob(entry["each"]))
        for file in files:
            path = str(file.relative_to(root))
            yield entry | {"name": file.name, "command": [w.replace("{file}", path) for w in entry["command"]]}
        if not files:
            yield entry | {"needs": [*entry.get("needs", []), entry["each"]]}


def missing(entry, root, gpu_count):
    for need in entry.get("needs", []):
        if need == "gpu":
            if gpu_count == 0:
                return "no GPU: nvidia-smi lists none"
        elif not list(root.glob(need)):
            return f"the bundle has no {need}"
    return None


def failed_tests(report):
    """Failures in a report of GoogleTest, with the operation that ran last in each test."""
    try:
        document = json.loads(report.read_text())
    except (OSError, ValueError):
        return []
    return [{"test": f"{test.get('classname', '')}.{test['name']}",
             "message": test["failures"][0]["failure"][:TAIL_CHARACTERS],
             "last_call": test.get("last_call")}
            for suite in document.get("testsuites", []) for test in suite.get("testsuite", [])
            if test.get("failures")]


def summed_up(metrics):
    """What train's metrics say: the later half of the steps, in which nothing warms up any more."""
    try:
        rows = [json.loads(line) for line in metrics.read_text().splitlines()]
    except (OSError, ValueError):
        return None
    rows = [row for row in rows if "loss" in row]
    if not rows:
        return None
    late = rows[len(rows) // 2:]
    result = {"steps": len(rows), "first_loss": rows[0]["loss"], "last_loss": rows[-1]["loss"]}
    for key in ("seconds", "tokens_per_second", "mfu", "arena_bytes", "peak_rss_bytes"):
        values = [row[key] for row in late if row.get(key) is not None]
        result[key] = statistics.median(values) if values else None
    return result


def rows_of(log):
    """What a benchmark printed as one JSON object per line."""
    log.seek(0)
    rows = []
    for text in log.read().decode(errors="replace").splitlines():
        if text.startswith("{") and text.endswith("}"):
            try:
                rows.append(json.loads(text))
            except ValueError:
                continue  # cut short, or no JSON after all
    return rows


def end(process):
    """Kills the process and all it started. A process that hangs in its driver may outlive even that."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    try:
        process.wait(timeout=5)
        return True
    except subprocess.TimeoutExpired:
        return False


def tail(file):
    file.seek(0, os.SEEK_END)
    file.seek(max(0, file.tell() - TAIL_CHARACTERS))
    return file.read().decode(errors="replace")


def run_one(entry, root, limit_s):
    """Runs one check and returns its line."""
    line = {"stage": entry["stage"], "name": entry["name"]}
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="strata-check-", ignore_cleanup_errors=True) as work:
        def filled(text):
            return text.replace("{root}", str(root)).replace("{work}", work)

        command = [filled(word) for word in entry["command"]]
        if "/" in command[0]:
            command[0] = str(root / command[0])
        report = pathlib.Path(work, "gtest.json")
        environment = os.environ | {k: filled(v) for k, v in entry.get("environment", {}).items()}
        environment["GTEST_OUTPUT"] = f"json:{report}"
        with tempfile.TemporaryFile() as log:
            try:
                process = subprocess.Popen(command, cwd=work, env=environment, stdin=subprocess.DEVNULL, stdout=log,
                                           stderr=subprocess.STDOUT, start_new_session=True)
            except OSError as error:
                return line | {"status": "failed", "seconds": 0, "reason": f"cannot start: {error}"}
            try:
                code = process.wait(timeout=limit_s)
                end(process)  # what it left running
                if code == 0:
                    line["status"] = "passed"
                elif code == SKIPPED and "gpu" not in entry.get("needs", []):
                    line["status"] = "skipped"
                elif code < 0:
                    line |= {"status": "crashed", "signal": signal.Signals(-code).name}
                else:
                    line |= {"status": "failed", "exit_code": code}
            except subprocess.TimeoutExpired:
                line |= {"status": "timed out", "limit_s": round(limit_s, 1)}
                if not end(process):
                    line["reason"] = "it cannot be killed: it hangs in the kernel"
            line["seconds"] = round(time.monotonic() - begin, 2)
            metrics = summed_up(pathlib.Path(work, "metrics.jsonl"))
            if metrics:
                line["metrics"] = metrics
            tests = failed_tests(report)
            if tests:
                line["failed_tests"] = tests
            rows = rows_of(log)
            if rows:
                line["rows"] = rows
            if line["status"] != "passed" or entry.get("keep_output"):
                line["output"] = tail(log)
    return line


def check(entries, root, limit_s, write):
    """Runs the entries within `limit_s`; calls `write` with each line. Returns the lines of the checks."""
    deadline = time.monotonic() + limit_s
    machine = facts(root)
    write({"stage": "facts", **machine})
    lines = []
    for entry in entries:
        left = deadline - time.monotonic()
        line = {"stage": entry["stage"], "name": entry["name"]}
        reason = missing(entry, root, len(machine["gpus"]))
        if reason:
            line |= {"status": "skipped", "reason": reason}
        elif left < 1:
            line |= {"status": "not run", "reason": f"the {limit_s} s for all checks are over"}
        else:
            line = run_one(entry, root, min(entry["limit_s"], left))
        lines.append(line)
        write(line)
    return lines


def describe(line):
    text = f"{line['status']:<9} {line['stage']:<10} {line['name']}"
    if "seconds" in line:
        text += f"  {line['seconds']} s"
    metrics = line.get("metrics")
    if metrics:
        text += f"  {metrics['tokens_per_second']:.0f} tokens/s"
        if metrics["mfu"] is not None:
            text += f"  MFU {100 * metrics['mfu']:.1f} %"
    for key in ("reason", "signal", "exit_code"):
        if key in line:
            text += f"  {key.replace('_', ' ')}: {line[key]}"
    return text


def main(arguments):
    parser = argparse.ArgumentParser(description="Runs checks one after the other; none can stop the rest.")
    parser.add_argument("list", type=pathlib.Path, help="what to run (a JSON file)")
    parser.add_argument("--output", default="gpu-check.jsonl", help="one JSON line per check (default: %(default)s)")
    parser.add_argument("--limit", type=float, default=470, help="seconds for all checks (default: %(default)s)")
    parser.add_argument("--only", default="", help="run checks whose stage/name matches this regular expression")
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent,
                        help="the unpacked bundle (default: where this file lies)")
    options = parser.parse_args(arguments)
    root = options.root.resolve()
    wanted = re.compile(options.only)
    entries = [e for e in expanded(json.loads(options.list.read_text()), root)
               if wanted.search(f"{e['stage']}/{e['name']}")]

    with open(options.output, "w") as output:
        def write(line):
            output.write(json.dumps(line) + "\n")
            output.flush()
            os.fsync(output.fileno())
            if line["stage"] != "facts":
                print(describe(line), flush=True)
            else:
                print("GPUs:", ", ".join(gpu["name"] for gpu in line["gpus"]) or "none", flush=True)

        lines = check(entries, root, options.limit, write)
    counts = {}
    for line in lines:
        counts[line["status"]] = counts.get(line["status"], 0) + 1
    print(", ".join(f"{count} {status}" for status, count in counts.items()) or "nothing to run")
    print(f"written: {options.output}")
    return 0 if not counts.keys() - {"passed", "skipped"} else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
