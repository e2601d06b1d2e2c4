"""Runs end and resume: by themselves, after signals, kills at any time and damage, in other worlds, and on full disks."""
import contextlib
import ctypes
import fcntl
import json
import os
import pathlib
import random
import re
import shutil
import signal
import struct
import subprocess
import time
import unittest

from programs import BIN, HAS_MPI, LIMIT_S, ProgramTest, children, living, mlaunch, mpirun, train

USAGE, DATA, HOST, IO, TRY_AGAIN, CONFIGURATION = 2, 65, 69, 74, 75, 78
JOB = ["--device", "cpu", "--sequence-length", "16", "--micro-batch", "1", "--threads", "1", "--output", "out"]
STANDING = ["--async-save", "false"]  # every checkpoint that is due is written
STEPS = 6
SEEDS = range(*map(int, os.environ.get("STRATA_SOAK_SEEDS", "0:10").split(":")))  # the first, and one past the last
KILLS = 4  # kills of one job, which may end after that
SOAK_STEPS = 20  # so many that a job's start takes little of its time


def steps(count):
    return ["--steps", str(count)]


def content(checkpoint):
    """Returns the files that equal runs of one world save alike: all but the manifest, which names the run."""
    return {path.name: path.read_bytes() for path in checkpoint.iterdir() if path.name != "manifest.json"}


def flip(path, at):
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1]))


class ResumeTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.out = self.home / "out"

    def checkpoint(self, step, output="out"):
        return self.home / output / f"step-{step:08d}"

    def saved_steps(self, output="out"):
        folder = self.home / output
        return sorted(int(path.name[5:]) for path in folder.glob("step-*") if path.name[5:].isdigit())

    def state(self, command, expect=0):
        """Runs a command; returns the digests of all state at the end, and what it said."""
        done = self.run_program([*command, "--dump-state", "state"], expect)
        state = self.read("state")
        (self.home / "state").unlink()
        return state, done

    def assert_same(self, one, other):
        """Compares contents and names the files that differ; the bytes themselves are too much to print."""
        self.assertEqual(sorted(one), sorted(other))
        self.assertEqual([name for name in one if one[name] != other[name]], [])

    def assert_tidy(self):
        """Checks that the output folder has only what belongs there."""
        for path in self.out.iterdir():
            self.assertRegex(path.name, r"^(step-\d{8}|latest|\.strata-lock)$")

    def refuse(self, code, words, command):
        done = self.run_program(command, expect=code)
        for word in words:
            self.assertEqual(done.stderr.count(word), 1, f"{word!r} in {done.stderr}")
        return done


class SameResult(ResumeTest):
    def test_interrupted_and_uninterrupted_runs_end_alike(self):
        fp16 = ["--dtype", "fp16", "--config", "fp16.json"]
        self.write("fp16.json", '{"fp16": {"enabled": true, "initial_scale_power": 20, "loss_scale_window": 2, '
                                '"hysteresis": 1}, "gradient_accumulation_steps": 2}')
        variants = [(1, ["--zero", "0"]),
                    (2, ["--zero", "0"]),
                    (2, ["--zero", "3"]),
                    (2, ["--zero", "3", "--offload-optimizer", "nvme", "--nvme-path", "."]),
                    (2, ["--zero", "2", "--accumulation", "2"]),
                    (2, ["--zero", "3", *fp16])]
        for ranks, arguments in variants:
            with self.subTest(ranks=ranks, arguments=arguments):
                shutil.rmtree(self.out, ignore_errors=True)
                job = mlaunch(ranks, *JOB, *arguments, "--save-every", 2, *STANDING)
                expected, _ = self.state([*job, *steps(STEPS), "--metrics", "straight"])
                if "fp16" in arguments:
                    self.assertIn("step_state.skipped scalar", expected)
                    self.assertNotIn("step_state.skipped scalar int64 0", expected)
                    self.assertNotIn("step_state.updates scalar int64 0", expected)
                straight = content(self.checkpoint(STEPS))
                for step in (4, STEPS):
                    shutil.rmtree(self.checkpoint(step))
                (self.home / "metrics").write_text("".join(
                    self.read("straight").splitlines(keepends=True)[:2]))
                state, done = self.state([*job, *steps(STEPS), "--resume", "auto"])
                self.assertIn(f"resumed from out/step-00000002: step 2 of {STEPS}, ", done.stdout)
                self.assertEqual(state, expected)
                self.assert_same(content(self.checkpoint(STEPS)), straight)

    def test_other_settings_are_said(self):  # optimizer and schedule
        self.run_program(train(*JOB, "--steps", "2", "--lr", "3e-4", "--weight-decay", "0.1", "--scheduler", "cosine"))
        same = ["--lr", "3e-4", "--weight-decay", "0.1", "--scheduler", "cosine", "--schedule-steps", "2"]
        done = self.run_program(train(*JOB, "--steps", "3", "--resume", "auto", *same))
        self.assertNotIn("trains otherwise", done.stderr)
        done = self.run_program(train(*JOB, "--steps", "4", "--resume", "auto", "--lr", "3e-4"))
        self.assertIn("this run trains otherwise than the checkpoint's did: optimizer.weight_decay 0.1 there, 0.0 here, "
                      "scheduler.type cosine there, constant here\n", done.stderr)

    def test_another_global_batch_names_what_was_typed(self):
        """What the refusal names works: leaving it out, and giving it as it was."""
        job = [*JOB[:4], *JOB[6:]]  # without --micro-batch
        self.run_program(train(*job, *steps(1)))
        self.refuse(CONFIGURATION, ["1 rank x micro-batch 8 does not divide it: leave out --global-batch 8, or give 4"],
                    train(*job, *steps(2), "--resume", "auto", "--global-batch-size", "8"))
        self.run_program(train(*job, *steps(2), "--resume", "auto", "--global-batch-size", "4"))
        self.run_program(train(*job, *steps(3), "--resume", "auto"))

    def test_a_misspelt_word_is_no_folder(self):
        for word, code, said in (("atuo", USAGE, "--resume atuo: there is no such folder, did you mean 'auto'?"),
                                 ("nowhere", DATA, "nowhere: there is no such folder")):
            done = self.run_program(train(*JOB, *steps(4), "--resume", word), expect=code)
            self.assertIn(said, done.stderr)

    def test_another_model_is_named_before_its_data(self):
        self.run_program(train(*JOB, *steps(2)))
        done = self.run_program(train(*JOB, *steps(4), "--resume", "required", "--model", "llama-tiny"), expect=CONFIGURATION)
        self.assertIn("it was saved with model type gpt2, this run has llama; set --model out/step-00000002", done.stderr)

    def test_a_batch_that_is_said_in_vain(self):
        """Names what was said, since the saved global batch stays; another micro-batch keeps no bits, which is said, too."""
        job = ["--device", "cpu", "--sequence-length", "16", "--threads", "1", "--output", "out"]
        self.run_program(train(*job, *steps(1), "--global-batch", 6, "--micro-batch", 3))
        done = self.run_program(train(*job, *steps(2), "--global-batch", 3, "--micro-batch", 3, "--resume", "auto"))
        self.assertIn("warning: global batch 6 as saved, not 3: accumulation 2; --global-batch 3 is not obeyed: leave it out, or give 6\n", done.stderr)
        self.assertNotIn("Another micro-batch", done.stderr + done.stdout)
        done = self.run_program(train(*job, *steps(3), "--global-batch", 6, "--micro-batch", 2, "--resume", "auto"))
        self.assertIn("note: the checkpoint is of a run with micro-batch 3, this one has 2. Another micro-batch adds", done.stderr)
        self.assertNotIn("warning: global batch", done.stderr)

    def test_advice_on_the_batch_can_be_followed(self):
        job = ["--device", "cpu", "--sequence-length", "16", "--threads", "1", "--output", "out"]
        self.run_program(train(*job, *steps(1), "--global-batch", 6, "--micro-batch", 3))
        for said, advice, then in [(["--global-batch", 4, "--micro-batch", 4], "give --global-batch 6 with a --micro-batch that divides 6",
                                    ["--global-batch", 6, "--micro-batch", 3]),
                                   (["--micro-batch", 4], "set --micro-batch to a divisor of 6", ["--micro-batch", 3]),
                                   (["--config", "ds.json"], "give train_batch_size 6 (ds.json:1)", ["--config", "as_saved.json"])]:
            self.write("ds.json", '{"train_batch_size": 4}')
            self.write("as_saved.json", '{"train_batch_size": 6}')
            done = self.run_program(train(*job, *steps(9), *said, "--resume", "required"), expect=CONFIGURATION)
            self.assertIn(f"does not divide it: {advice}\n", done.stderr)
            self.run_program(train(*job, *steps(self.saved_steps()[-1] + 1), *then, "--resume", "required"))

    def test_worlds_stages_and_tiers_change(self):
        """Keeps the global batch: 2 ranks x 1, 1 rank x 2 micro-steps, 2 ranks x 1."""
        self.run_program(mlaunch(2, *JOB, *steps(2), "--zero", "3"))
        saved = content(self.checkpoint(2))
        done = self.run_program(train(*JOB, *steps(4), "--resume", "auto", "--metrics", "metrics"))
        self.assertIn("global batch 2 as saved, not 1: accumulation 2\n", done.stdout)
        self.assertIn("resumed from out/step-00000002: step 2 of 4, learning rate 0.001, 4 samples consumed", done.stdout)
        losses = [line["loss"] for line in self.metrics("metrics") if "loss" in line]
        done = self.run_program(mlaunch(2, *JOB, *steps(6), "--zero", "2", "--offload-optimizer", "cpu",
                                        "--resume", "out/step-00000004"))
        self.assertIn("step 4 of 6, learning rate 0.001, 8 samples consumed", done.stdout)
        self.assertNotIn("newer checkpoints", done.stderr)
        self.assertEqual(self.saved_steps(), [2, 4, 6])
        self.assert_same(content(self.checkpoint(2)), saved)
        # A run in one world takes the same samples, so losses agree closely.
        self.run_program(mlaunch(2, *JOB, *steps(4), "--output", "straight", "--metrics", "straight.jsonl"))
        straight = [line["loss"] for line in self.metrics("straight.jsonl") if "loss" in line][2:]
        self.assertEqual(len(losses), 2)
        for one, other in zip(losses, straight, strict=True):
            self.assertAlmostEqual(one, other, delta=1e-4)
        done = self.run_program(mlaunch(4, *JOB, *steps(8), "--resume", "auto"), expect=CONFIGURATION)
        self.assertIn("4 ranks x micro-batch 1 do not divide it", done.stderr)

    def test_a_model_directory_of_each_step(self):
        self.run_program(mlaunch(2, *JOB, *steps(2), "--save-every", 1, *STANDING))
        self.assertEqual(os.readlink(self.out / "latest"), "step-00000002")
        samples = [self.run_program([str(BIN / "generate"), "--model", model, "--tokens", "4", "--threads", "1"]).stdout
                   for model in ("out/latest", "out", "out/step-00000002")]
        self.assertRegex(samples[0], r"(?s)^The .{1,4}\n$")
        self.assertEqual(samples, [samples[0]] * 3)


    @unittest.skipUnless(HAS_MPI, "no mpirun here")
    def test_every_launcher_saves_alike(self):
        job = [*JOB, "--zero", "3", "--save-every", 2]
        self.run_program(mlaunch(2, *job, *STANDING, *steps(4)))
        starts = [mpirun(2), mlaunch(2, options=["--launcher", "mpi"])]
        for number, start in enumerate(starts):
            for standing in (True, False):
                folder = f"mpi{number}{standing}"
                with self.subTest(start=start, standing=standing):
                    mine = [*start, *map(str, job), "--output", folder, *(STANDING if standing else [])]
                    self.run_program([*mine, *steps(2)])
                    done = self.run_program([*mine, *steps(4), "--resume", "required"])
                    self.assertIn(f"resumed from {folder}/step-00000002", done.stdout)
                    for step in (2, 4):
                        self.assert_same(content(self.checkpoint(step, folder)), content(self.checkpoint(step)))


class BesideTraining(ResumeTest):
    """Checkpoints are written from a snapshot while training goes on."""
    COUNT = 60

    def test_they_are_those_of_a_run_that_stands_still(self):
        for arguments in [["--zero", "3"],
                          ["--zero", "1", "--dtype", "bf16", "--accumulation", "2"],
                          ["--zero", "2", "--virtual-ranks", "4", "--accumulation", "2"],
                          ["--zero", "3", "--offload-optimizer", "nvme", "--offload-param", "cpu", "--nvme-path", "."]]:
            with self.subTest(arguments=arguments):
                for folder in ("out", "straight", "again"):
                    shutil.rmtree(self.home / folder, ignore_errors=True)
                job = mlaunch(2, *JOB, *arguments, *steps(self.COUNT))
                expected, _ = self.state([*job, "--output", "straight", "--save-every", "1", *STANDING])
                state, done = self.state([*job, "--save-every", "10", "--metrics", "metrics"])
                self.assertEqual(state, expected)
                saved = self.saved_steps()
                self.assertEqual((saved[0], saved[-1]), (10, self.COUNT))
                for step in saved:
                    self.assert_same(content(self.checkpoint(step)), content(self.checkpoint(step, "straight")))
                said = re.findall(r"wrote out/step-0*(\d+): .* training stood still for (\S+) s", done.stdout)
                self.assertEqual([int(step) for step, _ in said], saved[:-1])
                lines = self.metrics("metrics")
                self.assertEqual([line["step"] for line in lines if "checkpoint_bytes" in line], saved)
                self.assertTrue(all(line["checkpoint_age_seconds"] >= 0 for line in lines if "loss" in line))
                state, _ = self.state([*job, "--resume", f"out/step-{saved[0]:08d}", "--output", "again"])
                self.assertEqual(state, expected)

    def test_one_that_is_due_waits_for_the_one_under_way(self):
        done = self.run_program(mlaunch(2, *JOB, *steps(self.COUNT), "--save-every", 2))
        waiting = re.findall(r"note: the checkpoint due at step (\d+) waits, and will be of a later step: that of step (\d+) is still being written",
                             done.stderr)
        self.assertEqual(waiting[0], ("4", "2"))
        self.assertEqual(self.saved_steps()[:1], [2])

    def test_by_the_clock(self):
        process = self.start(mlaunch(2, *JOB, *steps(1000000), "--save-every", "1s", "--metrics", "metrics"))
        self.wait_until(lambda: process.poll() is not None or len(self.saved_steps()) >= 2, "two checkpoints")
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGTERM)
        output, error = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, TRY_AGAIN, error)
        self.assert_tidy()

    def test_no_room_for_a_copy(self):
        """Saves through windows."""
        job = mlaunch(2, *JOB, *steps(self.COUNT), "--zero", "3", "--tile-elements", 1024)
        for arguments in (["--offload-optimizer", "cpu", "--host-memory", "71.2MB", "--device-memory", "1GB"],
                          ["--offload-optimizer", "cpu", "--host-memory", "71MB", "--device-memory", "1GB", "--offload-param", "nvme", "--nvme-path", "."]):
            with self.subTest(arguments=arguments):
                for folder in ("out", "straight"):
                    shutil.rmtree(self.home / folder, ignore_errors=True)
                expected, _ = self.state([*job, *arguments, "--output", "straight", "--save-every", "1", *STANDING])
                state, done = self.state([*job, *arguments, "--save-every", "10", "--metrics", "metrics"])
                self.assertEqual(state, expected)
                self.assertEqual(done.stderr.count("note: the step after a saved one waits for the drive"), 1, done.stderr)
                for step in self.saved_steps():
                    self.assert_same(content(self.checkpoint(step)), content(self.checkpoint(step, "straight")))
                self.assertIn("training stood still for ", done.stdout)
                (moved,) = (line["ranks"] for line in self.metrics("metrics") if "ranks" in line)
                for rank in moved:
                    snapshot = [program for program in rank["programs"] if program["name"] == "train.snapshot"]
                    self.assertGreater(snapshot[0]["runs"] * snapshot[0]["bytes"]["disk_write"], 0)
                    written = sum(program["runs"] * program["bytes"]["disk_write"] for program in rank["programs"])
                    self.assertEqual(rank["moved_bytes"]["disk_write"], written)
                self.assert_tidy()

    def test_no_room_for_windows(self):
        """Tries sizes, because little memory lies between what a run needs and what windows need on top."""
        for hundredths in range(7080, 6980, -5):
            shutil.rmtree(self.home / "out", ignore_errors=True)
            done = self.run_program(mlaunch(2, *JOB, *steps(4), "--zero", "3", "--offload-optimizer", "cpu", "--host-memory",
                                            f"{hundredths / 100}MB", "--device-memory", "1GB", "--save-every", 2))
            if "training will stand still" in done.stderr:
                break
        self.assertEqual(done.stderr.count("note: training will stand still while a checkpoint is written: "), 1, done.stderr)
        self.assertNotIn("out of ", done.stderr)
        self.assertEqual(self.saved_steps(), [2, 4])


class Ending(ResumeTest):
    def start_training(self, ranks, *arguments):
        """Starts a run without an end and waits for some steps; returns the process and its ranks."""
        process = self.start(mlaunch(ranks, *JOB, *steps(1000000), "--metrics", "metrics", *arguments))
        self.wait_until(lambda: process.poll() is not None or
                        (self.home / "metrics").exists() and self.read("metrics").count("\n") >= 3, "three steps")
        self.assertIsNone(process.poll(), "it goes on")
        return process, children(process.pid)

    # Fault 36.
    def test_asked_to_stop(self):
        process, ranks = self.start_training(2)
        self.assertEqual(self.saved_steps(), [])
        process.send_signal(signal.SIGTERM)
        self.goes_on_where_it_stopped(process, ranks)

    # Fault 36.
    def test_warned_early(self):
        process, ranks = self.start_training(2, "--grace", 20)
        process.send_signal(signal.SIGUSR1)
        self.goes_on_where_it_stopped(process, ranks)

    # Fault 36.
    def test_one_rank_is_asked(self):
        """Signals one rank, as a scheduler does that tells one task; the others learn it from that rank."""
        process, ranks = self.start_training(2)
        os.kill(ranks[1], signal.SIGTERM)
        self.goes_on_where_it_stopped(process, ranks)

    def goes_on_where_it_stopped(self, process, ranks):
        output, error = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, TRY_AGAIN, error)
        (step,) = self.saved_steps()
        self.assertIn(f"stopped on request after step {step} of 1000000\n", output)
        self.assertEqual(self.read("metrics").count('"loss"'), step)
        self.assert_tidy()
        state, done = self.state(mlaunch(2, *JOB, *steps(step + 2), "--resume", "required"))
        self.assertIn(f"resumed from out/step-{step:08d}: step {step} of {step + 2}, learning rate 0.001, "
                      f"{2 * step} samples", done.stdout)
        expected, _ = self.state(mlaunch(2, *JOB, *steps(step + 2), "--output", "straight"))
        self.assertEqual(state, expected)
        self.assertEqual(living(ranks), [])

    def start_busy(self, *arguments, options=()):
        """Starts a run that has saved step 3 and will compute the held-out loss of step 4 for minutes."""
        shutil.rmtree(self.out, ignore_errors=True)
        (self.home / "metrics").unlink(missing_ok=True)
        self.write("much", "what nobody can read in time " * 200000)
        process = self.start(mlaunch(2, *JOB, *steps(8), "--save-every", 3, "--eval-every", 4, "--eval-data", "much",
                                     "--metrics", "metrics", *STANDING, *arguments, options=options))
        self.wait_until(lambda: process.poll() is not None or
                        (self.home / "metrics").exists() and self.read("metrics").count('"loss"') >= 4, "four steps")
        self.assertIsNone(process.poll(), "it goes on")
        self.assertEqual(self.saved_steps(), [3])
        return process, children(process.pid)

    # Fault 36.
    def test_no_time_to_save(self):
        """Limits the time by mlaunch's option or by the run's own."""
        for number, arguments, options in [(signal.SIGTERM, [], ["--grace", "2"]),
                                           (signal.SIGUSR1, ["--grace", "1"], [])]:
            with self.subTest(signal=number):
                process, ranks = self.start_busy(*arguments, options=options)
                begin = time.monotonic()
                process.send_signal(number)
                _, error = process.communicate(timeout=LIMIT_S)
                self.assertLess(time.monotonic() - begin, 5)
                self.assertEqual(process.returncode, TRY_AGAIN, error)
                self.assertRegex(error, signal.Signals(number).name + r": 1(\.8)? s are over; "
                                 "step 4 is lost: the newest checkpoint is out/step-00000003")
                self.assertEqual(living(ranks), [])
                done = self.run_program(mlaunch(2, *JOB, *steps(4), "--resume", "required"))
                self.assertIn("resumed from out/step-00000003: step 3 of 4", done.stdout)

    # Fault 36.
    def test_asked_twice(self):
        for number in (signal.SIGTERM, signal.SIGUSR1):
            with self.subTest(signal=number):
                process, ranks = self.start_busy()
                process.send_signal(number)
                time.sleep(1.1)  # a signal that comes sooner is the same request
                self.assertIsNone(process.poll())
                self.assertEqual(len(living(ranks)), 2)
                process.send_signal(number)
                _, error = process.communicate(timeout=LIMIT_S)
                self.assertEqual(process.returncode, 128 + number, error)
                self.assertEqual(living(ranks), [])
                self.run_program(mlaunch(2, *JOB, *steps(4), "--resume", "required"))
                self.assert_tidy()

    def test_signals_that_shall_not_save(self):
        process, ranks = self.start_training(2, "--save-on-signal", "false")
        process.send_signal(signal.SIGTERM)
        _, error = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM, error)
        self.assertIn("SIGTERM: the ranks have up to 30 s to stop by themselves", error)
        self.assertEqual(len(re.findall(r"ended by SIGTERM; steps 1 to \d+ are lost: out has no checkpoint", error)), 1, error)
        self.assertEqual(living(ranks), [])
        self.assertEqual(self.saved_steps(), [])

    def test_a_grace_that_cannot_be(self):
        self.refuse(CONFIGURATION, ["mlaunch --grace 31"], mlaunch(2, *JOB, *steps(2), "--grace", 31))

    # Fault 33.
    def test_one_run_at_a_time(self):
        process, ranks = self.start_training(2)
        owner = re.escape(f", process {ranks[0]};")
        done = self.run_program(mlaunch(2, *JOB, *steps(2), "--resume", "auto"), expect=HOST)
        self.assertRegex(done.stderr, r"out: in use by run [0-9a-f]+ on host \S+" + owner)
        self.assertIsNone(process.poll(), "the first one goes on")

    # Fault 33.
    def test_ranks_of_an_ended_run(self):
        """Starts nothing beside ranks that a launcher may leave when it dies with its node's rank 0."""
        self.run_program(mlaunch(2, *JOB, *steps(1)))
        second_byte = struct.pack("hhqqi", fcntl.F_RDLCK, os.SEEK_SET, 1, 1, 0)
        with open(self.out / ".strata-lock", "r+b") as rank:
            fcntl.fcntl(rank, fcntl.F_OFD_SETLK, second_byte)
            self.refuse(HOST, ["has ended, but other ranks still live and may write there"],
                        mlaunch(2, *JOB, *steps(2), "--resume", "auto"))
            process = self.start(mlaunch(2, *JOB, *steps(2), "--resume", "auto"))
            self.wait_until(lambda: len(children(process.pid)) == 2, "two ranks")
        output, error = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 0, error)
        self.assertIn("resumed from out/step-00000001", output)

    def test_every_rank_holds_the_lock(self):
        process, ranks = self.start_training(2)
        for rank in ranks:
            held = [os.readlink(link) for link in pathlib.Path("/proc", str(rank), "fd").iterdir()]
            self.assertIn(str(self.out / ".strata-lock"), held)

    def soak(self, seed, straight, whole_s):
        """Kills whole jobs and single ranks; returns how many kills struck, and after how many a run went on."""
        draw = random.Random(seed)
        ranks = 2
        standing = STANDING if seed % 2 else []
        job = mlaunch(ranks, *JOB, *steps(SOAK_STEPS), "--save-every", 1 + seed // 2 % 3, "--keep", 2, "--resume", "auto",
                      *standing, options=["--max-restarts", "0"])
        struck = resumed = 0
        shutil.rmtree(self.out, ignore_errors=True)
        for kill in range(KILLS + 1):
            process = self.start(job)
            pids = []
            try:
                limit = LIMIT_S if kill == KILLS else draw.uniform(0.1, 1.0) * whole_s
                output, error = process.communicate(timeout=limit)
                self.assertEqual(process.returncode, 0, error)
            except subprocess.TimeoutExpired:
                self.assertLess(kill, KILLS, "it ends when it is let")
                pids = children(process.pid)
                victim = draw.choice([process.pid, *pids])
                with contextlib.suppress(ProcessLookupError):
                    os.kill(victim, signal.SIGKILL)
                output, error = process.communicate(timeout=LIMIT_S)
                # 0 means that the victim had done its work, though nobody had asked for its exit code yet.
                self.assertIn(process.returncode, (0, -signal.SIGKILL, 128 + signal.SIGKILL), error)
                struck += process.returncode != 0
            self.wait_until(lambda: not living(pids), "ranks end")
            resumed += "resumed from" in output
            if process.returncode == 0:
                break
        self.assertEqual(process.returncode, 0)
        self.assert_same(content(self.checkpoint(SOAK_STEPS)), straight)
        self.assert_tidy()
        self.assertEqual(os.listdir(self.home), ["out"])
        return struck, resumed

    # Faults 1, 6, 12.
    def test_killed_at_any_time(self):
        job = mlaunch(2, *JOB, *steps(SOAK_STEPS), "--save-every", 1, "--keep", 2)
        self.run_program(job)  # fills the page cache with programs and libraries
        shutil.rmtree(self.out)
        begin = time.monotonic()
        self.run_program(job)
        whole_s = time.monotonic() - begin
        straight = content(self.checkpoint(SOAK_STEPS))
        struck = resumed = 0
        for seed in SEEDS:
            with self.subTest(seed=seed):
                kills, goes_on = self.soak(seed, straight, whole_s)
                print(f"seed {seed}: {kills} kills struck, {goes_on} runs went on, same digests, nothing left", flush=True)
                struck += kills
                resumed += goes_on
        print(f"{struck} kills struck, {resumed} runs went on", flush=True)
        # The numbers depend on what else the machine does; without any kill the test would have shown nothing.
        self.assertGreaterEqual(struck, max(1, len(SEEDS) // 5))
        self.assertGreaterEqual(resumed, max(1, len(SEEDS) // 10))

    def test_a_run_that_is_done(self):
        job = mlaunch(2, *JOB, *steps(2))
        self.run_program(job)
        saved = content(self.checkpoint(2))
        done = self.run_program([*job, "--resume", "auto"])
        self.assertIn("out/step-00000002: all 2 steps are done, so nothing is to do; more --steps go on from here\n",
                      done.stdout)
        self.assert_same(content(self.checkpoint(2)), saved)
        self.refuse(CONFIGURATION, ["it was saved with step 2, this run has 1 to do"],
                    mlaunch(2, *JOB, *steps(1), "--resume", "auto"))


class Choosing(ResumeTest):
    def test_old_checkpoints_go(self):
        done = self.run_program(mlaunch(2, *JOB, *steps(7), "--save-every", 1, "--keep", 2, "--keep-every", 3, *STANDING))
        self.assertEqual(self.saved_steps(), [3, 6, 7])
        self.assertEqual(re.findall(r"removed out/step-0*(\d+)", done.stdout), ["1", "2", "4", "5"])
        self.assert_tidy()

    def test_other_settings_are_refused(self):
        self.write("text", "a text of its own, which is not the bundled one. " * 40)
        self.run_program(mlaunch(2, *JOB, *steps(2)))
        job = mlaunch(2, *JOB, *steps(4), "--resume", "auto")
        for words, arguments in [
                (["it was saved with data ", "--resume-with-changed-data"], ["--data", "text"]),
                (["it was saved with seed 1, this run has 2"], ["--seed", "2"]),
                (["it was saved with sequence length 16, this run has 8"], ["--sequence-length", "8"]),
                (["it was saved with optimizer AdamW, this run has Lion"], ["--optimizer", "lion"])]:
            with self.subTest(arguments=arguments):
                done = self.run_program([*job, *arguments], expect=CONFIGURATION)
                for word in words:
                    self.assertEqual(done.stderr.lower().count(word.lower()), 1, done.stderr)
        self.assertEqual(self.saved_steps(), [2])
        self.run_program([*job, "--data", "text", "--resume-with-changed-data"])
        self.assertEqual(self.saved_steps(), [2, 4])

    # Fault 30.
    def test_nothing_to_resume(self):
        done = self.run_program(mlaunch(2, *JOB, *steps(1), "--resume", "auto"))
        self.assertIn("nothing to resume in out: starting at step 0\n", done.stdout)
        shutil.rmtree(self.out)
        self.refuse(DATA, ["out has no checkpoint to resume from"], mlaunch(2, *JOB, *steps(1), "--resume", "required"))

    def test_a_checkpoint_that_is_missing_is_refused_before_anything_is_planned(self):
        done = self.run_program(train(*JOB, *steps(1), "--target-memory", "2GB", "--resume", "nosuch"), expect=DATA)
        self.assertIn("nosuch", done.stderr)
        self.assertNotIn("target memory", done.stdout)

    # Fault 30.
    def test_latest_leads_nowhere(self):
        self.run_program(mlaunch(2, *JOB, *steps(2), "--save-every", 1, *STANDING))
        for step, leads_to in ((2, "step-00000009"), (3, None)):
            with self.subTest(leads_to):
                (self.out / "latest").unlink()
                if leads_to:
                    (self.out / "latest").symlink_to(leads_to)
                done = self.run_program(mlaunch(2, *JOB, *steps(step + 1), "--resume", "required"))
                self.assertIn(f"resumed from out/step-{step:08d}: step {step} of {step + 1}", done.stdout)
                self.assertEqual(os.readlink(self.out / "latest"), f"step-{step + 1:08d}")

    def several_blocks(self):
        """Returns a job whose checkpoints have blocks without a header, which choosing a checkpoint does not read."""
        tiny = json.loads((pathlib.Path(__file__).parents[2] / "configs/models/gpt2-tiny.json").read_text())
        self.write("model/config.json", json.dumps(tiny | {"n_layer": 4}))
        return mlaunch(2, *JOB, "--model", "model/config.json", "--save-every", 1, *STANDING)

    def damage_unseen(self, step):
        path = self.checkpoint(step) / "optimizer.safetensors"
        last = path.stat().st_size - 1
        self.assertGreater(last, 1 << 20)
        flip(path, last)

    def test_an_older_checkpoint_is_asked_for_its_terms(self):
        self.write("text", "a text of its own, which is not the bundled one. " * 40)
        job = self.several_blocks()
        self.run_program([*job, *steps(1)])
        job = [*job, "--data", "text", "--resume", "auto"]
        self.run_program([*job, *steps(2), "--resume-with-changed-data"])
        self.damage_unseen(2)
        done = self.refuse(CONFIGURATION, ["cannot resume from out/step-00000001: it was saved with data "],
                           [*job, *steps(3)])
        self.assertIn("note: passing over out/step-00000002: ", done.stderr)
        self.assertEqual(self.saved_steps(), [1, 2])
        done = self.run_program([*job, *steps(3), "--resume-with-changed-data"])
        self.assertIn("resumed from out/step-00000001: step 1 of 3", done.stdout)

    def test_an_older_one_is_named(self):
        self.run_program(mlaunch(2, *JOB, *steps(4), "--save-every", 1, *STANDING))
        done = self.run_program(mlaunch(2, *JOB, *steps(3), "--resume", "out/step-00000002"))
        self.assertEqual(done.stderr.count("note: out has newer checkpoints, up to out/step-00000004: "), 1, done.stderr)
        done = self.run_program(mlaunch(2, *JOB, *steps(3), "--resume", "out/step-00000002", "--output", "other"))
        self.assertNotIn("newer checkpoints", done.stderr)

    def test_what_was_passed_over_does_not_count_as_kept(self):
        job = self.several_blocks()
        self.run_program([*job, *steps(5)])
        for step in (4, 5):
            self.damage_unseen(step)
        done = self.run_program([*job, *steps(6), "--keep", "1", "--resume", "auto"])
        self.assertIn("resumed from out/step-00000003: step 3 of 6", done.stdout)
        said = [line for line in done.stdout.splitlines() if "step-00000004" in line]
        self.assertEqual(len(said), 2, said)
        self.assertIn("wrote out/step-00000004", said[0])
        self.assertIn("removed out/step-00000004", said[1])  # this comes after step 5 has been written
        self.assertEqual(self.saved_steps(), [6])

    # Faults 18, 30.
    def test_what_loading_would_refuse_is_passed_over(self):
        """Passes over a damaged state, a folder named for another step, and a file that cannot be opened."""
        self.run_program(mlaunch(2, *JOB, *steps(4), "--save-every", 1, *STANDING))
        flip(self.checkpoint(4) / "trainer_state.json", 40)
        shutil.copytree(self.checkpoint(2), self.checkpoint(9))
        (self.checkpoint(3) / "model.safetensors").unlink()
        (self.checkpoint(3) / "model.safetensors").symlink_to("model.safetensors")  # opening it fails
        done = self.run_program(mlaunch(2, *JOB, *steps(5), "--resume", "auto"))
        self.assertIn("resumed from out/step-00000002: step 2 of 5", done.stdout)
        for step, reason in [(9, "its manifest is of step 2"), (4, "trainer_state.json"), (3, "model.safetensors")]:
            self.assertRegex(done.stderr, f"note: passing over out/step-{step:08d}: .*{reason}")
        self.assertEqual(done.stderr.count("note: passing over"), 3)

    # Faults 18, 30.
    def test_damaged_checkpoints_are_passed_over(self):
        job = self.several_blocks()
        self.run_program([*job, *steps(3)])
        job = [*job, *steps(4)]
        self.damage_unseen(3)
        (self.checkpoint(2) / "manifest.json").unlink()
        self.refuse(DATA, ["out/step-00000003/optimizer.safetensors", "\n  where   loading\n"],
                    [*job, "--resume", "out/step-00000003"])
        self.refuse(DATA, ["out/step-00000002: has no manifest.json", "\n  where   planning\n"],
                    [*job, "--resume", "out/step-00000002"])
        for step in (2, 3):
            self.refuse(DATA, ["; the newest older checkpoint that verifies is ", "/out/step-00000001\n"],
                        [*job, "--resume", f"out/step-{step:08d}"])
        done = self.run_program([*job, "--resume", "auto"])
        self.assertIn("resumed from out/step-00000001: step 1 of 4", done.stdout)
        for step in (2, 3):
            self.assertEqual(done.stderr.count(f"note: passing over out/step-{step:08d}: "), 1, done.stderr)
        # Now all checkpoints are damaged.
        for path in self.out.glob("step-*"):
            flip(path / "model.safetensors", (path / "model.safetensors").stat().st_size - 1)
        self.refuse(DATA, ["no checkpoint of out can be loaded"], [*job, *steps(9), "--resume", "auto"])


class NotShared(ResumeTest):
    def test_a_folder_that_a_rank_does_not_share_is_refused(self):
        """Shows rank 1 an empty file system in place of rank 0's output folder."""
        if os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0:
            self.skipTest("cannot leave the mount namespace")
        self.out.mkdir()
        self.write("apart", """#!/bin/sh
if [ "$STRATA_RANK" = 1 ]; then
  exec unshare --mount sh -c 'mount -t tmpfs tmpfs out && exec "$@"' sh "$@"
fi
exec "$@"
""")
        command = [str(BIN / "mlaunch"), "-np", "2", "sh", "apart", *train(*JOB, *steps(2))]
        self.refuse(HOST, ["does not see what rank 0 wrote to out; --output must be a folder that all hosts share, and here it is /"], command)
        self.assertEqual(os.listdir(self.out), [".strata-lock"])


class SmallDisk(ResumeTest):
    """Saves on a file system with room for one checkpoint, which only this process sees."""

    def setUp(self):
        super().setUp()
        new_mount_namespace = 0x20000
        if os.geteuid() != 0 or ctypes.CDLL(None).unshare(new_mount_namespace) != 0:
            self.skipTest("cannot leave the mount namespace")
        self.out.mkdir()
        subprocess.run(["mount", "--make-rprivate", "/"], check=True)
        self.mount("size=2500k")
        self.addCleanup(subprocess.run, ["umount", "-l", self.out], check=True)

    def mount(self, options):
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", self.out], check=True)

    # Fault 14.
    def test_full(self):
        job = mlaunch(2, *JOB, "--save-every", 1, "--metrics", "metrics", *STANDING, options=["--max-restarts", "0"])
        lost = r"the checkpoint of step \d could not be written: rank 0: out/step-0000000\d\.tmp\S+: the checkpoint needs \d+ " \
               r"bytes, of which \d+ are free, .*No space left on device"
        done = self.run_program([*job, *steps(5), "--on-save-error", "stop"], expect=IO)
        self.assertRegex(done.stderr, lost + ".*; earlier checkpoints in out are whole")
        self.assertEqual(self.saved_steps(), [1])
        self.assert_tidy()
        job = [*job, "--on-save-error", "continue", "--resume", "auto"]
        self.refuse(HOST, ["out: a checkpoint needs"], [*job, *steps(9)])
        self.mount("remount,size=3900k")  # room for one more checkpoint at the start, but not when it saves
        process = self.start([*job, *steps(1000000)])
        self.wait_until(lambda: process.poll() is not None or self.read("metrics").count('"loss"') >= 6, "more steps")
        self.assertIsNone(process.poll(), "it goes on without space")
        self.assertEqual(self.saved_steps(), [1, 2])
        self.mount("remount,size=32m")
        process.send_signal(signal.SIGTERM)
        output, error = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, TRY_AGAIN, error)
        self.assertIn("resumed from out/step-00000001", output)
        self.assertRegex(error, "warning: " + lost + "; training goes on, earlier checkpoints are whole")
        self.assertGreater(self.saved_steps()[-1], 5)
        self.run_program(mlaunch(1, *JOB, *steps(self.saved_steps()[-1] + 1), "--resume", "required"))

    # Fault 14.
    def test_full_while_training_goes_on(self):
        job = mlaunch(2, *JOB, "--save-every", 1, options=["--max-restarts", "0"])
        lost = r"the checkpoint of step (\d+) could not be written: rank 0: out/step-.*No space left on device"
        done = self.run_program([*job, *steps(1000), "--on-save-error", "stop"], expect=IO)
        self.assertRegex(done.stderr, lost + ".*; earlier checkpoints in out are whole")
        self.assertEqual(self.saved_steps(), [1])
        self.assert_tidy()


if __name__ == "__main__":
    unittest.main()
