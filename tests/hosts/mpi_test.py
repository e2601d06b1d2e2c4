"""Agents that mpirun starts, on hosts in namespaces of their own."""
import os
import shutil
import signal
import unittest

from namespaces import INSIDE, Namespaces
from several_hosts import ACTOR, BIN, agents

# It stands for ssh: mpirun calls it with a host and a command, which runs in the namespaces of that host.
AGENT = """#!/bin/sh
host=$1; shift
exec nsenter --target "$(cat {home}/pid-$host)" --net --uts --ipc --mount sh -c "$*"
"""


class Mpirun(Namespaces):
    HOSTS = 3

    def setUp(self):
        if shutil.which("mpirun") is None:
            self.skipTest("mpirun is not installed")
        super().setUp()
        self.write("rsh", AGENT.format(home=self.home)).chmod(0o755)
        self.write("hosts", "127.0.0.1 localhost\n" + "".join(f"{self.address(host)} host{host}\n" for host in range(self.HOSTS)))
        for host in range(self.HOSTS):
            # One host enters the namespaces of another by a process, so they have one namespace of processes.
            holder = self.start(["ip", "netns", "exec", self.namespace(host), "unshare", "--uts", "--ipc", "--mount", "sh", "-c", INSIDE, "sh",
                                 f"host{host}", "sh", "-c", f"mount --bind {self.home}/hosts /etc/hosts; touch up-{host}; exec sleep 600"])
            self.write(f"pid-host{host}", str(holder.pid))
            self.wait_until((self.home / f"up-{host}").exists, "a host")

    def launch_from_host0(self, hosts, program, *options):
        return self.start([str(self.home / "rsh"), "host0", f"cd {self.home} && exec {BIN}/mlaunch -H {hosts} --launcher mpi --launcher-args "
                           f"'--mca plm rsh --mca plm_rsh_agent {self.home}/rsh' {' '.join(options)} {program}"])

    def test_ranks_run_where_mpirun_starts_agents_and_hear_nothing_of_it(self):
        run = self.launch_from_host0("host0:1,host1:2,host2:1", "sh -c 'echo \"$RANK of $WORLD_SIZE on $(hostname), $(env | grep -c OMPI_)\"'")
        code, output, error = self.ended(run)
        self.assertEqual(code, 0, error)
        self.assertEqual(sorted(output.splitlines()), [f"[{rank}] {rank} of 4 on host{host}, 0" for rank, host in enumerate((0, 1, 1, 2))])

    # Fault 10.
    def test_an_agent_that_dies_is_one_lost_host_and_is_started_again(self):
        run = self.launch_from_host0("host0:1,host1:1,host2:1", f"{ACTOR} commit 5 ws", "--max-restarts 1")
        self.wait_until(lambda: len(agents(self.home)) == 2, "two agents")
        self.wait_until(lambda: "attempt 0" in run.stdout.readline(), "a commit")
        os.kill(agents(self.home)[0], signal.SIGKILL)
        code, _, error = self.ended(run)
        self.assertEqual(code, 0, error)
        self.assertIn("starting the ranks again from step 5", error)

    def test_a_host_that_mpirun_does_not_reach_ends_the_start(self):
        (self.home / "pid-host2").unlink()
        code, _, error = self.ended(self.launch_from_host0("host0,host2", "true"))
        self.assertEqual(code, 69, error)
        self.assertIn("host 1 cannot take part: ", error)


if __name__ == "__main__":
    unittest.main()
