"""Standard output that a full disk does not take ends every program with an error; one that nobody reads ends it quietly."""
import os
import signal
import subprocess
import unittest

from programs import BIN, LIMIT_S, QUICK, SOON_S, ProgramTest, clean_environment, mlaunch, train

IO, TRY_AGAIN = 74, 75
LOST = "standard output: text is lost: No space left on device"
TINY = ["--model", "gpt2-tiny", "--sequence-length", "16", "--micro-batch", "1", "--threads", "1"]
PLAN = [*TINY, "--target-memory", "1GB"]
# Ways in which each program prints.
COMMANDS = {
    "train": [["--help"], ["--version"], ["--check-config", "ds.json"], [*TINY, "--print-plan", "--steps", "0"],
              [*TINY, "--print-program", "--steps", "0"], [*QUICK, "--output", "out", "--resume", "required"]],
    "plan": [["--help"], ["--version"], PLAN, [*PLAN, "--json"], ["compare", "--help"], ["compare", "foreseen", "measured"],
             ["compare", "--json", "foreseen", "measured"]],
    "generate": [["--help"], ["--version"], ["--model", "out", "--tokens", "3", "--threads", "1"]],
    "inspect": [["--help"], ["--version"], ["out/step-00000002"], ["verify", "out/step-00000002"], ["digest", "out/step-00000002"],
                ["diff", "out/step-00000002", "out/step-00000002"], ["list", "out"]],
    "doctor": [["--help"], ["--version"], ["--json"]],
    "mlaunch": [["--help"], ["--version"], ["status"], ["status", "--json"], ["status", "--help"], ["stop", "--help"],
                ["logs", "--help"], ["secret", "--help"]],
    "example_own_model": [["train", "--help"], ["generate", "--help"]],
    "example_session": [QUICK],
    "example_plan": [["gpt2-124m", "rtx4090", "8GB"]],
    "example_engine": [[]],
}
PRINT_NOTHING = {"config_reference", "strata_test_precompiled"}  # the second one holds precompiled headers


class StandardOutputTest(ProgramTest):
    def print_to(self, output, command, **options):
        return subprocess.run(command, cwd=self.home, env=clean_environment(), timeout=LIMIT_S, stdin=subprocess.DEVNULL,
                              stdout=output, stderr=subprocess.PIPE, text=True, **options)

    def print_to_a_full_disk(self, command):
        with open("/dev/full", "w") as full:
            return self.print_to(full, command)

    def print_to_a_closed_pipe(self, command, **options):
        reader, writer = os.pipe()
        os.close(reader)
        with open(writer, "w") as pipe:
            return self.print_to(pipe, command, **options)


class EveryProgram(StandardOutputTest):
    def setUp(self):
        super().setUp()
        self.write("ds.json", '{"train_micro_batch_size_per_gpu": 1}')
        self.run_program(train(*QUICK, "--output", "out", "--memory-report", "measured"))
        self.run_program(train(*TINY, "--print-plan", "--steps", "0", "--memory-report", "foreseen"))

    def for_each(self, check):
        for program, all_arguments in COMMANDS.items():
            for arguments in all_arguments if (BIN / program).exists() else []:
                with self.subTest(program=program, arguments=arguments):
                    check([str(BIN / program), *arguments])

    def test_no_program_is_left_out(self):
        built = {path.name for path in BIN.iterdir() if path.is_file() and os.access(path, os.X_OK) and not path.name.endswith("_bench")}
        self.assertEqual(built - PRINT_NOTHING - set(COMMANDS), set())

    def test_every_program_says_its_version(self):
        versions = {program: self.run_program([str(BIN / program), "--version"]).stdout for program, lines in COMMANDS.items() if ["--version"] in lines}
        self.assertEqual(set(versions), {"train", "plan", "generate", "inspect", "doctor", "mlaunch"})
        for program, said in versions.items():
            self.assertRegex(said, rf"\A{program} \(Strata\) \d+\.\d+\.\d+\n\Z")
            self.assertEqual(said.split()[2], versions["mlaunch"].split()[2])

    def test_a_full_disk_is_an_error(self):
        def check(command):
            done = self.print_to_a_full_disk(command)
            self.assertEqual(done.returncode, IO, done.stderr)
            self.assertEqual(done.stderr.count(LOST), 1, done.stderr)
            self.assertTrue(done.stderr.endswith(LOST + "\n"), done.stderr)
        self.for_each(check)

    def test_a_pipe_that_nobody_reads_ends_it_quietly(self):
        """Also where whoever started it ignores SIGPIPE, as systemd does."""
        def check(command):
            done = self.print_to_a_closed_pipe(command)
            self.assertIn(done.returncode, (0, -signal.SIGPIPE), done.stderr)
            self.assertNotIn("standard output", done.stderr)
            done = self.print_to_a_closed_pipe(command, restore_signals=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotIn("standard output", done.stderr)
        self.for_each(check)

    def test_what_else_was_asked_for_is_done(self):
        plan = [str(BIN / "plan"), *PLAN]
        self.print_to_a_full_disk([*plan, "--write-config", "full.json"])
        self.print_to_a_closed_pipe([*plan, "--write-config", "closed.json"])
        self.run_program([*plan, "--write-config", "read.json"])
        for name in ("full.json", "closed.json"):
            self.assertEqual(self.read(name), self.read("read.json"))

    def test_nobody_reads_a_closed_stream(self):
        def check(command):
            done = self.print_to(subprocess.DEVNULL, ["sh", "-c", 'exec "$@" >&-', "sh", *command])
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stderr.count("lost"), 0, done.stderr)
        self.for_each(check)

    def test_other_ends_keep_their_own_code(self):
        with open(self.home / "out/step-00000002/model.safetensors", "r+b") as file:
            file.truncate(100)
        for command, code in ((["inspect", "verify", "out/step-00000002"], 65), (["plan", *PLAN[:-1], "1MB"], 1),
                              (["inspect", "verify", "nowhere"], 65), (["plan", "--no-such-flag"], 2),
                              (["mlaunch", "-np", "1", "sh", "-c", "echo hi; exit 3"], 3)):
            with self.subTest(command=command):
                done = self.print_to_a_full_disk([str(BIN / command[0]), *command[1:]])
                self.assertEqual(done.returncode, code, done.stderr)


class Training(StandardOutputTest):
    JOB = ["--steps", "30", "--sequence-length", "16", "--micro-batch", "1", "--threads", "1", "--output", "out", "--steps-per-print", "1"]

    def resumes(self):
        done = self.run_program(train(*self.JOB, "--steps", "31", "--resume", "required"))
        self.assertIn("resumed from out/step-00000030: step 30 of 31", done.stdout)

    def test_it_goes_on_and_saves(self):
        done = self.print_to_a_full_disk(train(*self.JOB))
        self.assertEqual(done.returncode, IO, done.stderr)
        self.assertEqual(done.stderr.splitlines(), [f"warning: {LOST}; training goes on",
                                                    f"train: all steps are done and saved, but: {LOST}"])
        self.resumes()

    def test_its_launcher_says_it(self):
        for ranks in (1, 2):
            done = self.print_to_a_full_disk(mlaunch(ranks, *self.JOB, "--overwrite-output-dir"))
            self.assertEqual(done.returncode, IO, done.stderr)
            self.assertEqual(done.stderr.splitlines(), [
                "mlaunch: standard output is lost, the ranks go on: No space left on device",
                "mlaunch: all ranks are done, but standard output is not whole: No space left on device"])
            self.resumes()

    def test_the_log_has_the_code_that_follows(self):
        done = self.print_to_a_full_disk([str(BIN / "mlaunch"), "--log-dir", "logs", "-np", "1", "echo", "hi"])
        self.assertEqual(done.returncode, IO, done.stderr)
        [log] = self.home.glob("logs/*/mlaunch.log")
        self.assertIn(f"the run ends with exit code {IO}", log.read_text())

    def test_streams_that_are_closed_take_no_file(self):
        for command in (train(*self.JOB), mlaunch(2, *self.JOB, "--overwrite-output-dir")):
            with self.subTest(command=command):
                self.assertEqual(self.print_to(subprocess.DEVNULL, ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *command]).returncode, 0)
                self.resumes()

    def test_a_largest_size_of_files_ends_no_training(self):
        limited = ["sh", "-c", 'ulimit -f 32; exec "$@"', "sh"]
        with open(self.home / "said", "w") as said:
            done = self.print_to(said, [*limited, *train("--steps", "300", "--sequence-length", "16", "--threads", "1", "--steps-per-print", "1")])
        self.assertEqual(done.returncode, IO, done.stderr)
        self.assertIn("train: all steps are done, but: standard output: text is lost: File too large", done.stderr)

    def test_nobody_reads(self):
        for command in (train(*self.JOB), mlaunch(1, *self.JOB, "--overwrite-output-dir")):
            done = self.print_to_a_closed_pipe(command)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotIn("lost", done.stderr)
            self.resumes()


class Views(StandardOutputTest):
    def start_run(self):
        run = self.start(mlaunch(1, "--steps", "1000000", "--sequence-length", "16", "--threads", "1"))
        self.wait_until(lambda: "step 1/" in self.print_to(subprocess.PIPE, [str(BIN / "mlaunch"), "logs"]).stdout, "a step")
        return run

    def ask(self, *arguments):
        return self.print_to_a_full_disk([str(BIN / "mlaunch"), *arguments])

    def test_a_full_disk_ends_those_that_would_print_on(self):
        run = self.start_run()
        for arguments in (["status"], ["status", "--watch"], ["logs"], ["logs", "--follow"], ["logs", "--json"]):
            with self.subTest(arguments=arguments):
                done = self.ask(*arguments)
                self.assertEqual((done.returncode, done.stderr), (IO, f"mlaunch: {LOST}\n"))
        for arguments in (["status", "--watch"], ["logs", "--follow"]):
            with self.subTest(arguments=arguments):
                done = self.print_to_a_closed_pipe([str(BIN / "mlaunch"), *arguments], restore_signals=False)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIsNone(run.poll())
        done = self.ask("stop")  # it must reach the run all the same
        self.assertEqual((done.returncode, done.stderr), (IO, f"mlaunch: {LOST}\n"))
        self.assertEqual(run.wait(timeout=SOON_S), TRY_AGAIN)


if __name__ == "__main__":
    unittest.main()
