#!/usr/bin/env python3
"""Times of instructions are measured before the first step, refined by the first steps, kept, and read by the next run; no bit depends on them."""
import json
import os
import pathlib
import subprocess
import tempfile
import time
import unittest
import unittest.mock

from programs import BIN, LIMIT_S, QUICK, mlaunch, train

CASES = [
    (1, []),
    (1, ["--accumulation", "3", "--activation-checkpointing"]),
    (1, ["--offload-optimizer", "cpu", "--offload-param", "cpu"]),
    (1, ["--offload-optimizer", "nvme", "--nvme-path", "{home}"]),
    (1, ["--layer-major", "--accumulation", "2", "--virtual-ranks", "1"]),
    (2, ["--zero", "1"]),
    (2, ["--zero", "3", "--bf16"]),
    (2, ["--zero", "2", "--accumulation", "2", "--offload-optimizer", "cpu"]),
]


class Calibrate(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = pathlib.Path(folder.name)

    def run_one(self, ranks, flags, calibrate, cache="cache", steps=2, attempt=0):
        state = self.home / "state"
        flags = [flag.format(home=self.home) for flag in flags]
        self.assertEqual(QUICK[0], "--steps")
        arguments = ["--steps", steps, *QUICK[2:], "--model", "gpt2-tiny", *flags, "--calibrate", calibrate, "--dump-state", state]
        command = train(*arguments) if ranks == 1 else mlaunch(ranks, *arguments)
        if attempt > 0:  # what mlaunch tells ranks that it has started again
            command = [str(BIN / "mlaunch"), "env", f"STRATA_ATTEMPT={attempt}", *command]
        environment = os.environ | {"XDG_CACHE_HOME": str(self.home / cache)}
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, env=environment)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return state.read_text(), done.stdout + done.stderr

    def profiles(self):
        return sorted((self.home / "cache/strata/profiles").glob("*.json"))

    def test_no_bit_depends_on_it(self):
        for ranks, flags in CASES:
            with self.subTest(ranks=ranks, flags=flags):
                plain, said = self.run_one(ranks, flags, "off")
                self.assertNotIn("calibration", said)
                measured, said = self.run_one(ranks, flags, "again")
                self.assertIn("calibration: ", said)
                self.assertEqual(plain, measured)

    def test_what_was_measured_is_kept_and_read_by_the_next_run(self):
        self.run_one(1, [], "again")
        (profile,) = self.profiles()
        kinds = len(json.loads(profile.read_text())["times"])
        self.assertGreater(kinds, 3)
        _, said = self.run_one(1, [], "auto")
        self.assertIn(f"foreseen by times of {kinds} kinds of instructions in {profile}", said)
        self.assertNotIn("calibration", said)  # a short run
        self.assertNotIn("foreseen by", self.run_one(1, [], "off")[1])
        self.run_one(1, ["--activation-checkpointing", "--micro-batch", "2"], "again")
        self.assertGreater(len(json.loads(profile.read_text())["times"]), kinds)  # the others stay

    def test_a_broken_profile_costs_a_note(self):
        self.run_one(1, [], "again")
        (profile,) = self.profiles()
        text = profile.read_text()
        for broken, words in [("{", "profiles/"), (text.replace('"version": 4', '"version": 7'), "expected version 4"),
                              (text.replace('"of": "', '"of": "not '), "is another machine's or build's")]:
            profile.write_text(broken)
            self.assertIn(words, self.run_one(1, [], "auto")[1])
        self.run_one(1, [], "again")
        self.assertEqual(json.loads(profile.read_text())["version"], 4)

    def sources(self):
        (profile,) = self.profiles()
        return [time["source"] for time in json.loads(profile.read_text())["times"]]

    def test_first_steps_refine_what_is_kept(self):
        for ranks, flags in [(1, ["--offload-optimizer", "cpu"]), (2, ["--zero", "2"])]:
            with self.subTest(ranks=ranks, flags=flags):
                for profile in self.profiles():
                    profile.unlink()
                metrics = self.home / "metrics"
                plain, said = self.run_one(ranks, flags, "off", steps=6)
                self.assertNotIn("refined", said)
                refined, said = self.run_one(ranks, [*flags, "--metrics", metrics.as_posix()], "again", steps=6)
                self.assertEqual(plain, refined)
                self.assertRegex(said, r"refined: times of \d+ kinds of instructions in its first steps are kept; with them [\d.e-]+ s per step are foreseen")
                self.assertEqual(said.count("refined:"), 1)
                lines = [json.loads(line) for line in metrics.read_text().splitlines()]
                self.assertEqual(len({line["foreseen_seconds"] for line in lines if "foreseen_seconds" in line}), 1)  # its own stays
                seen = self.sources().count("steps")
                self.assertGreater(seen, 3)
                _, said = self.run_one(ranks, flags, "auto", steps=6)
                self.assertIn(f", those of {seen} as steps showed them", said)
                self.assertNotIn("refined", said)  # a short run
                self.assertEqual(self.sources().count("steps"), seen)
                _, said = self.run_one(ranks, flags, "again")
                self.assertNotIn("refined", said)  # it has no third step
                self.assertLess(self.sources().count("steps"), seen)  # and measured them anew
                metrics.unlink()

    def test_times_of_another_build_or_other_threads_are_named_once(self):
        self.run_one(1, [], "again")
        (profile,) = self.profiles()
        text = profile.read_text()
        profile.unlink()
        for old, new, words in [(", build ", ", build 0", "measured by another build of this program are not used"),
                                (" 1 threads", " 3 threads", "times of instructions measured with '3 threads' are not used; a run of minutes")]:
            self.assertIn(old, text)
            profile.with_name("0123456789abcdef.json").write_text(text.replace(old, new))
            said = self.run_one(1, [], "auto")[1]
            self.assertEqual(said.count(words), 1, said)
            self.assertNotIn(words, self.run_one(1, [], "off")[1])
            self.assertNotIn(words, self.run_one(1, [], "auto", attempt=1)[1], "the first attempt has said it")
        self.run_one(1, [], "again")
        self.assertIn("foreseen by times of ", self.run_one(1, [], "auto")[1])

    def test_the_key_names_instruction_sets_and_not_why_the_cpu_computes(self):
        self.run_one(1, [], "again")
        (profile,) = self.profiles()
        self.assertRegex(json.loads(profile.read_text())["of"], r", oneDNN [\d.]+ \w+, CPU, 1 threads, 1 of 1 ranks ")
        self.assertIn("foreseen by times of ", self.run_one(1, ["--device", "cpu"], "auto")[1])
        with unittest.mock.patch.dict(os.environ, {"ONEDNN_MAX_CPU_ISA": "SSE41"}):
            said = self.run_one(1, [], "auto")[1]
        self.assertNotIn("foreseen by times of ", said)
        self.assertRegex(said, r"measured with '.*oneDNN [\d.]+ \w+' are not used")

    def test_times_of_an_earlier_version_are_named_once_and_measured_again(self):
        folder = self.home / "cache/strata/profiles"
        folder.mkdir(parents=True)
        (folder / "0123456789abcdef.json").write_text('{"version": 3, "of": "a machine", "times": []}')
        words = "measured by an earlier version of this program are not used; a run of minutes, or --calibrate again, measures anew"
        self.assertEqual(self.run_one(1, [], "auto")[1].count(words), 1)
        self.run_one(1, [], "again")
        self.assertNotIn(words, self.run_one(1, [], "auto")[1])

    def test_old_profiles_go(self):
        folder = self.home / "cache/strata/profiles"
        folder.mkdir(parents=True)
        old, other = folder / "0123456789abcdef.json", folder / "notes.json"
        for file in (old, other):
            file.write_text("{}")
            os.utime(file, (time.time() - 400 * 86400,) * 2)
        self.run_one(1, [], "again")
        self.assertFalse(old.exists())
        self.assertTrue(other.exists())

    def test_a_cache_that_cannot_be_written_costs_a_note(self):
        (self.home / "file").write_text("")
        self.assertIn("are not kept", self.run_one(1, [], "again", cache="file")[1])


if __name__ == "__main__":
    unittest.main()
