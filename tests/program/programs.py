"""Starts train, mlaunch and generate of a build as a user would, with limits, and looks at what they leave."""
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import tempfile
import time
import unittest

BIN = pathlib.Path(os.environ["STRATA_BIN"])
# Tests neither read nor leave anything in the cache of whoever runs them, nor among their runs.
CACHE = tempfile.TemporaryDirectory(prefix="strata-cache-")
os.environ["XDG_CACHE_HOME"] = CACHE.name
os.environ["STRATA_RUNS_DIR"] = CACHE.name + "/runs"
# After LIMIT_S a program hangs, on a machine that is busy with other tests, too. SOON_S is for what ends at once: less than programs of tests sleep.
LIMIT_S = 240
SOON_S = 50
# These flags run two steps of a tiny model, for tests to which its result does not matter.
QUICK = ["--steps", "2", "--sequence-length", "16", "--micro-batch", "1", "--threads", "1"]
# With this a program of the shell waits until the test has written the file `told`.
UNTIL_TOLD = "while [ ! -e told ]; do sleep 0.05; done"
HAS_MPI = shutil.which("mpirun") is not None and (BIN.parent / "lib/libstrata_mpi.so").exists()


def train(*arguments):
    return [str(BIN / "train"), *map(str, arguments)]


def mlaunch(ranks, *arguments, options=()):
    return [str(BIN / "mlaunch"), "-np", str(ranks), *options, *train(*arguments)]


def mpirun(ranks, *arguments):
    return ["mpirun", "-np", str(ranks), "--oversubscribe", "--bind-to", "none",
            *train(*arguments)]


def missing_packages(python, names):
    """Returns those of `names` that this Python interpreter cannot import."""
    look = "import importlib.util, sys; print(*[n for n in sys.argv[1:] if importlib.util.find_spec(n) is None])"
    done = subprocess.run([str(python), "-c", look, *names], capture_output=True, text=True, check=True)
    return done.stdout.split()


def clean_environment():
    """Drops variables of an outer launcher, and allows mpirun to run as root, which it refuses unless told twice."""
    foreign = ("STRATA_RANK", "STRATA_RUN_ID", "OMPI_", "SLURM_", "TORCHELASTIC_", "PMI", "RANK", "WORLD_SIZE")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(foreign)}
    return kept | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def parent(pid):
    """Returns a process's parent, or None if it has ended, even if nobody has asked for its exit code yet."""
    try:
        stat = pathlib.Path("/proc", str(pid), "stat").read_text()
    except OSError:
        return None
    state, parent_pid = stat.rsplit(")", 1)[1].split()[:2]
    return None if state in "ZX" else int(parent_pid)


def children(pid):
    """Returns child processes in the order in which they were started."""
    return sorted(int(entry) for entry in os.listdir("/proc")
                  if entry.isdigit() and parent(entry) == pid)


def living(pids):
    return [pid for pid in pids if parent(pid) is not None]


class ProgramTest(unittest.TestCase):
    """A test with a directory of its own, `self.home`, in which programs run."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="strata-program-")
        self.addCleanup(folder.cleanup)
        self.home = pathlib.Path(folder.name)

    def figure(self, what, seconds):
        """Tells bench/fault_figures.py how long something took, if it listens."""
        if path := os.environ.get("STRATA_FIGURES"):
            with open(path, "a") as file:
                file.write(json.dumps({"what": what, "seconds": seconds}) + "\n")

    def run_program(self, command, expect=0, limit_s=LIMIT_S):
        begin = time.monotonic()
        done = subprocess.run(command, cwd=self.home, env=clean_environment(), timeout=limit_s,
                              stdin=subprocess.DEVNULL, capture_output=True)
        # text=True would turn a terminal's carriage returns into newlines.
        done.stdout, done.stderr = (out.decode(errors="replace")
                                    for out in (done.stdout, done.stderr))
        self.assertEqual(done.returncode, expect, f"{command}\n{done.stdout}\n{done.stderr}")
        if expect:
            self.figure(f"said, and ended with {expect}", time.monotonic() - begin)
        return done

    def start(self, command):
        process = subprocess.Popen(command, cwd=self.home, env=clean_environment(), text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, start_new_session=True)
        process.began = time.monotonic()
        self.addCleanup(self._end, process)
        return process

    @staticmethod
    def _end(process):
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for stream in filter(None, (process.stdout, process.stderr)):
            stream.close()

    def wait_until(self, condition, what, limit_s=LIMIT_S):
        end = time.monotonic() + limit_s
        while not condition():
            self.assertLess(time.monotonic(), end, f"waited in vain: {what}")
            time.sleep(0.02)

    def write(self, name, content):
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def read(self, name):
        return (self.home / name).read_text()

    def metrics(self, name):
        return [json.loads(line) for line in self.read(name).splitlines()]

    def step_metrics(self, name):
        """Returns the lines of steps; others are about evaluations, checkpoints and transfers."""
        return [line for line in self.metrics(name) if "loss" in line]


class SafetensorsFile:
    """A safetensors file in parts, so that tests can falsify it."""

    def __init__(self, path):
        data = pathlib.Path(path).read_bytes()
        (length,) = struct.unpack_from("<Q", data)
        self.header = json.loads(data[8:8 + length])
        self.data = data[8 + length:]

    def bytes(self):
        text = json.dumps(self.header).encode()
        return struct.pack("<Q", len(text)) + text + self.data
