"""Elastic sameness: with the same number of virtual ranks, worlds of any size give the same bits, also one after another."""
import itertools
import unittest

from programs import ProgramTest, mlaunch

CONFIGURATION = 78
JOB = ["--device", "cpu", "--sequence-length", "16", "--micro-batch", "1", "--threads", "1", "--metrics", "metrics"]
VIRTUAL = ["--virtual-ranks", "4"]


class VirtualRanks(ProgramTest):
    def result(self, ranks, *arguments):
        """Runs a job; returns the digests of its state, its losses and norms, and its output."""
        done = self.run_program(mlaunch(ranks, *JOB, *arguments, "--dump-state", "state"))
        state = self.read("state")
        self.assertIn("moment2", state)
        (self.home / "state").unlink()
        return state, [(m["loss"], m["grad_norm"]) for m in self.step_metrics("metrics")], done.stdout

    def test_worlds_do_not_matter(self):
        self.write("virtual.json", '{"train_batch_size": 8, "strata": {"virtual_ranks": 4}}')
        for stage, dtype in itertools.product("13", ["fp32", "bf16"]):
            job = ["--steps", "3", "--zero", stage, "--dtype", dtype, "--accumulation", "2"]
            expected = self.result(4, *job)
            self.assertEqual(len(expected[1]), 3)
            for ranks in (1, 2, 4):
                with self.subTest(stage=stage, dtype=dtype, ranks=ranks):
                    result = self.result(ranks, *job, "--config", "virtual.json")
                    self.assertIn(f"over 4 virtual ranks on {ranks} rank", result[2])
                    self.assertIn("(4 virtual ranks x micro-batch 1 x accumulation 2)", result[2])
                    self.assertEqual(result[1], expected[1])
                    self.assertEqual(result[0], expected[0])

    def test_a_run_goes_on_in_other_worlds(self):
        for stage in "03":
            job = [*VIRTUAL, "--zero", stage]
            expected = self.result(1, *job, "--steps", "6")
            losses = []
            for ranks, steps in [(2, 2), (4, 4), (1, 6)]:
                result = self.result(ranks, *job, "--steps", steps, "--output", f"out{stage}", "--resume", "auto")
                losses = result[1]
            with self.subTest(stage=stage):
                self.assertEqual(losses, expected[1])
                self.assertEqual(result[0], expected[0])

    def test_another_number_of_them_is_said(self):
        self.run_program(mlaunch(2, *JOB, *VIRTUAL, "--steps", 1, "--output", "out"))
        job = [*JOB, "--output", "out", "--resume", "auto"]
        note = "note: the checkpoint is of a run with the sums of "
        done = self.run_program(mlaunch(1, *job, *VIRTUAL, "--steps", 2))
        self.assertNotIn(note, done.stdout)
        done = self.run_program(mlaunch(2, *job, "--virtual-ranks", 2, "--steps", 3))
        self.assertIn(note + "4 ranks, this one makes those of 2: ", done.stdout)
        self.assertIn("; --virtual-ranks 4 keeps the bits\n", done.stdout)
        done = self.run_program(mlaunch(1, *job, "--steps", 4))
        self.assertIn(note + "2 ranks, this one makes those of 1: ", done.stdout)
        done = self.run_program(mlaunch(1, *job, "--steps", 5))
        self.assertNotIn(note, done.stdout)

    def test_the_global_batch_stays_as_saved(self):
        """Divides the batch among the virtual ranks, not among the ranks of the world."""
        job = [*JOB, *VIRTUAL, "--output", "out"]
        self.run_program(mlaunch(2, *job, "--steps", 1, "--accumulation", 2))
        done = self.run_program(mlaunch(2, *job, "--steps", 2, "--resume", "auto"))
        self.assertIn("global batch 8 as saved, not 4: accumulation 2\n", done.stdout)
        done = self.run_program(mlaunch(2, *job, "--steps", 3, "--resume", "auto", "--micro-batch", 4),
                                expect=CONFIGURATION)
        self.assertIn("4 virtual ranks x micro-batch 4 do not divide it", done.stderr)

    def test_refusals_come_before_training(self):
        done = self.run_program(mlaunch(3, *JOB, *VIRTUAL), expect=CONFIGURATION)
        self.assertIn("found 4 with 3 ranks, expected 1, 2 or 4 ranks", done.stderr)


if __name__ == "__main__":
    unittest.main()
