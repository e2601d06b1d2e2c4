#!/usr/bin/env python3
"""Measures runs over hosts that are network namespaces of this machine (root): how soon what is noticed, how soon the run goes on, and
bytes between hosts beside the least that two levels need.

    bench/hosts.py [--repeat 5] [--skipped 20] [--model gpt2-124m] [--only WORDS]... [OUTPUT.json]

Start it after `scripts/dev build`; STRATA_BIN names another folder of programs. Prints a table; every time is in OUTPUT.json.
"""
import argparse
import json
import os
import pathlib
import re
import signal
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
os.environ.setdefault("STRATA_BIN", str(ROOT / "build" / "bin"))
sys.path.insert(0, str(ROOT / "tests" / "hosts"))
from namespaces import Namespaces, run, why_not  # noqa: E402 (after its folder is known)
from several_hosts import ACTOR, BIN, children  # noqa: E402

TINY = ["--device", "cpu", "--threads", "1", "--sequence-length", "32", "--micro-batch", "1", "--calibrate", "off", "--zero", "3"]


class Hosts(Namespaces):
    """Hosts for measurements; the test machinery makes and removes them."""

    NAME, NETWORK = "bench", "10.213.80"

    def runTest(self):
        pass

    def line(self, stream, words, limit_s=60):
        """Returns the time at which a line with these words came."""
        end = time.monotonic() + limit_s
        for line in stream:
            if words in line:
                return time.monotonic()
            if time.monotonic() > end:
                break
        raise SystemExit(f"hosts.py: waited in vain for: {words}")

    def programs(self, host, name):
        """Returns the processes on a host that run the program `name`."""
        found, queue = [], [host.pid]
        while queue:
            pid = queue.pop()
            queue += children(pid)
            try:
                if os.path.basename(os.readlink(f"/proc/{pid}/exe")) == name:
                    found.append(pid)
            except OSError:
                pass
        return sorted(found)

    def wait_gone(self, pids):
        while any(os.path.exists(f"/proc/{pid}/exe") and pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
                  for pid in pids if os.path.exists(f"/proc/{pid}/stat")):
            time.sleep(0.002)
        return time.monotonic()

    def waiting_ranks(self):
        """Starts two hosts whose ranks wait; returns the hosts and the rank of host 0."""
        hosts = self.launch([1, 1], [ACTOR, "fail", "7", "1"], ["--max-restarts", "0"])
        self.wait_until(lambda: self.programs(hosts[0], "rank_actor") and self.programs(hosts[1], "rank_actor"), "ranks")
        time.sleep(1.5)
        return hosts, self.programs(hosts[0], "rank_actor")

    def death_of_a_rank(self):
        """Seconds from the death of a rank until the ranks of the other host are told to end; those of rank_actor then end at SIGTERM, a second later."""
        hosts, ranks = self.waiting_ranks()
        begin = time.monotonic()
        os.kill(self.programs(hosts[1], "rank_actor")[0], signal.SIGKILL)
        gone = self.wait_gone(ranks) - begin - 1.0
        self.finish(hosts)
        return gone

    def death_of_an_agent(self):
        """Seconds from the death of a host's mlaunch until host 0 says that its host is lost."""
        hosts, _ = self.waiting_ranks()
        begin = time.monotonic()
        os.kill(self.programs(hosts[1], "mlaunch")[0], signal.SIGKILL)
        seen = self.line(hosts[0].stderr, "host 1 (host1) is lost: its mlaunch has ended") - begin
        self.finish(hosts)
        return seen

    def silent_host(self):
        """Seconds from cutting a host off until it is called silent, until its ranks are gone, and until it is called lost."""
        hosts, _ = self.waiting_ranks()
        ranks = self.programs(hosts[1], "rank_actor")
        begin = time.monotonic()
        self.cut(1)
        silent = self.line(hosts[0].stderr, "has been silent") - begin
        ended = self.wait_gone(ranks) - begin
        lost = self.line(hosts[0].stderr, "is lost: ") - begin
        self.mend(1)
        self.finish(hosts)
        return silent, ended, lost

    def killed_rank_to_next_step(self, ranks):
        """Seconds from the death of a rank of a tiny model until a step that had not been done before."""
        name = f"metrics{time.monotonic_ns()}"
        hosts = self.launch(ranks, [str(BIN / "train"), *TINY, "--steps", "100000", "--save-every", "5", "--output", f"out{name}", "--metrics", name],
                            ["--max-restarts", "9"])
        self.wait_until(lambda: (self.home / f"out{name}" / "latest").exists(), "a checkpoint")
        time.sleep(1.5)
        os.kill(self.programs(hosts[1], "train")[0], signal.SIGKILL)
        begin, done = time.monotonic(), self.last_step(name)
        # The step under way may still be done and written about.
        self.wait_until(lambda: self.last_step(name) > done + 1, "a new step")
        took = time.monotonic() - begin
        self.finish(hosts)
        return took

    def stopped_rank(self):
        """Seconds from stopping a rank until it is named."""
        hosts, _ = self.waiting_ranks()
        begin = time.monotonic()
        os.kill(self.programs(hosts[1], "rank_actor")[0], signal.SIGSTOP)
        seen = self.line(hosts[0].stderr, "rank 1 on host 1 (host1) has been stopped or frozen") - begin
        self.finish(hosts)
        return seen

    def skipped_collective(self, rank):
        """Seconds, beyond the limit for hangs, from the last progress until a rank that skips a collective is named with its host and that
        collective."""
        limit, host = 10, rank // 2
        hosts = self.launch([2, 1], [ACTOR, "absent", str(rank)], ["--max-restarts", "0", "--hang-timeout", str(limit)])
        begin = self.line(hosts[0].stdout, "ready")
        seen = self.line(hosts[0].stderr, f"rank {rank} on host {host} (host{host}) has not come to collective 2 'gather layer4', in which 2 ranks wait")
        report = hosts[0].stderr.read()  # until it ends
        if not re.search(rf"(?m)^  host +{host} \(host{host}\)$", report):
            raise SystemExit(f"hosts.py: the host of rank {rank} is not named: {report}")
        self.finish(hosts)
        return seen - begin - limit

    def last_step(self, name):
        steps = re.findall(r'"step":(\d+)', (self.home / name).read_text().replace(" ", ""))
        return max(map(int, steps), default=0)

    def sent_bytes(self, host):
        return int(run("ip", "netns", "exec", self.namespace(host), "cat", "/sys/class/net/eth0/statistics/tx_bytes").stdout)

    def bytes_of_a_step(self, model, ranks, steps):
        """Returns bytes that host 0 sends for one step of ZeRO-3."""
        sent = []
        for count in (steps, 2 * steps):
            before = self.sent_bytes(0)
            hosts = self.launch(ranks, [str(BIN / "train"), "--device", "cpu", "--threads", "1", "--sequence-length", "32", "--micro-batch", "1",
                                        "--calibrate", "off", "--zero", "3", "--model", model, "--steps", str(count)])
            for host in hosts:
                code, _, said = self.ended(host, 600)
                if code != 0:
                    raise SystemExit(said)
            sent.append(self.sent_bytes(0) - before)
        return (sent[1] - sent[0]) / steps

    def finish(self, hosts):
        for host in hosts:
            if host.poll() is None:
                os.killpg(host.pid, signal.SIGKILL)
            host.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--skipped", type=int, default=20, help="collectives that a rank skips")
    parser.add_argument("--model", default="gpt2-124m")
    parser.add_argument("--only", action="append", metavar="WORDS", help="measure only what has these words in its name, and count no bytes; may be repeated")
    parser.add_argument("output", nargs="?")
    options = parser.parse_args()
    if reason := why_not():
        raise SystemExit(f"hosts.py: {reason}")
    bench = Hosts()
    bench.setUp()
    times = {}

    def measure(names, function, *arguments):
        """Adds what the function returns, one or several times, under these names, unless they are left out."""
        if options.only and not any(words in name for words in options.only for name in names):
            return
        taken = function(*arguments)
        for name, seconds in zip(names, taken if isinstance(taken, tuple) else (taken,)):
            times.setdefault(name, []).append(seconds)

    try:
        for _ in range(options.repeat):
            measure(("a rank's death until ranks elsewhere are told",), bench.death_of_a_rank)
            measure(("an mlaunch's death until its host is lost",), bench.death_of_an_agent)
            measure(("a cut until the host is called silent", "a cut until the ranks there are gone", "a cut until the host is lost"), bench.silent_host)
            measure(("a killed rank until a new step, 1 + 1 ranks",), bench.killed_rank_to_next_step, [1, 1])
            measure(("a killed rank until a new step, 4 + 4 ranks",), bench.killed_rank_to_next_step, [4, 4])
            measure(("a stopped rank until it is named",), bench.stopped_rank)
        for number in range(options.skipped):
            measure(("a skipped collective until it is told, beyond the limit",), bench.skipped_collective, number % 3)
        sent = None if options.only else bench.bytes_of_a_step(options.model, [2, 2], 2)
    finally:
        bench.doCleanups()
    for name, values in times.items():
        print(f"{name:60} median {statistics.median(values):6.3f} s, from {min(values):.3f} to {max(values):.3f}")
    result = {"seconds": times}
    if sent is not None:
        print(f"{options.model}, ZeRO-3, 2 hosts x 2 ranks: a host sends {sent / 1e6:.1f} MB per step")
        result |= {"model": options.model, "bytes_per_host_and_step": sent}
    if options.output:
        pathlib.Path(options.output).write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
