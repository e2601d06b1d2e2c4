"""Training on a GPU agrees with the CPU instruction by instruction, learns, and keeps its bits however steps are run.

Ends with 77 if `train --device cuda` finds no GPU; gpu-check runs each test by its name.
"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

from programs import LIMIT_S, QUICK, ProgramTest, clean_environment, mlaunch, train

SKIPPED = 77
# Autotuning is off: two processes that measure may choose other algorithms, which have other bits.
JOB = ["--device", "cuda", "--autotune", "false", "--steps", "3", "--sequence-length", "32", "--micro-batch", "2"]


class Device(ProgramTest):
    def result(self, command):
        """Runs a command; returns the digests of its state, and its losses and norms."""
        self.run_program([*command, "--dump-state", "state", "--metrics", "metrics"])
        state = self.read("state")
        (self.home / "state").unlink()
        return state, [(m["loss"], m["grad_norm"]) for m in self.step_metrics("metrics")]

    def compare(self, commands):
        """Expects all commands to leave the results of the first one."""
        first = self.result(commands[0])
        self.assertEqual(len(first[1]), 3)
        self.assertNotEqual(first[1][0], first[1][2], "nothing was learned")
        for command in commands[1:]:
            result = self.result(command)
            self.assertEqual(result[1], first[1], command)
            self.assertEqual(result[0], first[0], command)

    def same_bits(self, model, dtype, *more):
        job = [*JOB, "--model", model, "--dtype", dtype, *more]
        self.compare([train(*job), train(*job), train(*job, "--device-graphs", "false"),
                      train(*job, "--activation-checkpointing"),
                      train(*job, "--activation-checkpointing", "--device-graphs", "false")])
        # These ranks share the GPU.
        self.compare([mlaunch(2, *job, "--zero", stage, "--device-graphs", graphs)
                      for stage, graphs in [(0, "true"), (0, "false"), (1, "true"), (2, "true"), (3, "true"),
                                            (3, "false")]])

    def test_same_bits_gpt2_fp32(self):
        self.same_bits("gpt2-tiny", "fp32")

    def test_same_bits_gpt2_bf16(self):
        self.same_bits("gpt2-tiny", "bf16")

    def test_same_bits_llama_fp32(self):
        self.same_bits("llama-tiny", "fp32")

    def test_same_bits_llama_bf16(self):
        self.same_bits("llama-tiny", "bf16")

    def test_same_bits_llama_bf16_states(self):
        self.same_bits("llama-tiny", "bf16", "--state-recipe", "bf16-sr")

    def lockstep(self, model):
        for dtype in ("fp32", "bf16", "fp16"):
            with self.subTest(dtype=dtype):
                done = self.run_program(train(*JOB, "--model", model, "--dtype", dtype, "--check-device"))
                self.assertIn("the device agrees with the CPU in 3 steps", done.stdout)

    def lockstep_of_two_layers(self, model, *more):
        """Runs real widths on few tokens, for shapes, alignments and algorithms that the tiny models do not have."""
        config = pathlib.Path(__file__).resolve().parent / "models" / f"{model}-2-layers.json"
        done = self.run_program(train(*JOB, "--model", str(config), "--dtype", "bf16", "--state-recipe", "bf16-sr",
                                      "--sequence-length", "256", "--steps", "1", "--check-device", *more))
        self.assertIn("the device agrees with the CPU in 1 steps", done.stdout)

    def test_lockstep_as_wide_as_qwen_05b(self):
        self.lockstep_of_two_layers("qwen2.5-0.5b")

    def test_lockstep_as_wide_as_qwen_7b(self):
        self.lockstep_of_two_layers("qwen2.5-7b", "--micro-batch", "1")

    def test_lockstep_gpt2(self):
        self.lockstep("gpt2-tiny")

    def test_lockstep_llama(self):
        self.lockstep("llama-tiny")

    def test_it_learns_as_the_cpu_does(self):
        job = ["--steps", "60", "--sequence-length", "64", "--micro-batch", "8", "--learning-rate", "0.003",
               "--metrics", "metrics"]
        losses = {}
        for device in ("cuda", "cpu"):
            self.run_program(train(*job, "--device", device))
            losses[device] = [m["loss"] for m in self.step_metrics("metrics")]
        self.assertLess(losses["cuda"][-1], losses["cuda"][0] - 1.5)
        for step, (ours, theirs) in enumerate(zip(losses["cuda"], losses["cpu"])):
            self.assertAlmostEqual(ours / theirs, 1, delta=0.01, msg=f"step {step}")


def why_no_gpu():
    """Returns None if train runs on a GPU, or else its message."""
    exit_code_host = 69
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run(train(*QUICK, "--device", "cuda"), cwd=home, env=clean_environment(), timeout=LIMIT_S,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return done.stderr.strip() if done.returncode == exit_code_host else None


if __name__ == "__main__":
    reason = why_no_gpu()
    if reason:
        print(f"SKIPPED: {reason}")
        sys.exit(SKIPPED)
    unittest.main()
