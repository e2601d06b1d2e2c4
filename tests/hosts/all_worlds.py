"""The same bits in all worlds: {1, 2, 3 hosts} x {1, 2, 4 ranks each, 2 + 3} x stages 0 to 3, and 8 virtual ranks through 4, 2 and 4 hosts. That is too
slow for every run of CI: `scripts/dev rota worlds` runs it."""
import signal
import unittest

from namespaces import Namespaces
from several_hosts import BIN

JOB = ["--device", "cpu", "--threads", "1", "--sequence-length", "8", "--micro-batch", "1", "--calibrate", "off"]
WORLDS = [*([each] * hosts for hosts in (1, 2, 3) for each in (1, 2, 4)), [2, 3]]


class AllWorlds(Namespaces):
    HOSTS = 4
    NAME = "worlds"
    NETWORK = "10.213.81"

    def train(self, *arguments):
        return [str(BIN / "train"), *JOB, *map(str, arguments)]

    def digest_of_one_host(self, ranks, *job):
        self.run_program([str(BIN / "mlaunch"), "-np", str(ranks), *self.train(*job, "--dump-state", "one")], limit_s=300)
        return self.read("one")

    def test_every_world_at_every_stage(self):
        digests = {}
        for ranks in WORLDS:
            world = sum(ranks)
            if world not in digests:
                digests[world] = self.digest_of_one_host(world, "--steps", 4)
            for stage in range(4):
                with self.subTest(ranks=ranks, stage=stage):
                    job = self.train("--steps", 4, "--zero", stage, "--dump-state", "digest")
                    hosts = self.launch(ranks, job) if len(ranks) > 1 else [self.on_host(0, [str(BIN / "mlaunch"), "-np", str(world), *job])]
                    ends = [self.ended(host, 120) for host in hosts]
                    self.assertEqual([end[0] for end in ends], [0] * len(ranks), ends)
                    self.assertEqual(self.read("digest"), digests[world])
                    (self.home / "digest").unlink()

    def test_virtual_ranks_through_four_two_and_four_hosts(self):
        job = ["--zero", 3, "--virtual-ranks", 8, "--steps", 600, "--save-every", 30]
        run = self.train(*job, "--resume", "auto", "--output", "out", "--metrics", "metrics", "--dump-state", "digest")

        def start(host):
            return self.on_host(host, [str(BIN / "mlaunch"), "--nnodes", "2:4", "--node-rank", str(host), "--master-addr", self.address(0), "--master-port",
                                       "29500", "--run-secret", "secret", "-np", "1", *run])
        hosts = [start(host) for host in range(4)]
        self.wait_until((self.home / "out" / "latest").exists, "a checkpoint of four hosts")
        for host in (2, 3):
            hosts[host].send_signal(signal.SIGKILL)
            hosts[host].wait()
        steps = self.steps()
        self.wait_until(lambda: self.steps() > steps + 10, "steps of two hosts")
        hosts[2:] = [start(host) for host in (2, 3)]
        ends = [self.ended(host, 200) for host in hosts]
        self.assertEqual([end[0] for end in ends], [0] * 4, ends)
        for words in ("4 ranks (hosts)", "2 ranks (hosts)"):
            self.assertIn(words, ends[0][1])
        self.assertIn("the run goes on as 4 ranks instead of 2", ends[0][2])
        self.assertEqual(self.read("digest"), self.digest_of_one_host(2, *job, "--output", "one-host"))

    def steps(self):
        try:
            return sum('"loss"' in line for line in self.read("metrics").splitlines())
        except FileNotFoundError:
            return 0


if __name__ == "__main__":
    unittest.main()
