"""Training over hosts in namespaces of their own: the same bits as on one host, whatever dies on the way."""
import json
import os
import pathlib
import re
import signal
import time
import unittest

from memory_watch import descendants, memory_files, parents
from namespaces import Namespaces
from several_hosts import BIN

JOB = ["--device", "cpu", "--threads", "1", "--sequence-length", "32", "--micro-batch", "1", "--calibrate", "off"]


class Training(Namespaces):
    HOSTS = 3

    def train(self, *arguments):
        return [str(BIN / "train"), *JOB, *map(str, arguments)]

    def digest_of_one_host(self, ranks, name, *arguments):
        self.run_program([str(BIN / "mlaunch"), "-np", str(ranks), *self.train(*arguments, "--dump-state", name)])
        return self.read(name)

    def test_the_same_bits_as_on_one_host(self):
        cases = [([1, 1], 0), ([1, 1, 1], 3), ([2, 2], 3), ([2, 3], 1), ([2, 3], 2), ([2, 3], 3), ([1, 2, 1], 3)]
        for number, (ranks, stage) in enumerate(cases):
            with self.subTest(ranks=ranks, stage=stage):
                job = ["--zero", stage, "--steps", 4]
                ends = [self.ended(host) for host in self.launch(ranks, self.train(*job, "--dump-state", f"hosts{number}"))]
                self.assertEqual([end[0] for end in ends], [0] * len(ranks), ends)
                self.assertIn(f"{sum(ranks)} ranks (hosts)", ends[0][1])
                self.assertEqual(self.read(f"hosts{number}"), self.digest_of_one_host(sum(ranks), f"one{number}", *job))

    def test_hosts_with_unlike_numbers_of_ranks_plan_alike(self):
        """Ranks of a host share its memory and its drive. Where it is too little on the host that has most of them, all refuse it."""
        alike = self.digest_of_one_host(3, "alike", "--zero", 2, "--steps", 4)
        for number, (ranks, memory, code) in enumerate((([2, 1], "80MB", 0), ([1, 2], "80MB", 0), ([2, 1], "66MB", 69), ([1, 2], "66MB", 69))):
            with self.subTest(ranks=ranks, memory=memory):
                job = ["--zero", 2, "--steps", 4, "--offload-optimizer", "nvme", "--nvme-path", ".", "--save-every", 1, "--host-memory", memory]
                ends = [self.ended(host) for host in self.launch(ranks, self.train(*job, "--output", f"out{number}", "--dump-state", f"unlike{number}"))]
                self.assertEqual([end[0] for end in ends], [code, code], ends)
                if code == 0:
                    self.assertEqual(self.read(f"unlike{number}"), alike)

    # Fault 10.
    def test_no_two_hosts_map_one_memory_file(self):
        """All tests of hosts look for it, this one that ranks of a host do share memory, which could be seen."""
        hosts = self.launch([2, 2], self.train("--zero", 3, "--steps", 100000, "--metrics", "metrics"))
        self.wait_until(lambda: (self.home / "metrics").exists() and self.steps() > 2, "steps")
        for host in hosts:
            ranks = [memory_files(pid) for pid in descendants(host.pid, parents()) if self.is_train(pid)]
            self.assertEqual(len(ranks), 2)
            self.assertTrue(set.intersection(*ranks), "ranks of one host share memory")
        hosts[1].send_signal(signal.SIGKILL)  # of the namespaces' first process: all of the host goes
        self.assertEqual(self.ended(hosts[0])[0], 75)

    # Fault 8.
    def test_a_rank_that_starts_a_minute_late_is_waited_for(self):
        late = ["sh", "-c", '[ "$RANK" = 0 ] || sleep 65; exec "$@"', "sh"]
        ends = [self.ended(host) for host in self.launch([1, 1], [*late, *self.train("--zero", 3, "--steps", 2)])]
        self.assertEqual([end[0] for end in ends], [0, 0], ends)

    def test_unlike_processors_are_noted(self):
        self.write("cpuinfo", re.sub(r"(?m)^(model name\s*:).*$", r"\1 Some Other CPU", pathlib.Path("/proc/cpuinfo").read_text()))
        other = ["sh", "-c", '[ "$RANK" = 0 ] || mount --bind cpuinfo /proc/cpuinfo; exec "$@"', "sh"]
        for prefix, noted in ((other, True), ([], False)):
            ends = [self.ended(host) for host in self.launch([1, 1], [*prefix, *self.train("--steps", 2)])]
            self.assertEqual([end[0] for end in ends], [0, 0], ends)
            self.assertEqual(bool(re.search("hosts have different processors .*Some Other CPU.*: the bits depend on which of them computes what",
                                            "".join(ends[0][1:]))), noted, ends)

    @staticmethod
    def is_train(pid):
        return os.path.basename(os.readlink(f"/proc/{pid}/exe")) == "train"

    def steps(self):
        try:
            return len([line for line in self.read("metrics").splitlines() if '"loss"' in line])
        except FileNotFoundError:
            return 0

    # Faults 1, 11.
    def test_a_run_goes_on_after_deaths_and_ends_with_the_bits_of_one_that_nothing_happened_to(self):
        job = ["--zero", 3, "--steps", 120, "--save-every", 4, "--output"]
        undisturbed = self.digest_of_one_host(2, "undisturbed", *job, "out0")
        for number, harm in enumerate([self.kill_a_rank, self.cut_off]):
            with self.subTest(harm.__name__):
                out = f"out{number + 1}"
                hosts = self.launch([1, 1], self.train(*job, out, "--metrics", f"metrics{number}", "--dump-state", f"digest{number}"))
                self.wait_until(lambda: (self.home / out / "latest").exists(), "a checkpoint")
                harm(hosts)
                ends = [self.ended(host) for host in hosts]
                self.assertEqual([end[0] for end in ends], [0, 0], ends)
                self.assertIn("starting the ranks again from step", ends[0][2])
                self.assertEqual(self.read(f"digest{number}"), undisturbed)
                steps = [json.loads(line)["step"] for line in self.read(f"metrics{number}").splitlines() if '"loss"' in line]
                self.assertEqual(steps[-1], 120)

    def kill_a_rank(self, hosts):
        ranks = [pid for pid in descendants(hosts[1].pid, parents()) if self.is_train(pid)]
        os.kill(ranks[0], signal.SIGKILL)

    def cut_off(self, hosts):
        self.cut(1)
        time.sleep(8)  # until both sides have noticed
        self.mend(1)


if __name__ == "__main__":
    unittest.main()
