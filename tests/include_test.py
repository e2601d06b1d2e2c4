#!/usr/bin/env python3
"""The house rules that a compiler does not see: which folder may include which, where CUDA and the ZeRO stage occur,
names that attract everything, conflict markers. Exits 1 with file, line and rule for each breach.

    include_test.py [REPOSITORY]     checks the rules on broken samples first, so that it cannot rot into saying yes
"""
import os
import re
import subprocess
import sys

BELOW = {  # a folder includes itself and these
    "core": set(),
    "kernels": {"core"},
    "machine": {"core", "kernels"},
    "comm": {"core", "kernels", "machine"},
    "runtime": {"core", "kernels", "machine", "comm"},
    "zero": {"core", "kernels", "machine", "comm", "runtime"},
    "step": {"core", "kernels", "machine", "comm", "runtime", "zero"},
    "offload": {"core", "kernels", "machine", "runtime"},  # has not heard of ranks
    "compile": {"core", "kernels", "machine", "comm", "runtime", "zero", "step", "offload"},
    "plan": {"core", "kernels", "machine", "comm", "runtime", "zero", "step", "offload", "compile"},
    "train": {"core", "kernels", "machine", "comm", "runtime", "zero", "step", "offload", "compile", "plan"},
    "launcher": {"core"},
}
SUBFOLDERS = {  # each subfolder includes itself and these of the same folder; tests and testing/ include all of their folder
    "kernels": {
        "math": set(),
        "device": {"math"},
        "ops": {"math", "device"},
        "cpu": {"math", "device", "ops"},
        "cuda": {"math", "device", "ops", "cpu"},
    },
    "comm": {
        "peer_memory": set(),
        "shm": {"peer_memory"},
        "hosts": {"peer_memory"},  # has not heard of Gloo
        "threads": {"peer_memory", "hosts"},
        "gloo": {"hosts"},
        "mpi": set(),
        "nccl": set(),
        "staged": set(),
    },
    "runtime": {
        "graph": set(),
        "passes": {"graph"},
        "chain": set(),  # bytes and nanoseconds, nothing of graphs
        "schedule": set(),  # it knows tasks and bytes, nothing of graphs
        "program": {"graph", "schedule"},
        "execute": {"graph", "program"},
        "simulator": {"graph", "schedule", "program", "execute"},
    },
    "train": {
        "files": set(),
        "data": set(),
        "models": set(),
        "accounting": {"models"},
        "config": {"models"},
        "checkpoint": {"files"},
        "engine": {"models", "config", "files", "checkpoint"},
        "planning": {"models", "config", "engine"},
        "report": {"models", "config", "engine"},
        "run": {"models", "config", "files", "checkpoint", "engine", "planning", "report", "accounting", "data"},
        "session": {"models", "config", "data", "engine", "planning", "report", "run"},
        "doctor": {"config", "checkpoint"},
        "inspect": {"models", "files", "checkpoint"},
    },
    "launcher": {
        "control": set(),  # pure machines, and what they tell one another
        "command": {"control"},
        "output": {"control"},
        "group": {"control", "command", "output"},
        "start": {"command", "group", "output"},
        "report": {"control", "command", "group"},
        "web": set(),  # the server has not heard of runs
        "wire": {"control", "output"},
        "views": {"control", "group", "output", "wire"},
    },
}
EVERYTHING = set(BELOW) | {"tests", "bench"}
BELOW["tests"] = BELOW["bench"] = BELOW["examples"] = EVERYTHING

CODE = (".h", ".cpp", ".cu", ".cuh")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
CUDA = re.compile(r"^(cuda|cublas|cudnn|nccl|curand|nvToolsExt|nvtx)", re.IGNORECASE)
ORDER = r"\s*(==|!=|<=|>=|<(?!<)|>(?!>))\s*"
STAGE = re.compile(rf"stage(\(\)|_)?{ORDER}[0-3]\b|\b[0-3]{ORDER}[\w.:>()-]*stage(\b|_)")
CATCH_ALL = {"utils.h", "util.h", "common.h", "kernels.h", "helpers.h", "misc.h"}
CONFLICT = re.compile(r"^(<{7} |={7}$|>{7} )")


def include_breaches(folder, is_system, target):
    """Yields the rules that one include of a file in `folder` breaks."""
    first = target.split("/")[0]
    if CUDA.match(os.path.basename(target)) and first not in BELOW and folder not in ("kernels", "comm"):
        yield f"{target}: CUDA and NCCL headers occur in kernels/ and comm/ only"
    if is_system:
        return
    if "/" not in target:
        yield f'"{target}": project headers are included with their folder, others with <>'
    elif first in BELOW and first != folder and first not in BELOW[folder]:
        allowed = ", ".join(sorted(BELOW[folder])) or "nothing"
        yield f"{folder}/ may not see {target} (it may see {allowed})"


PURE = ("zero", "step", "compile")  # code that makes Programs knows nothing of running them


def is_test(path):
    return "testing" in path.split("/") or re.search(r"_(test|fuzz)\.", path) is not None


def subfolder_breaches(path, target):
    """Yields the rules about subfolders of one folder that an include of `target` breaks."""
    folder, inner, *rest = path.split("/")
    if is_test(path):
        return
    other = target.split("/")
    if folder in PURE and target.startswith("runtime/execute/"):
        yield f"{folder}/ may not see {target}: compiling knows nothing of running"
    if other[0] in BELOW and "testing" in other and folder not in ("tests", "bench"):
        yield f"{path} is no test and may not see {target}"
        return
    if folder not in SUBFOLDERS or not rest or inner not in SUBFOLDERS[folder]:
        return
    if len(other) < 3 or other[0] != folder or other[1] in SUBFOLDERS[folder][inner] | {inner}:
        return
    allowed = ", ".join(sorted(SUBFOLDERS[folder][inner])) or "no other subfolder"
    yield f"{folder}/{inner}/ may not see {target} (it may see {allowed})"


def may_compare_stage(path):
    return path.startswith(("zero/", "train/config", "tests/")) or (path.startswith("step/") and "_test." in path)


def breaches(path, text):
    """Yields (line, message) for every broken rule of one file; `path` is relative to the repository."""
    folder = path.split("/")[0]
    if os.path.basename(path) in CATCH_ALL:
        yield 1, "a header that attracts everything; name it after its one concept"
    is_code = path.endswith(CODE) and folder in BELOW
    for number, line in enumerate(text.splitlines(), 1):
        if CONFLICT.match(line) and not (line.startswith("=") and path.endswith(".md")):
            yield number, "conflict marker"
        if not is_code:
            continue
        include = INCLUDE.match(line)
        if include:
            for message in include_breaches(folder, include[1] == "<", include[2]):
                yield number, message
            for message in subfolder_breaches(path, include[2]):
                yield number, message
        elif STAGE.search(line.split("//")[0]) and not may_compare_stage(path):
            yield number, "branches on the ZeRO stage belong to zero/ and train/config"


def files(root):
    """Yields tracked text files and new ones that git does not ignore; outside a clone, all files that lie there."""
    command = ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, capture_output=True)
    if listing.returncode == 0 and listing.stdout:
        names = sorted(set(listing.stdout.decode().split("\0")) - {""})
    else:
        skipped = {"build", "build-bundle", "build-quickstart", ".git", "out", ".cache"}
        names = []
        for folder, folders, here in os.walk(root):
            folders[:] = [f for f in folders if f not in skipped]
            names += [os.path.relpath(os.path.join(folder, f), root) for f in here]
    for name in names:
        path = os.path.join(root, name)
        if not os.path.isfile(path) or name == "tests/include_test.py":
            continue
        with open(path, "rb") as file:
            content = file.read()
        if b"\0" not in content:
            yield name, content.decode(errors="replace")


SAMPLES = [  # path, text, broken rules
    ("core/a.h", '#include "kernels/device/tensor.h"', 1),
    ("core/a.h", '#include "core/check.h"\n#include <vector>', 0),
    ("kernels/a.h", '#include "core/check.h"\n#include <cuda_runtime.h>', 0),
    ("kernels/a.cpp", '#include "comm/collective.h"', 1),
    ("comm/a.h", '#include "runtime/graph/graph.h"', 1),
    ("comm/nccl.cpp", "#include <nccl.h>", 0),
    ("comm/hosts/a.cpp", '#include "comm/gloo/gloo_link.h"', 1),
    ("comm/hosts/a.cpp", '#include "comm/peer_memory/peer_group.h"\n#include "comm/seat.h"', 0),
    ("comm/gloo/a.cpp", '#include "comm/hosts/host_link.h"\n#include <gloo/context.h>', 0),
    ("runtime/a.cpp", '#include "zero/partition.h"', 1),
    ("runtime/a.cpp", '  #  include "offload/tier.h"', 1),
    ("runtime/a.cpp", "#include <cuda_runtime.h>", 1),
    ("zero/a.cpp", '#include "offload/tier.h"\n#include "runtime/graph/plan.h"', 1),
    ("zero/a.cpp", "if (policy.stage >= 2) {", 0),
    ("offload/a.cpp", '#include "comm/communicator.h"', 1),
    ("train/a.cpp", '#include "zero/partition.h"\n#include "offload/tier.h"\n#include "train/b.h"', 0),
    ("train/a.cpp", '#include "launcher/machine.h"', 1),
    ("train/a.cpp", "if (stage == 3) {", 1),
    ("train/config/a.cpp", "if (stage == 3) {", 0),
    ("runtime/a.cpp", "return zero.stage>=1;", 1),
    ("runtime/a.cpp", "return 2 <= zero.stage;", 1),
    ("runtime/a.cpp", "// reads the same at stage == 3\nint stage = 3;", 0),
    ("launcher/a.cpp", '#include "core/error.h"\n#include "comm/communicator.h"', 1),
    ("launcher/a.cpp", '#include "a.h"', 1),
    ("tests/a.cpp", '#include "train/engine.h"\n#include "launcher/machine.h"', 0),
    ("zero/a.cpp", '#include "step/step.h"', 1),
    ("runtime/graph/a.cpp", '#include "runtime/passes/order.h"', 1),
    ("runtime/graph/a_test.cpp", '#include "runtime/passes/order.h"', 0),
    ("runtime/passes/a.cpp", '#include "runtime/testing/small_model.h"', 1),
    ("runtime/execute/a.cpp", '#include "runtime/program/program.h"\n#include "runtime/graph/tier.h"', 0),
    ("kernels/ops/a.cpp", '#include "kernels/cpu/matmul.h"', 1),
    ("kernels/cuda/testing/simulated/a.h", '#include "kernels/testing/test_runner.h"', 0),
    ("kernels/cuda/a.cuh", '#include "kernels/cuda/testing/simulated/simulation.h"', 1),
    ("kernels/ops/a.cpp", '#include "kernels/testing/test_runner.h"', 1),
    ("comm/a.cpp", '#include "comm/testing/fake_nccl.h"', 1),
    ("step/a.cpp", '#include "runtime/execute/executor.h"', 1),
    ("zero/a.cpp", '#include "runtime/testing/small_model.h"', 1),
    ("zero/a_test.cpp", '#include "runtime/testing/small_model.h"', 0),
    ("train/models/a.cpp", '#include "train/config/options.h"', 1),
    ("launcher/control/a.cpp", '#include "launcher/group/signals.h"', 1),
    ("launcher/attempt.cpp", '#include "launcher/group/signals.h"', 0),
    ("kernels/utils.h", "", 1),
    ("kernels/kernels.h", "", 1),
    ("docs/a.md", "Title\n=======\n", 0),
    ("core/a.h", "<" * 7 + " HEAD\n" + "=" * 7 + "\n" + ">" * 7 + " branch\n", 3),
]


def self_test():
    wrong = 0
    for path, text, expected in SAMPLES:
        found = list(breaches(path, text))
        if len(found) != expected:
            wrong += 1
            print(f"self-test: {path} {text!r}: expected {expected} breaches, found {found}")
    return wrong


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    failures, count = self_test(), 0
    for path, text in files(root):
        count += 1
        for line, message in breaches(path, text):
            failures += 1
            print(f"{path}:{line}: {message}")
    if count < 10:
        failures += 1
        print(f"{root}: only {count} files found; this is not the repository")
    print(f"{count} files, {failures} breaches")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
