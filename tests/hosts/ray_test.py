"""The example for Ray, in a cluster of two real nodes of it, which are hosts in namespaces of their own. Needs ray, in this Python or in the
environment that STRATA_PEERS names."""
import os
import pathlib
import sys
import unittest

from namespaces import Namespaces
from several_hosts import BIN

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "program"))
from programs import missing_packages

PEERS = os.environ.get("STRATA_PEERS", "")
PYTHON = f"{PEERS}/bin/python" if PEERS else sys.executable
EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples/07_on_a_cluster/ray_job.py"
START = f"{PYTHON} -m ray.scripts.scripts start --num-cpus=1 --disable-usage-stats"
JOB = "--device cpu --threads 1 --sequence-length 32 --micro-batch 1 --calibrate off --zero 3 --steps 4 --dump-state"


class Ray(Namespaces):
    def setUp(self):
        if missing_packages(PYTHON, ["ray"]):
            self.skipTest(f"{PYTHON} has no ray; STRATA_PEERS may name an environment that has")
        super().setUp()

    def test_nodes_of_ray_are_hosts_of_a_run(self):
        head = f"{self.address(0)}:6379"
        self.on_host(1, ["sh", "-c", f"until {START} --address={head} --node-ip-address={self.address(1)} --block; do sleep 1; done >ray-1.out 2>&1"])
        run = self.on_host(0, ["sh", "-c", f"{START} --head --include-dashboard=false --node-ip-address={self.address(0)} --port=6379 >ray-0.out 2>&1 && "
                               f"exec {PYTHON} {EXAMPLE} --nodes 2 --ranks 2 --address {head} {BIN}/train {JOB} ray"])
        code, output, error = self.ended(run)
        self.assertEqual(code, 0, output + error)
        self.run_program([str(BIN / "mlaunch"), "-np", "4", str(BIN / "train"), *JOB.split(), "one"])
        self.assertEqual(self.read("ray"), self.read("one"))


if __name__ == "__main__":
    unittest.main()
