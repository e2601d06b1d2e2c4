"""Finds sites for single-line bugs in C++: operators, constants, borders, calls and assignments left out.

Works on clang-formatted text: binary operators have a space on either side, template brackets have none. Comments,
strings, preprocessor lines, checks of invariants and thrown errors are left alone.
"""
import re
from dataclasses import dataclass

# Lines that match hold no code in which a test could see a difference.
LEFT_ALONE = re.compile(r"^\s*(#|using |namespace |template|static_assert|friend |public:|private:|protected:|case )"
                        r"|\b(STRATA_CHECK|static_assert|throw|noexcept\(|requires|concept|operator|fail\(|report\(|refuse\()")
SWAPS = [
    ("border", r" (<) ", " <= "), ("border", r" (<=) ", " < "), ("border", r" (>) ", " >= "), ("border", r" (>=) ", " > "),
    ("comparison", r" (==) ", " != "), ("comparison", r" (!=) ", " == "),
    ("logic", r" (&&) ", " || "), ("logic", r" (\|\|) ", " && "), ("logic", r"(?<![\w)\]])(!)(?=[A-Za-z_(])", ""),
    ("arithmetic", r" (\+) ", " - "), ("arithmetic", r" (-) ", " + "), ("arithmetic", r" (\*) ", " / "),
    ("arithmetic", r" (/) ", " * "), ("arithmetic", r" (%) ", " / "), ("arithmetic", r" (\+=) ", " -= "),
    ("arithmetic", r" (-=) ", " += "), ("arithmetic", r"(\+\+)(?=\w)", "--"),
    ("bits", r" (&) ", " | "), ("bits", r" (\|) ", " & "),
    ("constant", r"\b(true)\b", "false"), ("constant", r"\b(false)\b", "true"),
    ("choice", r"\bstd::(min)\b(?=[(<])", "max"), ("choice", r"\bstd::(max)\b(?=[(<])", "min"),
]
SWAPS = [(kind, re.compile(pattern), new) for kind, pattern, new in SWAPS]
PURE_VIRTUAL = re.compile(r"\)( const)?( noexcept)? = 0;")
INTEGER = re.compile(r"(?<![\w.'\"])(\d+)(?:u|U|l|L|ll|LL|ull)?(?![\w.'])")
FRACTION = re.compile(r"(?<![\w.'])(\d+\.\d*(?:e[-+]?\d+)?|\d+e[-+]?\d+)f?(?![\w.])")
NAME = r"[A-Za-z_][\w.\[\]*>()-]*"
CALL = re.compile(rf"^(\s*)((?:[A-Za-z_]\w*(?:\.|->|::))*[a-z_]\w*\(.*\);)$")
ASSIGNMENT = re.compile(rf"^(\s*)({NAME} (?:[-+|&^]?=) [^=].*;)$")
NOT_A_CALL = ("return", "if", "for", "while", "switch", "static_cast", "sizeof", "catch", "throw", "delete", "new")


@dataclass(frozen=True)
class Site:
    """One bug that can be planted: line `line` (from 1) of `file` becomes `after`."""
    file: str
    line: int
    kind: str
    before: str
    after: str

    def diff(self):
        return f"{self.file}:{self.line} ({self.kind})\n-{self.before}\n+{self.after}"


def blank(text):
    """Replaces comments and the content of literals by spaces; positions stay."""
    out, at, end = [], 0, len(text)
    keep = lambda piece: "".join("\n" if c == "\n" else " " for c in piece)
    while at < end:
        rest = text[at:at + 2]
        if rest == "//":
            stop = text.find("\n", at)
            stop = end if stop < 0 else stop
        elif rest == "/*":
            stop = text.find("*/", at)
            stop = end if stop < 0 else stop + 2
        elif text.startswith('R"', at) and not text[at - 1:at].isalnum():
            delimiter = text[at + 2:text.index("(", at)]
            stop = text.index(")" + delimiter + '"', at) + len(delimiter) + 2
        elif text[at] == '"' or (text[at] == "'" and not text[at - 1:at].isalnum()):
            stop = at + 1
            while stop < end and text[stop] != text[at]:
                stop += 2 if text[stop] == "\\" else 1
            stop = min(stop + 1, end)
            out.append(text[at] + keep(text[at + 1:stop - 1]) + text[stop - 1])
            at = stop
            continue
        else:
            out.append(text[at])
            at += 1
            continue
        out.append(keep(text[at:stop]))
        at = stop
    return "".join(out)


def replacements(code):
    """Yields (kind, begin, end, new text) for one line without comments and literals."""
    if PURE_VIRTUAL.search(code):
        return
    for kind, pattern, new in SWAPS:
        if kind == "arithmetic" and '"' in code:  # texts are joined and not added
            continue
        for found in pattern.finditer(code):
            begin, end = found.span(1) if not new.startswith(" ") else found.span()
            yield kind, begin, end, new
    fractions = list(FRACTION.finditer(code))
    for found in INTEGER.finditer(code):
        if any(fraction.start() <= found.start() < fraction.end() for fraction in fractions):
            continue  # the exponent of 1e-6
        number = int(found.group(1))
        for new in ([1] if number == 0 else [number - 1, number + 1]):
            yield "constant", *found.span(1), str(new)
    for found in fractions:
        yield "constant", *found.span(1), f"(2 * {found.group(1)})" if float(found.group(1)) else "1.0"


def left_out(code):
    """Finds the statement of a line that is one whole call or assignment."""
    if code.count("(") != code.count(")"):
        return None
    call = CALL.match(code)
    if call and not call.group(2).startswith(tuple(word + mark for word in NOT_A_CALL for mark in "( ")):
        return "call left out", *call.span(2)
    assignment = ASSIGNMENT.match(code)
    if assignment:
        return "assignment left out", *assignment.span(2)
    return None


def sites_of(file, text):
    """Yields all sites of a file in the order of its lines."""
    lines, codes = text.split("\n"), blank(text).split("\n")
    in_statement = False  # a line that continues the one before is no statement by itself
    left_alone = False
    for number, (line, code) in enumerate(zip(lines, codes), 1):
        begins = not in_statement
        left_alone = bool(LEFT_ALONE.search(code)) or (left_alone and in_statement)
        in_statement = bool(code.strip()) and code.rstrip()[-1] not in ";{}:"
        if left_alone or not code.strip():
            continue
        for kind, begin, end, new in replacements(code):
            yield Site(file, number, kind, line, line[:begin] + new + line[end:])
        whole = left_out(code) if begins else None
        if whole:
            kind, begin, end = whole
            yield Site(file, number, kind, line, line[:begin] + "{}" + line[end:])
