"""Samples the first GPU with nvidia-smi while something runs: clocks, power, temperature, reasons to throttle."""
import shutil
import statistics
import subprocess
import tempfile

FIELDS = ["clocks.sm", "clocks.mem", "power.draw", "temperature.gpu", "utilization.gpu"]
# Newer drivers know the first name, older ones the second.
REASONS = ["clocks_event_reasons.active", "clocks_throttle_reasons.active"]
REASON_NAMES = {0x1: "idle", 0x2: "application clocks", 0x4: "power cap", 0x8: "hardware slowdown", 0x10: "sync boost",
                0x20: "thermal (software)", 0x40: "thermal (hardware)", 0x80: "power brake", 0x100: "display clocks"}
INTERVAL_MS = 500


def smi():
    return shutil.which("nvidia-smi") or "/usr/local/nvidia/bin/nvidia-smi"


def query(fields, *more):
    return [smi(), f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits", "-i", "0", *more]


def known_fields():
    """Returns the fields that this nvidia-smi knows, since it refuses a whole query for one that it does not know."""
    def answers(fields):
        try:
            return subprocess.run(query(fields), capture_output=True, timeout=20,
                                  stdin=subprocess.DEVNULL).returncode == 0
        except (OSError, subprocess.TimeoutExpired):
            return False

    for reasons in ([REASONS[0]], [REASONS[1]], []):
        if answers(FIELDS + reasons):
            return FIELDS + reasons
    return [field for field in FIELDS if answers([field])]


def reasons_of(words):
    """Returns the names of the bits in hexadecimal words."""
    bits = 0
    for word in words:
        try:
            bits |= int(word, 16)
        except ValueError:
            pass  # "[N/A]", or a line cut short
    return [name for bit, name in REASON_NAMES.items() if bits & bit]


def number(word):
    try:
        return float(word)
    except ValueError:
        return None


def summary(fields, lines):
    """Returns smallest, median and largest of each number, and the reasons that held clocks down."""
    rows = [[word.strip() for word in line.split(",")] for line in lines]
    rows = [row for row in rows if len(row) == len(fields)]
    result = {"samples": len(rows)}
    for place, field in enumerate(fields):
        words = [row[place] for row in rows]
        if field in REASONS:
            result["clocks_held_by"] = reasons_of(words)
            continue
        values = [value for value in map(number, words) if value is not None]
        if values:
            result[field] = {"min": min(values), "median": statistics.median(values), "max": max(values)}
    return result


class Sampler:
    """Samples within a `with` block; `result` then holds the summary, or None if nothing could be asked."""

    def __init__(self, fields):
        self.fields, self.process, self.result = fields, None, None

    def __enter__(self):
        self.output = tempfile.TemporaryFile()
        if self.fields:
            try:
                self.process = subprocess.Popen(query(self.fields, "-lms", str(INTERVAL_MS)), stdin=subprocess.DEVNULL,
                                                stdout=self.output, stderr=subprocess.DEVNULL)
            except OSError:
                pass
        return self

    def __exit__(self, *_):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.output.seek(0)
            self.result = summary(self.fields, self.output.read().decode(errors="replace").splitlines())
        self.output.close()
