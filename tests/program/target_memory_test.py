"""`train --target-memory` and `plan`: settings that fit, the same losses, refusals that name what works, tables and files."""
import json
import os
import pathlib
import re
import shlex
import shutil
import unittest

from programs import BIN, QUICK, ProgramTest, mlaunch, train

USAGE, DOES_NOT_FIT, CONFIGURATION = 2, 69, 78
MEGABYTE = 1_000_000
# Activations are most of this model's memory, so that settings matter.
CONFIG = {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": 256, "n_positions": 256, "n_embd": 128, "n_layer": 6, "n_head": 4}
MODEL = ["--model", "model.json", "--sequence-length", "256"]
RUN = [*MODEL, "--steps", "2", "--calibrate", "off", "--device", "cpu", "--threads", "1"]
SAMPLES = ["--global-batch", "16"]


def plan(*arguments):
    return [str(BIN / "plan"), *map(str, arguments)]


class TargetTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.write("model.json", json.dumps(CONFIG))


class TargetMemory(TargetTest):
    def losses(self, *arguments):
        self.run_program(train(*RUN, *arguments, "--metrics", "metrics"))
        lines = self.step_metrics("metrics")
        return [line["loss"] for line in lines], max(line["peak_rss_bytes"] for line in lines), lines[0]["arena_bytes"]

    def test_a_run_stays_inside_its_target(self):
        free, most, arena = self.losses(*SAMPLES)
        for target in (most * 7 // 10, most * 5 // 10):
            losses, peak, smaller = self.losses(*SAMPLES, "--target-memory", target)
            self.assertLessEqual(peak, target)
            self.assertLess(smaller, arena)
            for mine, asked in zip(losses, free):
                self.assertAlmostEqual(mine, asked, places=4)

    def test_a_run_that_saves_from_the_drive_stays_inside_its_target(self):
        run = self.start(train("--model", "gpt2-bytes-10m", "--calibrate", "off", "--device", "cpu", "--threads", 1, "--steps", 4, "--global-batch", 4,
                               "--target-memory", "203MB", "--nvme-path", ".", "--output", "out", "--save-every", 2))
        _, status, used = os.wait4(run.pid, 0)
        self.assertEqual(os.waitstatus_to_exitcode(status), 0)
        self.assertTrue((self.home / "out" / "step-00000002").exists())
        self.assertLessEqual(used.ru_maxrss * 1024, 203 * MEGABYTE)

    def test_what_a_run_measures_and_records_stays_inside_its_target(self):
        """Beside arenas a run has what it records, and before it makes them what it measures."""
        for flags in (["--profile", "profile.json"], ["--trace", "trace.json", "--steps", 40]):
            with self.subTest(flags):
                run = self.start(train(*RUN, *SAMPLES, "--steps", 4, "--target-memory", "120MB", *flags))
                _, status, used = os.wait4(run.pid, 0)
                self.assertEqual(os.waitstatus_to_exitcode(status), 0)
                self.assertLessEqual(used.ru_maxrss * 1024, 120 * MEGABYTE)
                self.assertTrue((self.home / flags[1]).stat().st_size > 0)

    def test_a_calibration_stays_inside_its_target(self):
        """What is measured before the first step takes memory beside the arena of the Programs that are measured."""
        run = self.start(train(*RUN, *SAMPLES, "--calibrate", "again", "--target-memory", "120MB"))
        said = run.stdout.read() + run.stderr.read()
        _, status, used = os.wait4(run.pid, 0)
        self.assertEqual(os.waitstatus_to_exitcode(status), 0)
        self.assertRegex(said, r"calibration: \d+ kinds of instructions measured")
        self.assertLessEqual(used.ru_maxrss * 1024, 120 * MEGABYTE)

    def test_what_changes_results_is_chosen_only_where_it_is_allowed_and_named(self):
        asked = ["--bf16", "--micro-batch", "1", "--accumulation", "16"]
        recipe, allowed = "--state-recipe bf16-sr", ["--allow-lossy", "8bit,bf16-sr"]
        refused = self.run_program(train(*RUN, *asked, "--target-memory", "44MB", *allowed), expect=DOES_NOT_FIT).stderr
        least = re.search(rf"with {recipe}, which --allow-lossy permits, --target-memory ([\d.]+MB) would do", refused)[1]
        without = self.run_program(train(*RUN, *asked, "--target-memory", least), expect=DOES_NOT_FIT).stderr
        self.assertNotIn("state-recipe", without)
        said = self.run_program(train(*RUN, *asked, "--target-memory", least, *allowed, "--metrics", "metrics")).stdout
        self.assertRegex(said, rf"target memory {least} \(balanced\): {recipe} ")
        self.assertIn(f"this changes results: {recipe}, which --allow-lossy permits; without it nothing fits", said)
        self.assertLessEqual(max(line["peak_rss_bytes"] for line in self.step_metrics("metrics")), float(least[:-2]) * MEGABYTE)
        roomy = self.run_program(train(*RUN, *asked, "--target-memory", "2GB", *allowed)).stdout
        self.assertNotIn("state-recipe", roomy)
        self.assertIn("the settings fit as they are", roomy)

    def test_lossy_words_that_do_nothing_or_are_wrong(self):
        target = ["--target-memory", "200MB", "--dtype", "bf16"]
        for flags, code, words in (
                ([*target, "--allow-lossy", "packed-master"], USAGE, "--allow-lossy: found 'packed-master', expected recipes of --state-recipe that change"),
                (["--target-memory", "200MB", "--allow-lossy", "8bit"], CONFIGURATION, "--allow-lossy: found 8bit, which needs parameters of 16 bits"),
                ([*target, "--optimizer", "lion", "--allow-lossy", "bf16-sr"], CONFIGURATION, "--allow-lossy: found bf16-sr, which needs AdamW or Adam"),
                ([*target, "--allow-lossy", "none"], 0, ""),
                (["--dtype", "bf16", "--allow-lossy", "8bit"], 0, "--allow-lossy: accepted, unused: without --target-memory SIZE (or auto) nothing is"),
                ([*target, "--strategy", "conservative", "--allow-lossy", "8bit"], 0, "unused: --strategy conservative changes no result"),
                ([*target, "--state-recipe", "8bit", "--allow-lossy", "8bit"], 0, "--allow-lossy: accepted, unused: --state-recipe was given, and stays")):
            with self.subTest(flags):
                done = self.run_program(train(*RUN, "--print-plan", "--steps", "0", *flags), expect=code)
                self.assertIn(words, done.stdout + done.stderr)

    def test_recomputation_alone_changes_no_bit(self):
        given = ["--micro-batch", "16", "--accumulation", "1"]
        free, most, _ = self.losses(*given)
        planned, peak, _ = self.losses(*given, "--target-memory", most * 8 // 10)
        self.assertEqual(planned, free)
        self.assertLessEqual(peak, most * 8 // 10)

    def test_actions_of_their_own_change_no_bit(self):
        """Where steps become faster, each saved value of each layer has its own action; what is printed and written repeats it."""
        given = ["--micro-batch", "16", "--accumulation", "1", "--seed", "3"]
        _, most, _ = self.losses(*given, "--dump-state", "kept")
        target = ["--target-memory", str(most * 7 // 10)]
        done = self.run_program(train(*RUN, *given, *target, "--dump-state", "planned", "--write-plan", "plan.json", "--print-config"))
        self.assertEqual(self.read("planned"), self.read("kept"))
        flags = shlex.split(re.search(r"target memory \w+ \(balanced\): (.*)", done.stdout)[1])
        self.assertIn("--actions", flags)
        self.assertRegex(done.stdout, r"\n  blocks? \d+.*: made again 0\.norm")
        self.assertRegex(done.stdout, r"\nactions +\[\{.*\}\] +planned \(--target-memory\)")
        saved = json.loads(self.read("plan.json"))["saved"]
        self.assertEqual(json.loads(flags[flags.index("--actions") + 1]), saved)
        self.run_program(train(*RUN, *given, *flags, "--write-plan", "typed.json", "--dump-state", "typed"))
        self.assertEqual(self.read("typed"), self.read("kept"))
        self.assertEqual(self.read("typed.json"), self.read("plan.json"))
        self.run_program(plan(*MODEL, *given, "--threads", "1", *target, "--write-plan", "first.json", "--write-config", "ds.json"))
        written = json.loads(self.read("ds.json"))["strata"]
        self.assertEqual(written["actions"], json.loads(self.read("first.json"))["saved"])
        self.run_program(train(*RUN, "--seed", "3", "--config", "ds.json", "--write-plan", "second.json", "--dump-state", "written"))
        self.assertEqual(json.loads(self.read("second.json"))["saved"], written["actions"])
        self.assertEqual(self.read("written"), self.read("kept"))

    def test_what_fits_stays(self):
        done = self.run_program(train(*QUICK, "--target-memory", "auto"))
        self.assertRegex(done.stdout, r"target memory \S+ GiB: the settings fit as they are, and nothing changes")
        self.assertNotIn("--micro-batch", done.stdout)

    def test_flags_that_are_named_do_the_same(self):
        """What is printed is what one could type."""
        done = self.run_program(train(*RUN, *SAMPLES, "--target-memory", "120MB", "--print-config", "--metrics", "planned"))
        flags = shlex.split(re.search(r"target memory 120MB \(balanced\): (.*)", done.stdout)[1])
        self.assertRegex(done.stdout, r"\nmicro_batch +\d+ +planned \(--target-memory\)")
        typed = [flag for flag in flags]
        self.run_program(train(*RUN, *SAMPLES, *typed, "--metrics", "typed"))
        same = ("loss", "grad_norm", "arena_bytes")
        self.assertEqual(*([[line[key] for key in same] for line in self.step_metrics(name)] for name in ("planned", "typed")))

    def test_a_run_keeps_its_plan(self):
        self.run_program(train(*RUN, *SAMPLES, "--target-memory", "120MB", "--write-plan", "plan.json", "--metrics", "planned"))
        shape = json.loads(self.read("plan.json"))
        batch = ["--micro-batch", shape["shape"]["batch"], "--accumulation", shape["micro_steps"]]
        self.run_program(train(*RUN, *batch, "--plan", "plan.json", "--metrics", "again"))
        same = ("loss", "grad_norm", "arena_bytes")
        self.assertEqual(*([[line[key] for key in same] for line in self.step_metrics(name)] for name in ("planned", "again")))

    def test_a_plan_that_cannot_be_written(self):
        done = self.run_program(train(*RUN, "--write-plan", "nosuch/plan.json"), expect=74)
        self.assertIn("--write-plan", done.stderr)

    def test_ranks_agree(self):
        done = self.run_program(mlaunch(2, *RUN, *SAMPLES, "--target-memory", "120MB", "--metrics", "metrics", options=["--no-prefix"]))
        self.assertRegex(done.stdout, r"target memory 120MB \(balanced\): ")
        self.assertTrue(all(line["peak_rss_bytes"] <= 120 * MEGABYTE for line in self.step_metrics("metrics")))

    def test_ranks_that_save_fit_the_target_that_a_refusal_names(self):
        """The planner compiles for one rank; no other may need more, whichever writes most of a checkpoint."""
        ranks = ["--model", "gpt2-tiny", "--sequence-length", 128, "--global-batch", 4, "--steps", 2, "--calibrate", "off", "--device", "cpu", "--threads", 1,
                 "--output", "out", "--target-memory"]
        refused = self.run_program(mlaunch(2, *ranks, "80MB"), expect=DOES_NOT_FIT)
        least = re.search(r"the least that works is --target-memory ([\d.]+)MB", refused.stdout + refused.stderr)[1]
        self.run_program(mlaunch(2, *ranks, f"{least}MB"))

    def test_a_refusal_names_a_target_that_works(self):
        refused = self.run_program(train(*RUN, *SAMPLES, "--target-memory", "50MB"), expect=DOES_NOT_FIT)
        self.assertRegex(refused.stderr, r"\n    with --nvme-path DIR: about --target-memory [\d.]+MB would do, ")
        least = re.search(r"the least that works is --target-memory ([\d.]+)MB", refused.stderr)[1]
        self.run_program(train(*RUN, *SAMPLES, "--target-memory", f"{least}MB"))
        again = self.run_program(train(*RUN, *SAMPLES, "--target-memory", f"{0.99 * float(least)}MB"), expect=DOES_NOT_FIT)
        self.assertIn(f"the least that works is --target-memory {least}MB", again.stderr)

    def test_a_refusal_names_no_target_that_a_limit_forbids(self):
        """--host-memory limits the arenas of a CPU, whatever the target."""
        asked = [*RUN, *SAMPLES, "--threads", "1", "--target-memory"]
        refused = self.run_program(train(*asked, "100MB", "--host-memory", "5MB"), expect=DOES_NOT_FIT)
        least = re.search(r"no --target-memory would do: the smallest plan, with .*, and its arenas need --host-memory (\d+)MB; it takes that, a shorter ",
                          refused.stderr)[1]
        self.run_program(train(*asked, "100MB", "--host-memory", f"{least}MB"))
        fast = self.run_program(train(*asked, "100MB", "--host-memory", f"{least}MB", "--strategy", "conservative"), expect=DOES_NOT_FIT)
        self.assertIn("choose another strategy: no target that the machine has would do with this one", fast.stderr)
        self.write("w.json", json.dumps({"train_batch_size": 16, "strata": {"host_memory": 5_000_000}}, indent=1))
        named = self.run_program(train(*RUN, "--config", "w.json", "--threads", "1", "--target-memory", "100MB"), expect=DOES_NOT_FIT)
        self.assertIn(f"its arenas need --host-memory {least}MB, where w.json:4: strata.host_memory gives 5MB; it takes that, a shorter ", named.stderr)

    def test_a_target_below_what_a_process_takes_names_one_that_works(self):
        refused = self.run_program(train(*RUN, *SAMPLES, "--threads", "1", "--target-memory", "1MB"), expect=DOES_NOT_FIT)
        least = re.search(r"--target-memory 1MB: a process without any arena alone takes 32\.00 MiB, and nothing fits; "
                          r"the least that works is --target-memory ([\d.]+)MB", refused.stderr)[1]
        self.run_program(train(*RUN, *SAMPLES, "--threads", "1", "--target-memory", f"{least}MB"))

    def test_drives_are_measured_within_the_target(self):
        for folder in "abcd":
            (self.home / folder).mkdir()
        self.run_program(train("--model", "gpt2-tiny", "--threads", "1", "--steps", "2", "--offload-optimizer", "nvme", "--nvme-path", "a,b,c,d", "--target-memory", "62MB",
                               "--metrics", "on-drives"))
        self.assertLessEqual(self.step_metrics("on-drives")[-1]["peak_rss_bytes"], 62e6)

    def test_a_cpu_that_is_planned_for_has_the_threads_that_are_asked_for(self):
        beside = {}
        for threads in (1, 2, 4):
            done = self.run_program(plan("--model", "gpt2-tiny", "--hardware", "two-cores", "--threads", threads, "--target-memory", "400MB", "--json"))
            text = self.run_program(plan("--model", "gpt2-tiny", "--hardware", "two-cores", "--threads", threads, "--target-memory", "400MB")).stdout
            beside[threads] = (float(re.search(r"[(; ]([\d.]+) MiB of it beside its arenas;", text)[1]), json.loads(done.stdout)[0]["seconds_per_step"])
        self.assertEqual([memory for memory, _ in beside.values()], [32, 33, 35])
        self.assertGreater(beside[1][1], 1.5 * beside[2][1])
        self.assertEqual(beside[4][1], beside[2][1], "more threads than cores")

    def test_the_least_of_a_tiny_model_is_exact(self):
        asked = ["--model", "gpt2-tiny", "--threads", "1", "--hardware", "two-cores,disk=none", "--strategy"]
        for strategy in ("conservative", "balanced", "aggressive", "maximum"):
            with self.subTest(strategy):
                def least(target, expect):
                    said = self.run_program(plan(*asked, strategy, "--target-memory", target), expect=expect).stdout
                    return float(re.search(r"the least that works is --target-memory ([\d.]+)MB", said)[1]) if expect else 0
                named = least("10MB", 1)
                least(f"{named}MB", 0)
                self.assertEqual(least(f"{0.99 * named}MB", 1), named)

    def test_a_strategy_takes_the_target_that_its_refusal_names(self):
        asked = [*MODEL, *SAMPLES, "--hardware", "two-cores,disk=none", "--strategy"]
        for strategy, target in (("conservative", "38MB"), ("conservative", "63MB"), ("aggressive", "38MB")):
            with self.subTest(strategy=strategy, target=target):
                refused = self.run_program(plan(*asked, strategy, "--target-memory", target), expect=1).stdout
                self.assertEqual("allows steps that are at most 15 % slower than without a limit" in refused, target == "63MB")
                least = re.search(r"the least that works is --target-memory ([\d.]+)MB", refused)[1]
                (found,) = json.loads(self.run_program(plan(*asked, strategy, "--target-memory", f"{least}MB", "--json")).stdout)
                self.assertLessEqual(found["slowdown"], {"conservative": 1.15, "aggressive": 1.4}[strategy])

    def test_a_refusal_names_the_least_whatever_leads_to_it(self):
        """Sums of gradients that wait in host memory need least here, though their guess is far higher than that of layers that come first, and an arena
        without a schedule has holes."""
        def least(*arguments, target="2GB", expect=1):
            said = self.run_program(plan("--bf16", "--hardware", "rtx4090", *arguments, "--target-memory", target), expect=expect).stdout
            return float(re.search(r"the least that works is --target-memory ([\d.]+)MB", said)[1]) if expect else 0
        short = ["--model", "qwen2.5-7b", "--sequence-length", 1024, "--micro-batch", 1, "--accumulation"]
        self.assertLess(least(*short, 2), 1.01 * least(*short, 1))
        holes = ["--model", "mistral-7b", "--sequence-length", 4096, "--micro-batch", 4]
        named = least(*holes)
        self.assertLess(named, 5120)
        least(*holes, target=f"{named}MB", expect=0)
        self.assertEqual(least(*holes, target=f"{0.99 * named}MB"), named)

    def test_a_refusal_names_no_more_than_with_the_stage_that_needs_least(self):
        """Guesses of stage 3 count nothing that is gathered for a moment, so that all of its plans look smaller than those of stage 2."""
        asked = ["--model", "llama-3.2-1b", "--bf16", "--hardware", "8xh100", "--strategy", "maximum", "--target-memory", "700MB"]

        def least(*more):
            said = self.run_program(plan(*asked, *more), expect=1).stdout
            return float(re.search(r"the least that works is --target-memory ([\d.]+)MB", said)[1])
        self.assertLessEqual(least(), least("--zero", 2))

    def test_a_refusal_names_the_settings_that_forbid_more(self):
        refused = self.run_program(train(*RUN, "--micro-batch", "16", "--target-memory", "60MB", "--allow-offload", "none"), expect=DOES_NOT_FIT)
        forbidden = r"\n    without --micro-batch 16: about --target-memory ([\d.]+)MB would do, [\d.]+ MiB less per process, steps .*"
        self.assertRegex(refused.stderr, r"\n  settings that forbid smaller plans, each of them left open, as guessed:" + forbidden +
                         r"\n    without --allow-offload none, with --nvme-path DIR: about --target-memory [\d.]+MB would do, .* on the drive, steps .*"
                         r"\n    without --micro-batch 16 --allow-offload none, with --nvme-path DIR: about --target-memory [\d.]+MB would do, ")
        told = float(re.search(forbidden, refused.stderr)[1])
        freed = self.run_program(train(*RUN, "--global-batch", "16", "--target-memory", "44MB", "--allow-offload", "none"), expect=DOES_NOT_FIT)
        least = float(re.search(r"the least that works is --target-memory ([\d.]+)MB", freed.stderr)[1])
        self.assertAlmostEqual(told / least, 1, delta=0.05)

    def test_a_refusal_names_what_a_held_share_of_the_state_would_do(self):
        """Host memory has no room for a quarter of a 7B's optimizer state, but for less."""
        asked = ["--model", "qwen2.5-7b", "--bf16", "--sequence-length", 1024, "--hardware", "rtx4090", "--host-memory", "18GB",
                 "--allow-offload", "host", "--target-memory"]
        refused = self.run_program(plan(*asked, "24GB", "--offload-optimizer", "none"), expect=1).stdout
        self.assertIn("without --offload-optimizer none", refused)

    def test_a_refusal_names_no_setting_that_forbids_no_smaller_target(self):
        asked = ["--model", "gpt2-tiny", "--micro-batch", "2", "--target-memory", "20MB", "--threads", "1"]
        said = self.run_program(plan(*asked), expect=1).stdout
        self.assertRegex(said, r"the least that works is --target-memory [\d.]+MB")
        self.assertNotIn("settings that forbid smaller plans", said)
        (found,) = json.loads(self.run_program(plan(*asked, "--json"), expect=1).stdout)
        self.assertEqual(found["forbidden_by"], [])

    def test_a_refusal_lists_changes_by_the_bytes_that_they_save(self):
        refused = self.run_program(train(*RUN, "--micro-batch", "16", "--target-memory", "50MB"), expect=DOES_NOT_FIT)
        changes = re.findall(r"(?m)^    (--.*): ([\d.]+) MiB less per process, (?:.* on the drive, )?steps (?:as fast|([\d.]+) % \([\d.]+ ms\) (slower|faster))",
                             refused.stderr[refused.stderr.index("changes of one setting"):])
        self.assertIn("--micro-batch 8 --accumulation 2", [change[0] for change in changes])
        self.assertLessEqual(3, len(changes))
        gains = [float(less) / max(float(percent) if way == "slower" else 0, 0.05) for _, less, percent, way in changes]
        for before, after in zip(gains, gains[1:]):
            self.assertLessEqual(after, before * 1.2)  # what is printed is rounded

    def test_a_refusal_names_every_setting_that_holds_state_where_it_is(self):
        self.write("ds.json", json.dumps({"zero_optimization": {"offload_param": {"device": "cpu", "max_in_cpu": 0}}}))
        done = self.run_program(train(*RUN, "--micro-batch", "16", "--target-memory", "60MB", "--allow-offload", "none", "--update-time", "step_end",
                                      "--config", "ds.json"), expect=DOES_NOT_FIT)
        left_open = re.findall(r"(?m)^    without (.*), with --nvme-path DIR: about", done.stderr)[-1]  # after single ones, all together
        for setting in ("--micro-batch 16", "--update-time step_end", "--offload-param cpu",
                        "ds.json:1: zero_optimization.offload_param.max_in_cpu 0", "--allow-offload none"):
            self.assertIn(setting, left_open)

    def test_a_plan_obeys_the_limits_of_its_run(self):
        """--host-memory limits the arenas alone, in a run as in its plan."""
        for target, limit in (("2GB", "1GB"), ("auto", "70MB")):
            asked = [*MODEL, *SAMPLES, "--calibrate", "off", "--device", "cpu", "--threads", "1", "--target-memory", target, "--host-memory", limit]
            lines = [re.search(r"(?m)^target memory.*(?:\n  it needs.*)?", self.run_program(train(*asked, *steps)).stdout)[0]
                     for steps in (["--steps", "1"], ["--steps", "0", "--print-plan"])]
            self.assertEqual(lines[0], lines[1])

    def test_wrong_settings_stay_wrong_with_a_target(self):
        wrong = ["--actions", json.dumps([{"blocks": [1, 1], "actions": {"nosuch": "recompute"}}]), "--device", "cpu"]
        for target in ([], ["--target-memory", "1GB"], ["--target-memory", "1GB", "--steps", "0", "--print-plan"]):
            with self.subTest(target):
                self.assertIn("nosuch", self.run_program(train(*QUICK, *wrong, *target), expect=USAGE).stderr)

    def test_broken_targets(self):
        for arguments, code, message in (
                (["--target-memory", "much"], USAGE, "--target-memory: found 'much', expected an amount of memory such as 24GB"),
                (["--target-memory", "0"], USAGE, "--target-memory: found '0', expected an amount of memory"),
                (["--target-memory", "24"], USAGE, "--target-memory: found '24', which is 24 bytes; give a unit, such as 24GB or 24GiB"),
                (["--target-memory", "900kB"], USAGE, "--target-memory: found '900kB', which is less than 1 MB"),
                (["--target-memory", "24GB, 16GB"], USAGE, "expected one amount of memory; plan --target-memory 24GB,16GB plans for each"),
                (["--target-memory", "24GB,16GB"], USAGE, "found '24GB,16GB', expected one amount of memory; plan --target-memory 24GB,16GB plans for each"),
                (["--hardware", "rtx4090,h100"], USAGE, "train plans for one machine, and these are 2; plan --hardware rtx4090,h100 plans for each"),
                (["--target-memory", "900TB"], CONFIGURATION, r"--target-memory 900TB: each process on this machine has .*; give at most that, or auto"),
                (["--target-memory", "1GB", "--device-memory", "1GB"], CONFIGURATION, "cannot be combined with --device-memory: it limits the arena alone"),
                (["--target-memory", "1GB", "--plan", "file"], CONFIGURATION, "cannot be combined with --plan: a Plan from a file is run as it is"),
                (["--strategy", "bold"], USAGE, "--strategy: found 'bold'"),
                (["--allow-offload", "moon"], USAGE, "--allow-offload: found 'moon'")):
            with self.subTest(arguments):
                done = self.run_program(train(*QUICK, "--device", "cpu", *arguments), expect=code)
                self.assertRegex(done.stderr, message)

    def test_a_file_may_say_it(self):
        self.write("ds.json", json.dumps({"train_batch_size": 16, "strata": {"target_memory": "120MB", "strategy": "balanced", "allow_offload": "none"}}))
        done = self.run_program(train(*RUN, "--config", "ds.json"))
        self.assertRegex(done.stdout, r"target memory 120MB \(balanced\): ")
        unit = "which is 24 bytes; give a unit, such as \"24GB\""
        for wrong, why in (("much", "expected an amount of memory"), ("24", unit), (24, unit), (True, "found boolean true, expected bytes, or a string such as \"24GB\"")):
            self.write("ds.json", json.dumps({"strata": {"target_memory": wrong}}))  # a file's value is no mistake of the command line
            said = self.run_program(train(*RUN, "--config", "ds.json"), expect=CONFIGURATION).stderr
            self.assertRegex(said, "strata.target_memory: .*" + re.escape(why))

    def planned_with_open_keys(self, job, more, *flags):
        """Returns what two ranks print and measure with a file whose stage and batch are "auto"."""
        keys = {"train_batch_size": 16, "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto", "zero_optimization": {"stage": "auto"}}
        self.write("ds.json", json.dumps(keys | more))
        done = self.run_program(mlaunch(2, *job, "--deepspeed", "ds.json", *flags, "--print-config", "--metrics", "metrics", options=["--no-prefix"]))
        self.assertNotIn("taken as 0", done.stdout + done.stderr)
        return done.stdout, self.step_metrics("metrics")

    def test_a_stage_and_a_batch_that_a_file_leaves_open_are_chosen(self):
        """The target is just below the least of stage 0, so that another stage must be chosen."""
        job = [*RUN, "--allow-offload", "none"]
        refused = self.run_program(mlaunch(2, *job, *SAMPLES, "--zero", "0", "--target-memory", "20MB"), expect=DOES_NOT_FIT)
        least = float(re.search(r"the least that works is --target-memory ([\d.]+)MB", refused.stdout + refused.stderr)[1])
        target = f"{least - 1}MB"
        said = set()
        for more, flags in (({}, ["--target-memory", target]),
                            ({"autotuning": {"enabled": True}}, ["--target-memory", target]),
                            ({"autotuning": {"enabled": True}, "strata": {"target_memory": target}}, [])):
            with self.subTest(more, flags=flags):
                out, lines = self.planned_with_open_keys(job, more, *flags)
                said.add(re.search(rf"target memory {target} \(balanced\): (.*)", out)[1])
                self.assertRegex(out, r"\nzero\.stage +[123] +planned \(--target-memory\)")
                samples = [int(re.search(rf"\n{name} +(\d+) ", out)[1]) for name in ("micro_batch", "accumulation")]
                self.assertEqual(samples[0] * samples[1], 8)
                self.assertLessEqual(max(line["peak_rss_bytes"] for line in lines), (least - 1) * MEGABYTE)
        self.assertEqual(len(said), 1, "the same is asked for, in three ways")
        chosen = self.run_program(plan(*MODEL, "--threads", "1", "--allow-offload", "none", "--world", "2", "--deepspeed", "ds.json",
                                       "--write-config", "written.json")).stdout
        self.assertRegex(chosen, r"(?m)^here +2 ")
        self.assertIn(json.loads(self.read("written.json"))["zero_optimization"]["stage"], (1, 2, 3))

    def test_what_a_file_leaves_open_stays_where_it_fits(self):
        out, _ = self.planned_with_open_keys(RUN, {"autotuning": {"enabled": True}})
        self.assertRegex(out, r"target memory \S+ GiB: the settings fit as they are, and nothing changes; \"auto\" stays .*--zero 0\n")
        self.assertRegex(out, r"\nzero\.stage +0 +auto")


    def test_tuning_and_running_take_what_a_file_leaves_open(self):
        self.write("ds.json", json.dumps({"train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto",
                                          "zero_optimization": {"stage": "auto"}}))
        for mode in ("run", "tune"):
            with self.subTest(mode):
                done = self.run_program(mlaunch(2, *RUN, "--deepspeed", "ds.json", options=["--autotuning", mode, "--no-prefix"]))
                self.assertRegex(done.stdout, r"the settings fit as they are, and nothing changes; \"auto\" stays (?=.*--micro-batch 4)(?=.*--zero 0)")


class Resumed(TargetTest):
    """A checkpoint keeps the settings that were planned for its run."""
    TARGET = [*SAMPLES, "--target-memory", "184MB", "--save-every", "1", "--async-save", "false", "--output", "out"]
    JOB = [*MODEL, "--device", "cpu", "--threads", "1"]

    def flags_of(self, done):
        return shlex.split(re.search(r"(?m)^target memory 184MB.*?: (--.*)$", done.stdout)[1])

    def interrupted(self):
        """Leaves the checkpoint of step 1; returns the flags that were planned, and the state of the run that was not interrupted."""
        done = self.run_program(train(*self.JOB, *self.TARGET, "--steps", "3", "--calibrate", "off", "--dump-state", "straight"))
        for step in (2, 3):
            shutil.rmtree(self.home / f"out/step-{step:08d}")
        return self.flags_of(done), self.read("straight")

    def other_times(self):
        """Keeps a profile by which another plan is faster."""
        self.run_program(train(*self.JOB, *SAMPLES, "--steps", "1", "--calibrate", "again"))
        (kept,) = (pathlib.Path(os.environ["XDG_CACHE_HOME"]) / "strata/profiles").glob("*.json")
        self.addCleanup(kept.unlink)
        profile = json.loads(kept.read_text())
        for time in profile["times"]:
            time["ns"] += 50_000_000  # few large micro-steps, though something is computed again
        kept.write_text(json.dumps(profile))

    def test_settings_stay_though_others_would_be_planned_now(self):
        flags, straight = self.interrupted()
        self.other_times()
        fresh = self.run_program(train(*self.JOB, *self.TARGET, "--output", "fresh", "--steps", "1"))
        self.assertNotEqual(self.flags_of(fresh), flags)
        done = self.run_program(train(*self.JOB, *self.TARGET, "--steps", "3", "--resume", "auto", "--dump-state", "resumed"))
        self.assertIn("the settings of out/step-00000001, planned for it: ", done.stdout)
        self.assertIn("resumed from out/step-00000001", done.stdout)
        self.assertEqual(self.flags_of(done), flags)
        self.assertEqual(self.read("resumed"), straight)
        again = self.run_program(train(*self.JOB, *self.TARGET, "--steps", "4", "--resume", "auto"))
        self.assertEqual(self.flags_of(again), flags, "a checkpoint of a resumed run has them, too")

    def test_another_target_is_planned_anew_and_said(self):
        self.interrupted()
        target = [word.replace("184MB", "130MB") for word in self.TARGET]
        done = self.run_program(train(*self.JOB, *target, "--steps", "2", "--resume", "auto", "--calibrate", "off"))
        self.assertRegex(done.stderr, r"note: the settings are planned anew and differ from those of the checkpoint: .* there, .* here.*; "
                                      r"what is asked for differs, too: target\.memory 184MB there, 130MB here\. ")
        self.assertNotIn("planned for it", done.stdout)


class Plan(TargetTest):
    SEVEN_B = ["--model", "llama-2-7b", "--dtype", "bf16", "--sequence-length", "4096", "--global-batch", "8"]

    def test_a_table_of_machines(self):
        done = self.run_program(plan(*self.SEVEN_B, "--hardware", "rtx4090,8xh100", "--price", "0.5,2.5"))
        table = done.stdout[done.stdout.rindex("\n\n"):].strip().splitlines()
        self.assertEqual(re.split(r"  +", table[0]), ["machine", "ranks", "hosts", "each device", "each host", "its drives", "tokens/step", "s/step",
                                                        "tokens/s", "bound by", "slower", "per 1e9 tokens"])
        self.assertEqual([line.split()[:2] for line in table[1:]], [["rtx4090", "1"], ["8xh100", "8"]])

    def test_json_fits_what_is_asked(self):
        done = self.run_program(plan(*self.SEVEN_B, "--target-memory", "20GB", "--hardware", "rtx4090", "--json"))
        (found,) = json.loads(done.stdout)
        self.assertTrue(found["fits"])
        self.assertLessEqual(found["device_bytes"], 20e9)
        self.assertLessEqual(found["host_bytes"], 128e9)
        self.assertGreater(found["tokens_per_second"], 0)
        self.assertIn("--offload-optimizer", found["flags"])

    def test_a_micro_batch_that_is_given_makes_no_step_faster_within_little_memory(self):
        asked = ["--model", "llama-2-7b", "--bf16", "--sequence-length", 2048, "--hardware", "rtx4090", "--target-memory", "2.8GB", "--json"]
        (found,), (given,) = (json.loads(self.run_program(plan(*asked, *batch)).stdout)
                              for batch in (["--global-batch", 8], ["--micro-batch", 2, "--accumulation", 4]))
        self.assertLessEqual(found["seconds_per_step"], 1.02 * given["seconds_per_step"])

    def test_a_twentieth_of_a_described_host_stays_free(self):
        for limit, most in (([], 0.95 * 128e9), (["--host-memory", "126GB"], 126e9)):
            done = self.run_program(plan(*self.SEVEN_B, "--target-memory", "20GB", "--hardware", "rtx4090", "--json", *limit))
            self.assertIn(f"--host-memory {most / 1e6:.0f}MB" if not limit else "--offload-optimizer", json.loads(done.stdout)[0]["flags"])
            self.assertLessEqual(json.loads(done.stdout)[0]["host_bytes"], most)

    def test_evaluations_and_saves_count_for_the_whole_run(self):
        asked = [*MODEL, *SAMPLES, "--hardware", "rtx4090", "--target-memory", "4GB", "--steps", "1000000"]

        def whole(*more):
            return re.search(r"(?m)^  1000000 steps \(\d+ tokens\) take (.*)$", self.run_program(plan(*asked, *more)).stdout)[1]
        plain = whole()
        self.assertNotIn("of it", plain)
        both = whole("--eval-every", "10", "--eval-samples", "64", "--save-every", "10", "--output", "out")
        self.assertRegex(both, r", [\dhdmin s]+ of it for 100000 evaluations of 64 samples, [\dhdmin s]+ of it for 99999 saves")
        self.assertNotEqual(both.split(",")[0], plain)
        self.assertRegex(whole("--save-every", "1s", "--output", "out"), r", [\dhdmin s]+ of it for \d+ saves")
        self.assertRegex(whole("--eval-every", "10"), r", without 100000 evaluations \(--eval-samples says of how many samples\)$")

    def test_a_run_says_what_drives_bear(self):
        printed = self.run_program(train(*MODEL, *SAMPLES, "--hardware", "rtx4090,tbw=600TB", "--offload-optimizer", "nvme", "--nvme-path", ".", "--steps", "0",
                                         "--print-plan")).stdout
        self.assertRegex(printed, r"(?m)^drives: it writes \S+ .iB per step to the drives of a host, which may take 600 TB \(given\): worn out after \S+ days$")

    def test_a_report_is_written(self):
        done = self.run_program(plan(*MODEL, *SAMPLES, "--target-memory", "120MB", "--memory-report", "report"))
        self.assertRegex(done.stderr, "(?m)^memory report: report/report.html$")
        self.assertIn("planned", self.read("report/about.json") + self.read("report/report.html"))
        both = self.run_program(plan(*MODEL, "--hardware", "rtx4090,h100", "--memory-report", "report"), expect=USAGE)
        self.assertIn("--memory-report and --write-plan write one plan", both.stderr)

    def test_memory_against_time(self):
        done = self.run_program(plan(*self.SEVEN_B, "--hardware", "rtx4090", "--target-memory", "24GB,8GB", "--json"))
        large, small = json.loads(done.stdout)
        self.assertEqual([large["machine"], small["machine"]], ["rtx4090 24GB", "rtx4090 8GB"])
        self.assertLessEqual(small["device_bytes"], 8e9)
        self.assertLess(large["seconds_per_step"], small["seconds_per_step"])
        refused = self.run_program(plan(*MODEL, "--hardware", "rtx4090", "--write-config", "x", "--target-memory", "24GB,8GB"), expect=USAGE)
        self.assertIn("--write-config writes the settings of one plan", refused.stderr)
        self.assertIn("--target-memory: found 'much'", self.run_program(plan(*MODEL, "--target-memory", "24GB,much"), expect=USAGE).stderr)
        blanks = self.run_program(plan(*MODEL, "--hardware", "rtx4090", "--target-memory", "24GB, 8GB ", "--json"))
        self.assertEqual([one["machine"] for one in json.loads(blanks.stdout)], ["rtx4090 24GB", "rtx4090 8GB"])

    def test_a_target_that_one_machine_of_several_lacks_refuses_its_line_alone(self):
        job = [*MODEL, "--hardware", "rtx4090,h100", "--target-memory", "40GB"]
        done = self.run_program(plan(*job, "--explain"), expect=1)
        self.assertIn("rtx4090: --target-memory 40GB: rtx4090 has 24.00 GiB; give at most that, or auto\n", done.stdout)
        self.assertRegex(done.stdout, r"\nrtx4090 +1 +1 +does not fit")
        self.assertRegex(done.stdout, r"\nh100 +1 +1 +\d+\.\d+ [MG]iB")
        small, large = json.loads(self.run_program(plan(*job, "--json"), expect=1).stdout)
        self.assertIn("has 24.00 GiB", small["refusal"])
        self.assertTrue(large["fits"])

    def test_a_wrong_machine_costs_no_planning(self):
        done = self.run_program(plan(*MODEL, "--hardware", "rtx4090, h1000"), expect=CONFIGURATION)
        self.assertIn("hardware 'h1000' is not known, did you mean", done.stderr)
        self.assertEqual(done.stdout, "")

    def test_a_word_that_follows_a_list_is_blamed_on_the_list(self):
        for words, said in ((["--bf16", "--hardware", "rtx4090", "--price", "1", ",2"], "plan: found ',2' after --price 1; write a list without blanks: --price 1,2\n"),
                            (["--target-memory", "24GB", "8GB"], "plan: found '8GB' after --target-memory 24GB, which takes no more words\n"),
                            (["--data", "a.txt", "--json", "b.txt"], "plan: found 'b.txt' after --json, which takes no more words\n")):
            self.assertEqual(self.run_program(plan(*MODEL, *words), expect=USAGE).stderr, said)

    def test_a_list_with_nothing_between_its_commas(self):
        for flag, text, place in (("--hardware", "h100,,rtx4090", "part 2 of 3 is empty; put a machine there"), ("--hardware", "h100,", "part 2 of 2"),
                                  ("--hardware", ",h100", "part 1 of 2"), ("--target-memory", "24GB, ,16GB", "part 2 of 3 is empty; put a target"),
                                  ("--price", "1,", "part 2 of 2 is empty; put a price there, or leave out a comma")):
            error = self.run_program(plan(*MODEL, flag, text), expect=USAGE).stderr
            self.assertIn(f"{flag}: found '{text}', whose {place}", error)

    def test_a_limit_that_is_named_without_a_target_does_the_same(self):
        """It is rounded, as people type it, and the plan is the same."""
        job = [*self.SEVEN_B, "--hardware", "rtx4090", "--json"]
        text = self.run_program(plan(*job[:-1], "--target-memory", "20GiB")).stdout
        limit = re.search(r"without --target-memory, these settings go with --device-memory (\d+MB)\n", text)[1]
        (planned,) = json.loads(self.run_program(plan(*job, "--target-memory", "20GiB")).stdout)
        (typed,) = json.loads(self.run_program(plan(*job, *shlex.split(planned["flags"]), "--device-memory", limit)).stdout)
        for key in ("device_arena_bytes", "host_bytes", "disk_bytes", "seconds_per_step"):
            self.assertEqual(typed[key], planned[key], key)

    def test_a_plan_is_printed_for_the_target(self):
        done = self.run_program(train(*MODEL, *SAMPLES, "--target-memory", "120MB", "--steps", "0", "--print-plan", "--hardware", "two-cores"))
        self.assertIn("target memory 120MB (balanced): ", done.stdout)
        self.assertIn("this plan fits: ", done.stdout)
        refused = self.run_program(train(*MODEL, *SAMPLES, "--target-memory", "49MB", "--steps", "0", "--print-plan", "--hardware", "two-cores"), expect=DOES_NOT_FIT)
        self.assertIn("--target-memory 49MB: nothing fits", refused.stderr)

    def test_hosts_divide_the_batch(self):
        done = self.run_program(plan("--model", "llama-2-7b", "--dtype", "bf16", "--sequence-length", "2048", "--global-batch", "64", "--hardware", "8xh100", "--hosts", "2", "--json"))
        (found,) = json.loads(done.stdout)
        self.assertEqual(found["ranks"], 16)
        self.assertAlmostEqual(found["tokens_per_second"] * found["seconds_per_step"], 64 * 2048, delta=1)

    def test_files_repeat_the_plan(self):
        self.run_program(plan(*MODEL, *SAMPLES, "--target-memory", "120MB", "--write-plan", "plan.json", "--write-config", "ds.json"))
        asked = json.loads(self.read("ds.json"))
        self.assertEqual(asked["train_batch_size"], 16)
        samples = [asked["train_micro_batch_size_per_gpu"], asked["gradient_accumulation_steps"]]
        self.assertEqual(samples[0] * samples[1], 16)
        arenas = []
        for arguments in (["--plan", "plan.json", "--micro-batch", samples[0], "--accumulation", samples[1]], ["--config", "ds.json"]):
            self.run_program(train(*RUN, *arguments, "--metrics", "metrics"))
            arenas.append(self.step_metrics("metrics")[0]["arena_bytes"])
        self.assertEqual(arenas[0], arenas[1])

    def test_the_written_settings_repeat_every_choice(self):
        asked = ["--bf16", "--state-recipe", "8bit", "--micro-batch", "2", "--accumulation", "2", "--offload-optimizer", "cpu", "--update-time", "step_end",
                 "--tile-elements", "2048", "--device", "cpu", "--threads", "1"]
        self.run_program(plan(*MODEL, *asked, "--write-plan", "first.json", "--write-config", "ds.json"))
        self.run_program(train("--model", "model.json", "--config", "ds.json", "--steps", "0", "--print-plan", "--write-plan", "second.json"))
        self.assertEqual(json.loads(self.read("second.json")), json.loads(self.read("first.json")))
        noted = self.run_program(plan(*MODEL, "--output", "out", "--save-every", "5", "--write-config", "ds.json"))
        self.assertIn("note: ds.json does not say everything; give train, too: --model model.json --output out --save-every 5\n", noted.stderr)

    def test_the_notes_of_files_name_all_that_is_missing(self):
        """A run of each file, with the flags that its note names, is the run that was planned."""
        asked = ["--model", "model.json", "--sequence-length", "64", "--seed", "3", "--steps", "6", "--scheduler", "cosine", "--warmup-steps", "2", "--optimizer", "lion",
                 "--bf16", "--learning-rate", "3e-4", "--output", "out", "--save-every", "5", "--global-batch", "4", "--device", "cpu", "--threads", "1", "--zero", "1"]
        said = self.run_program(plan(*asked, "--write-plan", "p.json", "--write-config", "w.json")).stderr
        of_file, of_plan = (shlex.split(re.search(rf"(?m)^note: {name}.*; give train, too: (.*)$", said)[1]) for name in ("w.json", "p.json"))

        self.write("a.txt", "The quick brown fox jumps over the lazy dog. " * 40)

        def settled(*arguments):
            table = self.run_program(train(*arguments, "--data", "a.txt", "--tokenizer", "bytes", "--calibrate", "off", "--metrics", "m", "--print-config")).stdout
            self.assertEqual([line["step"] for line in self.step_metrics("m")], [1, 2, 3, 4, 5, 6])
            shutil.rmtree(self.home / "out")
            return dict(line.split()[:2] for line in table.splitlines() if re.match(r"[a-z_0-9.]+ +\S+ +(default|auto|planned|file|command line)", line))
        planned = settled(*asked)
        self.assertGreater(len(planned), 60)
        chosen = {"micro_batch", "accumulation", "activation_checkpointing", "recompute_norms", "checkpoint_ratio", "actions", "plan"}
        for file, given in (("w.json", ["--config", "w.json", *of_file]), ("p.json", ["--plan", "p.json", *of_plan])):
            again = settled(*given)
            differ = {name for name in planned if planned[name] != again.get(name)}
            decided = {name for name in differ if name.startswith(("zero.", "offload.")) or name in chosen}
            self.assertEqual(differ - decided, set(), given)
            self.run_program(train(*given, "--steps", "0", "--print-plan", "--write-plan", "again.json"))
            self.assertEqual(json.loads(self.read("again.json")), json.loads(self.read("p.json")), given)

    def test_a_plan_from_a_file_is_compiled_as_it_is(self):
        given = [*MODEL, "--micro-batch", "2", "--bf16", "--hardware", "rtx4090"]
        told = ("device_bytes", "host_bytes", "disk_bytes", "seconds_per_step", "tokens_per_second", "bound_by")

        def found(*arguments):
            (one,) = json.loads(self.run_program(plan(*given, *arguments, "--json")).stdout)
            return [one[name] for name in told]
        written = found("--offload-optimizer", "cpu", "--activation-checkpointing", "--write-plan", "plan.json")
        self.assertEqual(found("--plan", "plan.json", "--write-plan", "again.json"), written)
        self.assertNotEqual(found(), written)
        self.assertEqual(self.read("again.json"), self.read("plan.json"))
        done = self.run_program(plan(*given, "--plan", "plan.json", "--memory-report", "report"))
        self.assertRegex(done.stdout, r"rtx4090: the Plan of plan\.json fits\n  it needs \d.* of the device, \d.* of host memory per rank\n"
                                      r"  a step is foreseen to take \d")
        self.assertIn("report/report.html", done.stderr)
        small = self.run_program(plan(*given, "--plan", "plan.json", "--device-memory", "1MB"), expect=1)
        self.assertRegex(small.stdout, r"rtx4090: .*out of memory in tier device: its budget is 1000000 bytes, and this Plan needs at least \d")
        self.assertRegex(small.stdout, r"\nrtx4090 +1 +1 +does not fit")
        for arguments, code, message in (
                (["--target-memory", "8GB"], CONFIGURATION, "--target-memory: cannot be combined with --plan: a Plan from a file is run as it is"),
                (["--strategy", "maximum"], CONFIGURATION, "--strategy: cannot be combined with --plan"),
                (["--explain"], USAGE, "--plan plan.json decides, and nothing is chosen for --explain to compare; leave out one of the two"),
                (["--write-config", "ds.json"], USAGE, "nothing is chosen for --write-config to write"),
                (["--micro-batch", "3"], CONFIGURATION, "plan.json")):
            with self.subTest(arguments):
                self.assertIn(message, self.run_program(plan(*given, "--plan", "plan.json", *arguments), expect=code).stderr)

    def test_one_of_several_ranks_plans_for_all(self):
        done = self.run_program([str(BIN / "mlaunch"), "-np", "2", "--no-prefix", *plan(*MODEL, *SAMPLES, "--target-memory", "120MB")])
        self.assertEqual(len(re.findall(r"(?m)^machine +ranks", done.stdout)), 1)
        self.assertRegex(done.stdout, r"(?m)^here +2 ")

    def test_what_does_not_fit_is_told_apart(self):
        done = self.run_program(plan(*self.SEVEN_B, "--hardware", "rtx4090,8xh100", "--allow-offload", "none"), expect=1)
        self.assertRegex(done.stdout, r"rtx4090: nothing fits, and no --target-memory would do: the smallest plan, with .*, needs [\d.]+ GiB of the "
                         r"device.* \([\d.]+MB as a target\), and the device has 24.00 GiB; it takes a machine with more memory, ")
        self.assertRegex(done.stdout, r"with --nvme-path DIR: about --target-memory [\d.]+MB would do, |without --allow-offload none")
        self.assertRegex(done.stdout, r"\nrtx4090 +1 +1 +does not fit")
        self.assertRegex(done.stdout, r"\n8xh100 +8 +1 +\d+\.\d+ GiB")

    def test_a_limit_of_offload_counts_with_or_without_a_target(self):
        """plan always chooses; train chooses within a target alone, and says so."""
        self.assertNotIn("--allow-offload", self.run_program(plan(*MODEL, "--allow-offload", "none", "--write-plan", "plan.json")).stderr)
        given = self.run_program(plan(*MODEL, "--allow-offload", "none", "--plan", "plan.json"))
        self.assertEqual(given.stderr, "note: --allow-offload: accepted, unused: a Plan from a file is run as it is\n")
        said = self.run_program(train(*QUICK, "--allow-offload", "none")).stdout
        self.assertIn("note: --allow-offload: accepted, unused: it limits what --target-memory SIZE (or auto) may choose, and without that "
                      "nothing is chosen; give both\n", said)

    def test_what_was_compared(self):
        done = self.run_program(plan(*MODEL, *SAMPLES, "--target-memory", "120MB", "--explain"))
        self.assertRegex(done.stdout, r"compared:\n *s/step +guessed +settings\n *[\d.]+ +[\d.]+ +(chosen: )?--micro-batch")

    def test_what_was_compared_has_each_set_of_flags_once(self):
        asked = plan("--model", "llama-bytes-1m", "--sequence-length", "128", *SAMPLES, "--device", "cpu", "--threads", "1",
                     "--target-memory", "120MB", "--strategy", "aggressive", "--explain")
        text = self.run_program(asked).stdout
        rows = re.findall(r"(?m)^ *(?:[\d.e-]+|no [a-z ]+?) +[\d.e-]+ +(?:chosen: )?(--.*|as asked)$", text[text.index("compared:"):])
        self.assertGreater(len(rows), 2)
        self.assertCountEqual(rows, set(rows))
        self.assertEqual(text.count("chosen: "), 1)
        (one,) = json.loads(self.run_program([*asked, "--json"]).stdout)
        self.assertEqual(len(one["compared"]), len(rows))
        (chosen,) = [row for row in one["compared"] if row.get("chosen")]
        self.assertEqual(chosen["seconds_per_step"], one["seconds_per_step"])
        self.assertTrue(all(("lacks" in row) != ("seconds_per_step" in row) for row in one["compared"]))

    def test_where_nothing_was_compiled_nothing_is_listed_as_compared(self):
        asked = plan("--model", "llama-bytes-1m", "--sequence-length", "128", "--micro-batch", "1", "--zero", "0", "--device", "cpu", "--threads", "1",
                     "--target-memory", "20MB", "--explain")
        self.assertNotIn("compared:", self.run_program(asked, expect=1).stdout)

    def test_what_was_compared_has_what_was_chosen(self):
        done = self.run_program(plan(*self.SEVEN_B, "--target-memory", "20GB", "--hardware", "rtx4090", "--explain"))
        taken = re.search(r"is foreseen to take ([\d.]+) s", done.stdout)[1]
        (chosen,) = re.findall(r"(?m)^ *([\d.]+) +[\d.]+ +chosen: --", done.stdout)
        self.assertAlmostEqual(float(chosen), float(taken), delta=0.01 * float(taken))

    def test_records_that_stay_in_host_memory_are_guessed_there(self):
        """A 7B on the drive of a host of 64 GB keeps as much of its state in host memory as has room there."""
        asked = ["--model", "qwen2.5-7b", "--bf16", "--target-memory", "24GB", "--hardware", "rtx4090,memory=64GB"]
        (found,) = json.loads(self.run_program(plan(*asked, "--json")).stdout)
        self.assertIn("--offload-optimizer nvme", found["flags"])
        (reason,) = [reason for reason in found["reasons"] if reason["setting"] == "optimizer"]
        self.assertLess(abs(reason["disk_bytes"] + found["disk_bytes"]), 0.1 * 2**30)
        self.assertLess(-reason["seconds"], found["seconds_per_step"])

    def test_as_much_state_leaves_the_device_as_host_memory_holds(self):
        """All of it is more than the host has, and a quarter less more than the device has."""
        asked = ["--model", "qwen2.5-7b", "--bf16", "--state-recipe", "bf16-sr", "--target-memory", "24GB", "--hardware", "rtx4090,memory=64GB,disk=none"]
        (found,) = json.loads(self.run_program(plan(*asked, "--json")).stdout)
        self.assertTrue(found["fits"])
        self.assertLessEqual(found["host_bytes"], 0.95 * 64e9)
        self.assertRegex(found["flags"], r"--offload-ratio 0\.\d+")

    def test_a_refusal_names_the_memory_that_is_short(self):
        qwen = ["--model", "qwen2.5-7b", "--bf16", "--target-memory", "24GB", "--allow-offload", "host", "--offload-optimizer", "cpu", "--hardware"]
        done = self.run_program(plan(*qwen, "rtx4090"), expect=1)
        self.assertRegex(done.stdout, r"the nearest plan, with .*, and the host has 113\.25 GiB to give, \d+\.\d+ MiB too little "
                                      r"\(--host-memory \d+MB gives that, and leaves 5\.\d+ GiB to others; ")
        told = re.search(r"--host-memory \d+MB", done.stdout)[0].split()
        self.assertIn("target memory 24GB (balanced): ", self.run_program(plan(*qwen, "rtx4090", *told)).stdout)

    def test_a_refusal_of_a_strategy_that_demands_speed_names_what_works(self):
        """More host memory alone would be refused again, for slow steps; and what a drive would do is what it does."""
        qwen = ["--model", "qwen2.5-7b", "--bf16", "--hardware", "rtx4090"]
        asked = [*qwen, "--offload-optimizer", "cpu", "--allow-offload", "host", "--target-memory", "24GB"]
        refused = self.run_program(plan(*asked, "--strategy", "conservative"), expect=1).stdout
        told = re.search(r"too little \((--strategy balanced --host-memory \d+MB) gives that", refused)[1].split()
        self.assertIn("target memory 24GB (balanced): ", self.run_program(plan(*asked, *told)).stdout)
        refused = self.run_program(plan(*qwen, "--target-memory", "20GB", "--strategy", "conservative"), expect=1).stdout
        freed = re.search(r"without --strategy conservative, with --nvme-path DIR: about --target-memory ([\d.]+MB) would do", refused)[1]
        smallest = re.search(r"--strategy maximum works with --target-memory ([\d.]+MB)", refused)[1]
        for works in ([freed], [smallest, "--strategy", "maximum", "--allow-offload", "host"]):
            self.run_program(plan(*qwen, "--target-memory", *works))

    def test_a_refusal_names_no_target_that_other_memories_forbid(self):
        llama = ["--model", "llama-2-7b", "--bf16", "--target-memory", "24GB", "--hardware"]
        for arguments, short_of in ((["rtx4090,memory=32GB,disk_bytes=50GB"], r"its drives have 46\.57 GiB, \d+\.\d+ GiB too little"),
                                    (["rtx4090,memory=64GB", "--offload-optimizer", "cpu"], r"the host has 56\.62 GiB to give, \d+\.\d+ GiB too little"),
                                    (["rtx4090,memory=64GB", "--allow-offload", "host"], r"the host has 56\.62 GiB to give, \d+\.\d+ GiB too little")):
            with self.subTest(arguments):
                done = self.run_program(plan(*llama, *arguments), expect=1)
                self.assertRegex(done.stdout, r"nothing fits, and no --target-memory would do: the nearest plan.*" + short_of)
                self.assertNotIn("the least that works", done.stdout)
                advice = done.stdout.partition("changes of one setting")[2]
                for more in re.findall(r"([\d.]+) GiB more of host memory", advice):
                    self.assertLess(float(more), 57)
                if "--allow-offload" in arguments:
                    self.assertNotIn("nvme", advice)

    def test_flags_that_the_machine_cannot_obey_are_noted(self):
        done = self.run_program(plan(*MODEL, "--hardware", "rtx4090,disk=none", "--nvme-path", ".", "--host-memory", "256GB", "--allow-offload", "none",
                                     "--offload-optimizer", "cpu"))
        for note in ("--nvme-path: accepted, unused: rtx4090 of --hardware has no drive",
                     "--host-memory 256GB: the host of rtx4090 has 119.21 GiB, which is what is planned for",
                     "--offload-optimizer: stays as it was given; --allow-offload limits what is chosen alone"):
            self.assertIn(note, done.stderr)
        refused = self.run_program(plan(*self.SEVEN_B, "--hardware", "rtx4090,memory=32GB,disk=none", "--nvme-path", "."), expect=1)
        self.assertNotIn("--nvme-path DIR: about", refused.stdout)

    def test_a_target_is_for_a_run_that_saves_or_not_and_that_is_said(self):
        job = [*MODEL, *SAMPLES, "--device", "cpu", "--threads", "1"]
        says = "note: the least target that is named is for a run that saves nothing; to train with --output DIR, give plan --output DIR, too"

        def least(*more):
            done = self.run_program(plan(*job, "--target-memory", "20MB", *more), expect=1)
            return float(re.search(r"the least that works is --target-memory ([\d.]+)MB", done.stdout)[1]), done.stderr

        (without, said), (saving, nothing) = least(), least("--output", "out")
        self.assertIn(says, said)
        self.assertNotIn(says, nothing)
        self.assertGreater(saving, without)
        self.assertNotIn(says, self.run_program(plan(*job, "--output", "out")).stderr)
        self.run_program(train(*RUN, *SAMPLES, "--output", "out", "--target-memory", f"{without}MB"), expect=DOES_NOT_FIT)
        self.run_program(train(*RUN, *SAMPLES, "--output", "out", "--target-memory", f"{saving}MB"))

    def test_files_say_what_they_are_not_for(self):
        target = [*MODEL, *SAMPLES, "--device", "cpu", "--threads", "1", "--target-memory", "200MB"]
        lacks = "for a run that saves nothing; to train with --output DIR, give plan --output DIR, too"
        done = self.run_program(plan(*target, "--write-plan", "plan.json", "--write-config", "ds.json"))
        self.assertIn(f"note: plan.json, ds.json: {lacks}", done.stderr)
        done = self.run_program(plan(*target, "--output", "out", "--write-config", "saves.json", "--write-plan", "saves.plan"))
        self.assertNotIn(lacks, done.stderr)
        self.run_program(train(*RUN, "--config", "saves.json", "--output", "out"))
        given = json.loads(self.read("saves.json"))
        batch = ["--micro-batch", given["train_micro_batch_size_per_gpu"], "--accumulation", given["gradient_accumulation_steps"]]
        self.run_program(train(*RUN, *batch, "--plan", "saves.plan"))  # that saves nothing, and needs less
        given = [*MODEL, *batch, "--device", "cpu", "--threads", "1", "--plan", "saves.plan"]
        left_out = 'note: saves.plan: the Plan has memory for saving ("writing"), and with these flags "none" is planned; to count that memory, give plan'
        self.assertIn(left_out + " --output DIR, as the run\n", self.run_program(plan(*given)).stderr)
        self.assertNotIn("memory for saving", self.run_program(plan(*given, "--output", "out")).stderr)
        done = self.run_program(plan("--model", "qwen2.5-7b", "--bf16", "--target-memory", "24GB", "--hardware", "rtx4090,memory=64GB",
                                     "--write-config", "drive.json"))
        self.assertIn("drive.json: the settings use a drive and name no folder there; give plan --nvme-path DIR", done.stderr)

    def test_a_written_config_repeats_its_plan(self):
        asked = [*self.SEVEN_B, "--hardware", "rtx4090"]
        told = ("device_bytes", "host_bytes", "disk_bytes", "seconds_per_step")
        found = []
        for arguments in ([*asked, "--target-memory", "20GB", "--write-config", "ds.json"], ["--model", "llama-2-7b", "--config", "ds.json", "--hardware", "rtx4090"]):
            (one,) = json.loads(self.run_program(plan(*arguments, "--json")).stdout)
            found.append([one[name] for name in told])
        self.assertEqual(found[0], found[1])

    def test_what_a_driver_holds_is_told(self):
        done = self.run_program(plan(*self.SEVEN_B, "--target-memory", "20GB", "--hardware", "rtx4090"))
        self.assertRegex(done.stdout, r"it needs [\d.]+ GiB of the device \([\d.]+ MiB of it for driver and libraries\), ")

    def test_settings_that_are_printed_can_be_typed_in_the_same_command(self):
        asked = [*self.SEVEN_B, "--target-memory", "20GB", "--hardware", "rtx4090"]
        first = self.run_program(plan(*asked)).stdout
        flags = shlex.split(re.search(r"target memory 20GB \(balanced\): (.*)", first)[1])
        (limit,) = re.findall(r"\n  without --target-memory, these settings go with --device-memory (\S+)\n", first)
        told = ("device_bytes", "host_bytes", "seconds_per_step")

        def found(*arguments):
            (one,) = json.loads(self.run_program(plan(*arguments, "--json")).stdout)
            return [one[name] for name in told]
        typed = found(*asked, *flags)
        self.assertEqual(typed, found(*asked))
        self.assertEqual(typed, found(*self.SEVEN_B, "--hardware", "rtx4090", *flags, "--device-memory", limit))

    def test_each_choice_says_why(self):
        asked = [*MODEL, *SAMPLES, "--target-memory", "120MB"]
        done = self.run_program(plan(*asked, "--explain"))
        flags = re.search(r"target memory 120MB \(balanced\): (.*)", done.stdout)[1]
        self.assertRegex(done.stdout, r"each of these settings taken back alone, as guessed, of a step of [\d.]+ s:\n")
        why = done.stdout[done.stdout.index("each of these settings taken back alone, as guessed, "):]
        reasons = re.findall(r"(?m)^    without (--.*): (.* (?:more|less) per process|as much memory), steps (.*?)(; would not fit)?$", why)
        self.assertGreater(len(reasons), 0, done.stdout)
        for named, *_ in reasons:
            self.assertIn(named.removesuffix("..."), flags)
        self.assertIn("; would not fit", [reason[3] for reason in reasons])
        (found,) = json.loads(self.run_program(plan(*asked, "--json")).stdout)
        self.assertEqual([reason["flags"] for reason in found["reasons"]], [reason[0] for reason in reasons])
        self.assertEqual([reason["fits"] for reason in found["reasons"]], [not reason[3] for reason in reasons])
        (roomy,) = json.loads(self.run_program(plan(*MODEL, "--target-memory", "2GB", "--json")).stdout)
        self.assertEqual(roomy["reasons"], [])

    def test_a_refusal_as_json_has_prices(self):
        (found,) = json.loads(self.run_program(plan(*MODEL, "--micro-batch", "16", "--target-memory", "50MB", "--json"), expect=1).stdout)
        self.assertFalse(found["fits"])
        self.assertIn(("micro_batch", "--micro-batch 16"), [(freed["setting"], freed["flags"]) for freed in found["forbidden_by"]])
        self.assertLess(found["changes"][0]["device_bytes"] + found["changes"][0]["host_bytes"], 0)

    def test_broken_words(self):
        for arguments, code, message in (
                (["--price", "cheap"], USAGE, "--price: found 'cheap', expected a price per device and hour"),
                (["--hardware", "rtx4090,h100", "--price", "1,2,3"], USAGE, "--price: found 3 prices for 2 machines"),
                (["--hosts", "2"], USAGE, "--hosts needs --hardware"),
                (["--world", "0"], USAGE, "--world: found '0', expected a whole number from 1"),
                (["--hardware", "rtx4090,h100", "--write-config", "f"], USAGE, "--write-config writes the settings of one plan"),
                (["--hardware", "rtx4091"], CONFIGURATION, "rtx4091"),
                (["--hardware", "rtx4090", "--target-memory", "30GB"], CONFIGURATION, r"--target-memory 30GB: rtx4090 has 24.00 GiB"),
                (["--no-such-flag"], USAGE, r"plan: unknown flag --no-such-flag \(plan --help lists the flags\)"),
                (["--explian"], USAGE, r"did you mean '--explain'\?"),
                (["--targetmemory", "3GB"], USAGE, r"unknown flag --targetmemory.*--target-memory")):
            with self.subTest(arguments):
                done = self.run_program(plan(*MODEL, *arguments), expect=code)
                self.assertRegex(done.stderr, message)

    def test_help(self):
        self.assertIn("usage: plan --model MODEL", self.run_program(plan("--help")).stdout)


if __name__ == "__main__":
    unittest.main()
