#!/usr/bin/env python3
"""Backend `hosts` beside Open MPI over TCP, on hosts in namespaces (root): bytes that a host sends for a step, and how long collectives take.

    bench/beside_mpi.py [--model gpt2-124m] [--repetitions 15] [OUTPUT.json]

STRATA_BIN is the folder of programs (default build/bin); comm_bench and both modules must be built. Collectives of both are interleaved in one
program, with one rank on each of two hosts, so that a host sends the same bytes with either.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
os.environ.setdefault("STRATA_BIN", str(ROOT / "build/bin"))
sys.path[:0] = [str(ROOT / "tests/hosts"), str(ROOT / "tests/program"), str(ROOT / "bench")]
from hosts import Hosts  # noqa: E402
from mpi_test import Mpirun  # noqa: E402
from namespaces import BIN, why_not  # noqa: E402

STEPS = 2


class BesideMpi(Mpirun):
    HOSTS = 2

    def runTest(self):
        pass

    def mpirun(self, ranks_of_a_host, *command, variables=()):
        """Runs a program on both hosts, and returns what it printed."""
        words = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", str(2 * ranks_of_a_host), "-H",
                 ",".join(f"host{host}:{ranks_of_a_host}" for host in range(2)), "--bind-to", "none", "--mca", "plm", "rsh", "--mca", "plm_rsh_agent",
                 str(self.home / "rsh"), "--mca", "btl", "tcp,vader,self", "--mca", "btl_tcp_if_include", "eth0", "--mca", "oob_tcp_if_include", "eth0"]
        for variable in (*variables, f"TMPDIR={self.home}"):
            words += ["-x", variable]
        done = subprocess.run([str(self.home / "rsh"), "host0", " ".join(["cd", str(self.home), "&&", *words, *map(str, command)])],
                              capture_output=True, text=True, timeout=600)
        if done.returncode != 0:
            raise SystemExit(done.stdout + done.stderr)
        return done.stdout

    def sent_bytes(self):
        return int(subprocess.run(["ip", "netns", "exec", self.namespace(0), "cat", "/sys/class/net/eth0/statistics/tx_bytes"], check=True,
                                  capture_output=True, text=True).stdout)

    def bytes_of_a_step(self, model):
        """Returns bytes that host 0 sends for one step of ZeRO-3 on 2 x 2 ranks over MPI."""
        sent = []
        for count in (STEPS, 2 * STEPS):
            before = self.sent_bytes()
            self.mpirun(2, BIN / "train", "--device", "cpu", "--threads", "1", "--sequence-length", "32", "--micro-batch", "1", "--calibrate", "off",
                        "--zero", "3", "--model", model, "--steps", count)
            sent.append(self.sent_bytes() - before)
        return (sent[1] - sent[0]) / STEPS

    def rates(self, repetitions):
        """Returns {collective: least time of MPI over time of `hosts`}: above 1 `hosts` is faster. Medians.

        Of backend `mpi` and of MPI's own collective the faster one counts.
        """
        # Hosts do not share cores: a rank of MPI polls, and would keep the other host's threads from theirs.
        own_core = self.write("own-core", "#!/bin/sh\nexec taskset --cpu-list $OMPI_COMM_WORLD_RANK \"$@\"\n")
        own_core.chmod(0o755)
        text = self.mpirun(1, own_core, BIN / "comm_bench", 64, repetitions, variables=["STRATA_INTERFACE=eth0"])
        print(text)
        found = {}
        for line in re.findall(r"(?m)^\w+ \w+ +\S+ MiB .*", text):
            name = line[:line.index("MiB") + 3]
            times = {who: float(time) for who, time in re.findall(r"  (hosts|mpi|MPI_\w+) +(\S+) us", line)}
            ours = times.pop("hosts")
            found[name] = round(min(times.values()) / ours, 2)
        return found


def measured(bench, work):
    bench.setUp()
    try:
        return work()
    finally:
        bench.doCleanups()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--model", default="gpt2-124m")
    parser.add_argument("--repetitions", type=int, default=15)
    parser.add_argument("output", nargs="?")
    options = parser.parse_args()
    if reason := why_not():
        raise SystemExit(f"beside_mpi.py: {reason}")
    result = {"model": options.model, "load": os.getloadavg()[0]}
    ours = Hosts()
    result["hosts_bytes"] = measured(ours, lambda: ours.bytes_of_a_step(options.model, [2, 2], STEPS))
    mpi = BesideMpi()
    result["mpi_bytes"] = measured(mpi, lambda: mpi.bytes_of_a_step(options.model))
    mpi = BesideMpi()
    result["mpi_time_over_hosts_time"] = measured(mpi, lambda: mpi.rates(options.repetitions))
    result["load_after"] = os.getloadavg()[0]
    print(json.dumps(result, indent=1))
    if options.output:
        pathlib.Path(options.output).write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
