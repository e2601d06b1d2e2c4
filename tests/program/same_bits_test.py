"""Bits do not depend on how ranks are started and talk, on thread counts or on recomputation."""
import itertools
import json
import os
import pathlib
import subprocess
import unittest

from programs import BIN, HAS_MPI, ProgramTest, mlaunch, mpirun, train

JOB = ["--steps", "3", "--sequence-length", "32", "--micro-batch", "2"]


def via_mlaunch_mpi(ranks, *arguments):
    return mlaunch(ranks, *arguments, options=["--launcher", "mpi"])


class SameBits(ProgramTest):
    def result(self, start, ranks, *arguments):
        """Runs a job; returns the digests of its state, and its losses and norms."""
        arguments = [*JOB, *arguments, "--dump-state", "state", "--metrics", "metrics"]
        self.run_program(start(ranks, *arguments))
        state = self.read("state")
        self.assertIn("moment2", state)
        (self.home / "state").unlink()
        return state, [(m["loss"], m["grad_norm"]) for m in self.step_metrics("metrics")]

    def compare(self, model, ranks, variants):
        """Runs `variants`, (how to start, arguments); the others must equal the first."""
        results = [(arguments, self.result(start, ranks, "--model", model, *arguments))
                   for start, arguments in variants]
        first = results[0][1]
        self.assertEqual(len(first[1]), 3)
        self.assertNotEqual(first[1][0], first[1][2], "nothing was learned")
        for arguments, result in results[1:]:
            self.assertEqual(result[1], first[1], arguments)
            self.assertEqual(result[0], first[0], arguments)

    @unittest.skipUnless(HAS_MPI, "no mpirun here")
    def test_backends_agree(self):
        for model, ranks in [("gpt2-tiny", 2), ("llama-tiny", 4)]:
            with self.subTest(model=model, ranks=ranks):
                self.compare(model, ranks,
                             [(start, ["--zero", zero, "--threads", "1"]) for zero, start in
                              itertools.product("03", [mlaunch, via_mlaunch_mpi, mpirun])])

    def state_of(self, command, job):
        self.run_program([*command, *job, "--dump-state", "state"])
        state = self.read("state")
        (self.home / "state").unlink()
        return state

    def test_processes_agree_with_threads_of_one_process(self):
        """Shared memory and MPI, sharded, recomputed and threaded, give the bits of plain rank threads."""
        presets = pathlib.Path(__file__).parents[2] / "configs/models"
        config = json.loads((presets / "gpt2-tiny.json").read_text())
        config |= {"resid_pdrop": 0.1, "embd_pdrop": 0.1, "attn_pdrop": 0.1}
        self.write("dropout/config.json", json.dumps(config))
        again = ["--threads", "2", "--activation-checkpointing"]
        for model, ranks in [("dropout/config.json", 2), ("llama-tiny", 3)]:
            job = ["--model", model, *JOB]
            threads = [str(BIN.parent / "tests/train_on_threads"), str(ranks)]
            expected = self.state_of(threads, [*job, "--zero", "0", "--threads", "1"])
            self.assertIn("moment2", expected)
            starts = {"threads": threads, "shared memory": mlaunch(ranks)}
            if HAS_MPI:
                starts["mpi"] = mpirun(ranks)
            for (name, start), stage in itertools.product(starts.items(), "03"):
                with self.subTest(model=model, backend=name, stage=stage):
                    state = self.state_of(start, [*job, *again, "--zero", stage])
                    self.assertEqual(state, expected)

    @unittest.skipUnless(HAS_MPI, "no mpirun here")
    def test_eight_ranks_agree(self):
        self.compare("gpt2-tiny", 8, [(mlaunch, ["--zero", "0"]), (mlaunch, ["--zero", "3"]),
                                      (mpirun, ["--zero", "3"])])

    def test_state_in_host_memory(self):
        """Asks for it by a DeepSpeed file or by flags; expects the bits of the same file with flags that undo it."""
        file = ["--config", pathlib.Path(__file__).parents[2] / "configs/deepspeed/zero3_bf16_offload_cpu.json"]
        kinds = ["--offload-optimizer", "--offload-param", "--offload-activations"]
        homes = {home: [word for kind in kinds for word in (kind, home)] for home in ("none", "cpu")}
        self.compare("gpt2-tiny", 2, [(mlaunch, [*file, *homes["none"]]), (mlaunch, file),
                                      (mlaunch, [*file, *homes["cpu"], "--update-time", "step_end", "--offload-ratio", "0.5"]),
                                      (mlaunch, [*file, "--zero", "1"])])

    def test_one_rank_however_started(self):
        starts = [lambda _, *a: train(*a), mlaunch] + ([mpirun, via_mlaunch_mpi] if HAS_MPI else [])
        for model in ["gpt2-tiny", "llama-tiny"]:
            with self.subTest(model=model):
                self.compare(model, 1, [(s, ["--zero", z]) for z, s in itertools.product("03", starts)])

    def test_threads_recomputation_and_stage(self):
        for model, ranks in [("gpt2-tiny", 1), ("llama-tiny", 2), ("gpt2-tiny", 4)]:
            with self.subTest(model=model, ranks=ranks):
                self.compare(model, ranks, [
                    (mlaunch, ["--zero", zero, "--threads", threads,
                               "--activation-checkpointing", again])
                    for zero, threads, again in [("0", "1", "false"), ("0", "2", "true"),
                                                 ("1", "1", "true"), ("2", "2", "false"),
                                                 ("3", "2", "true"), ("3", "1", "false")]])

    # Fault 25.
    def test_little_shared_memory(self):
        """Shows ranks a /dev/shm that has less room than they share."""
        small = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o size=64k tmpfs /dev/shm && exec "$@"', "sh"]
        if os.geteuid() != 0 or subprocess.run([*small, "true"], capture_output=True).returncode != 0:
            self.skipTest("cannot leave the mount namespace")
        self.compare("gpt2-tiny", 2, [(mlaunch, []), (lambda *job: [*small, *mlaunch(*job)], [])])

    def test_seed_matters(self):
        """Shows that the comparison above can fail."""
        one = self.result(mlaunch, 2, "--seed", "1")
        other = self.result(mlaunch, 2, "--seed", "2")
        self.assertNotEqual(one[0], other[0])
        self.assertNotEqual(one[1], other[1])


if __name__ == "__main__":
    unittest.main()
