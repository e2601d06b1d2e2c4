#!/usr/bin/env python3
"""Runs a list of checks, each in its own process with a time limit, and writes one JSON line per check as it ends.

    gpu_check.py LIST.json [--output FILE] [--limit SECONDS] [--only REGEX] [--root DIR]

A check that fails, hangs or crashes never stops the rest. The first line holds facts about the machine, whose settings are
not changed. Exit code 0 when no check failed; skipped ones say what they lacked. What checks print goes to FILE.log as they
print it, so that a command killed from outside leaves all output so far.

LIST is an array of
    {"stage": "ops", "name": "gpu_add_test",     what is reported; the order is that of the list
     "command": ["tests/gpu_add_test"],          the first word relative to the root; {root}, {work} (an empty folder) and
                                                 {kept} (the folder of FILE, for files that later checks read)
     "each": "tests/gpu_*_test",                 optional: one check per file; its name, and {file} in the command
     "except": ["gpu_copy_test"],                optional: files among these that are left out
     "limit_s": 60,
     "needs": ["gpu", "tests/golden",            optional: a GPU; files of the root; a program in PATH or in CUDA's
               "program ncu", "module torch"],   folders; a module of python3
     "watch": true,                              optional: samples the GPU's clocks, power and throttling meanwhile
     "environment": {"NAME": "value"}}           optional; {root} and {work} as in the command
If a check leaves {work}/metrics.jsonl (train --metrics), its line has a summary of it; lines that it prints as JSON objects,
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

import gpu_sampler

SKIPPED = 77  # a test program's exit code for "cannot run here"
LIMIT_S = 570  # limit of all checks together, unless --limit says otherwise; the sums of the lists' limits are below
TAIL_CHARACTERS = 4000
STEPS_LEFT_OUT = 3  # steps of a row that are not counted: memory, libraries, recordings (each Program runs plainly first)
CUDA_FOLDERS = ["/usr/local/cuda/bin", "/usr/local/cuda/compute-sanitizer"]
LIBRARIES = ["cuda", "nvidia-ml", "cublasLt", "cudnn", "nccl"]
SMI_FIELDS = ("name,driver_version,memory.total,memory.used,compute_cap,pcie.link.gen.current,power.limit,"
              "clocks.max.sm,clocks.max.memory,clocks.sm,temperature.gpu,ecc.mode.current,mig.mode.current")


def output_of(command, limit_s=20):
    """Returns standard output, or None when the command is missing, fails or hangs."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit_s, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def gpus():
    smi = gpu_sampler.smi()
    text = output_of([smi, f"--query-gpu={SMI_FIELDS}", "--format=csv,noheader"])
    if text is None:  # an old nvidia-smi refuses the whole query for one unknown field
        text = output_of([smi, "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"])
    if text is None:
        return []
    return [dict(zip(SMI_FIELDS.split(","), map(str.strip, line.split(",")))) for line in text.splitlines() if line]


def library_folders():
    """Lists folders where CUDA's libraries may lie beside those that the loader knows."""
    folders = [os.environ.get("STRATA_CUDA_PATH", ""), *os.environ.get("LD_LIBRARY_PATH", "").split(":")]
    folders += ["/usr/local/cuda/lib64", "/usr/local/nvidia/lib64", "/usr/local/nvidia/lib"]
    sites = output_of(["python3", "-c", "import sys; print('\\n'.join(sys.path))"]) or ""
    for site in sites.split("\n"):
        folders += sorted(glob.glob(os.path.join(site, "nvidia", "*", "lib"))) if site else []
    return [folder for folder in folders if folder]


def libraries():
    """Returns for each library its paths, and what the loader finds by itself."""
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
    """Replaces an entry with `each` by one entry per file; if there is no file, by one that needs such files."""
    for entry in entries:
        if "each" not in entry:
            yield entry
            continue
        files = sorted(f for f in root.glob(entry["each"]) if f.name not in entry.get("except", []))
        for file in files:
            path = str(file.relative_to(root))
            yield entry | {"name": file.name, "command": [w.replace("{file}", path) for w in entry["command"]]}
        if not files:
            yield entry | {"needs": [*entry.get("needs", []), entry["each"]]}


def search_path():
    return os.pathsep.join([os.environ.get("PATH", os.defpath), *CUDA_FOLDERS])


def has_module(name):
    return output_of(["python3", "-c", f"import importlib.util as u; print(u.find_spec('{name}') is not None)"]) == "True\n"


def missing(entry, root, gpu_count):
    for need in entry.get("needs", []):
        kind, _, name = need.partition(" ")
        if need == "gpu":
            if gpu_count == 0:
                return "no GPU: nvidia-smi lists none"
        elif kind == "program":
            if not shutil.which(name, path=search_path()):
                return f"{name} is neither in PATH nor in CUDA's folders"
        elif kind == "module":
            if not has_module(name):
                return f"python3 has no module {name}"
        elif not list(root.glob(need)):
            return f"the bundle has no {need}"
    return None


def failed_tests(report):
    """Returns the failures in a report of GoogleTest, with the operation that ran last in each test."""
    try:
        document = json.loads(report.read_text())
    except (OSError, ValueError):
        return []
    return [{"test": f"{test.get('classname', '')}.{test['name']}",
             "message": test["failures"][0]["failure"][:TAIL_CHARACTERS],
             "last_call": test.get("last_call")}
            for suite in document.get("testsuites", []) for test in suite.get("testsuite", [])
            if test.get("failures")]


def name_of_signal(number):
    try:
        return signal.Signals(number).name
    except ValueError:  # real-time signals have none
        return f"signal {number}"


def summed_up(metrics):
    """Summarizes train's metrics over the later half of the steps, without those that still warm up if there are others."""
    try:
        rows = [json.loads(line) for line in metrics.read_text().splitlines()]
    except (OSError, ValueError):
        return None
    rows = [row for row in rows if "loss" in row]
    if not rows:
        return None
    late = rows[max(len(rows) // 2, STEPS_LEFT_OUT):] or rows[-1:]
    result = {"steps": len(rows), "counted_steps": len(late), "first_loss": rows[0]["loss"], "last_loss": rows[-1]["loss"]}
    for key in ("seconds", "foreseen_seconds", "tokens_per_second", "mfu", "arena_bytes", "peak_rss_bytes"):
        values = [row[key] for row in late if row.get(key) is not None]
        result[key] = statistics.median(values) if values else None
    return result


def rows_of(log, start):
    """Returns the JSON objects that a benchmark printed, one per line, from `start` on."""
    log.seek(start)
    rows = []
    for text in log.read().decode(errors="replace").splitlines():
        if text.startswith("{") and text.endswith("}"):
            try:
                rows.append(json.loads(text))
            except ValueError:
                continue  # cut short, or not JSON
    return rows


def end(process):
    """Kills the process and all that it started. A process that hangs in its driver may survive even that."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    try:
        process.wait(timeout=5)
        return True
    except subprocess.TimeoutExpired:
        return False


def tail(file, start):
    file.seek(0, os.SEEK_END)
    file.seek(max(start, file.tell() - TAIL_CHARACTERS))
    return file.read().decode(errors="replace")


def run_one(entry, root, limit_s, output, fields):
    """Runs one check and returns its line. `fields` are sampled from the GPU meanwhile if the check is to be watched."""
    line = {"stage": entry["stage"], "name": entry["name"]}
    kept = str(output.resolve().parent)
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="strata-check-", ignore_cleanup_errors=True) as work:
        def filled(text):
            return text.replace("{root}", str(root)).replace("{work}", work).replace("{kept}", kept)

        command = [filled(word) for word in entry["command"]]
        if "/" in command[0]:
            command[0] = str(root / command[0])
        report = pathlib.Path(work, "gtest.json")
        environment = os.environ | {k: filled(v) for k, v in entry.get("environment", {}).items()}
        environment["GTEST_OUTPUT"] = f"json:{report}"
        environment["PATH"] = search_path()
        with open(f"{output}.log", "a+b") as log, gpu_sampler.Sampler(fields if entry.get("watch") else []) as sampler:
            log.write(f"== {entry['stage']}/{entry['name']}\n".encode())
            log.flush()
            start = log.tell()
            try:
                process = subprocess.Popen(command, cwd=work, env=environment, stdin=subprocess.DEVNULL, stdout=log,
                                           stderr=subprocess.STDOUT, start_new_session=True)
            except OSError as error:
                return line | {"status": "failed", "seconds": 0, "reason": f"cannot start: {error}"}
            try:
                code = process.wait(timeout=limit_s)
                end(process)  # ends processes that it left running
                if code == 0:
                    line["status"] = "passed"
                elif code == SKIPPED and "gpu" not in entry.get("needs", []):
                    line["status"] = "skipped"
                elif code < 0:
                    line |= {"status": "crashed", "signal": name_of_signal(-code)}
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
            rows = rows_of(log, start)
            if rows:
                line["rows"] = rows
            if line["status"] != "passed" or entry.get("keep_output"):
                line["output"] = tail(log, start)
        if sampler.result:
            line["gpu"] = sampler.result
    return line


def check(entries, root, limit_s, output, write):
    """Runs the entries within `limit_s`, calls `write` with each line, and returns the lines of the checks."""
    deadline = time.monotonic() + limit_s
    machine = facts(root)
    fields = gpu_sampler.known_fields() if machine["gpus"] and any(e.get("watch") for e in entries) else []
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
            line = run_one(entry, root, min(entry["limit_s"], left), output, fields)
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
    gpu = line.get("gpu", {})
    if "clocks.sm" in gpu:
        text += f"  {gpu['clocks.sm']['median']:.0f} MHz"
    if gpu.get("clocks_held_by"):
        text += f" ({', '.join(gpu['clocks_held_by'])})"
    for key in ("reason", "signal", "exit_code"):
        if key in line:
            text += f"  {key.replace('_', ' ')}: {line[key]}"
    return text


def main(arguments):
    parser = argparse.ArgumentParser(description="Runs checks one after the other; none can stop the rest.")
    parser.add_argument("list", type=pathlib.Path, help="what to run (a JSON file)")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path(os.environ.get("OUT", ""), "gpu-check.jsonl"),
                        help="one JSON line per check (default: gpu-check.jsonl, in the folder $OUT where that is set)")
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="seconds for all checks (default: %(default)s)")
    parser.add_argument("--only", default="", help="run checks whose stage/name matches this regular expression")
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent,
                        help="the unpacked bundle (default: where this file lies)")
    options = parser.parse_args(arguments)
    root = options.root.resolve()
    wanted = re.compile(options.only)
    entries = [e for e in expanded(json.loads(options.list.read_text()), root)
               if wanted.search(f"{e['stage']}/{e['name']}")]

    pathlib.Path(f"{options.output}.log").write_bytes(b"")
    with open(options.output, "w") as output:
        def write(line):
            output.write(json.dumps(line) + "\n")
            output.flush()
            os.fsync(output.fileno())
            if line["stage"] != "facts":
                print(describe(line), flush=True)
            else:
                print("GPUs:", ", ".join(gpu["name"] for gpu in line["gpus"]) or "none", flush=True)

        lines = check(entries, root, options.limit, options.output, write)
    counts = {}
    for line in lines:
        counts[line["status"]] = counts.get(line["status"], 0) + 1
    print(", ".join(f"{count} {status}" for status, count in counts.items()) or "nothing to run")
    print(f"written: {options.output}")
    return 0 if not counts.keys() - {"passed", "skipped"} else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
