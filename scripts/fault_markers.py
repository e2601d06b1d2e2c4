"""Finds tests that say which faults they show: a comment `Fault 7.` or `Faults 7, 31.` right above a test. Other comments and decorators may stand
between."""
import os
import pathlib
import re
import typing

MARKER = re.compile(r" Faults? (\d+(?:, \d+)*)\.$")
ATTEMPT = re.compile(r" Faults? \d")
COMMENTS = {".cpp": re.compile(r"\s*//"), ".py": re.compile(r"\s*#")}
BETWEEN = {".cpp": COMMENTS[".cpp"], ".py": re.compile(r"\s*#|    @|     ")}  # a decorator's next lines are indented more
PYTHON_CLASS = re.compile(r"class (\w+)")
PYTHON_TEST = re.compile(r"    def (test_\w+)\(")
CPP_TEST = re.compile(r"TEST(?:_F|_P)?\((\w+), (\w+)\)")
FUZZER = "LLVMFuzzerTestOneInput"


class MarkedTest(typing.NamedTuple):
    faults: tuple  # numbers
    file: str  # from the root of the repository
    line: int  # of the comment
    name: str  # Class.test_name, Suite.Name, or the name of a fuzzer


def sources(root):
    """Yields C++ and Python files below `root`, but none that a build or a run made."""
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith(("build", ".", "out", "__")))
        for name in sorted(files):
            if name.endswith((".cpp", ".py")):
                yield pathlib.Path(folder, name)


def name_of_test(path, lines, at):
    """Returns the name of the test that begins in line `at`; "": none does."""
    line = lines[at]
    if path.suffix == ".cpp":
        if FUZZER in line:
            return path.stem
        joined = line if ")" in line or at + 1 == len(lines) else f"{line.rstrip()} {lines[at + 1].strip()}"
        found = CPP_TEST.match(joined)
        return f"{found[1]}.{found[2]}" if found else ""
    found = PYTHON_TEST.match(line)
    classes = [match[1] for earlier in lines[:at] if (match := PYTHON_CLASS.match(earlier))]
    return f"{classes[-1]}.{found[1]}" if found and classes else ""


def marked_tests(root):
    """Returns all marked tests, and a line for each comment that marks none."""
    tests, problems = [], []
    for path in sources(root):
        text = path.read_text(errors="replace")
        if "Fault" not in text:
            continue
        file, lines, comment = str(path.relative_to(root)), text.splitlines(), COMMENTS[path.suffix]
        for number, line in enumerate(lines):
            begin = comment.match(line)
            if not begin or not ATTEMPT.match(line, begin.end()):
                continue
            place = f"{file}:{number + 1}"
            marker = MARKER.match(line, begin.end())
            if not marker:
                problems.append(f"{place}: write `Fault 7.` or `Faults 7, 31.` and nothing else in this line")
                continue
            at = number + 1
            while at < len(lines) and BETWEEN[path.suffix].match(lines[at]):
                at += 1
            name = name_of_test(path, lines, at) if at < len(lines) else ""
            if name:
                tests.append(MarkedTest(tuple(map(int, marker[1].split(", "))), file, number + 1, name))
            else:
                problems.append(f"{place}: no test begins below this comment")
    return tests, problems
