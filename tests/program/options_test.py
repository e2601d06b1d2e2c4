"""Options that once were accepted and ignored: each does what it says."""
import json
import re
import signal
import unittest

from programs import QUICK, ProgramTest, mlaunch, train

USAGE = 2
PART = re.compile(r"(forward|backward|update|waiting|communication) ([0-9.]+) ms")


class WallClockBreakdown(ProgramTest):
    def breakdowns(self, command):
        """Returns the milliseconds of each phase and of the whole step, by line."""
        lines = [line for line in self.run_program(command).stdout.splitlines()
                 if "wall clock" in line]
        return [({name: float(ms) for name, ms in PART.findall(line)},
                 float(re.search(r"step ([0-9.]+) ms", line)[1])) for line in lines]

    def test_prints_where_the_time_of_a_step_goes(self):
        self.write("ds.json", json.dumps({"train_micro_batch_size_per_gpu": 2, "steps_per_print": 2,
                                          "wall_clock_breakdown": True,
                                          "zero_optimization": {"stage": 3, "stage3_param_persistence_threshold": 0}}))
        found = self.breakdowns(mlaunch(2, "--config", "ds.json", "--steps", "5", "--sequence-length",
                                        "64", "--threads", "1"))
        self.assertEqual(len(found), 3, "after steps 2, 4 and 5")
        for phases, step in found:
            self.assertLessEqual({"forward", "backward", "update", "communication"}, phases.keys())
            self.assertGreater(phases["forward"], 0)
            self.assertGreater(phases["backward"], 0)
            self.assertGreater(phases["communication"], 0)
            computing = sum(phases[name] for name in ("forward", "backward", "update"))
            self.assertLessEqual(computing + phases.get("waiting", 0), 1.05 * step + 1, phases)

    def test_nothing_unless_asked(self):
        self.assertEqual(self.breakdowns(train(*QUICK)), [])


class OverwriteOutputDir(ProgramTest):
    def setUp(self):
        super().setUp()
        self.run_program(train(*QUICK, "--steps", "3", "--save-every", "1", "--async-save", "false",
                               "--output", "out"))
        self.before = self.checkpoints()
        self.assertEqual(len(self.before), 3)

    def checkpoints(self):
        return sorted(path.name for path in (self.home / "out").glob("step-*"))

    def test_without_it_another_run_s_folder_is_a_wrong_command_line(self):
        done = self.run_program(train(*QUICK, "--output", "out"), expect=USAGE)
        self.assertIn("--overwrite-output-dir", done.stderr)
        self.assertEqual(self.checkpoints(), self.before)

    def test_what_was_there_goes_once_the_new_run_has_a_checkpoint(self):
        done = self.run_program(mlaunch(2, *QUICK, "--steps", "2", "--seed", "7", "--output", "out",
                                        "--overwrite_output_dir"))
        self.assertIn("step-00000003", done.stdout + done.stderr)
        self.assertEqual(self.checkpoints(), ["step-00000002"])
        self.assertEqual((self.home / "out/latest").resolve().name, "step-00000002")
        self.assertEqual(json.loads(self.read("out/latest/trainer_state.json"))["seed"], 7)

    def test_a_run_that_ends_before_its_first_checkpoint_has_replaced_nothing(self):
        run = self.start(train(*QUICK, "--steps", "100000", "--steps-per-print", "1", "--output", "out",
                               "--overwrite_output_dir", "True"))
        for line in run.stdout:
            if "step 3/" in line:
                break
        run.send_signal(signal.SIGKILL)
        run.wait()
        self.assertEqual(self.checkpoints(), self.before)
        done = self.run_program(train(*QUICK, "--steps", "4", "--output", "out", "--resume", "auto"))
        self.assertIn("resumed from out/step-00000003", done.stdout)

    def test_a_run_that_resumes_replaces_nothing(self):
        done = self.run_program(train(*QUICK, "--steps", "4", "--output", "out", "--resume", "auto",
                                      "--overwrite_output_dir"))
        self.assertIn("resumed from out/step-00000003", done.stdout)
        self.assertIn("--overwrite-output-dir: replaces nothing", done.stdout + done.stderr)
        self.assertEqual(self.checkpoints(), [*self.before, "step-00000004"])


class Tf32(ProgramTest):
    def test_on_a_cpu_it_is_said_to_change_nothing(self):
        done = self.run_program(train(*QUICK, "--device", "cpu", "--tf32", "True"))
        self.assertIn("tf32 changes nothing", done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
