#!/usr/bin/env python3
"""Measures what it costs to be watched over: processor time and memory of a coordinator with many agents over TLS and of one agent, all of them
mlaunch processes on this machine whose ranks sleep, and the step of a tiny model with and without mlaunch.

    bench/watching.py [--hosts 64] [--ranks 8] [--seconds 30] [--silent 1000] [--rounds 15] [OUTPUT.json]

Then `--silent` connections that say nothing come to the coordinator. Start it after `scripts/dev build`; STRATA_BIN names another folder of
programs. Shares are of one core.
"""
import argparse
import json
import os
import pathlib
import resource
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
os.environ.setdefault("STRATA_BIN", str(ROOT / "build" / "bin"))
sys.path.insert(0, str(ROOT / "tests" / "hosts"))
from several_hosts import ACTOR, BIN, children, free_port  # noqa: E402 (after its folder is known)

TICKS = os.sysconf("SC_CLK_TCK")
STEPS = ["--device", "cpu", "--threads", "1", "--sequence-length", "32", "--micro-batch", "1", "--calibrate", "off", "--steps", "3000"]


def processor_seconds(pid):
    """Returns what the threads of a process have used; a tick of the kernel is 10 ms."""
    words = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / TICKS


def memory_mib(pid, name="VmRSS"):
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name + ":")) / 1024


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


class Run:
    """A run whose hosts are all on this machine."""

    def __init__(self, folder, hosts, ranks):
        self.folder, self.port, self.hosts = folder, free_port(), hosts
        subprocess.run([str(BIN / "mlaunch"), "secret", "secret"], cwd=folder, check=True)
        self.agents = [self.start(host, ranks) for host in range(hosts)]
        self.coordinator = self.agents[0].pid

    def start(self, host, ranks):
        command = [str(BIN / "mlaunch"), "--nnodes", str(self.hosts), "--node-rank", str(host), "--master-addr", "127.0.0.1", "--master-port",
                   str(self.port), "--run-secret", "secret", "-np", str(ranks), "--hang-timeout", "3600", ACTOR, "fail", "100000", "1"]
        return subprocess.Popen(command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                env=os.environ | {"STRATA_RUNS_DIR": str(self.folder / "runs")}, start_new_session=True)

    def wait_for_ranks(self, count):
        end = time.monotonic() + 60
        while len(children(self.agents[-1].pid)) < count or len(children(self.coordinator)) < count:
            if time.monotonic() > end:
                raise SystemExit("watching.py: the ranks do not start")
            time.sleep(0.2)

    def close(self):
        """A coordinator that gets two signals ends all hosts."""
        self.agents[0].send_signal(signal.SIGINT)
        for agent in self.agents:
            try:
                agent.wait(timeout=30)
            except subprocess.TimeoutExpired:
                agent.kill()
                agent.wait()


def cost(folder, options):
    """Returns shares of a core and memory of the coordinator and of an agent, and what silent connections add."""
    run = Run(folder, options.hosts, options.ranks)
    try:
        run.wait_for_ranks(options.ranks)
        time.sleep(3)  # until all have told that they run
        watched = [run.coordinator, *(agent.pid for agent in run.agents[1:])]
        begin, before = time.monotonic(), [processor_seconds(pid) for pid in watched]
        time.sleep(options.seconds)
        took = time.monotonic() - begin
        shares = [(processor_seconds(pid) - used) / took for pid, used in zip(watched, before)]
        record = {"hosts": options.hosts, "ranks_of_a_host": options.ranks, "seconds": round(took, 1), "coordinator_share": shares[0],
                  "coordinator_mib": memory_mib(run.coordinator), "agent_share_mean": statistics.mean(shares[1:]), "agent_share_most": max(shares[1:]),
                  "agent_mib": memory_mib(watched[1]), "coordinator_descriptors": descriptors(run.coordinator)}
        silent = [socket.create_connection(("127.0.0.1", run.port)) for _ in range(options.silent)]
        time.sleep(2)
        record |= {"silent": len(silent), "coordinator_mib_with_silent": memory_mib(run.coordinator),
                   "coordinator_descriptors_with_silent": descriptors(run.coordinator)}
        time.sleep(10)
        record |= {"coordinator_mib_after_silent": memory_mib(run.coordinator), "coordinator_descriptors_after_silent": descriptors(run.coordinator),
                   "still_runs": all(agent.poll() is None for agent in run.agents)}
        for connection in silent:
            connection.close()
        return record
    finally:
        run.close()


def step_seconds(folder, name, commands, environment):
    """Runs commands at a time; returns the median time of a step."""
    processes = [subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=os.environ | extra)
                 for command, extra in zip(commands, environment)]
    if any([process.wait() for process in processes]):
        raise SystemExit(f"watching.py: a run has failed: {commands}")
    steps = [json.loads(line) for line in (folder / name).read_text().splitlines()]
    return statistics.median(step["seconds"] for step in steps if "loss" in step)


def steps_of(folder, ranks, rounds):
    """Returns medians of the step with and without mlaunch, turn by turn; both find one another by a socket and share memory."""
    times = {"watched": [], "alone": []}
    for number in range(rounds):
        for way in (("watched", "alone") if number % 2 == 0 else ("alone", "watched")):
            name = f"metrics-{ranks}-{way}-{number}"
            train = [str(BIN / "train"), *STEPS, "--metrics", name]
            if way == "watched":
                commands, environment = [[str(BIN / "mlaunch"), "-np", str(ranks), *train]], [{}]
            else:
                commands = [train] * ranks
                place = {"WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()),
                         "TORCHELASTIC_RUN_ID": name}
                environment = [place | {"RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(ranks)]
            times[way].append(step_seconds(folder, name, commands, environment))
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--hosts", type=int, default=64)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--silent", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("output", nargs="?", type=pathlib.Path)
    options = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with tempfile.TemporaryDirectory(prefix="strata-watching-") as folder:
        record = cost(pathlib.Path(folder), options) if options.hosts > 1 else {}
        for ranks in (1, 2) if options.rounds else ():
            times = record.setdefault("step_seconds", {})[ranks] = steps_of(pathlib.Path(folder), ranks, options.rounds)
            watched, alone = statistics.median(times["watched"]), statistics.median(times["alone"])
            ratios = [a / b for a, b in zip(times["watched"], times["alone"])]
            print(f"{ranks} ranks: a step takes {watched * 1e3:.3f} ms, without mlaunch {alone * 1e3:.3f}; ratio of turns: median {statistics.median(ratios):.4f}")
    for name, value in record.items():
        if not isinstance(value, dict):
            print(f"{name}: {value}")
    if options.output:
        options.output.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
