#!/usr/bin/env python3
"""Checks the resources that the compiler gave each kernel: fails if one spills registers to memory, or takes more
static shared memory than some architecture grants. Writes a table of all kernels.

    resources_test.py FOLDER TABLE     FOLDER holds OBJECT.ptxas files (cmake/nvcc_report)
"""
import glob
import os
import re
import subprocess
import sys

MOST_SHARED_BYTES = 99 * 1024  # sm_89 and sm_120; dynamic shared memory is bounded in the sources

ENTRY = re.compile(r"Compiling entry function '(\S+)' for '(\S+)'")
STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers")
SHARED = re.compile(r"(\d+) bytes smem")


def kernels(text):
    """Yields name, architecture, registers, bytes of stack, of spills and of shared memory, per kernel in `text`."""
    name = architecture = None
    stack = spills = 0
    for line in text.splitlines():
        if match := ENTRY.search(line):
            name, architecture = match.groups()
            stack = spills = 0
        elif (match := STACK.search(line)) and name:
            stack, spills = int(match[1]), int(match[2]) + int(match[3])
        elif (match := USED.search(line)) and name:
            shared = SHARED.search(line)
            yield name, architecture, int(match[1]), stack, spills, int(shared[1]) if shared else 0
            name = None


def problems(rows):
    for name, architecture, registers, stack, spills, shared in rows:
        if spills:
            yield f"{name} ({architecture}): {spills} bytes of spills, {registers} registers"
        if shared > MOST_SHARED_BYTES:
            yield f"{name} ({architecture}): {shared} bytes of static shared memory, at most {MOST_SHARED_BYTES}"


SAMPLE = """ptxas info    : Compiling entry function 'good' for 'sm_90'
ptxas info    : Function properties for good
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 30 registers, used 1 barriers, 4096 bytes smem
ptxas info    : Compiling entry function 'bad' for 'sm_90'
ptxas info    : Function properties for bad
    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 255 registers, 200000 bytes smem
"""


def main():
    assert [p.split()[0] for p in problems(kernels(SAMPLE))] == ["bad", "bad"], "the check says yes to anything"
    folder, table = sys.argv[1:]
    rows = []
    for path in sorted(glob.glob(os.path.join(folder, "**", "*.ptxas"), recursive=True)):
        with open(path, encoding="utf-8", errors="replace") as file:
            rows += kernels(file.read())
    if not rows:
        sys.exit(f"{folder}: no kernel was reported; was it compiled with cmake/nvcc_report?")
    plain = subprocess.run(["c++filt"], input="\n".join(row[0] for row in rows), capture_output=True, text=True)
    names = plain.stdout.splitlines() if plain.returncode == 0 else [row[0] for row in rows]
    rows = [(name, *row[1:]) for name, row in zip(names, rows)]
    with open(table, "w", encoding="utf-8") as file:
        file.write("arch    registers  stack  spills  shared  kernel\n")
        for name, architecture, registers, stack, spills, shared in sorted(rows, key=lambda row: (-row[4], -row[2])):
            file.write(f"{architecture:7} {registers:9} {stack:6} {spills:7} {shared:7}  {name}\n")
    found = list(problems(rows))
    print(f"{len(rows)} kernels, {len(found)} problems; table: {table}")
    for problem in found:
        print(problem)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
