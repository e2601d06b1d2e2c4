"""Every pair of settings of where state lives and when it moves meets in some run. Bits must be those of the plain run, and the queues
and arenas of every rank must move and take the bytes that its Programs say."""
import functools
import itertools
import json
import os
import re
import subprocess
import unittest

from programs import LIMIT_S, ProgramTest, clean_environment, mlaunch

TARGETS = ["none", "cpu", "nvme"]
RECOMPUTE = {"nothing": [], "norms": ["--recompute-norms"], "layers": ["--activation-checkpointing"]}
ORDERS = {"one micro-step": [], "by micro-step": ["--accumulation", "2"],
          "by micro-step, sums away": ["--accumulation", "2", "--offload-gradients"],
          "by layer": ["--accumulation", "2", "--layer-major"]}
RECIPES = {"fp32": [], **{recipe: ["--dtype", "bf16", "--state-recipe", recipe] for recipe in
                          ("fp32-master", "packed-bf16-moments", "8bit", "bf16-sr")}}
SETTINGS = {"ranks": [1, 2, 4], "stage": [0, 1, 2, 3], "optimizer": TARGETS, "parameters": TARGETS,
            "activations": TARGETS, "recompute": [*RECOMPUTE], "order": [*ORDERS],
            "updates": ["step_end", "next_step"], "recipe": [*RECIPES], "device memory": ["plenty", "least"]}
QUEUES = ["disk_read", "disk_write", "upload", "download"]
STEPS = 3
HOST = 69
PAGE = os.sysconf("SC_PAGE_SIZE")
# Saved activations are 64 KiB and more, since smaller ones stay on the device.
JOB = ["--device", "cpu", "--config", "config.json", "--steps", STEPS, "--sequence-length", "128", "--micro-batch", "4",
       "--threads", "1", "--param-persistence-threshold", "0"]


def is_legal(case):
    """Applies the rules of docs/offload.md; only an offloaded optimizer may update at another time."""
    if case["parameters"] == "nvme" and case["ranks"] > 1 and case["stage"] in (1, 2):
        return False
    if case["optimizer"] == "none" and case["updates"] == "next_step":
        return False
    return {case["optimizer"], case["parameters"], case["activations"]} != {"none"}


def pairs(case):
    return itertools.combinations(case.items(), 2)


def covering_set(cases):
    """Chooses few cases that have every pair of values which occurs in any case; greedily, so always the same ones."""
    number = {}  # number of each pair
    covers = []  # a bit per pair, for each case
    for case in cases:
        bits = 0
        for pair in pairs(case):
            bits |= 1 << number.setdefault(pair, len(number))
        covers.append(bits)
    missing = (1 << len(number)) - 1
    chosen = []
    while missing:
        best = max(range(len(cases)), key=lambda i: (covers[i] & missing).bit_count())
        chosen.append(cases[best])
        missing &= ~covers[best]
    return chosen


@functools.cache
def chosen_cases():
    values = itertools.product(*SETTINGS.values())
    return covering_set([case for case in (dict(zip(SETTINGS, v)) for v in values) if is_legal(case)])


def said_bytes(rank):
    """Computes from a rank's Programs the bytes that each queue moves in the whole run; no step is skipped."""
    late = any(program["name"] == "drain" for program in rank["programs"])
    said = dict.fromkeys(QUEUES, 0)
    for program in rank["programs"]:
        # Late updates do nothing in the first step.
        idle = 1 if late and program["name"] in ("train.only", "train.first") else 0
        for queue in QUEUES:
            said[queue] += program["runs"] * program["bytes"][queue]
            said[queue] += (program["runs"] - idle) * program["conditional_bytes"][queue]
    return said


class OffloadPairs(ProgramTest):
    def setUp(self):
        super().setUp()
        (self.home / "swap").mkdir()
        # Small tiles make several of them per unit.
        self.write("config.json", json.dumps({"strata": {"tile_elements": 4096}}))
        self.plain_runs = {}

    def result(self, ranks, *arguments):
        """Runs a job; returns its bits (digests of the state, losses and norms), its steps, and what ranks moved, or None if nothing moves."""
        self.run_program(mlaunch(ranks, *JOB, *arguments, "--dump-state", "state", "--metrics", "metrics"))
        steps = self.metrics("metrics")
        transfers = steps.pop() if "ranks" in steps[-1] else None
        self.assertEqual(len(steps), STEPS)
        self.assertEqual([m["skipped_steps"] for m in steps], [0] * STEPS)
        bits = self.read("state"), [(m["loss"], m["grad_norm"]) for m in steps]
        (self.home / "state").unlink()
        return bits, steps, transfers

    def plain(self, case):
        """Returns the bits of the plain run. Stages 2 and 3 add up several micro-steps in another order, except layer by layer."""
        several = case["order"] != "one micro-step"
        each = case["order"].startswith("by micro-step") and case["stage"] >= 2
        key = case["ranks"], case["recipe"], several, each
        if key not in self.plain_runs:
            bits, _, transfers = self.result(case["ranks"], *RECIPES[case["recipe"]], "--zero", 2 if each else 0,
                                             "--accumulation", 2 if several else 1)
            self.assertIsNone(transfers)
            self.assertIn("parameter", bits[0])
            self.assertNotEqual(bits[1][0], bits[1][-1], "nothing was learned")
            self.plain_runs[key] = bits
        return self.plain_runs[key]

    def least_device_memory(self, ranks, *arguments):
        """Finds the least bytes through refusals of runs that get too little; schedules use measured rates, so it varies a little."""
        allowed = 1
        for _ in range(6):
            done = subprocess.run(mlaunch(ranks, *JOB, *arguments, "--steps", "1", "--device-memory", allowed),
                                  cwd=self.home, env=clean_environment(), timeout=LIMIT_S, capture_output=True, text=True)
            if done.returncode == 0:
                return ["--device-memory", allowed]
            self.assertEqual(done.returncode, HOST, done.stderr)
            refusal = re.search(r"tier device: its budget is (-?\d+) bytes, and this Plan needs at least (\d+)", done.stderr)
            self.assertTrue(refusal, done.stderr)
            kept = allowed - int(refusal[1])
            allowed = kept + int(refusal[2]) * 105 // 100
        self.fail(f"{allowed} bytes are refused, too")

    def check_moves(self, case, steps, transfers):
        self.assertEqual(transfers["steps"], STEPS)
        self.assertEqual(len(transfers["ranks"]), case["ranks"])
        for rank in transfers["ranks"]:
            moved = rank["moved_bytes"]
            self.assertEqual(moved, said_bytes(rank))
            tight = case["device memory"] == "least"
            # Activations that may leave always do; one whose copy survives until its use needs no way back.
            leave = {case["optimizer"], case["parameters"], case["activations"] if tight else "none"}
            if "nvme" in leave:
                self.assertGreater(moved["disk_write"], 0)
            if "nvme" in (case["optimizer"], case["parameters"]):
                self.assertGreater(moved["disk_read"], 0)
            if case["parameters"] != "none" or (tight and case["activations"] != "none"):
                self.assertGreater(moved["download"], 0)
            if case["parameters"] != "none":
                self.assertGreater(moved["upload"], 0)
            # Arenas are mapped in whole pages, before the first step.
            for tier, arena in rank["arenas"].items():
                self.assertEqual(arena["used_bytes"], -(-arena["planned_bytes"] // PAGE) * PAGE, tier)
            self.assertGreaterEqual(rank["arenas"].keys(), {"device", "pinned"})
            if case["optimizer"] == "cpu":
                self.assertIn("pageable", rank["arenas"])
            self.assertEqual("disk" in rank["arenas"], moved["disk_write"] > 0)
        # Each step's line reports for rank 0 what that step's Programs say.
        first = transfers["ranks"][0]
        for queue in QUEUES:
            self.assertEqual(sum(step["moved_bytes"][queue] for step in steps),
                             sum(program["runs"] * (program["bytes"][queue] + program["conditional_bytes"][queue])
                                 for program in first["programs"]), queue)

    def test_each_pair_of_settings(self):
        for case in chosen_cases():
            with self.subTest(**case):
                job = [case["ranks"], *RECIPES[case["recipe"]], *RECOMPUTE[case["recompute"]], *ORDERS[case["order"]],
                       "--zero", case["stage"], "--offload-optimizer", case["optimizer"],
                       "--offload-param", case["parameters"], "--offload-activations", case["activations"],
                       "--update-time", case["updates"], "--nvme-path", "swap"]
                if case["device memory"] == "least":
                    job += self.least_device_memory(*job)
                bits, steps, transfers = self.result(*job)
                self.check_moves(case, steps, transfers)
                self.assertEqual(bits[1], self.plain(case)[1])
                self.assertEqual(bits[0], self.plain(case)[0])
        self.assertEqual(list((self.home / "swap").iterdir()), [])

    def test_all_pairs_are_covered_by_few_runs(self):
        """Shows that the test above covers the pairs that it claims."""
        met = {pair for case in chosen_cases() for pair in pairs(case)}
        self.assertGreater(len(met), 300)
        self.assertLessEqual(len(chosen_cases()), 26)
        for (name, values), (other, other_values) in itertools.combinations(SETTINGS.items(), 2):
            for value, other_value in itertools.product(values, other_values):
                possible = (name, other, value, other_value) != ("optimizer", "updates", "none", "next_step")
                self.assertEqual(((name, value), (other, other_value)) in met, possible)


if __name__ == "__main__":
    unittest.main()
