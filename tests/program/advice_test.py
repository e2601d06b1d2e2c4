"""Advice on short memory, taken literally, is accepted, and the next run needs what the advice says."""
import json
import pathlib
import re
import unittest

from programs import ProgramTest, train

CONFIGURATION, HOST = 78, 69
HARDWARE = pathlib.Path(__file__).parents[2] / "configs/hardware/rtx4090.json"
PLAN = ["--steps", "0", "--print-plan"]
FLAGS = r"(?:--[a-z0-9-]+(?: [\w./]+)? ?)+"

# Jobs that do not fit, and a pattern for the flags that are advised.
FITTING = [
    ("--model gpt2-124m --device cpu --host-memory 2GB", "--activation-checkpointing --offload-optimizer nvme --nvme-path DIR"),
    ("--model gpt2-124m --device cpu --host-memory 1GB", ".*--offload-param nvme.*"),
    ("--model gpt2-124m --device cpu --world-size 2 --bf16 --host-memory 3GB", ".*"),
    ("--model gpt2-124m --device cpu --world-size 4 --zero 3 --host-memory 6GB", "--activation-checkpointing"),
    ("--model gpt2-tiny --device cpu --host-memory 5MB", "--micro-batch 1 --accumulation 4"),
    ("--model gpt2-bytes-10m --device cpu --host-memory 150MB", ".*--offload-optimizer nvme.*"),
    ("--model gpt2-bytes-10m --device cpu --host-memory 260MB --output o --save-every 10", ".*"),
    ("--model gpt2-bytes-10m --device cpu --host-memory 250MB --accumulation 2 --offload-optimizer nvme --nvme-path .", ".*"),
    ("--model qwen2.5-0.5b --bf16 --device-memory 3GB --host-memory 16GB", ".*--offload-optimizer cpu"),
    ("--model gpt2-124m --bf16 --device-memory 2GB --accumulation 2 --micro-batch 8 --output o --save-every 10",
     "--activation-checkpointing --offload-optimizer cpu"),
    ("--model llama-2-7b --bf16 --hardware small.json", ".*--offload-optimizer nvme.*"),
    ("--model gpt2-124m --bf16 --micro-batch 1 --device-memory 1500MB --hardware tiny.json", ".*--host-memory 381MiB --nvme-path DIR"),
    ("--model llama-2-7b --bf16 --device-memory 24GB --host-memory 64GB",
     "--activation-checkpointing --offload-optimizer nvme --nvme-path DIR"),
]
NOT_FITTING = ["--model gpt2-124m --device cpu --host-memory 500MB",
               "--model gpt2-bytes-10m --device cpu --world-size 2 --host-memory 100MB",
               "--model llama-2-7b --bf16 --device cpu --world-size 8 --host-memory 20GB"]


def changed(job, flags):
    """Returns `job` with these flags, each in place of an earlier one of the same name."""
    pairs = re.findall(r"(--[a-z0-9-]+)(?: (?!--)(\S+))?", " ".join([*job, flags]))
    return [word for pair in dict(pairs).items() for word in pair if word]


class Advice(ProgramTest):
    def refusal(self, job):
        done = self.run_program(train(*PLAN, *job), expect=HOST)
        self.assertNotIn("this plan fits", done.stdout)
        return done.stderr

    def hardware(self, file, **memory):
        """Writes the hardware file of a machine that has this much host memory."""
        machine = json.loads(HARDWARE.read_text())
        self.write(file, json.dumps(machine | {"memory": machine["memory"] | {name: [size, "assumed"] for name, size in memory.items()}}))

    def test_what_is_advised_fits_and_needs_what_is_said(self):
        self.hardware("small.json", bytes=40_000_000_000)
        self.hardware("tiny.json", allowed_bytes=400_000_000)
        for scenario, flags in FITTING:
            with self.subTest(scenario):
                job = scenario.split()
                error = self.refusal(job)
                advice = re.search(rf"({FLAGS})is the cheapest change that fits: it needs about (.*?)( \(device: .*)?\n", error)
                self.assertTrue(advice, error)
                self.assertRegex(advice[1].strip(), f"^{flags}$")
                out = self.run_program(train(*PLAN, *changed(job, advice[1].replace("DIR", ".")))).stdout
                self.assertIn(f"this plan fits: it needs {advice[2]}\n", out)

    def test_the_least_that_is_named_is_what_that_needs(self):
        for scenario in NOT_FITTING:
            with self.subTest(scenario):
                job = scenario.split()
                least = re.search(rf"even ({FLAGS})needs at least ([\d.]+ \w+)", self.refusal(job))
                error = self.refusal(changed(job, least[1].replace("DIR", ".")))
                self.assertIn(f"this plan needs {least[2]}", error)
                self.assertIn("needs less", error)

    def test_memory_below_a_unit_is_no_limit(self):
        self.hardware("none.json", allowed_bytes=1_000_000)
        error = self.refusal(["--model", "gpt2-bytes-10m", "--device-memory", "20MB", "--hardware", "none.json"])
        self.assertNotRegex(error, r"--host-memory [-\d]")

    def test_a_device_that_nobody_looked_at_is_named(self):
        error = self.refusal(["--device-memory", "6MB", "--model", "gpt2-bytes-10m"])
        self.assertIn("(device: a GPU of 5.72 MiB, planned for without looking at one; --hardware NAME, or FILE of doctor --write-hardware, says more)", error)


class PlanFiles(ProgramTest):
    JOB = ["--model", "gpt2-bytes-10m", "--device", "cpu", "--sequence-length", "16", "--micro-batch", "2",
           "--offload-optimizer", "cpu", *PLAN]

    def test_a_plan_that_allows_too_little_is_named_and_its_field(self):
        text = self.run_program(train(*self.JOB)).stdout
        printed = json.loads(text[text.index("{\n"):text.rindex("\n}\n") + 2])
        for field in ("device", "pinned", "pageable"):  # nothing is needed of the disk
            with self.subTest(field=field):
                self.refuse_plan(printed | {"budget_bytes": printed["budget_bytes"] | {field: 100}},
                                 rf"plan.json: budget_bytes.{field}: the Plan has 100 bytes, and needs at least \d{{4,}}; raise it$")
        self.refuse_plan(printed | {"host_bytes": 0}, r"plan.json: host_bytes: the Plan has 0 bytes, and needs at least \d{4,}; raise it$")

    def refuse_plan(self, plan, pattern):
        self.write("plan.json", json.dumps(plan))
        error = self.run_program(train(*self.JOB, "--plan", "plan.json"), expect=HOST).stderr
        self.assertRegex(error.strip(), pattern)

    def test_a_plan_for_a_gpu_says_how_to_print_one_for_a_cpu(self):
        text = self.run_program(train(*self.JOB, "--device", "cuda")).stdout
        self.write("gpu.plan", text)
        error = self.run_program(train(*self.JOB, "--plan", "gpu.plan"), expect=CONFIGURATION).stderr
        self.assertIn("print a Plan for it with --print-plan --steps 0 --device cpu", error)


if __name__ == "__main__":
    unittest.main()
