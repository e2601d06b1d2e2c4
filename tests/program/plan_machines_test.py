"""`plan` for machines whose figures are changed on the command line, and what its plans do to their drives."""
import json
import math
import re
import unittest

from programs import BIN, ProgramTest, mlaunch, train

CONFIGURATION = 78
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
        self.assertIn("\n  rates are data sheet (computation), assumed (link, host memory, drives); plan reads no times that runs have measured\n",
                      self.plan(*JOB, "--hardware", "rtx4090").stdout)

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
        small = self.plan(*job, "--hardware", "rtx4090,memory=12GB,disk_bytes=6GB", expect=1).stdout
        told = re.search(r"nothing fits; the least that works is --target-memory (\d+)MB, with .*; "
                         r"with --target-memory (\d+)MB, its drives have 5\.59 GiB, ([\d.]+) MiB too little", small)
        self.assertLess(int(told[2]), 8000)
        self.assertGreater(int(told[1]), 8000)
        enough = 6_000_000_000 + math.ceil((float(told[3]) + 0.01) * 2**20)  # what is printed is rounded
        [large] = json.loads(self.plan(*job, "--json", "--hardware", f"rtx4090,memory=12GB,disk_bytes={math.ceil(enough / 1e6)}MB").stdout)
        self.assertGreater(large["disk_bytes"], 5.5e9)
        self.assertLessEqual(large["disk_bytes"], enough + 1e6)

    def test_the_least_that_works_does_not_grow_with_the_drive(self):
        least = []
        for gigabytes in (3, 4, 5, 6):
            machine = ["--hardware", f"rtx4090,memory=12GB,disk_bytes={gigabytes}GB"]
            refused = self.plan(*self.ONE_B, "--target-memory", "2GB", *machine, expect=1).stdout
            least.append(int(re.search(r"nothing fits; the least that works is --target-memory (\d+)MB", refused)[1]))
        self.assertEqual(least, sorted(least, reverse=True))
        [works] = json.loads(self.plan(*self.ONE_B, "--json", "--target-memory", f"{least[2]}MB",
                                       "--hardware", "rtx4090,memory=12GB,disk_bytes=5GB").stdout)
        self.assertLessEqual(works["disk_bytes"], 5e9)

    def test_time_and_cost_of_all_steps(self):
        out = self.plan(*JOB, "--steps", "3600000", "--hardware", "8xh100,hosts=2", "--price", "2").stdout
        [line] = [line for line in out.splitlines() if "3600000 steps" in line]
        seconds = float(re.search(r"is foreseen to take (\S+) s,", out)[1])
        self.assertRegex(line, r"^  3600000 steps \(\d+ tokens\) take .* and cost \d+\.\d\d$")
        self.assertAlmostEqual(float(line.split()[-1]) / (seconds * 1000 * 16 * 2), 1, delta=0.01)
        self.assertIn("  over several hosts train has run on CPUs alone so far", out)

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
