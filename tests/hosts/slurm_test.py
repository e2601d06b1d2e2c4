"""Runs in jobs of a real Slurm, whose three nodes are hosts in namespaces of their own."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time
import unittest

from namespaces import Namespaces
from several_hosts import BIN, LIMIT_S, agents

DAEMONS = [shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin") for name in ("slurmctld", "slurmd", "srun")]
CONFIGURATION = """ClusterName=played
SlurmctldHost=host0({address})
SlurmUser=root
AuthType=auth/none
CredType=cred/none
AuthInfo=cred_expire=2
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
MailProg=/bin/true
ReturnToService=2
StateSaveLocation={home}/state
SlurmdSpoolDir={home}/spool-%n
SlurmctldPidFile={home}/slurmctld.pid
SlurmdPidFile={home}/slurmd-%n.pid
SlurmctldLogFile={home}/slurmctld.log
SlurmdLogFile={home}/slurmd-%n.log
KillWait=10
PartitionName=all Nodes=host[0-2] Default=YES MaxTime=INFINITE State=UP
"""
EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples/07_on_a_cluster/job.sbatch"
JOB = ["--device", "cpu", "--threads", "1", "--sequence-length", "32", "--micro-batch", "1", "--calibrate", "off", "--zero", "3"]
WHERE = """sh -c 'echo "$RANK of $WORLD_SIZE on $(hostname), nodes $SLURM_JOB_NUM_NODES, step ${SLURM_STEP_ID-none} ${SLURM_NNODES-none}"'"""


class SlurmTest(Namespaces):
    """A test with a Slurm of its own."""

    HOSTS = 3
    MORE = ""  # lines of its configuration

    def setUp(self):
        if None in DAEMONS:
            self.skipTest("Slurm is not installed (Debian: apt install slurmctld slurmd slurm-client)")
        super().setUp()
        nodes = "".join(f"NodeName=host{host} NodeAddr={self.address(host)} CPUs=4 RealMemory=500\n" for host in range(self.HOSTS))
        self.write("slurm.conf", CONFIGURATION.format(address=self.address(0), home=self.home) + self.MORE + nodes)
        self.write("cgroup.conf", "CgroupPlugin=cgroup/v1\n")  # it is not used: there may be no cgroups here
        self.write("hosts", "127.0.0.1 localhost\n" + "".join(f"{self.address(host)} host{host}\n" for host in range(self.HOSTS)))
        for folder in ("state", *(f"spool-host{host}" for host in range(self.HOSTS))):
            (self.home / folder).mkdir()
        for host in range(self.HOSTS):
            controller = "slurmctld -D -i & " if host == 0 else ""
            self.on_host(host, ["sh", "-c", f"export SLURM_CONF={self.home}/slurm.conf; mount --bind {self.home}/hosts /etc/hosts; "
                                f"{controller}exec slurmd -D -N host{host} >{self.home}/slurmd-{host}.out 2>&1"])
        self.wait_until(lambda: "idle,3" in self.slurm("sinfo", "-h", "-o", "%T,%D").stdout, "three nodes of Slurm")

    def slurm(self, *command):
        return subprocess.run(["ip", "netns", "exec", self.namespace(0), "env", f"SLURM_CONF={self.home}/slurm.conf", *command],
                              cwd=self.home, capture_output=True, text=True, timeout=60)

    def submit(self, script, *options):
        """Submits a batch script; returns the job's number."""
        self.write("job.sh", f"#!/bin/sh\n{script}\n")
        done = self.slurm("sbatch", "--parsable", "--nodes=3", "--output=out", "--open-mode=append", *options, "job.sh")
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def job(self, number):
        """Returns the state of a job and its exit code."""
        text = self.slurm("scontrol", "show", "job", number).stdout
        return re.search(r"JobState=(\S+)", text)[1], re.search(r" ExitCode=(\d+:\d+)", text)[1]

    def let_start(self, number):
        """Lets a job that is in the queue again start at once, where Slurm waits two minutes.

        Slurm revokes the credential of a start by the second in which it ended: another one within that second would be killed.
        """
        time.sleep(2)
        self.slurm("scontrol", "update", f"JobId={number}", "StartTime=now")

    def ended_job(self, number, limit_s=LIMIT_S):
        self.wait_until(lambda: self.job(number)[0] not in ("PENDING", "RUNNING", "COMPLETING", "CONFIGURING"), "the end of a job", limit_s)
        return self.job(number)

    def out(self):
        return self.read("out") if (self.home / "out").exists() else ""

    def train(self, *arguments):
        return " ".join(map(str, [BIN / "train", *JOB, *arguments]))

    def digest_of_one_host(self, *arguments):
        self.run_program([str(BIN / "mlaunch"), "-np", "3", *self.train(*arguments, "--dump-state", "one").split()])
        return self.read("one")

    def steps(self):
        """Returns the last step in the metrics; 0: there is none."""
        if not (self.home / "metrics").exists():
            return 0
        lines = [line for line in self.read("metrics").splitlines() if '"loss"' in line and line.endswith("}")]
        return json.loads(lines[-1])["step"] if lines else 0

    def last_checkpoint(self):
        return int(os.readlink(self.home / "saved/latest").rsplit("-", 1)[1])


class Slurm(SlurmTest):
    def test_one_mlaunch_trains_on_all_nodes_with_the_bits_of_one_host(self):
        job = self.submit(f"exec {BIN}/mlaunch -np 1 {self.train('--steps', 4, '--dump-state', 'three')}")
        self.assertEqual(self.ended_job(job), ("COMPLETED", "0:0"), self.out())
        self.assertIn("3 ranks (hosts)", self.out())
        self.assertIn(f"note: ranks are on all 3 nodes of Slurm's job {job}", self.out())
        self.assertEqual(self.read("three"), self.digest_of_one_host("--steps", 4))

    def test_ranks_are_where_tasks_would_be_and_see_the_job_alone(self):
        job = self.submit(f"{BIN}/mlaunch {WHERE}", "--ntasks-per-node=2")
        self.assertEqual(self.ended_job(job), ("COMPLETED", "0:0"), self.out())
        self.assertEqual(sorted(line for line in self.out().splitlines() if line.startswith("[")),
                         [f"[{rank}] {rank} of 6 on host{rank // 2}, nodes 3, step none none" for rank in range(6)])

    def test_the_first_nodes_and_listed_ones_may_be_taken(self):
        job = self.submit(f"{BIN}/mlaunch --launcher slurm --nnodes 2 {WHERE}; {BIN}/mlaunch --launcher slurm -H host2:2 {WHERE}; "
                          f"{BIN}/mlaunch --launcher local {WHERE}; {BIN}/mlaunch --launcher slurm -H host7 true; exit $?")
        self.assertEqual(self.ended_job(job), ("FAILED", "2:0"), self.out())
        lines = [line for line in self.out().splitlines() if " of " in line and "nodes 3" in line]
        self.assertEqual(sorted(lines[:2]), [f"[{rank}] {rank} of 2 on host{rank}, nodes 3, step none none" for rank in (0, 1)])
        self.assertEqual(sorted(lines[2:4]), [f"[{rank}] {rank} of 2 on host2, nodes 3, step none none" for rank in (0, 1)])
        self.assertEqual(lines[4:], ["0 of 1 on host0, nodes 3, step none none"])
        self.assertIn("-H host7: host7 is no node of this job (SLURM_JOB_NODELIST=host[0-2])", self.out())

    def test_mlaunch_as_a_task_of_srun_says_what_to_do(self):
        job = self.submit(f"srun --ntasks=3 {BIN}/mlaunch true")
        self.assertEqual(self.ended_job(job), ("FAILED", "2:0"), self.out())
        self.assertIn("srun has started mlaunch 3 times (SLURM_PROCID=", self.out())

    def test_tasks_of_srun_that_are_told_how_they_meet_are_a_run(self):
        job = self.submit(f"srun --ntasks=3 sh -c 'exec {BIN}/mlaunch --nnodes 3 --node-rank $SLURM_NODEID --master-addr {self.address(0)} "
                          "--master-port 29500 --run-secret secret sh -c \"echo \\$RANK of \\$WORLD_SIZE on \\$(hostname)\"'")
        self.assertEqual(self.ended_job(job), ("COMPLETED", "0:0"), self.out())
        self.assertEqual(sorted(re.findall(r"\d of 3 on host\d", self.out())), [f"{rank} of 3 on host{rank}" for rank in range(3)])

    # Fault 10.
    def test_a_run_goes_on_after_the_death_of_an_agent(self):
        arguments = ["--steps", 60, "--save-every", 4, "--output"]
        job = self.submit(f"exec {BIN}/mlaunch -np 1 {self.train(*arguments, 'saved', '--dump-state', 'three')}")
        self.wait_until(lambda: (self.home / "saved/latest").exists(), "a checkpoint")
        os.kill(agents(self.home)[-1], signal.SIGKILL)
        self.assertEqual(self.ended_job(job, 120), ("COMPLETED", "0:0"), self.out())
        self.assertIn("starting the ranks again from step", self.out())
        self.assertEqual(self.read("three"), self.digest_of_one_host(*arguments, "undisturbed"))

    # Fault 11.
    def test_a_run_goes_on_after_a_node_was_cut_off(self):
        arguments = ["--steps", 60, "--save-every", 4, "--output"]
        job = self.submit(f"exec {BIN}/mlaunch -np 1 {self.train(*arguments, 'saved', '--dump-state', 'three')}")
        self.wait_until(lambda: (self.home / "saved/latest").exists(), "a checkpoint")
        self.cut(2)
        self.wait_until(lambda: "host 2 (host2) is lost: it has given no sign of life" in self.out(), "the loss of a node", 20)
        self.mend(2)
        self.assertEqual(self.ended_job(job, 120), ("COMPLETED", "0:0"), self.out())
        self.assertIn("starting the ranks again from step", self.out())
        self.assertEqual(self.read("three"), self.digest_of_one_host(*arguments, "undisturbed"))

    # Fault 36.
    def test_a_job_that_is_warned_saves_and_may_start_again(self):
        arguments = ["--steps", 100000, "--resume", "auto", "--output", "saved", "--metrics", "metrics"]
        job = self.submit(f"exec {BIN}/mlaunch -np 1 {self.train(*arguments)}")
        self.wait_until(lambda: self.steps() > 2, "steps")
        self.slurm("scancel", "--signal=USR1", "--batch", job)
        self.assertEqual(self.ended_job(job), ("FAILED", "75:0"), self.out())
        first = self.last_checkpoint()
        self.assertGreater(first, 2)

        job = self.submit(f"exec {BIN}/mlaunch --requeue -np 1 {self.train(*arguments)}")
        self.wait_until(lambda: self.steps() > first + 2, "more steps")
        self.slurm("scancel", "--signal=USR1", "--batch", job)
        self.wait_until(lambda: f"the run can go on: scontrol requeue {job}" in self.out(), "the request")
        self.wait_until(lambda: self.job(job)[0] == "PENDING", "the job in the queue")
        self.let_start(job)
        second = self.last_checkpoint()
        self.wait_until(lambda: self.steps() > second + 2, "steps after the job has started again")
        self.slurm("scancel", job)
        self.wait_until(lambda: not agents(self.home), "the end of all agents")
        self.assertEqual(self.ended_job(job)[0], "CANCELLED", self.out())

    # Fault 36.
    def test_the_example_is_a_job_that_starts_again(self):
        done = self.slurm("sbatch", "--parsable", "--output=out", str(EXAMPLE), "saved", "--device", "cpu", "--threads", "1", "--metrics", "metrics")
        job = done.stdout.strip()
        self.wait_until(lambda: self.steps() > 2, "steps: " + done.stderr)
        self.assertIn("4 ranks (hosts)", self.out())
        self.slurm("scancel", "--signal=USR1", "--batch", job)
        self.wait_until(lambda: self.job(job)[0] == "PENDING", "the job in the queue")
        self.assertGreater(self.last_checkpoint(), 2)
        self.slurm("scancel", job)

    # Fault 36.
    def test_a_cancelled_job_saves_before_it_ends(self):
        job = self.submit(f"exec {BIN}/mlaunch --requeue -np 1 {self.train('--steps', 100000, '--output', 'saved', '--metrics', 'metrics')}")
        self.wait_until(lambda: self.steps() > 2, "steps")
        self.slurm("scancel", job)
        self.wait_until(lambda: f"job {job} is cancelled, so it does not start again" in self.out(), "the end of the run")
        self.assertEqual(self.ended_job(job)[0], "CANCELLED", self.out())
        self.assertGreater(self.last_checkpoint(), 2)

    def test_a_requeue_outside_of_a_job_is_refused(self):
        refused = self.run_program([str(BIN / "mlaunch"), "--requeue", "true"], expect=2)
        self.assertIn("--requeue: SLURM_JOB_ID is not set", refused.stderr)


class Requeueing(SlurmTest):
    MORE = "RequeueExit=75\n"

    # Fault 36.
    def test_slurm_itself_warns_a_job_and_starts_it_again(self):
        """Slurm counts in minutes, and may warn up to a minute too early: of two minutes in the first one."""
        job = self.submit(f"exec {BIN}/mlaunch -np 1 {self.train('--steps', 1000000, '--resume', 'auto', '--output', 'saved', '--metrics', 'metrics')}",
                          "--time=2", "--signal=B:USR1@60")
        self.wait_until(lambda: self.steps() > 2, "steps")
        self.wait_until(lambda: self.job(job)[0] == "PENDING", "the job in the queue", 150)
        first = self.last_checkpoint()
        self.assertGreater(first, 2)
        self.let_start(job)
        self.wait_until(lambda: self.steps() > first + 2, "steps after the job has started again")
        self.slurm("scancel", job)
        self.wait_until(lambda: not agents(self.home), "the end of all agents")


if __name__ == "__main__":
    unittest.main()
