"""Trains on several nodes of a Ray cluster. Ray places one mlaunch on each; these are one run.

    python3 ray_job.py [--nodes N] [--ranks N] [--cpus N] [--address ADDRESS] PROGRAM [its arguments]
"""
import argparse
import os
import pathlib
import socket
import subprocess
import sys
import tempfile

import ray
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

TRY_AGAIN = 75  # the run was stopped, or has lost a host, and can go on


def place_to_meet():
    """Returns the address of this node, and a port that is free on it."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        return ray.util.get_node_ip_address(), probe.getsockname()[1]


def run_mlaunch(folder, command, secret):
    """Runs mlaunch on this node, with the run's secret as its input; returns its exit code."""
    return subprocess.run(command, cwd=folder, input=secret, text=True).returncode


def make_secret(mlaunch):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "secret")
        subprocess.run([mlaunch, "secret", path], check=True)
        return path.read_text()


def run(arguments, group, mlaunch):
    """Runs the program on all nodes once; returns the exit code of host 0."""
    def on_node(node):
        where = PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=node)
        return {"num_cpus": arguments.cpus, "max_retries": 0, "scheduling_strategy": where}

    address, port = ray.get(ray.remote(place_to_meet).options(**on_node(0)).remote())
    secret = make_secret(mlaunch)
    ends = []
    for node in range(arguments.nodes):
        command = [mlaunch, "--nnodes", str(arguments.nodes), "--node-rank", str(node), "--master-addr", address, "--master-port", str(port),
                   "--run-secret", "-", "-np", str(arguments.ranks), *arguments.program]
        ends.append(ray.remote(run_mlaunch).options(**on_node(node)).remote(os.getcwd(), command, secret))
    return ray.get(ends)[0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--ranks", type=int, default=1, help="of each node")
    parser.add_argument("--cpus", type=int, default=1, help="of each node that Ray reserves")
    parser.add_argument("--address", help="of the Ray cluster")
    parser.add_argument("program", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    if not arguments.program:
        parser.error("which program?")
    root = pathlib.Path(__file__).resolve().parents[2]
    mlaunch = str(pathlib.Path(os.environ.get("STRATA_BIN", root / "build/bin")).resolve() / "mlaunch")
    ray.init(address=arguments.address or "auto")
    group = placement_group([{"CPU": arguments.cpus}] * arguments.nodes, strategy="STRICT_SPREAD")
    ray.get(group.ready())
    code = TRY_AGAIN
    for _ in range(10):
        code = run(arguments, group, mlaunch)
        if code != TRY_AGAIN:
            break
    return code


if __name__ == "__main__":
    sys.exit(main())
