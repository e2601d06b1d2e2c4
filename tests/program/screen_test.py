"""Shows a run as people see it: on terminals of several widths, and in a log."""
import re
import signal
import unittest

from programs import LIMIT_S, ProgramTest, clean_environment, mlaunch, train
from terminal import lines_on_screen, run_on_terminal, widest_rewritten_line

STAMP = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"
JOB = ["--steps", "60", "--sequence-length", "64", "--micro-batch", "2", "--threads", "1",
       "--output", "out", "--save-every", "20", "--keep", "1", "--eval-every", "30"]


class Screen(ProgramTest):
    def shown(self, columns, command):
        code, sent = run_on_terminal(command, columns, cwd=self.home, env=clean_environment())
        self.assertEqual(code, 0, sent.decode())
        return sent, lines_on_screen(sent)

    def check(self, columns, command, prefix):
        sent, lines = self.shown(columns, command)
        self.assertLess(widest_rewritten_line(sent), columns, sent)
        self.assertGreater(sent.count(b"\x1b[K"), 2)
        steps = [line for line in lines if "  loss " in line]
        self.assertEqual(len(steps), 1, lines)
        self.assertRegex(steps[0], rf"^{re.escape(prefix)}step 60/60  loss \d\.\d+  \d+ tokens/s  left 0 s")
        self.assertLess(len(steps[0]), columns)
        # Every other line is complete and begins as it should.
        begin = r"(step \d+/60  held-out loss \d|wrote out/step-\d+: [\d.]+ [KM]iB in |removed out/step-\d+$)"
        said = [line[len(prefix):] for line in lines
                if re.search("wrote|removed|held-out loss", line)]
        self.assertGreaterEqual(len(said), 4, lines)  # a save that is due while one goes on waits
        for line in said:
            self.assertRegex(line, "^" + begin)
            self.assertNotIn("  loss ", line)
        return steps[0]

    def test_one_rank(self):
        shown = {columns: self.check(columns, train(*self.job(columns)), "")
                 for columns in (80, 100, 170)}
        self.assertNotIn("arena", shown[80])
        self.assertIn("grad norm", shown[100])
        self.assertIn("GFLOP/s per rank", shown[170])

    def job(self, columns):
        """Makes a folder for this width, in which the job has the same name."""
        self.home = self.home / str(columns)
        self.home.mkdir()
        return JOB

    def test_two_ranks(self):
        for columns in (80, 100, 170):
            self.check(columns, mlaunch(2, *self.job(columns)), "[0] ")

    def test_a_log_has_a_line_with_its_time_every_so_often(self):
        process = self.start(mlaunch(2, "--steps", "1000000", "--sequence-length", "64",
                                     "--threads", "1", "--log-every", "1"))
        read = ""
        while read.count("  loss ") < 4:
            line = process.stdout.readline()
            self.assertTrue(line, read)
            read += line
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=LIMIT_S)
        out = read + out
        self.assertEqual(process.returncode, 75, out + err)
        self.assertNotIn("\x1b", out)
        steps = re.findall(rf"(?m)^\[0\] {STAMP}  step (\d+)/1000000  loss \d", out)
        self.assertEqual(steps[0], "1")
        self.assertGreaterEqual(len(steps), 4, out)
        stamps = re.findall(rf"(?m)^\[0\] ({STAMP})  step", out)[:-1]  # the last step is shown at once
        self.assertEqual(sorted(set(stamps)), stamps, "no two within a second")
        last = re.search(r"stopped on request after step (\d+)", out)
        self.assertEqual(steps[-1], last[1], "the last step has its line, too")

    def test_the_header_names_the_work(self):
        self.write("a.txt", "hello " * 1000)
        self.write("b.txt", "world " * 100)
        out = self.run_program(mlaunch(2, "--data", "a.txt", "b.txt", "--eval-data", "b.txt",
                                       "--sequence-length", "16", "--micro-batch", "2",
                                       "--accumulation", "3", "--steps", "5",
                                       options=["--no-prefix"])).stdout
        self.assertRegex(out, r"(?m)^gpt2-tiny: 124,672 parameters, fp32, ZeRO-0 over 2 ranks \(")
        self.assertRegex(out, r"(?m)^data: a\.txt and b\.txt, 6,60\d tokens, 412 samples of 16 per epoch; "
                              r"held out: b\.txt, 600 tokens$")
        self.assertRegex(out, r"(?m)^training: 5 steps of 12 samples \(2 ranks x micro-batch 2 x accumulation 3\), "
                              r"960 tokens, 0\.146 epochs$")
        self.assertNotIn("weight decay", out)
        self.assertNotIn("gradient_clipping", out)


class PlanOnly(ProgramTest):
    def test_a_large_model_is_planned_without_its_memory(self):
        for arguments, word in [(["--zero", "3", "--world-size", "64"], "this plan fits"),
                                (["--offload-optimizer", "cpu", "--offload-param", "cpu",
                                  "--device-memory", "24GB", "--host-memory", "200GB"], "this plan fits")]:
            with self.subTest(arguments=arguments):
                done = self.run_program(train("--model", "llama-2-7b", "--bf16", "--micro-batch", "1",
                                              "--sequence-length", "512", "--activation-checkpointing",
                                              "--steps", "0", "--print-plan", "--output", "out",
                                              "--host-memory", "2000GB", *arguments))
                self.assertIn("6738.4 M parameters", done.stdout)
                self.assertIn(word, done.stdout)
                self.assertFalse((self.home / "out").exists())

    def test_advice_knows_other_tiers(self):
        done = self.run_program(train("--model", "llama-2-7b", "--bf16", "--micro-batch", "1",
                                      "--sequence-length", "512", "--steps", "0", "--print-plan",
                                      "--device-memory", "24GB", "--host-memory", "64GB"), expect=69)
        self.assertRegex(done.stderr, r"--offload-optimizer nvme (--offload-param \w+ )?--nvme-path DIR "
                                      r"is the cheapest change that fits: it needs about [\d.]+ GiB on the "
                                      r"device, [\d.]+ GiB of host memory and [\d.]+ GiB on the drive")
        self.assertNotIn("smaller model", done.stderr)

    def test_the_arena_of_a_cpu_is_host_memory(self):
        job = ["--model", "llama-2-7b", "--bf16", "--micro-batch", "1", "--sequence-length", "512", "--steps", "0", "--host-memory", "64GB"]
        for printing in ("--print-plan", "--print-program"):
            done = self.run_program(train(*job, "--device", "cpu", printing), expect=69)
            self.assertRegex(done.stderr, r"this plan needs [\d.]+ GiB, and 59.60 GiB are what --host-memory allows; ")
            self.assertNotIn("this plan fits", done.stdout)
        self.write("t.txt", "The quick brown fox. " * 40)
        small = ["--device", "cpu", "--data", "t.txt", "--sequence-length", "16", "--micro-batch", "1", "--steps", "1"]
        done = self.run_program(train(*small, "--host-memory", "100KB"), expect=69)
        self.assertIn("97.66 KiB are what --host-memory allows", done.stderr)
        self.run_program(train(*small, "--host-memory", "100KB", "--device-memory", "100MB"))  # the device has a budget of its own

    def test_check_config_plans_when_nothing_is_trained(self):
        self.write("ds.json", '{"train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": 3}}')
        out = self.run_program(train("--check-config", "ds.json", "--world-size", "4", "--steps", "0")).stdout
        self.assertIn("ZeRO-3 over 4 ranks", out)
        self.assertIn("memory planned for rank 0:", out)

    def test_ranks_are_assumed_only_where_nothing_is_trained(self):
        error = self.run_program(train("--world-size", "4", "--steps", "2"), expect=2).stderr
        self.assertIn("--print-plan or --print-program and --steps 0", error)


if __name__ == "__main__":
    unittest.main()
