"""Ranks form one run or none, whoever starts them: torchrun, accelerate, DeepSpeed's launcher, Kubernetes, srun."""
import os
import pathlib
import socket
import sys
import unittest

from programs import BIN, HAS_MPI, LIMIT_S, QUICK, ProgramTest, mlaunch, train

USAGE, CONFIGURATION = 2, 78
PEERS = os.environ.get("STRATA_PEERS")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def as_rank(rank, world, command, **changes):
    """Returns `command` with the variables that torchrun gives a rank; None removes one."""
    variables = {"RANK": rank, "WORLD_SIZE": world, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": world,
                 "GROUP_RANK": 0, "GROUP_WORLD_SIZE": 1, "MASTER_ADDR": "127.0.0.1",
                 "MASTER_PORT": 29500} | changes
    return ["env", *(f"{k}={v}" for k, v in variables.items() if v is not None), *command]


class RanksOfTorchrun(ProgramTest):
    def test_ranks_that_torchrun_starts_are_one_run_with_the_bits_of_mlaunch(self):
        port = free_port()
        job = [*QUICK, "--zero", "3", "--param-persistence-threshold", "0"]
        ranks = [self.start(as_rank(rank, 2, train(*job, "--dump-state", "torchrun.txt"),
                                    MASTER_PORT=port)) for rank in (1, 0)]
        outputs = [rank.communicate(timeout=LIMIT_S) for rank in ranks]
        self.assertEqual([rank.returncode for rank in ranks], [0, 0], outputs)
        self.assertEqual(outputs[0], ("", ""), "rank 1 speaks")
        self.assertIn("over 2 ranks", outputs[1][0])
        self.run_program(mlaunch(2, *job, "--dump-state", "mlaunch.txt"))
        self.assertEqual(self.read("torchrun.txt"), self.read("mlaunch.txt"))

    @unittest.skipUnless(PEERS and pathlib.Path(PEERS, "bin/torchrun").exists(),
                         "STRATA_PEERS names no Python environment with torch")
    def test_torchrun_itself(self):
        done = self.run_program([f"{PEERS}/bin/torchrun", "--standalone", "--nproc_per_node", "2",
                                 "--no-python", *train(*QUICK)], limit_s=LIMIT_S)
        self.assertIn("over 2 ranks", done.stdout)
        self.assertEqual(done.stdout.count("step 2/2"), 1, done.stdout)

    def test_a_rank_that_finds_no_others_does_not_train(self):
        for words, changes in [
                (["LOCAL_WORLD_SIZE=(not set)", "mlaunch -np 4 train"], {"LOCAL_WORLD_SIZE": None}),
                (["LOCAL_WORLD_SIZE=2 of WORLD_SIZE=4", "several hosts"], {"LOCAL_WORLD_SIZE": 2}),
                (["GROUP_WORLD_SIZE=2", "several hosts"], {"GROUP_WORLD_SIZE": 2}),
                (["RANK=4 contradicts WORLD_SIZE=4"], {"RANK": 4}),
                (["RANK=zero"], {"RANK": "zero"}),
                (["WORLD_SIZE=(not set)"], {"WORLD_SIZE": None}),
                (["WORLD_SIZE=4 without RANK", "mlaunch -np 4 train"], {"RANK": None})]:
            with self.subTest(changes=changes):
                done = self.run_program(as_rank(0, 4, train(*QUICK), **changes),
                                        expect=CONFIGURATION)
                self.assertEqual(done.stdout, "")
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
                for word in words:
                    self.assertIn(word, done.stderr)

    # Faults 31, 32.
    def test_two_runs_at_one_port_are_told_apart(self):
        port = free_port()
        first_ranks = [self.start(as_rank(0, 2, train(*QUICK), MASTER_PORT=port)) for _ in range(2)]
        self.wait_until(lambda: any(rank.poll() is not None for rank in first_ranks), "the later one to be refused")
        refused, waiting = sorted(first_ranks, key=lambda rank: rank.poll() is None)
        self.assertIn(f"{port}", refused.communicate()[1])
        self.assertIsNone(waiting.poll())

    def test_a_world_of_one_is_a_plain_start(self):
        for variables in ["WORLD_SIZE=1", "RANK=0 WORLD_SIZE=1 LOCAL_RANK=0 MASTER_ADDR=localhost"]:
            done = self.run_program(["env", *variables.split(), *train(*QUICK)])
            self.assertIn("step 2/2", done.stdout)


class RanksOfOthers(ProgramTest):
    def test_mlaunch_gives_programs_of_torch_a_place_to_meet(self):
        script = self.write("meet.py", """
import os, socket, time
address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
if os.environ["RANK"] == "0":
    with socket.create_server(address) as server:
        print(server.accept()[0].recv(9).decode())
else:
    for _ in range(400):
        try:
            with socket.create_connection(address) as connection:
                connection.sendall(b"from " + os.environ["RANK"].encode())
            break
        except ConnectionRefusedError:
            time.sleep(0.1)
""")
        done = self.run_program([str(BIN / "mlaunch"), "-np", "2", sys.executable, str(script)])
        self.assertIn("[0] from 1\n", done.stdout)

    @unittest.skipUnless(PEERS, "STRATA_PEERS names no Python environment with torch")
    def test_mlaunch_starts_programs_of_torch(self):
        script = self.write("sum.py", """
import torch, torch.distributed as dist
dist.init_process_group("gloo")
total = torch.tensor([dist.get_rank() + 1.0])
dist.all_reduce(total)
print("sum", total.item())
dist.destroy_process_group()
""")
        done = self.run_program([str(BIN / "mlaunch"), "-np", "2", f"{PEERS}/bin/python", str(script)],
                                limit_s=LIMIT_S)
        self.assertEqual(done.stdout.count("sum 3.0"), 2, done.stdout)

    @unittest.skipUnless(HAS_MPI, "no mpirun here")
    def test_an_srun_that_does_not_connect_its_ranks_names_the_flag(self):
        variables = ["SLURM_JOB_ID=7", "SLURM_STEP_ID=0", "SLURM_PROCID=1", "SLURM_NTASKS=4",
                     "SLURM_LOCALID=1", "SLURM_STEP_TASKS_PER_NODE=4"]
        done = self.run_program(["env", *variables, *train(*QUICK)], expect=CONFIGURATION)
        self.assertIn("srun --mpi=pmix", done.stderr)

    def test_all_that_is_wrong_on_a_command_line_is_said_at_once(self):
        done = self.run_program([str(BIN / "mlaunch"), "--nosuch", "-np", "none", "--hostfile", "h",
                                 *train(*QUICK)], expect=USAGE)
        for word in ["--nosuch", "-np none", "--hostfile"]:
            self.assertIn(word, done.stderr)


if __name__ == "__main__":
    unittest.main()
