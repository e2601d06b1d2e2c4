"""Starts an mlaunch for each host of a run and looks at what becomes of them. The hosts share one machine here."""
import json
import os
import pathlib
import socket
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "program"))
from memory_watch import MemoryWatch
from programs import BIN, LIMIT_S, SOON_S, ProgramTest, children, parent  # noqa: F401 (for the tests)

ACTOR = str(BIN.parent / "tests" / "rank_actor")
HAS_MODULE = (BIN.parent / "lib" / "libstrata_control.so").exists()


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class HostsTest(ProgramTest):
    """A test with the secret and the port of a run. It fails if processes of two hosts map one memory file."""

    def setUp(self):
        super().setUp()
        if not HAS_MODULE:
            self.skipTest("this build has no libstrata_control.so")
        self.port = free_port()
        self.memory = MemoryWatch()
        self.run_program([str(BIN / "mlaunch"), "secret", "secret"])

    def tearDown(self):
        self.memory.end()
        self.assertEqual(self.memory.shared(), set(), "memory files that several hosts have mapped")

    def start_host(self, command):
        """Starts what a host consists of, alone or with what descends from it."""
        host = self.start(command)
        self.memory.add(host.pid)
        return host

    def command(self, node, count, ranks, program, options=(), port=None, secret="secret"):
        return [str(BIN / "mlaunch"), "--nnodes", str(count), "--node-rank", str(node), "--master-addr", "127.0.0.1",
                "--master-port", str(port or self.port), "--run-secret", secret, "-np", str(ranks), *options, *program]

    def start_hosts(self, ranks, program, options=()):
        """Starts hosts with as many ranks as `ranks` says of each; returns their mlaunch processes, host 0 first."""
        return [self.start_host(self.command(node, len(ranks), here, program, options)) for node, here in enumerate(ranks)]

    def ended(self, host, limit_s=LIMIT_S):
        """Waits for an mlaunch; returns its exit code, standard output and standard error."""
        output, error = host.communicate(timeout=limit_s)
        if host.returncode != 0:
            self.figure(f"said, and ended with {host.returncode}", time.monotonic() - host.began)
        return host.returncode, output, error

    def status_of(self, host):
        """Returns what mlaunch status tells of the run that an mlaunch coordinates; None: nothing."""
        runs = json.loads(self.run_program([str(BIN / "mlaunch"), "status", "--json"]).stdout)["runs"]
        return next((run for run in runs if run["process"] == host.pid), None)

    def wait_for_beats(self, host, count, step=None):
        """Waits until an mlaunch has heard of so many ranks from their hosts; with `step`, that all are in it."""
        def heard():
            ranks = (self.status_of(host) or {"ranks": []})["ranks"]
            return len(ranks) == count and all(rank["process"] and step in (None, rank["step"]) for rank in ranks)
        self.wait_until(heard, f"heartbeats about {count} ranks")

    def wait_for_commit(self, host, step):
        self.wait_until(lambda: (self.status_of(host) or {}).get("committed_step") == step, f"the commit of step {step}")

    def wait_for_lines(self, stream, words, count=1):
        """Reads lines of an mlaunch until so many have had these words."""
        while count:
            line = stream.readline()
            self.assertTrue(line, f"the stream ended without: {words}")
            count -= words in line


def words_of(process):
    """Returns the command line of an entry of /proc; of others [b""]."""
    try:
        return (process / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return [b""]


def agents(folder):
    """Returns the agents of all hosts that were started in a folder, without their copies that are about to run a program."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        words = words_of(entry) if entry.name.isdigit() else [b""]
        try:
            if b"--agent" in words and words[0].endswith(b"mlaunch") and os.readlink(entry / "cwd") == str(folder):
                found.append(int(entry.name))
        except OSError:
            pass  # it has ended
    return [pid for pid in found if parent(pid) not in found]


def is_gone(pid):
    return not os.path.exists(f"/proc/{pid}/exe") and not is_running(pid)


def is_running(pid):
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state not in "ZX"
