"""What a seed lets happen to a run over three hosts while it trains: ranks, mlaunch processes and whole hosts are killed or stand still, cables are
cut. The run ends with the bits of one that nothing happened to, and leaves nothing."""
import dataclasses
import json
import os
import random
import re
import signal
import time

from lasting_hosts import LastingHosts
from several_hosts import BIN

JOB = ["--device", "cpu", "--threads", "1", "--sequence-length", "8", "--micro-batch", "1", "--calibrate", "off", "--save-every", "10", "--keep", "2"]
SAVE_EVERY = 10
STEPS_PER_HARM = 40  # so many that a checkpoint is written between two of them
LIMIT_S = 90         # from a harm to the next new step, on a busy machine, too
KINDS = {"kill a rank": 6, "stop a rank": 3, "kill an mlaunch": 2, "stop an mlaunch": 2, "kill a host": 2, "stop a host": 2, "cut a cable": 4,
         "kill the first mlaunch": 1}


@dataclasses.dataclass(frozen=True)
class Harm:
    kind: str
    host: int
    seconds: float  # that a stop or a cut lasts
    step: int       # after which it happens


@dataclasses.dataclass(frozen=True)
class Scenario:
    """One run and what happens to it, all drawn by the seed."""
    seed: int
    ranks: list  # of each host
    stage: int
    steps: int
    harms: list

    @classmethod
    def draw(cls, seed, count=10, longest_s=9.0):
        draws = random.Random(seed)
        ranks, stage = draws.choice([[1, 1, 1], [1, 2, 1], [2, 1, 1]]), draws.randrange(4)
        harms = []
        for number in range(count):
            kind = draws.choices(list(KINDS), list(KINDS.values()))[0]
            host = {"kill the first mlaunch": 0, "kill an mlaunch": draws.choice([1, 2]), "kill a host": draws.choice([1, 2])}.get(kind, draws.randrange(3))
            step = number * STEPS_PER_HARM + SAVE_EVERY + draws.randrange(1, STEPS_PER_HARM - SAVE_EVERY)
            harms.append(Harm(kind, host, round(draws.uniform(0.3, longest_s), 2), step))
        return cls(seed, ranks, stage, (count + 1) * STEPS_PER_HARM, harms)


class Harmed(LastingHosts):
    """A test that does what a Scenario says."""

    def job(self, scenario, name):
        """Returns the command of a run that writes the folder out-NAME and the files metrics-NAME and digest-NAME."""
        return [str(BIN / "train"), *JOB, "--zero", str(scenario.stage), "--steps", str(scenario.steps), "--resume", "auto", "--output", f"out-{name}",
                "--metrics", f"metrics-{name}", "--dump-state", f"digest-{name}"]

    def undisturbed(self, scenario):
        """Returns digest and checkpoint files of a run on one host to which nothing happens."""
        name = f"calm-{sum(scenario.ranks)}-{scenario.stage}-{scenario.steps}"
        if not (self.home / f"digest-{name}").exists():
            self.run_program([str(BIN / "mlaunch"), "-np", str(sum(scenario.ranks)), *self.job(scenario, name)], limit_s=300)
        return self.read(f"digest-{name}"), self.files_of(f"out-{name}")

    def files_of(self, folder):
        """Returns the names of files; which steps were saved depends on how long saves took."""
        return sorted({re.sub(r"step-\d+", "step-N", str(path.relative_to(self.home / folder))) for path in (self.home / folder).rglob("*")})

    def endure(self, scenario):
        """Does what the scenario says; returns a record of each harm and of the run, and what is wrong with it."""
        self.scenario, self.name, self.restarts = scenario, f"run-{scenario.seed}", 0
        digest, files = self.undisturbed(scenario)
        begin = time.monotonic()
        self.start_run()
        first = self.wait_for_step(0)
        events = []
        for harm in scenario.harms:
            self.wait_for_step(harm.step)
            events.append(self.suffer(harm))
        codes = [self.wait_for_end(host) for host in range(self.HOSTS)]
        ended = time.monotonic()
        wrong = [] if codes == [0] * self.HOSTS else [f"the hosts ended with {codes}"]
        if not wrong and self.read(f"digest-{self.name}") != digest:
            wrong.append("the digest is another one")
        if not wrong and self.files_of(f"out-{self.name}") != files:
            wrong.append(f"files in the output folder: {sorted(set(self.files_of(f'out-{self.name}')) ^ set(files))}")
        wrong += [f"host {host} has {what}" for host in range(self.HOSTS) for what in self.left_after_a_while(host)]
        record = {"seed": scenario.seed, "ranks": scenario.ranks, "stage": scenario.stage, "steps": scenario.steps, "start_s": round(first - begin, 3),
                  "seconds": round(ended - begin, 3), "step_s": self.step_seconds(), "starts_of_the_run": 1 + self.restarts, "wrong": wrong}
        return events, record

    def left_after_a_while(self, host, limit_s=3):
        end = time.monotonic() + limit_s
        while (left := self.left_on(host)) and time.monotonic() < end:
            time.sleep(0.1)
        return left

    def start_run(self):
        self.hosts = {host: self.start_mlaunch(host) for host in range(self.HOSTS)}

    def start_mlaunch(self, host):
        return self.join(host, self.scenario.ranks, self.job(self.scenario, self.name), ["--max-restarts", "1000"])

    def last_step(self):
        """Returns the newest step that rank 0 has written about."""
        try:
            with open(self.home / f"metrics-{self.name}", "rb") as metrics:
                metrics.seek(max(0, os.fstat(metrics.fileno()).st_size - 4096))
                lines = metrics.read().decode().splitlines()
        except FileNotFoundError:
            return 0
        return max((json.loads(line)["step"] for line in lines if line.startswith('{"step"') and line.endswith("}") and '"loss"' in line), default=0)

    def step_seconds(self):
        """Returns the median time of a step of the run, while no attempt begins and nothing is saved."""
        lines = [json.loads(line) for line in self.read(f"metrics-{self.name}").splitlines() if line.endswith("}")]
        seconds = sorted(line["seconds"] for line in lines if "loss" in line)
        return seconds[len(seconds) // 2]

    def wait_for_step(self, step, limit_s=LIMIT_S):
        """Returns when a step after the given one was written about, or when the run ended."""
        end = time.monotonic() + limit_s
        while self.last_step() <= step:
            self.mend_run()
            if all(process.poll() == 0 for process in self.hosts.values()):
                break
            self.assertLess(time.monotonic(), end, f"seed {self.scenario.seed}: waited in vain for a step after {step}\n{self.said()}")
            time.sleep(0.01)
        return time.monotonic()

    def wait_for_end(self, host, limit_s=LIMIT_S):
        end = time.monotonic() + limit_s
        while self.hosts[host].poll() != 0:
            self.mend_run()
            self.assertLess(time.monotonic(), end, f"seed {self.scenario.seed}: host {host} does not end\n{self.said()}")
            time.sleep(0.05)
        return self.hosts[host].returncode

    def said(self):
        return "".join(f"--- host {host}\n{self.read(f'said{host}')[-3000:]}" for host in range(self.HOSTS))

    def mend_run(self):
        """Starts the run again once all of its hosts have ended with 75, as a scheduler does; any other end of one is a wrong one."""
        codes = [process.poll() for process in self.hosts.values()]
        unasked = [code for code in codes if code not in (None, 0, 75)]
        self.assertEqual(unasked, [], f"seed {self.scenario.seed}: {codes}\n{self.said()}")
        if all(code == 75 for code in codes):
            self.restarts += 1
            self.start_run()

    def suffer(self, harm):
        """Does one harm; returns what became of it."""
        step, before = self.last_step(), len(self.resumed_from())
        begin = time.monotonic()
        DEEDS[harm.kind](self, harm)
        reached = max(step, self.last_step())
        recovered = self.wait_for_step(reached)
        return {"seed": self.scenario.seed, **dataclasses.asdict(harm), "last_step": step, "reached": reached, "new_step_after_s": round(recovered - begin, 3),
                "resumed_from": self.resumed_from()[before:]}

    def resumed_from(self):
        """Returns the steps from which the ranks have started again by themselves so far."""
        return [int(step or 0) for step in re.findall(r"starting the ranks again from (?:step (\d+)|the beginning)", self.read("said0"))]

    def signal_all(self, pids, number):
        for pid in pids:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def kill_a_rank(self, harm):
        ranks = self.processes(harm.host, "train")
        self.signal_all(ranks[-1:], signal.SIGKILL)

    def stop_a_rank(self, harm):
        ranks = self.processes(harm.host, "train")
        self.signal_all(ranks[-1:], signal.SIGSTOP)

    def kill_an_mlaunch(self, harm):
        self.signal_all(self.processes(harm.host, "mlaunch"), signal.SIGKILL)
        self.hosts[harm.host].wait()
        self.hosts[harm.host] = self.start_mlaunch(harm.host)

    def kill_the_first_mlaunch(self, harm):
        """The run is over, and its other hosts wait for nobody when the scheduler ends and starts it again."""
        self.signal_all(self.processes(harm.host, "mlaunch"), signal.SIGKILL)
        self.hosts[harm.host].wait()
        for host in (1, 2):
            self.signal_all(self.processes(host, "mlaunch"), signal.SIGTERM)
        for host in (1, 2):
            self.hosts[host].wait(timeout=LIMIT_S)
        self.restarts += 1
        self.start_run()

    def stop_an_mlaunch(self, harm):
        self.stand_still(harm, self.processes(harm.host, "mlaunch"))

    def kill_a_host(self, harm):
        self.power_off(harm.host)
        self.hosts[harm.host].wait()
        self.boot(harm.host)
        self.hosts[harm.host] = self.start_mlaunch(harm.host)

    def stop_a_host(self, harm):
        self.stand_still(harm, self.processes(harm.host))

    def stand_still(self, harm, pids):
        self.signal_all(pids, signal.SIGSTOP)
        time.sleep(harm.seconds)
        # nsenter stops with the process that it has started.
        self.signal_all([*pids, self.hosts[harm.host].pid], signal.SIGCONT)

    def cut_a_cable(self, harm):
        self.cut(harm.host)
        time.sleep(harm.seconds)
        self.mend(harm.host)


DEEDS = {"kill a rank": Harmed.kill_a_rank, "stop a rank": Harmed.stop_a_rank, "kill an mlaunch": Harmed.kill_an_mlaunch,
         "stop an mlaunch": Harmed.stop_an_mlaunch, "kill a host": Harmed.kill_a_host, "stop a host": Harmed.stop_a_host,
         "cut a cable": Harmed.cut_a_cable, "kill the first mlaunch": Harmed.kill_the_first_mlaunch}
