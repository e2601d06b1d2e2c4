#!/usr/bin/env python3
"""Every field of TrainOptions must be read by code that trains: an option that is only parsed and printed does nothing.

    options_read_test.py [REPOSITORY]     checks its own patterns on a sample first
"""
import pathlib
import re
import sys

HEADER = "train/config/options.h"
STRUCT = re.compile(r"^struct (\w+) \{(.*?)^\};", re.MULTILINE | re.DOTALL)
FIELD = re.compile(r"^  (?!return|bool operator)[\w:<>]+(?: [\w:<>]+)* (\w+)(?: = [^;]+|\{\})?;", re.MULTILINE)


def fields(header):
    """Returns the names of the fields of all structs whose name ends in Options."""
    return sorted({name for struct, body in STRUCT.findall(header) if struct.endswith("Options")
                   for name in FIELD.findall(body)})


def is_reader(path):
    """True for sources that can obey an option: not tests, and of the configuration only the files that count steps and make a Plan."""
    return (path.suffix in (".h", ".cpp", ".cu") and path.parts[0] in ("train", "examples")
            and (not str(path).startswith("train/config/") or path.name in ("settle_steps.cpp", "make_plan.cpp"))
            and not path.stem.endswith(("_test", "_testing", "_fuzz")))


def unread(names, texts):
    everything = "\n".join(texts)
    return [name for name in names if not re.search(rf"(?:\.|->){name}\b", everything)]


def self_test():
    header = "struct AOptions {\n  std::int64_t used = 1;\n  bool lost = false;  ///< bool note;\n  Type t;\n};\n"
    assert fields(header) == ["lost", "t", "used"], fields(header)
    assert unread(fields(header), ["f(o.used, o->t, lost)"]) == ["lost"]


def main():
    self_test()
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)
    names = fields((root / HEADER).read_text())
    if len(names) < 80:
        print(f"{HEADER}: only {len(names)} fields found")
        return 1
    sources = [path for path in root.glob("[te]*/**/*") if is_reader(path.relative_to(root))]
    lost = unread(names, [path.read_text() for path in sources])
    for name in lost:
        print(f"{HEADER}: {name}: nothing that trains reads it")
    print(f"{len(names)} options, {len(lost)} of them unread")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
