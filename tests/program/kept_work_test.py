"""Trained work is saved and resumes whatever fails beside training: full disks, files that cannot be written, data that cannot be
read, numbers that are not finite, signals of a terminal that ends."""
import contextlib
import ctypes
import fcntl
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import time
import unittest

from programs import BIN, LIMIT_S, SOON_S, ProgramTest, SafetensorsFile, mlaunch, train

DATA, HOST, IO, TRY_AGAIN, DO_NOT_RESTART = 65, 69, 74, 75, 93
JOB = ["--device", "cpu", "--sequence-length", "16", "--micro-batch", "1", "--threads", "1", "--output", "out", "--data", "train.txt"]
STANDING = ["--async-save", "false"]  # every checkpoint that is due is written
TEXT = "The quick brown fox jumps over the lazy dog and runs on. " * 40


def inspect(*arguments):
    return [str(BIN / "inspect"), *map(str, arguments)]


class KeptWorkTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.out = self.home / "out"
        self.write("train.txt", TEXT)

    def saved_steps(self):
        return sorted(int(path.name[5:]) for path in self.out.glob("step-*") if path.name[5:].isdigit())

    def resumes(self, *arguments, ranks=1, step=None):
        """Resumes from the newest checkpoint for one more step; returns that checkpoint's step."""
        step = self.saved_steps()[-1] if step is None else step
        done = self.run_program(mlaunch(ranks, *JOB, "--steps", step + 1, "--resume", "required", *arguments))
        self.assertIn(f"resumed from out/step-{step:08d}: step {step} of {step + 1}, ", done.stdout)
        self.assertEqual(self.saved_steps()[-1], step + 1)
        return step

    def start_training(self, *arguments, command=None, **options):
        """Starts a run without an end and waits for some steps."""
        command = command or train(*JOB, "--steps", "1000000", "--metrics", "metrics", *arguments)
        process = self.start(command) if not options else self.start_with(command, **options)
        self.wait_until(lambda: process.poll() is not None or
                        (self.home / "metrics").exists() and self.read("metrics").count("\n") >= 3, "three steps")
        self.assertIsNone(process.poll(), "it goes on")
        return process

    def start_with(self, command, **options):
        process = subprocess.Popen(command, cwd=self.home, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, start_new_session=True, **options)
        self.addCleanup(self._end, process)
        return process

    @contextlib.contextmanager
    def small_disk(self, name, options):
        """Mounts a file system that only this process sees."""
        new_mount_namespace = 0x20000
        if os.geteuid() != 0 or ctypes.CDLL(None).unshare(new_mount_namespace) != 0:
            self.skipTest("cannot leave the mount namespace: a full disk cannot be made")
        folder = self.home / name
        folder.mkdir()
        subprocess.run(["mount", "--make-rprivate", "/"], check=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], check=True)
        try:
            yield folder
        finally:
            subprocess.run(["umount", "-l", folder], check=True)


class BeforeTheFirstStep(KeptWorkTest):
    def refused(self, code, words, *arguments, ranks=1):
        done = self.run_program(mlaunch(ranks, *JOB, "--steps", "4", *arguments), expect=code)
        self.assertNotIn("step 1/4", done.stdout)
        for word in words:
            self.assertEqual(done.stderr.count(word), 1, f"{word!r} in {done.stderr}")
        return done

    def test_held_out_data_is_long_enough(self):
        self.write("held.txt", "sixteen letters.")
        for ranks in (1, 2):
            self.refused(DATA, ["held.txt", "too little text"], "--eval-data", "held.txt", ranks=ranks)
        self.write("short.txt", TEXT[:100])  # a tenth of it is held out
        done = self.run_program(train(*JOB[:-1], "short.txt", "--steps", "4", "--eval-every", "2"), expect=DATA)
        self.assertIn("too little text: 10 tokens", done.stderr)
        self.assertEqual(self.saved_steps(), [])

    def test_files_can_be_written(self):
        (self.home / "folder").mkdir()
        for flag in ("--metrics", "--trace", "--dump-state"):
            self.refused(IO, [flag], flag, "folder")
            self.refused(IO, [flag], flag, "nowhere/file")
            with self.small_disk("full", "size=4k") as full, self.subTest(flag=flag):
                (full / "filler").write_bytes(bytes(4096))
                self.refused(IO, [flag, "No space left on device"], flag, "full/file")
                self.assertEqual(os.listdir(full), ["filler"])
            (self.home / "full").rmdir()

    # Fault 14.
    def test_a_checkpoint_has_room(self):
        with self.small_disk("out", "size=1m"):
            done = self.refused(HOST, ["a checkpoint needs"], ranks=2)
            self.assertRegex(done.stderr, r"out: a checkpoint needs [\d.]+ MiB \(\d+ bytes\) there, of which [\d.]+ KiB \(\d+ "
                                          r"bytes\) are free; make room, or name an --output on another disk")

    # Fault 14.
    def test_checkpoints_that_will_not_fit_are_said(self):
        with self.small_disk("out", "size=4m"):
            done = self.run_program(train(*JOB, "--steps", "1", "--save-every", "1", "--keep", "3"))
            self.assertEqual(done.stderr.count("note: out: up to"), 0, done.stderr)  # one step makes one checkpoint
        (self.home / "out").rmdir()
        with self.small_disk("out", "size=4m"):
            done = self.run_program(train(*JOB, "--steps", "4", "--save-every", "1", "--keep", "2", "--save-retry", "0", *STANDING), expect=IO)
            self.assertRegex(done.stderr, r"note: out: up to 3 more checkpoints of [\d.]+ MiB \(\d+ bytes\) are to come \(--keep 2: "
                                          r"an old one goes when the next is whole\), and 4.00 MiB \(\d+ bytes\) are free, which is "
                                          r"room for 2;")
            self.assertEqual(self.saved_steps(), [1, 2])


class BesideTraining(KeptWorkTest):
    def fails_late(self, code, words, *arguments, ranks=1, steps=4):
        """Expects that all steps are done and saved, that the failure is reported when it comes, and again by the last words and the exit code."""
        done = self.run_program(mlaunch(ranks, *JOB, "--steps", steps, *arguments), expect=code)
        self.assertIn(f"step {steps}/{steps}", done.stdout)
        said = [line for line in done.stderr.splitlines() if re.search(words, line)]
        self.assertEqual(sum("warning: " in line and "training goes on" in line for line in said), 1, done.stderr)
        self.assertEqual(sum("all steps are done and saved, but" in line for line in said), 1, done.stderr)
        self.assertEqual(self.saved_steps()[-1], steps)
        self.resumes(ranks=ranks)
        return done.stderr

    def test_metrics_cannot_be_written(self):
        for ranks in (1, 2):
            with self.subTest(ranks=ranks):
                self.fails_late(IO, "cannot write metrics.*No space left on device", "--metrics", "/dev/full", ranks=ranks)
                for path in self.out.glob("step-*"):
                    subprocess.run(["rm", "-r", path], check=True)

    def test_metrics_fill_their_disk(self):
        """Leaves only whole lines in the file."""
        with self.small_disk("small", "size=4k"):
            error = self.fails_late(IO, "cannot write metrics.*No space left on device", "--metrics", "small/m.jsonl", steps=30)
            steps = [line["step"] for line in self.step_metrics("small/m.jsonl")]
            self.assertGreater(len(steps), 3)
            self.assertEqual(steps, list(range(1, len(steps) + 1)))
            self.assertEqual(error.count(f"warning: small/m.jsonl: {30 - len(steps)} steps are missing: {len(steps) + 1} to 30\n"), 1, error)

    def test_events_fill_their_disk(self):
        with self.small_disk("small", "size=12k"):
            error = self.fails_late(IO, "cannot write events.*No space left on device", "--report-to", "tensorboard", "--logging-dir", "small/logs", steps=60)
            self.assertRegex(error, r"warning: event files in small/logs: \d+ steps are missing: \d+ to 60\n")

    def test_a_report_and_a_trace_fill_their_disk(self):
        """Leaves no piece of either."""
        with self.small_disk("small", "size=64k") as small:
            self.fails_late(IO, "no memory report is written: small/report/.*No space left on device", "--memory-report", "small/report")
            self.assertEqual([path for path in small.rglob("*") if path.is_file()], [])
            shutil.rmtree(self.out)
            self.fails_late(IO, "cannot write the trace, and no piece of it stays: small/trace.*No space left on device", "--trace", "small/trace")
            self.assertEqual([path for path in small.rglob("*") if path.is_file()], [])

    def test_the_trace_cannot_be_written(self):
        self.fails_late(IO, "cannot write the trace, and no piece of it stays: /dev/full.*No space left on device", "--trace", "/dev/full")

    def test_the_digests_cannot_be_written(self):
        (self.home / "digests").mkdir()
        process = self.start_training("--dump-state", "digests/state")
        (self.home / "digests").rmdir()
        process.send_signal(signal.SIGTERM)
        _, error = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, TRY_AGAIN, error)
        self.assertRegex(error, "warning: .*digests/state.*training goes on")
        self.resumes()

    # Fault 38.
    def test_held_out_data_cannot_be_read(self):
        """Cuts the data off while two ranks train; the second one reads the lost part, and only the evaluations fail."""
        self.write("held.bin", struct.pack("<2000H", *([65] * 2000)))
        process = self.start(mlaunch(2, *JOB, "--steps", "400", "--metrics", "metrics", "--eval-data", "held.bin", "--eval-every", "50"))
        self.wait_until(lambda: process.poll() is not None or "eval_loss" in self.read_if_there("metrics"), "an evaluation")
        os.truncate(self.home / "held.bin", 3600)
        output, error = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, IO, error)
        self.assertIn("step 400/400  loss", output)
        self.assertRegex(error, r"warning: no held-out loss of step \d+: rank \d: .*held.bin.*; training goes on")
        self.assertEqual(self.step_metrics("metrics")[-1]["step"], 400)
        self.assertEqual(self.saved_steps(), [400])
        self.resumes(ranks=2)

    # Fault 38.
    def test_data_cannot_be_read_any_more(self):
        for ranks, flags in ((1, []), (2, ["--accumulation", "2"]), (2, ["--zero", "3", "--save-every", "3"])):
            with self.subTest(ranks=ranks, flags=flags):
                data = struct.pack("<4000H", *([65, 66] * 2000))
                (self.home / "train.bin").write_bytes(data)
                job = mlaunch(ranks, *JOB, "--data", "train.bin", *flags, "--steps", "1000000", "--metrics", "metrics")
                process = self.start_training(command=job)
                os.truncate(self.home / "train.bin", 4000)
                output, error = process.communicate(timeout=LIMIT_S)
                self.assertEqual(process.returncode, IO, error)
                done = re.search(r"rank \d: .*train\.bin.*; the run ends after step (\d+) of 1000000, which is saved", error)
                self.assertTrue(done, error)
                self.assertEqual(self.saved_steps()[-1], int(done[1]))
                self.assertEqual(self.step_metrics("metrics")[-1]["step"], int(done[1]))
                self.assertNotIn("on request", output)
                (self.home / "train.bin").write_bytes(data)
                self.resumes("--data", "train.bin", *flags, ranks=ranks)
                shutil.rmtree(self.out)
                (self.home / "metrics").unlink()

    def test_the_output_folder_is_removed(self):
        process = self.start_training("--save-every", "1000000")
        shutil.rmtree(self.out)
        process.send_signal(signal.SIGTERM)
        _, error = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, TRY_AGAIN, error)
        self.assertIn("warning: out was gone, with what lay in it, and is made anew", error)
        self.resumes()

    def test_the_disk_of_the_output_folder_goes_and_comes_back(self):
        """Writes nothing below the mount point, where nobody would find it."""
        (self.home / "out").mkdir()
        with self.small_disk("disk", "size=9m"):
            (self.home / "disk/out").mkdir()
            subprocess.run(["mount", "--bind", self.home / "disk/out", self.out], check=True)
            process = self.start_training("--save-retry", "30")
            subprocess.run(["umount", "-l", self.out], check=True)
            process.send_signal(signal.SIGTERM)
            self.wait_until(lambda: "out: leads to another disk than when the run began" in process.stderr.readline(), "a failed attempt")
            self.assertEqual(os.listdir(self.out), [])
            subprocess.run(["mount", "--bind", self.home / "disk/out", self.out], check=True)
            _, error = process.communicate(timeout=LIMIT_S)
            self.assertEqual(process.returncode, TRY_AGAIN, error)
            self.resumes()
            subprocess.run(["umount", self.out], check=True)

    def test_the_disk_of_the_output_folder_does_not_come_back(self):
        with self.small_disk("out", "size=9m"):
            process = self.start_training("--save-retry", "1")
            subprocess.run(["umount", "-l", self.out], check=True)
            process.send_signal(signal.SIGTERM)
            _, error = process.communicate(timeout=LIMIT_S)
            self.assertEqual(process.returncode, TRY_AGAIN, error)
            self.assertIn("warning: out was replaced by another folder, where this run goes on; it lies on another disk than before", error)
            self.resumes()
            subprocess.run(["mount", "-t", "tmpfs", "tmpfs", self.out], check=True)

    def test_the_output_folder_is_replaced(self):
        process = self.start_training("--save-every", "1000000")
        self.out.rename(self.home / "aside")
        self.out.mkdir()
        process.send_signal(signal.SIGTERM)
        _, error = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, TRY_AGAIN, error)
        self.assertIn("warning: out was replaced by another folder, where this run goes on", error)
        self.assertTrue((self.out / ".strata-lock").exists())
        self.resumes()

    def test_data_and_output_fail_together(self):
        data = struct.pack("<4000H", *([65, 66] * 2000))
        (self.home / "train.bin").write_bytes(data)
        with self.small_disk("out", "size=3m") as out:
            process = self.start_training("--data", "train.bin", "--save-retry", "1")
            (out / "filler").write_bytes(bytes(2 << 20))
            os.truncate(self.home / "train.bin", 4000)
            _, error = process.communicate(timeout=LIMIT_S)
            self.assertEqual(process.returncode, IO, error)
            self.assertRegex(error, r"warning: rank 0: .*train\.bin.*; training ends here")
            self.assertIn("out has no checkpoint: all steps are lost", error)

    # Fault 14.
    def test_the_last_checkpoint_waits_for_room(self):
        for ranks in (1, 2):
            with self.small_disk("out", "size=3m") as out, self.subTest(ranks=ranks):
                process = self.start_training(command=mlaunch(ranks, *JOB, "--steps", "1000000", "--metrics", "metrics", "--save-retry", "30"))
                (out / "filler").write_bytes(bytes(2 << 20))
                process.send_signal(signal.SIGTERM)
                self.wait_until(lambda: "trying again" in process.stderr.readline(), "a failed attempt")
                shown = self.run_program([str(BIN / "mlaunch"), "status"]).stdout
                self.assertRegex(shown, r"\nsaves have failed for \d+ s: the checkpoint of step \d+ could not be written: .*No space left on device\n")
                (out / "filler").unlink()
                _, error = process.communicate(timeout=LIMIT_S)
                self.assertEqual(process.returncode, TRY_AGAIN, error)
                self.resumes(ranks=ranks)
            shutil.rmtree(self.out, ignore_errors=True)
            (self.home / "metrics").unlink(missing_ok=True)

    # Fault 14.
    def test_no_room_for_the_last_checkpoint(self):
        with self.small_disk("out", "size=3m") as out:
            process = self.start_training("--save-retry", "2")
            (out / "filler").write_bytes(bytes(2 << 20))
            process.send_signal(signal.SIGTERM)
            _, error = process.communicate(timeout=LIMIT_S)
            self.assertEqual(process.returncode, IO, error)
            tries = [line for line in error.splitlines() if "trying again" in line]
            self.assertIn(len(tries), (1, 2), error)  # two seconds may pass at once on a busy machine
            self.assertRegex(tries[0], r"the checkpoint of step (\d+) could not be written: .*No space left on device; trying again for 2 s "
                                       r"\(--save-retry\): make room, .*; if the run ends before, steps 1 to \1 are lost: out has no checkpoint; "
                                       r"a second signal ends it at once, --grace S would end it S seconds after the first$")
            for line in tries[1:]:
                self.assertRegex(line, r"^warning: the checkpoint of step \d+ still cannot be written, for the same cause; trying again for 1 s \(--save-retry\)$")
            self.assertIn("out has no checkpoint: all steps are lost", error)

    # Fault 14.
    def test_checkpoints_of_the_run_before_do_not_count_as_saved(self):
        """With --overwrite-output-dir they lie there until this run has committed one."""
        with self.small_disk("out", "size=3m") as out:
            self.run_program(train(*JOB, "--steps", "1"))
            (out / "step-00000001").rename(out / "step-00900000")
            process = self.start_training("--overwrite-output-dir", "--save-retry", "1")
            with contextlib.suppress(OSError):  # until the disk is full
                (out / "filler").write_bytes(bytes(3 << 20))
            process.send_signal(signal.SIGTERM)
            _, error = process.communicate(timeout=LIMIT_S)
            self.assertEqual(process.returncode, IO, error)
            self.assertRegex(error, r"the checkpoint of step (\d+) could not be written: .*; if the run ends before, steps 1 to \1 are lost: out has no checkpoint of this run")
            self.assertIn("out has no checkpoint of this run: all steps are lost", error)

    # Faults 14, 36.
    def test_a_signal_is_answered_while_the_last_checkpoint_waits_for_room(self):
        """The first one at once, by what is tried and what would be lost; a second one ends the run."""
        for second in (signal.SIGTERM, signal.SIGINT):
            (self.home / "train.bin").write_bytes(struct.pack("<4000H", *([65, 66] * 2000)))
            with self.small_disk("out", "size=3m") as out, self.subTest(second):
                process = self.start_training("--data", "train.bin")
                (out / "filler").write_bytes(bytes(2 << 20))
                os.truncate(self.home / "train.bin", 4000)  # ends training without a signal
                self.wait_until(lambda: "trying again for 600 s (--save-retry)" in process.stderr.readline(), "a failed attempt")
                process.send_signal(signal.SIGTERM)
                line = ""
                while not line.startswith("warning: SIGTERM"):
                    line = process.stderr.readline()
                    self.assertNotEqual(line, "", "the end of the run's output")
                self.assertRegex(line, r"^warning: SIGTERM: the run ends once the checkpoint of step (\d+) is written, which is tried for (?:600|5\d\d) s \(--save-retry\); "
                                       r"if it ends before, steps 1 to \1 are lost: out has no checkpoint; a second signal ends it at once, --grace S would end it S seconds after the first$")
                time.sleep(1.2)  # what comes within a second is the same request
                process.send_signal(second)
                _, error = process.communicate(timeout=LIMIT_S)
                self.assertEqual(process.returncode, -second, error)
                if second == signal.SIGINT:
                    self.assertRegex(error, r"ended by Ctrl-C; the checkpoint of step (\d+) could not be written: .*; steps 1 to \1 are lost: out has no checkpoint")
            shutil.rmtree(self.out, ignore_errors=True)
            (self.home / "metrics").unlink(missing_ok=True)

    # Fault 14.
    def test_a_grace_that_ends_without_room_tells_the_cause(self):
        """The rank's last words are all that the launcher knows."""
        cause = (r"SIGTERM: 4\.5 s are over; the checkpoint of step (\d+) could not be written: .*the checkpoint needs .*: "
                 r"No space left on device; steps 1 to \1 are lost: out has no checkpoint")
        for ranks in (1, 2):
            with self.small_disk("out", "size=3m") as out, self.subTest(ranks=ranks):
                process = self.start_training(command=mlaunch(ranks, *JOB, "--steps", "1000000", "--metrics", "metrics",
                                                              options=["--grace", "5", "--log-dir", "logs"]))
                (out / "filler").write_bytes(bytes(2 << 20))
                process.send_signal(signal.SIGTERM)
                _, error = process.communicate(timeout=LIMIT_S)
                self.assertEqual(process.returncode, TRY_AGAIN, error)
                self.assertRegex(error, rf"(?m)^  error +{cause}$")
                self.assertRegex(error, r"(?m)^mlaunch: rank 0 of .* failed.*: \S*train exited with code 75, as the checkpoint of step \d+ could not be "
                                 r"written: .*No space left on device$")
                self.assertNotIn("another rank", error)
                (report,) = (self.home / "logs").glob("*/attempt_0/report.json")
                for rank in json.loads(report.read_text())["ranks"]:
                    self.assertRegex(rank["error"], cause)
            for name in ("out", "logs"):
                shutil.rmtree(self.home / name, ignore_errors=True)
            (self.home / "metrics").unlink(missing_ok=True)

    def read_if_there(self, name):
        return self.read(name) if (self.home / name).exists() else ""


class Shared(KeptWorkTest):
    def test_files_obey_the_umask(self):
        for mask, folder_mode, file_mode in ((0o022, 0o755, 0o644), (0o002, 0o775, 0o664), (0o077, 0o700, 0o600)):
            with self.subTest(mask=oct(mask)):
                name = f"mask{mask:03o}"
                process = self.start_with(mlaunch(2, *JOB, "--steps", "2", "--output", f"{name}/deep", "--metrics", f"{name}.jsonl",
                                                  "--trace", f"{name}.trace", "--dump-state", f"{name}.state"), umask=mask)
                _, error = process.communicate(timeout=LIMIT_S)
                self.assertEqual(process.returncode, 0, error)
                found = {path: path.stat().st_mode & 0o777 for path in
                         [*self.home.glob(f"{name}*"), *(self.home / name).rglob("*")] if not path.is_symlink()}
                self.assertGreater(len(found), 8)
                for path, mode in found.items():
                    self.assertEqual(oct(mode), oct(folder_mode if path.is_dir() else file_mode), path)


class WhatIsSavedAndUsed(KeptWorkTest):
    def test_a_run_may_save_any_number_of_times(self):
        """Each save takes arenas and gives them back; mlaunch's store once ran out of room for descriptors at the 157th."""
        saves = 180
        done = self.run_program(mlaunch(2, *JOB, *STANDING, "--steps", saves, "--save-every", "1", "--keep", "1", options=["--max-restarts", "0"]))
        self.assertEqual(done.stdout.count("wrote out/step-"), saves)

    def test_epochs_end_with_checkpoints(self):
        first = self.run_program(train(*JOB, *STANDING, "--num_train_epochs", "3", "--save_strategy", "epoch"))
        epoch = self.saved_steps()[0]
        self.assertEqual(self.saved_steps(), [epoch, 2 * epoch, 3 * epoch], first.stdout)

    # Fault 18.
    def test_a_model_that_was_damaged_after_it_was_saved(self):
        self.run_program(train(*JOB, "--steps", "2"))
        weights = self.out / "step-00000002" / "model.safetensors"
        with open(weights, "r+b") as file:
            file.seek(weights.stat().st_size - 8)
            file.write(b"\x7f")
        tuned = [*JOB[:JOB.index("--output")], "--data", "train.txt", "--steps", "1", "--output", "tuned"]
        for command in (train(*tuned, "--model", "out"), [str(BIN / "generate"), "--model", "out", "--tokens", "2"],
                        mlaunch(2, *tuned, "--model", "out")):
            said = self.run_program(command, expect=DATA).stderr
            self.assertRegex(said, r"model\.safetensors: is damaged: block 0, bytes 0 to \d+, has hash ")
            self.assertIn("or remove manifest.json", said)
        (self.out / "step-00000002" / "manifest.json").unlink()
        self.run_program(train(*tuned, "--model", "out"))

    def test_a_model_that_goes_while_it_is_trained(self):
        self.run_program(train(*JOB, "--steps", "2"))
        (self.out / "step-00000002").rename(self.home / "base")
        process = self.start_training("--model", "base", "--output", "tuned")
        shutil.rmtree(self.home / "base")
        process.send_signal(signal.SIGTERM)
        said = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 75, said)
        self.assertEqual(len(list((self.home / "tuned").glob("step-*/config.json"))), 1, said)

    def test_the_model_is_not_overwritten_by_its_own_run(self):
        self.run_program(train(*JOB, "--steps", "2"))
        for model in ("out", "out/latest", "out/step-00000002/config.json"):
            said = self.run_program(train(*JOB, "--steps", "2", "--model", model, "--overwrite-output-dir"), expect=2).stderr
            self.assertIn("--overwrite-output-dir would remove --model out", said)
        self.assertEqual(self.saved_steps(), [2])

    def test_nothing_is_written_over_what_is_read_or_written(self):
        for flags in (["--dump-state", "train.txt"], ["--trace", "./train.txt"], ["--metrics", "m", "--profile", "m"]):
            said = self.run_program(train(*JOB, "--data", "train.txt", "--steps", "2", *flags), expect=2).stderr
            self.assertIn("which would be overwritten; name another", said)
        self.assertEqual(self.read("train.txt"), TEXT)
        self.assertFalse(self.out.exists() and self.saved_steps())

    def test_the_folder_of_a_model_is_not_written_over(self):
        self.run_program(train(*JOB, "--steps", "2"))
        said = self.run_program(train(*JOB, "--model", "out/latest", "--output", "out/step-00000002"), expect=2).stderr
        self.assertIn("has the weights of a model in it", said)

    def test_what_is_not_saved_is_said(self):
        job = [*JOB[:JOB.index("--output")], "--data", "train.txt", "--steps", "1"]
        self.assertIn("nothing will be saved: no --output names a folder", self.run_program(train(*job)).stdout)
        self.assertNotIn("nothing will be saved", self.run_program(train(*job, "--output", "out")).stdout)


class NotFinite(KeptWorkTest):
    WILD = ["--learning-rate", "1e5", "--gradient-clipping", "0", "--weight-decay", "10"]

    def spoil(self, model):
        """Puts one NaN into the embedding of every token."""
        path = self.home / model / "model.safetensors"
        file = SafetensorsFile(path)
        name = next(name for name in file.header if name.endswith("wte.weight"))
        begin, end = file.header[name]["data_offsets"]
        width = file.header[name]["shape"][1]
        values = list(struct.unpack(f"<{(end - begin) // 4}f", file.data[begin:end]))
        values[::width] = [float("nan")] * len(values[::width])
        file.data = file.data[:begin] + struct.pack(f"<{len(values)}f", *values) + file.data[end:]
        path.write_bytes(file.bytes())

    def spoilt_model(self):
        self.run_program(train(*JOB, "--steps", "0", "--output", "first"))
        (self.home / "plain").mkdir()
        for name in ("config.json", "model.safetensors"):
            (self.home / "plain" / name).write_bytes((self.home / "first/step-00000000" / name).read_bytes())
        self.spoil("plain")
        return ["--model", "plain"]

    # Fault 20.
    def test_fp32_ends_and_leaves_a_state_to_go_on_from(self):
        for ranks in (1, 2):
            with self.subTest(ranks=ranks):
                self.run_program(mlaunch(ranks, *JOB, "--steps", "4", "--zero", ranks))
                done = self.run_program(mlaunch(ranks, *JOB, *self.WILD, "--steps", "200", "--save-every", "2", "--keep", "1", "--resume",
                                                "required", "--metrics", "metrics", "--zero", ranks), expect=DO_NOT_RESTART)
                (bad,) = re.findall(r"step (\d+): the loss is not finite \(or over 8,192\): the run ends", done.stderr)
                lines = self.step_metrics("metrics")
                self.assertEqual([line["step"] for line in lines if line["loss"] is None][0], int(bad))
                self.assertLess(len(lines), 200)
                last = self.saved_steps()[-1]
                self.assertGreaterEqual(last, int(bad))
                self.assertIn(f"its state is saved as of step {last}, but what it computes is not finite: the newest checkpoint "
                              "that is finite is out/step-00000004", done.stderr)
                listed = self.run_program(inspect("list", "out")).stdout
                self.assertRegex(listed, rf"(?m)^ +{last} .* whole by its sizes; not finite: loss of step {last}$")
                self.assertRegex(listed, r"(?m)^ +4 .* whole by its sizes$")
                self.run_program(inspect("verify", f"out/step-{last:08d}"))
                subprocess.run(["rm", "-r", self.out, self.home / "metrics"], check=True)

    def test_it_goes_on_with_other_settings(self):
        self.run_program(train(*JOB, "--steps", "3"))
        self.run_program(train(*JOB, *self.WILD, "--steps", "50", "--keep", "1", "--resume", "required"), expect=DO_NOT_RESTART)
        self.assertEqual(len(self.saved_steps()), 2)  # the last state, and the one before it, which was finite
        done = self.run_program(train(*JOB, "--learning-rate", "1e-6", "--steps", "4", "--resume", "required"))
        self.assertIn("resumed from out/step-00000003: step 3 of 4", done.stdout)

    # Fault 20.
    def test_sixteen_bits_go_on_for_some_steps(self):
        model = [*self.spoilt_model(), "--dtype", "bf16"]
        done = self.run_program(mlaunch(2, *JOB, *model, "--steps", "50", "--nonfinite-steps", "5", "--metrics", "metrics"),
                                expect=DO_NOT_RESTART)
        self.assertEqual(done.stderr.count("step 1: the loss is not finite (or over 8,192): parameters and optimizer state stay as they were\n"), 1)
        self.assertIn("step 5: the loss is not finite (or over 8,192), nor was it in the 4 steps before; ", done.stderr)
        self.assertIn("values of its state are not finite, either, and not saved; no checkpoint in out is finite", done.stderr)
        self.assertIn(len(self.step_metrics("metrics")), (5, 6))
        self.assertEqual(self.saved_steps(), [])
        done = self.run_program(train(*JOB, *model, "--steps", "50", "--on-nonfinite", "stop"), expect=DO_NOT_RESTART)
        self.assertIn("step 1: the loss is not finite (or over 8,192): the run ends", done.stderr)
        done = self.run_program(train(*JOB, *model, "--steps", "3", "--on-nonfinite", "skip"))
        self.assertIn("warning: out/step-00000003 is not finite: values of ", done.stderr)

    # Fault 20.
    def test_the_last_finite_checkpoint_stays(self):
        """Keeps another run's finite checkpoints in a folder whose later checkpoints, of a broken model, are not finite."""
        job = [*JOB, "--save-every", "1", *STANDING]
        self.run_program(train(*job, "--steps", "2"))
        broken = self.spoilt_model()
        good = self.out.rename(self.home / "good")
        self.run_program(train(*job, *broken, "--steps", "6", "--on-nonfinite", "skip"))
        self.assertFalse((self.out / "latest").exists())
        for step in (1, 2):
            subprocess.run(["rm", "-r", self.out / f"step-{step:08d}"], check=True)
            (good / f"step-{step:08d}").rename(self.out / f"step-{step:08d}")
        # This run goes on from a state that is not finite, because it was told to, saves one, and then removes old checkpoints.
        done = self.run_program(train(*job, "--steps", "8", "--keep", "1", "--on-nonfinite", "skip", "--resume", "out/step-00000006"))
        self.assertEqual(self.saved_steps(), [2, 8], done.stdout)
        listed = self.run_program(inspect("list", "out")).stdout
        self.assertRegex(listed, r"(?m)^ +2 .* whole by its sizes$")
        self.assertRegex(listed, r"(?m)^ +8 .* whole by its sizes; not finite: values of \S+$")
        # A run that may choose does not resume from that checkpoint.
        done = self.run_program(train(*job, "--steps", "3", "--resume", "auto"))
        self.assertIn("note: passing over out/step-00000008: ", done.stderr)
        self.assertIn("resumed from out/step-00000002", done.stdout)
        self.assertEqual(os.readlink(self.out / "latest"), "step-00000003")


class Signals(KeptWorkTest):
    def test_a_terminal_that_ends(self):
        process = self.start_training()
        process.send_signal(signal.SIGHUP)
        output, error = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, TRY_AGAIN, error)
        self.assertIn("stopped on request", output)
        self.resumes()

    def test_nohup(self):
        process = self.start_training(preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        process.send_signal(signal.SIGHUP)
        lines = self.read("metrics").count("\n")
        self.wait_until(lambda: process.poll() is not None or self.read("metrics").count("\n") > lines + 20, "more steps")
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, TRY_AGAIN)

    def test_whoever_read_the_output_has_gone(self):
        """Closes the output first, as when a terminal with `train | tee log` is closed and tee ends before train."""
        process = self.start_training("--steps-per-print", "1")
        process.stdout.close()
        lines = self.read("metrics").count("\n")
        self.wait_until(lambda: process.poll() is not None or self.read("metrics").count("\n") > lines + 20, "more steps")
        self.assertIsNone(process.poll(), "printing ended it")
        process.send_signal(signal.SIGHUP)
        process.wait(timeout=LIMIT_S)
        self.assertEqual(process.returncode, TRY_AGAIN)
        self.resumes()

    def start_before_a_reader_that_stands_still(self, *arguments):
        """Starts a run whose standard output is full, so that it waits for a reader that never comes."""
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 4096)
        process = subprocess.Popen(train(*JOB, "--steps", "1000000", "--metrics", "metrics", "--steps-per-print", "1", *arguments),
                                   cwd=self.home, text=True, stdin=subprocess.DEVNULL, stdout=writer, stderr=subprocess.PIPE,
                                   start_new_session=True)
        os.close(writer)
        self.addCleanup(self._end, process)
        lines = [0, 0]  # seen before, and now
        while lines[1] == 0 or lines[0] != lines[1]:
            self.assertIsNone(process.poll())
            time.sleep(1)
            lines = [lines[1], self.read("metrics").count("\n") if (self.home / "metrics").exists() else 0]
        return process

    # Fault 36.
    def test_a_reader_that_stands_still_holds_up_no_signal(self):
        """What there is to say has a second, then the run ends without it."""
        for number, arguments, code, limit_s in [(signal.SIGTERM, ["--save-on-signal", "false"], -signal.SIGTERM, 1),
                                                 (signal.SIGHUP, ["--save-on-signal", "false"], -signal.SIGHUP, 1),
                                                 (signal.SIGINT, ["--save-on-signal", "false"], -signal.SIGINT, 1),
                                                 (signal.SIGINT, [], -signal.SIGINT, 1),
                                                 (signal.SIGTERM, ["--grace", "2"], TRY_AGAIN, 3)]:
            with self.subTest(signal=number, arguments=arguments):
                (self.home / "metrics").unlink(missing_ok=True)
                process = self.start_before_a_reader_that_stands_still(*arguments)
                process.send_signal(number)
                self.assertEqual(process.wait(timeout=limit_s + SOON_S), code)
                self.assertEqual(self.saved_steps(), [], "it was not stuck, and saved")

    def test_ctrl_c(self):
        for arguments, words in [(["--save-every", "2"], r"steps? \d+(?: to \d+)? (?:is|are) lost: the newest checkpoint is out/step-\d{8}"
                                                         r"|nothing is lost: out/step-\d{8} is of this step"),
                                 ([], r"steps 1 to \d+ are lost: out has no checkpoint")]:
            with self.subTest(arguments=arguments):
                subprocess.run(["rm", "-rf", self.out, self.home / "metrics"], check=True)
                process = self.start_training(*arguments)
                if arguments:
                    self.wait_until(lambda: self.saved_steps(), "a checkpoint")
                process.send_signal(signal.SIGINT)
                _, error = process.communicate(timeout=LIMIT_S)
                self.assertEqual(process.returncode, -signal.SIGINT, error)
                self.assertRegex(error, rf"train: ended by Ctrl-C; (?:{words})\n")


    def test_ctrl_c_after_resuming_from_another_folder(self):
        """What is lost begins after the step that the run went on from, though --output is new, or has an earlier step of another run."""
        elsewhere = ["other" if word == "out" else word for word in JOB]
        self.run_program(train(*elsewhere, "--steps", "6"))
        for foreign in (False, True):
            with self.subTest(foreign=foreign):
                shutil.rmtree(self.out, ignore_errors=True)
                (self.home / "metrics").unlink(missing_ok=True)
                if foreign:
                    self.run_program(train(*JOB, "--steps", "4"))
                process = self.start_training("--resume", "other/step-00000006")
                process.send_signal(signal.SIGINT)
                _, error = process.communicate(timeout=LIMIT_S)
                self.assertRegex(error, r"train: ended by Ctrl-C; steps 7 to \d+ are lost: the newest checkpoint is other/step-00000006\n")


class Resumed(KeptWorkTest):
    def test_metrics_have_each_step_once(self):
        job = [*JOB, "--metrics", "metrics", "--eval-data", "train.txt"]
        self.run_program(mlaunch(2, *job, "--steps", "9", "--save-every", "3", *STANDING))
        for step in (6, 9):
            subprocess.run(["rm", "-r", self.out / f"step-{step:08d}"], check=True)
        with open(self.home / "metrics", "a") as file:
            file.write('{"note": "of another program"}\n{"step": 10, "lo')  # a kill tore the last line
        done = self.run_program(mlaunch(2, *job, "--steps", "7", "--resume", "required"))
        self.assertIn("step 3 of 7", done.stdout)
        self.assertEqual([line["step"] for line in self.step_metrics("metrics")], [*range(1, 8)])
        self.assertEqual([line["step"] for line in self.metrics("metrics") if "eval_loss" in line], [7])
        self.assertEqual([line["step"] for line in self.metrics("metrics") if "checkpoint_bytes" in line], [3, 7])
        self.assertIn('{"note": "of another program"}\n', self.read("metrics"))

    def test_digests_of_a_run_that_is_done(self):
        job = [*JOB, "--steps", "3", "--dump-state", "state"]
        self.run_program(mlaunch(2, *job))
        expected = self.read("state")
        (self.home / "state").unlink()
        saved = (self.out / "step-00000003/manifest.json").read_bytes()
        done = self.run_program(mlaunch(2, *job, "--resume", "auto"))
        self.assertIn("all 3 steps are done", done.stdout)
        self.assertEqual(self.read("state"), expected)
        self.assertEqual((self.out / "step-00000003/manifest.json").read_bytes(), saved)


if __name__ == "__main__":
    unittest.main()
