"""`plan` for machines whose figures are changed on the command line, and what its plans do to their drives."""
import json
import math
import re
import unittest

from programs import BIN, ProgramTest, mlaunch, train

USAGE, WRITING, CONFIGURATION = 2, 74, 78
JOB = ["--model", "gpt2-tiny", "--sequence-length", "32", "--micro-batch", "1", "--zero", "3"]
# Little host memory, so that no record stays there.
TO_DRIVE = [*JOB, "--offload-optimizer", "nvme", "--nvme-path", ".", "--host-memory", "1800KB"]


class PlanMachines(ProgramTest):
    def plan(self, *arguments, expect=0):
        return self.run_program([str(BIN / "plan"), *arguments], expect=expect)

    def test_figures_are_changed(self):
        both = json.loads(self.plan(*TO_DRIVE, "--json", "--hardware", "a100-80,link=1MB/s,disk=1GB/s,a100-80").stdout)
        self.assertEqual([one["machine"] for one in both], ["a100-80,link=1MB/s,disk=1GB/s", "a100-80"])
        self.assertGreater(both[0]["seconds_per_step"], 2 * both[1]["seconds_per_step"])
        printed = self.run_program(train(*JOB, "--steps", "0", "--print-plan", "--hardware", "rtx4090,link=12GB/s,disk=none")).stdout
        self.assertIn("a workstation with one NVIDIA GeForce RTX 4090 with link=12GB/s, disk=none, planned for from rtx4090", printed)

    def test_shares_of_rates_are_changed(self):
        slow, fast = json.loads(self.plan(*TO_DRIVE, "--json", "--hardware", "a100-80,copies=0.0001,a100-80").stdout)
        self.assertGreater(slow["seconds_per_step"], 2 * fast["seconds_per_step"])

    def test_rates_say_where_they_come_from(self):
        self.assertIn("\n  rates are data sheet (computation), assumed (link 25 GB/s, host memory, drives 7 GB/s); plan reads no times that runs have measured\n",
                      self.plan(*JOB, "--hardware", "rtx4090").stdout)
        self.assertIn("\n  rates are data sheet (computation), given (link 12 GB/s), assumed (host memory); plan reads",
                      self.plan(*JOB, "--hardware", "rtx4090,link=12GB/s,disk=none").stdout)

    def test_bits_are_an_eighth_of_bytes(self):
        machines = "16x8xh100,network=400Gb/s,16x8xh100,network=50GB/s"
        bits, as_bytes = json.loads(self.plan(*JOB, "--json", "--hardware", machines).stdout)
        self.assertEqual(bits["seconds_per_step"], as_bytes["seconds_per_step"])
        self.assertRegex(self.plan(*JOB, "--hardware", "16x8xh100,network=400Gbps").stdout, r"(?m)^  rates are .*network 50 GB/s")
        self.assertIn("network=400gb/s: found '400gb/s', which has two readings; write 400Gbit/s for bits or 400GB/s for bytes",
                      self.plan(*JOB, "--hardware", "16x8xh100,network=400gb/s", expect=CONFIGURATION).stderr)

    def test_more_ranks_than_can_add_gradients_together_are_refused(self):
        said = "65 ranks in one level add gradients together, and at most 64 can: start fewer on a host"
        self.assertIn(said, self.plan(*JOB, "--device", "cpu", "--world", "65", expect=CONFIGURATION).stderr)
        self.assertIn(said, self.run_program(train(*JOB, "--device", "cpu", "--steps", "0", "--print-plan", "--world-size", "65"), expect=CONFIGURATION).stderr)
        self.write("ds.json", '{"train_micro_batch_size_per_gpu": 1}')
        check = train("--check-config", "ds.json", "--device", "cpu", "--world-size")
        self.assertIn("warning: --world-size 65, if all of them are of one host: " + said, self.run_program([*check, "65"]).stderr)
        self.assertNotIn("warning", self.run_program([*check, "64"]).stderr)
        self.assertIn("for rtx4090,devices=65: " + said,
                      self.plan(*JOB, "--hardware", "rtx4090,devices=65,rtx4090", "--world", "65", expect=CONFIGURATION).stderr)

    def test_hosts_have_a_network_and_as_many_ranks_each(self):
        self.assertIn("2 hosts need a network between them; add network=25GB/s",
                      self.plan(*JOB, "--hardware", "rtx4090", "--hosts", "2", expect=CONFIGURATION).stderr)
        self.assertIn("2 hosts need a network between them",
                      self.plan(*JOB, "--hardware", "rtx4090", "--hosts", "2", "--world", "8", expect=CONFIGURATION).stderr)
        job = [*JOB, "--hardware", "8xh100,network=1MB/s", "--world", "8"]
        [one], [two] = (json.loads(self.plan(*job, "--json", *hosts).stdout) for hosts in ([], ["--hosts", "2"]))
        self.assertEqual([(found["ranks"], found["hosts"]) for found in (one, two)], [(8, 1), (8, 2)])
        self.assertGreater(two["seconds_per_step"], 10 * one["seconds_per_step"])
        slow = self.plan(*job, "--hosts", "2").stdout
        self.assertRegex(slow, r"bound by network \((100|9\d) % of the step\)")
        self.assertRegex(slow, r"(?m)^8xh100,network=1MB/s +8 +2 ")
        for hosts, said in (("3", "--world 8 --hosts 3: the ranks do not spread evenly over the hosts; give --world 6 or 9"),
                            ("16", "the ranks do not spread evenly over the hosts; give --world 16")):
            self.assertIn(said, self.plan(*job, "--hosts", hosts, expect=2).stderr)
        self.assertIn("--world 8 --hosts 2: that is 4 ranks on a host, and a host of rtx4090,network=1GB/s has 1 device; give more --hosts, or "
                      "--hardware rtx4090,network=1GB/s,devices=4",
                      self.plan(*JOB, "--hardware", "rtx4090,network=1GB/s", "--world", "8", "--hosts", "2", expect=2).stderr)

    def test_links_between_ranks_can_bind_a_step(self):
        [one] = json.loads(self.plan(*JOB, "--json", "--hardware", "rtx4090,devices=2,peer=10MB/s").stdout)
        self.assertEqual(one["bound_by"], "links between ranks")
        self.assertGreater(one["bound_part"], 0.9)

    def test_a_table_names_what_is_faster_than_settings_that_fit(self):
        job = ["--model", "llama-3.2-1b", "--bf16", "--sequence-length", "1024", "--micro-batch", "4", "--hardware", "h100,8xh100"]
        table = self.plan(*job).stdout
        self.assertRegex(table, r"(?m)^machine .* faster with\nh100 .* -\n8xh100 .* --zero 3: \d\d % less time$")
        [_, eight] = json.loads(self.plan(*job, "--json").stdout)
        self.assertEqual(eight["faster_flags"], "--zero 3")
        [chosen] = json.loads(self.plan(*job[:-1], "8xh100", "--json", "--zero", "3").stdout)
        self.assertAlmostEqual(chosen["seconds_per_step"] / eight["faster_seconds_per_step"], 1, delta=0.02)

    def test_a_step_without_a_limit_is_named_with_its_settings(self):
        self.write("ds.json", '{"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4, "bf16": {"enabled": true}, "zero_optimization": '
                              '{"stage": 3, "offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "cpu"}}}')
        job = ["--model", "llama-3.2-1b", "--sequence-length", "1024", "--hardware", "8xa100", "--target-memory", "8GB", "--config", "ds.json"]
        said = self.plan(*job).stdout
        self.assertIn("the settings fit as they are", said)
        self.assertRegex(said, r"\n  with memory without limit a step would take \S+ s with --layer-major and need \S+ GiB of the device.*; within the "
                               r"target it takes [\d.]+ times as long")

    def test_a_learning_rate_that_is_left_open_stops_no_plan(self):
        self.write("ds.json", '{"train_micro_batch_size_per_gpu": 1, "optimizer": {"type": "AdamW", "params": {"lr": "auto"}}}')
        job = ["--model", "gpt2-tiny", "--sequence-length", "32"]
        done = self.plan(*job, "--hardware", "h100", "--config", "ds.json", "--write-config", "out.json")
        self.assertIn('note: ds.json:1: optimizer.params.lr: found "auto", on which no plan depends; train needs --learning-rate X', done.stderr)
        for file in ("ds.json", "out.json"):
            error = self.run_program(train(*job, "--config", file), expect=CONFIGURATION).stderr
            self.assertIn('optimizer.params.lr: "auto" needs --learning-rate X', error)

    def test_files_that_cannot_be_written_stop_before_planning(self):
        for flag in ("--write-plan", "--write-config"):
            done = self.plan(*JOB, "--hardware", "h100", flag, "none/file.json", expect=WRITING)
            self.assertEqual(done.stdout, "", "nothing was planned")
            self.assertIn(f"none: cannot create the file of {flag} in this directory: No such file or directory", done.stderr)
        done = self.run_program(train(*JOB, "--steps", "0", "--print-plan", "--write-plan", "none/file.json"), expect=WRITING)
        self.assertEqual(done.stdout, "")

    def test_one_name_for_two_files_is_refused(self):
        done = self.plan(*JOB, "--hardware", "h100", "--write-plan", "file.json", "--write-config", "./file.json", expect=2)
        self.assertIn("--write-plan file.json is the file of --write-config ./file.json, which would be overwritten; name another", done.stderr)

    def test_the_model_of_a_plan_without_one_is_named(self):
        self.assertIn("note: no --model is given; this is a plan of gpt2-tiny", self.plan("--hardware", "h100").stderr)

    def test_what_is_for_a_run_that_saves_nothing_is_named(self):
        rest = " for a run that saves nothing; to train with --output DIR, give plan --output DIR, too: saving takes memory"
        for targets, refused, said in (("12GB", False, "this plan is"), ("12GB,8GB", False, "these plans are"),
                                       ("3MB,12GB", True, "this plan is"), ("3MB", True, "the least target that is named is"),
                                       ("3MB,4MB", True, "the least targets that are named are"), ("100GB,200GB", True, "")):
            for form in ([], ["--json"]):
                error = self.plan(*JOB, "--hardware", "rtx4090", "--target-memory", targets, *form, expect=int(refused)).stderr
                self.assertEqual("saves nothing" in error, bool(said), targets)
                self.assertIn("note: " + said + rest if said else "", error)
        self.assertNotIn("saves nothing", self.plan(*JOB, "--hardware", "rtx4090", "--output", "out").stderr)

    def test_a_written_plan_says_how_it_is_used(self):
        done = self.plan(*JOB, "--hardware", "two-cores", "--write-plan", "plan.json")
        self.assertIn("note: plan.json: for 1 rank of this model; give train, too: --model gpt2-tiny --sequence-length 32 --micro-batch 1 --accumulation 1 --dtype fp32\n", done.stderr)
        self.run_program(train("--model", "gpt2-tiny", "--steps", "1", "--threads", "1", "--plan", "plan.json", "--sequence-length", "32", "--micro-batch", "1",
                               "--accumulation", "1", "--dtype", "fp32"))
        error = self.plan(*JOB, "--config", "plan.json", expect=CONFIGURATION).stderr
        self.assertEqual(error.strip(), "plan: plan.json: this is a Plan; give it as --plan, not as --config")

    def test_epochs_are_no_length_of_a_plan(self):
        said = self.plan(*JOB, "--hardware", "h100", "--epochs", "3").stdout
        self.assertIn("  3 epochs take as many steps as the data have samples for, and plan reads no data: give --steps N for the time of the run\n", said)

    def test_the_type_and_the_settings_are_said(self):
        self.write("ds.json", '{"bf16": {"enabled": "auto"}, "train_micro_batch_size_per_gpu": 1}')
        job = ["--model", "gpt2-tiny", "--sequence-length", "32", "--hardware", "h100", "--config", "ds.json"]
        done = self.plan(*job, "--print-config")
        self.assertIn('note: ds.json:1: bf16.enabled: found "auto", taken as fp32; give --dtype bf16, fp16 or fp32', done.stderr)
        self.assertRegex(done.stdout, r"a step of 1 sample of 32 tokens in fp32 \(")
        self.assertRegex(done.stdout, r"(?m)^sequence_length +32 +command line")
        in_bf16 = self.plan(*job, "--bf16")
        self.assertNotIn("bf16.enabled", in_bf16.stderr)
        self.assertIn(" tokens in bf16 (", in_bf16.stdout)

    def test_words_that_contradict_one_another(self):
        job = [*JOB, "--hardware", "rtx4090"]
        for words, said in ((["--world", "1", "--world-size", "2"], "--world 1 and --world-size 2: two values for one setting; leave out one"),
                            (["--target-memory", "24GB", "--target-memory", "12GB"], "--target-memory 24GB and --target-memory 12GB: two values"),
                            (["--target-memory", "24,000MB"], "found '24,000MB', where a comma separates targets, and one of them has no unit"),
                            (["--target-memory", "24G"], "found '24G', which has two readings; write 24GB (powers of 1000) or 24GiB (of 1024)"),
                            (["--world", "8"], "8 ranks: the machine of --hardware has 1 device; --hardware rtx4090,devices=8 has more on a host, and rtx4090,hosts=N,network=RATE")):
            self.assertIn(said, self.plan(*job, *words, expect=2).stderr)
        self.plan(*job, "--world", "1", "--world-size", "1")
        self.assertIn("target memory 24GB", self.plan(*job, "--target-memory", "24 gb").stdout)
        batch = self.plan("--model", "gpt2-tiny", "--global-batch-size", "2", "--hardware", "rtx4090,8xh100", expect=CONFIGURATION).stderr
        self.assertIn("for 8xh100: --global-batch 2 is not divisible by 8 ranks; nearest: 8 (micro batch 1)", batch)

    def test_wrong_figures_are_refused(self):
        self.assertIn("hardware 'rtx4090,link=12GB': link=12GB: found '12GB', expected a rate such as 12GB/s",
                      self.plan(*JOB, "--hardware", "rtx4090,link=12GB", expect=CONFIGURATION).stderr)
        self.assertIn("'disk=none' changes a machine; name the machine before it",
                      self.plan(*JOB, "--hardware", "disk=none,cores=2", expect=CONFIGURATION).stderr)

    def test_drives_wear(self):
        [one] = json.loads(self.plan(*TO_DRIVE, "--json", "--hardware", "rtx4090").stdout)
        written, seconds = one["disk_written_bytes_per_step"], one["seconds_per_step"]
        self.assertGreater(written, 1e5)
        self.assertAlmostEqual(one["days_until_disk_is_written_up"], 1.2e15 / written * seconds / 86400, places=6)
        self.assertRegex(self.plan(*TO_DRIVE, "--hardware", "rtx4090").stdout,
                         r"(?m)^  it writes \d.* per step to the drives of a host, which may take 1200 TB \(assumed\): worn out after [\d.e+]+ days$")
        self.assertRegex(self.plan(*TO_DRIVE, "--hardware", "rtx4090,disk=none").stdout, r"(?m)^  it writes \d.* per step to the drives of a host$")
        soon = self.plan(*TO_DRIVE, "--hardware", "rtx4090,tbw=1TB").stdout
        self.assertRegex(soon, r"\Artx4090,tbw=1TB: the drives of a host are worn out after [\d.e-]+ days of such steps\ntarget memory ")
        self.assertRegex(self.plan(*TO_DRIVE, "--hardware", "rtx4090,tbw=1000000TB").stdout, r"\Artx4090,tbw=1000000TB: target memory ")
        [none] = json.loads(self.plan(*JOB, "--json", "--hardware", "rtx4090").stdout)
        self.assertEqual(none["disk_written_bytes_per_step"], 0)
        self.assertNotIn("days_until_disk_is_written_up", none)

    def test_eight_ranks_write_to_the_drives_of_their_host(self):
        [one] = json.loads(self.plan(*TO_DRIVE, "--json", "--hardware", "8xh100", "--world", "1").stdout)
        [all_of_them] = json.loads(self.plan(*TO_DRIVE, "--json", "--hardware", "8xh100", "--host-memory", "2MB").stdout)
        self.assertAlmostEqual(all_of_them["disk_written_bytes_per_step"] / one["disk_written_bytes_per_step"], 1, delta=0.2)

    ONE_B = ["--model", "llama-3.2-1b", "--dtype", "bf16", "--sequence-length", "512"]

    def test_a_refusal_says_how_much_of_the_drive_is_missing(self):
        job = [*self.ONE_B, "--target-memory", "8GB"]
        small = self.plan(*job, "--hardware", "rtx4090,memory=12GB,disk_bytes=3GB", expect=1).stdout
        told = re.search(r"nothing fits; the least that works is --target-memory ([\d.]+)MB, with .*; "
                         r"with --target-memory ([\d.]+)MB, its drives have 2\.79 GiB, ([\d.]+) GiB too little", small)
        self.assertLess(float(told[2]), 8000)
        self.assertGreater(float(told[1]), 8000)
        enough = 3_000_000_000 + math.ceil((float(told[3]) + 0.01) * 2**30)  # what is printed is rounded
        [large] = json.loads(self.plan(*job, "--json", "--hardware", f"rtx4090,memory=12GB,disk_bytes={math.ceil(enough / 1e6)}MB").stdout)
        self.assertGreater(large["disk_bytes"], 3e9)
        self.assertLessEqual(large["disk_bytes"], enough + 1e6)

    def test_the_least_that_works_does_not_grow_with_the_drive(self):
        least = []
        for gigabytes in (3, 4, 5, 6):
            machine = ["--hardware", f"rtx4090,memory=12GB,disk_bytes={gigabytes}GB"]
            refused = self.plan(*self.ONE_B, "--target-memory", "2GB", *machine, expect=1).stdout
            least.append(float(re.search(r"nothing fits; the least that works is --target-memory ([\d.]+)MB", refused)[1]))
        self.assertEqual(least, sorted(least, reverse=True))
        [works] = json.loads(self.plan(*self.ONE_B, "--json", "--target-memory", f"{least[2]}MB",
                                       "--hardware", "rtx4090,memory=12GB,disk_bytes=5GB").stdout)
        self.assertLessEqual(works["disk_bytes"], 5e9)

    def test_the_least_that_works_does_not_depend_on_what_was_asked(self):
        job = ["--model", "qwen2.5-0.5b", "--bf16", "--sequence-length", "1024", "--micro-batch", "4", "--accumulation", "2",
               "--hardware", "rtx4090,memory=6GB", "--target-memory"]
        least = lambda target: float(re.search(r"nothing fits; the least that works is --target-memory ([\d.]+)MB", self.plan(*job, target, expect=1).stdout)[1])
        told = least("1200MB")
        self.assertEqual(least(f"{told - 5}MB"), told)
        self.plan(*job, f"{told}MB")

    def test_time_and_cost_of_all_steps(self):
        out = self.plan(*JOB, "--steps", "3600000", "--hardware", "8xh100,hosts=2", "--price", "2").stdout
        [line] = [line for line in out.splitlines() if "3600000 steps" in line]
        seconds = float(re.search(r"is foreseen to take (\S+) s,", out)[1])
        self.assertRegex(line, r"^  3600000 steps \(\d+ tokens\) take .* and cost \d+\.\d\d$")
        self.assertAlmostEqual(float(line.split()[-1]) / (seconds * 1000 * 16 * 2), 1, delta=0.01)
        self.assertIn("  over several hosts train has run on CPUs alone so far", out)
        asked = [*JOB, "--hardware", "8xh100,hosts=2"]
        [found] = json.loads(self.plan(*asked, "--steps", "3600000", "--price", "2", "--json").stdout)
        self.assertEqual(found["run_steps"], 3600000)
        self.assertEqual(found["run_tokens"], 3600000 * found["tokens_per_step"])
        self.assertEqual(found["run_seconds"], 3600000 * found["seconds_per_step"])
        self.assertAlmostEqual(found["run_cost"], float(line.split()[-1]), delta=0.01)
        for rest, missing in ((["--steps", "10"], {"run_cost"}), (["--price", "2"], {"run_steps", "run_tokens", "run_seconds", "run_cost"})):
            [found] = json.loads(self.plan(*asked, *rest, "--json").stdout)
            self.assertEqual({"run_steps", "run_tokens", "run_seconds", "run_cost"} - set(found), missing)

    def test_a_plan_that_is_given_counts_what_comes_between_steps(self):
        job = [*JOB, "--hardware", "rtx4090", "--steps", "1000", "--output", "out"]
        job += ["--save-every", "100", "--eval-every", "100", "--eval-samples", "4096"]
        self.plan(*job, "--write-plan", "p.json")
        [found] = json.loads(self.plan(*job, "--plan", "p.json", "--json").stdout)
        self.assertGreater(found["run_seconds"], 1000 * found["seconds_per_step"])

    def test_what_each_machine_cannot_do_is_noted(self):
        done = self.plan(*JOB, "--hardware", "rtx4090,h100,disk=none,a100-80,disk=none", "--nvme-path", ".")
        self.assertEqual(re.findall(r"note: --nvme-path: accepted, unused: (\S+) of --hardware has no drive\n", done.stderr), ["h100", "a100-80"])

    def test_flags_of_plan_are_read_strictly(self):
        for price in ("nan", "inf", "-1"):
            self.assertIn(f"--price: found '{price}'", self.plan(*JOB, "--price", price, expect=USAGE).stderr)
        for switch in ("--json=false", "--explain=no", "--help=0"):
            self.assertIn(f"{switch}: {switch.split('=')[0]} takes no value", self.plan(*JOB, switch, expect=USAGE).stderr)

    def test_autotuning_is_planning(self):
        self.write("ds.json", '{"train_batch_size": 4, "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto", '
                              '"autotuning": {"enabled": true, "fast": true}}')
        job = ["--model", "gpt2-tiny", "--sequence-length", "32", "--threads", "1", "--deepspeed", "ds.json"]
        done = self.run_program(train(*job, "--steps", "1"))
        self.assertIn("note: ds.json:1: autotuning.enabled: what is not given is chosen by computing", done.stdout + done.stderr)
        self.assertIn("target memory", done.stdout)
        tuned = self.run_program(mlaunch(2, *job, options=["--autotuning", "tune"]))
        self.assertIn("nothing is trained", tuned.stderr)
        self.assertRegex(tuned.stdout, r"(?m)^here +2 ")
        ran = self.run_program(mlaunch(2, "--model", "gpt2-tiny", "--sequence-length", "32", "--threads", "1", "--steps", "1",
                                       options=["--autotuning", "run"]))
        self.assertIn("train gets --target-memory auto", ran.stderr)
        self.write("open.json", '{"train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto", '
                                '"autotuning": {"enabled": true}}')
        open_batch = self.run_program(train(*job[:-1], "open.json", "--steps", "1"))
        self.assertIn('found "auto" and no batch size: a step has 4 samples per rank', open_batch.stdout)
        self.assertIn("target memory", ran.stdout)


if __name__ == "__main__":
    unittest.main()
