#!/usr/bin/env python3
"""Computes the tables of docs/memory.md again, with the programs that a reader would run.

    scripts/memory_tables.py [--bin build/bin] [--write] [--skip REGEX]

Above each table stands the command that all of its rows begin with, `<!-- computed by: train --model ... -->`; the first cell of a row has the flags
that come after it, between backquotes. The other cells are what the program says, by the name of their column. Prints what differs from the page,
and ends with 1 if anything does; --write puts it into the page instead. Rows whose command has --skip in it are left as they are.
"""
import argparse
import json
import pathlib
import re
import shlex
import subprocess
import sys

PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs/memory.md"
COMMAND = re.compile(r"<!-- computed by: (train|plan) (.*) -->")
LINES_OF_TRAIN = {"parameters": "parameters", "gradients": "gradients", "optimizer state": "optimizer state",
                  "within a step": r"transient \(activations, transfers, scratch\)", "device": "arena"}


def size(count):
    """Returns bytes as the programs print them."""
    for unit, name in ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= unit:
            return f"{count / unit:.2f} {name}"
    return f"{count} bytes"


def cells_of_train(printed):
    """Returns the device's column of what --print-plan prints."""
    cells = {}
    for name, pattern in LINES_OF_TRAIN.items():
        found = re.search(rf"^  {pattern} +(\d\S* \S+|-)(?: |$)", printed, re.M)
        cells[name] = found[1] if found else "-"
    return cells


def cells_of_plan(printed):
    [one] = json.loads(printed)
    if not one["fits"]:
        return {"settings": "refused: too slow" if "allows steps that are at most" in one["refusal"] else "refused: does not fit"}
    seconds = one["seconds_per_step"]
    flags = re.sub(r" ?--(device|host)-memory \S+", "", one["flags"]).strip()
    flags = re.sub(r"--actions '[^']*'", "--actions ...", flags)  # a page of them
    return {"settings": f"`{flags}`" if flags else "as they are", "device": size(one["device_bytes"]),
            "host": size(one["host_bytes"]) if one["host_bytes"] >= 1 << 24 else "-", "s/step": f"{seconds:.3g}",
            "tokens/s": f"{one['tokens_per_second']:,.0f}", "bound by": one["bound_by"], "slower": f"{100 * (one['slowdown'] - 1):.0f} %"}


def command_of(binaries, program, common, row):
    """Returns what a reader would type for a row."""
    flags = re.search(r"`(.*)`", row[0])
    return [str(binaries / program), *shlex.split(common), *shlex.split(flags[1] if flags else "")]


def computed_row(command, row, header):
    """Returns the row's line with its cells computed."""
    program = pathlib.Path(command[0]).name
    command += ["--json"] if program == "plan" else ["--print-plan", "--steps", "0"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in ((0, 1) if program == "plan" else (0,)):
        raise SystemExit(f"{shlex.join(command)}\n{done.stdout[-1000:]}{done.stderr}")
    cells = cells_of_plan(done.stdout) if program == "plan" else cells_of_train(done.stdout)
    return "| " + " | ".join([row[0]] + [cells.get(name, "") for name in header[1:]]) + " |"


def computed_page(binaries, text, skip):
    """Returns the page with every computed table made again, but for rows whose command has the pattern `skip` in it."""
    lines, made, table, header = text.splitlines(), [], None, None
    for number, line in enumerate(lines):
        if found := COMMAND.fullmatch(line):
            table, header = found, None
        elif table and line.startswith("|"):
            row = [cell.strip() for cell in line.strip("|").split("|")]
            if header is None:
                header = row
            elif not re.fullmatch(r"[|\s:-]+", line):
                command = command_of(binaries, table[1], table[2], row)
                if not (skip and re.search(skip, shlex.join(command))):
                    line = computed_row(command, row, header)
        elif header:
            table = header = None
        made.append(line)
    return "\n".join(made) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/bin", type=pathlib.Path)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--skip", help="pattern of commands that take too long")
    arguments = parser.parse_args()
    text = PAGE.read_text()
    made = computed_page(arguments.bin.resolve(), text, arguments.skip)
    if arguments.write:
        PAGE.write_text(made)
        return 0
    for before, after in zip(text.splitlines(), made.splitlines()):
        if before != after:
            print(f"- {before}\n+ {after}")
    return int(made != text)


if __name__ == "__main__":
    sys.exit(main())
