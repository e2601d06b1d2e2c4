"""A Plan printed by one run is run by another, and runs are planned for machines that nobody has."""
import json
import pathlib
import re
import unittest

from programs import BIN, QUICK, ProgramTest, mlaunch, train

USAGE, CONFIGURATION, HOST = 2, 78, 69
JOB = [*QUICK, "--model", "llama-tiny", "--dtype", "bf16"]


class PlanFiles(ProgramTest):
    def printed(self, ranks, *arguments):
        """Runs the planner alone and writes all that it prints to the file `plan`; returns the Plan."""
        out = self.run_program(mlaunch(ranks, *JOB, "--steps", "0", "--print-plan", *arguments, options=["--no-prefix"])).stdout
        (self.home / "plan").write_text(out)
        return json.loads(re.search(r"(?ms)^\{$.*?^\}$", out)[0])

    def state(self, ranks, *arguments):
        self.run_program(mlaunch(ranks, *JOB, "--dump-state", "state", *arguments))
        text = self.read("state")
        (self.home / "state").unlink()
        return text

    def test_what_is_printed_is_what_runs(self):
        asked = ["--zero", "3", "--param-persistence-threshold", "0", "--offload-optimizer", "nvme", "--nvme-path", ".", "--activation-checkpointing"]
        plan = self.printed(2, *asked)
        self.assertEqual((plan["mesh"]["data"], plan["backend"], plan["shape"]), (2, "cpu", {"dtype": "bf16", "batch": 1, "sequence": 16}))
        self.assertTrue(plan["units"][-1]["shard"]["parameter"])
        expected = self.state(2, *asked)
        self.assertEqual(self.state(2, "--nvme-path", ".", "--plan", "plan"), expected, "the drive alone is asked for")
        noted = self.run_program(mlaunch(2, *JOB, *asked, "--plan", "plan"))
        self.assertIn("--plan plan decides, whatever is said by --zero, --param-persistence-threshold, --offload-optimizer, --activation-checkpointing", noted.stdout + noted.stderr)
        # The Plan decides, not the flags given beside it.
        shown = self.run_program(mlaunch(2, *JOB, "--plan", "plan", "--print-plan", "--zero", "0", "--offload-optimizer", "nvme",
                                         "--nvme-path", ".", options=["--no-prefix"])).stdout
        ran = json.loads(re.search(r"(?ms)^\{$.*?^\}$", shown)[0])
        self.assertEqual(ran, plan)

    def test_the_format_is_documented(self):
        text = (pathlib.Path(__file__).parents[2] / "docs/formats/plan.md").read_text()
        plan = self.printed(1)
        self.assertEqual(set(re.findall(r"(?m)^\| `(\w+)` \|", text)), set(plan))
        self.assertIn(f"| `version` | {plan['version']} |", text)
        for name in [*plan["units"][0], *plan["recipe"], *plan["recipe"]["optimizer"]]:
            self.assertRegex(text, rf'"{name}": |`{name}`')

    def test_a_plan_changed_by_hand(self):
        plan = self.printed(1)
        expected = self.state(1)
        for unit in plan["units"]:
            unit["tier"]["optimizer"] = "pageable"
            unit["tier"]["gradient"] = "pinned"
        plan["updates"] = "next_step"
        (self.home / "changed").write_text(json.dumps(plan))
        self.assertEqual(self.state(1, "--plan", "changed"), expected, "the same bits from other tiers")

    def test_programs_for_shorter_samples_change_nothing_of_a_run_without_any(self):
        plan = self.printed(2, "--zero", "3")
        expected = self.state(2, "--zero", "3")
        self.assertEqual(plan["shorter_sequences"], [])
        plan["shorter_sequences"] = [4, 8]
        (self.home / "changed").write_text(json.dumps(plan))
        self.assertEqual(self.state(2, "--plan", "changed"), expected)
        self.assertIn("note: changed: shorter_sequences are for", self.run_program(mlaunch(2, *JOB, "--plan", "changed")).stdout)

    def test_recipes_changed_by_hand(self):
        """Freezes the layers' vectors and keeps 8-bit moments for the last unit; such a run resumes where it was saved."""
        saving = ["--output", "out", "--save-every", "2"]
        plan = self.printed(2, "--zero", "3", *saving)
        self.assertEqual(plan["recipe"], {"dtype": "bf16", "trainable": True, "optimizer": {
            "operation": "adamw", "master": "fp32", "moments": 2, "moment_dtype": "fp32", "scale_block": 0, "random": False}})
        self.assertNotIn("recipe", str(plan["units"]), "of one kind all")
        for unit in plan["units"]:
            if unit["unit"].endswith(".vectors"):
                unit["recipe"] = {"trainable": False}
        plan["units"][-1]["recipe"] = {"optimizer": plan["recipe"]["optimizer"] | {
            "operation": "adamw_8bit", "moment_dtype": "uint8", "scale_block": 128}}
        (self.home / "changed").write_text(json.dumps(plan))
        expected = self.state(2, "--plan", "changed", *saving, "--steps", "4")
        kinds = {tuple(line.split()[1:3]) for line in expected.splitlines()}
        self.assertLessEqual({("moment1", "fp32"), ("moment1", "uint8"), ("moment1_scale", "fp32")}, kinds)
        self.assertNotIn("layernorm.weight moment1", expected)
        shown = self.run_program([str(BIN / "inspect"), "out/step-00000002"]).stdout
        self.assertRegex(shown, r"(?m)^  state_recipe: mixed: \d of \d units .*8bit")
        self.assertRegex(shown, r"(?m)^  trained: \d of \d units, frozen: .*layer\.0\.vectors")
        self.assertNotRegex(shown, r"(?m): $")
        resumed = self.state(2, "--plan", "changed", *saving, "--steps", "4", "--resume", "out/step-00000002", "--overwrite-output-dir")
        self.assertEqual(resumed, expected)
        for change, words in [({"dtype": "fp32", "optimizer": plan["recipe"]["optimizer"] | {"operation": "adamw_packed", "master": "packed"}},
                               r"changed: the Plan's units\[0\]\.recipe\.optimizer\.master of unit 'embedding\.matrices': found packed, which needs dtype bf16, not fp32"),
                              ({"dtype": "fp32", "optimizer": plan["recipe"]["optimizer"] | {"operation": "adamw_bf16", "master": "none", "moment_dtype": "bf16", "random": True}},
                               r"units\[0\]\.recipe\.optimizer\.master of unit 'embedding\.matrices': found none, which needs dtype bf16, not fp32"),
                              ({"optimizer": plan["recipe"]["optimizer"] | {"operation": "lion"}},
                               r"units\[0\]\.recipe\.optimizer\.operation: the Plan has 'lion', this run has 'adamw' \(--optimizer\)"),
                              ({"optimizer": plan["recipe"]["optimizer"] | {"scale_block": 128}},
                               r"recipe\.optimizer\.scale_block of unit '.*': found 128, which is no format of adamw; set scale_block 0"),
                              ({"optimizer": plan["recipe"]["optimizer"] | {"master": "packed"}},
                               r"recipe\.optimizer\.master of unit '.*': found packed, which is no format of adamw; set master fp32")]:
            with self.subTest(change=change):
                plan["units"][0]["recipe"] = change
                (self.home / "changed").write_text(json.dumps(plan))
                error = self.run_program(mlaunch(2, *JOB, "--plan", "changed", *saving, "--overwrite-output-dir"), expect=CONFIGURATION).stderr
                self.assertRegex(error, words)

    def test_types_changed_by_hand(self):
        """Keeps the embedding and all vectors in fp32: training, resuming and sampling are as with masters beside 16-bit parameters."""
        saving = ["--output", "out", "--save-every", "2", "--overwrite-output-dir"]
        plan = self.printed(2, "--zero", "3", "--param-persistence-threshold", "0", *saving)
        without_weights = lambda state: [line for line in state.splitlines() if line.split()[1] not in ("parameter", "master")]
        narrow = self.state(2, "--steps", "4", *saving)
        sampling = [str(BIN / "generate"), "--model", "out", "--dtype", "bf16", "--tokens", "16", "--temperature", "0", "--threads", "1"]
        sample = self.run_program(sampling).stdout
        for unit in plan["units"]:
            if unit["unit"].startswith("embedding") or unit["unit"].endswith(".vectors"):
                unit["recipe"] = {"dtype": "fp32"}
        (self.home / "changed").write_text(json.dumps(plan))
        expected = self.state(2, "--plan", "changed", "--steps", "4", *saving)
        self.assertEqual(without_weights(expected), without_weights(narrow))
        self.assertIn("embed_tokens.weight parameter fp32", expected)
        self.assertIn("q_proj.weight parameter bf16", expected)
        resumed = self.state(2, "--plan", "changed", "--steps", "4", "--resume", "out/step-00000002", *saving)
        self.assertEqual(resumed, expected)
        self.assertEqual(self.run_program(sampling).stdout, sample)
        self.assertEqual(without_weights(self.state(2, "--steps", "4", "--resume", "out/step-00000002")), without_weights(narrow), "without the Plan")

    def test_what_layers_save_changed_by_hand(self):
        """Recomputes attention and sends the MLP's product to host memory in one layer; the other layer keeps all."""
        job = ["--sequence-length", "64", "--micro-batch", "4"]
        plan = self.printed(1, *job)
        expected = self.state(1, *job)
        layers = next(r for r in plan["saved"] if r["blocks"][0] == 1)
        names = list(layers["actions"])
        self.assertEqual(set(layers["actions"].values()), {"keep"})
        gate_up = names[next(i for i, name in enumerate(names) if name.endswith(".swiglu")) - 1]
        layers["actions"] |= {name: "recompute" for name in names[:names.index(gate_up) - 2]} | {gate_up: "host"}
        layers["blocks"] = [1, 1]
        plan["saved"] = [r for r in plan["saved"] if r["blocks"][0] <= 1]
        (self.home / "changed").write_text(json.dumps(plan))
        self.assertEqual(self.state(1, *job, "--plan", "changed"), expected, "the same bits from what is made again")
        layers["actions"]["0.nrom"] = "keep"
        (self.home / "changed").write_text(json.dumps(plan))
        error = self.run_program(train(*JOB, *job, "--plan", "changed"), expect=CONFIGURATION).stderr
        self.assertIn("changed: the Plan names '0.nrom', which block 'layer.0' does not save, did you mean '0.norm'? It saves 0.norm", error)

    def test_settings_say_it_in_the_same_words(self):
        job = ["--sequence-length", "64", "--micro-batch", "4"]
        expected = self.state(1, *job)
        gate_up = next(name for r in self.printed(1, *job)["saved"] if r["blocks"][0] == 1 for name in r["actions"] if name.endswith(".swiglu"))
        actions = [{"blocks": [1, 1], "actions": {"0.norm": "recompute", gate_up: "host"}}, {"blocks": [2, 2], "actions": {gate_up: "recompute"}}]
        flag = ["--actions", json.dumps(actions)]
        self.assertEqual(self.printed(1, *job, *flag)["saved"], actions)
        self.assertEqual(self.state(1, *job, *flag), expected, "the same bits")
        self.write("ds.json", json.dumps({"train_micro_batch_size_per_gpu": 4, "bf16": {"enabled": True}, "strata": {"actions": actions, "sequence_length": 64}}))
        self.assertEqual(self.printed(1, *job, "--config", "ds.json")["saved"], actions)
        for wrong, code, message in (({"0.nrom": "recompute"}, USAGE, r"strata.actions \(--actions\) names '0.nrom', which block 'layer.0' does not save, did you mean '0.norm'\? It saves 0.norm"),
                               ({"1.linear": "host", "2.attention": "host", "0.norm": "cpu"}, USAGE, r"--actions: .*expected one of keep, recompute, host, disk, found string \"cpu\""),
                               ({"0.norm": "disk"}, CONFIGURATION, "--actions: found disk without a folder to use: give --nvme-path DIR")):
            with self.subTest(wrong):
                error = self.run_program(train(*JOB, "--actions", json.dumps([{"blocks": [1, 1], "actions": wrong}])), expect=code).stderr
                self.assertRegex(error, message)
        far = json.dumps([{"blocks": [1, 40], "actions": {"0.norm": "recompute"}}])
        error = self.run_program(train(*JOB, "--actions", far), expect=USAGE).stderr
        self.assertRegex(error, r"strata.actions \(--actions\) names block 40, and the model has \d+, counted from 0")

    def test_a_plan_for_another_run_is_refused_by_field(self):
        self.printed(1)
        text = self.read("plan")
        for name, change in {"no_json": lambda t: "plan", "another_version": lambda t: t.replace('"version": 5', '"version": 1'),
                             "no_tile": lambda t: re.sub(r'"tile_elements": \d+', '"tile_elements": 0', t), "a_typo": lambda t: t.replace('"saving"', '"savings"'),
                             "unsorted": lambda t: t.replace('"shorter_sequences": []', '"shorter_sequences": [8, 4]')}.items():
            (self.home / name).write_text(change(text))
        # This model has the same units in other sizes.
        (self.home / "wider").mkdir()
        config = pathlib.Path(__file__).parents[2] / "configs/models/llama-tiny.json"
        (self.home / "wider/config.json").write_text(config.read_text().replace('"intermediate_size": 192', '"intermediate_size": 128'))
        for arguments, words in [(["--model", "gpt2-tiny"], r"plan: units\[\d\]\.unit: the Plan has .*, this run has .* \(--model\)"),
                                 (["--model", "wider/config.json"], r"plan: units\[\d\]\.elements: the Plan has \d+, this run has \d+ \(--model\)"),
                                 (["--model", "gpt2-tiny", "--sequence-length", "32"], r"plan: units\[\d\]\.unit: "),
                                 (["--sequence-length", "32"], r"plan: shape\.sequence: the Plan has 16, this run has 32"),
                                 (["--dtype", "fp32"], r"plan: shape\.dtype: the Plan has bf16, this run has fp32 \(--dtype\)"),
                                 (["--output", "out"], r"plan: the Plan is for a run that saves nothing, .* leave out --output, or make the Plan with it"),
                                 (["--plan", "no_json"], r"no_json:1: "),
                                 (["--plan", "no_tile"], r"no_tile:\d+: limits\.tile_elements: expected a multiple of 1024, at most \d+, found integer 0"),
                                 (["--plan", "another_version"], r"another_version:\d+: version: expected version 5 of Plans, found integer 1"),
                                 (["--plan", "unsorted"], r"unsorted:\d+: shorter_sequences\[1\]: expected more than 8 and less than shape\.sequence, 16, found integer 4"),
                                 (["--plan", "a_typo"], r"a_typo:\d+: savings: unknown key, expected one of version, backend, ")]:
            with self.subTest(arguments=arguments):
                error = self.run_program(train(*JOB, "--plan", "plan", *arguments), expect=CONFIGURATION).stderr
                self.assertRegex(error, words)
        self.assertIn("plan: mesh.data: the Plan has 1, this run has 2", self.run_program(mlaunch(2, *JOB, "--plan", "plan"), expect=CONFIGURATION).stderr)
        self.assertIn("--plan missing: cannot open: No such file", self.run_program(train(*JOB, "--plan", "missing"), expect=CONFIGURATION).stderr)

    def test_seconds_are_foreseen_for_every_run(self):
        for arguments in ([], ["--zero", "3"], ["--offload-optimizer", "cpu"]):
            out = self.run_program(mlaunch(2, *JOB, *arguments, options=["--no-prefix"])).stdout
            self.assertRegex(out, r"(?m)^foreseen: [0-9.e-]+ s per step, [0-9.e+]+ tokens/s, at assumed rates$")


class Hardware(ProgramTest):
    def plan(self, *arguments, expect=0):
        return self.run_program(train("--model", "llama-2-7b", "--bf16", "--sequence-length", "512", "--micro-batch", "1", "--steps", "0",
                                      "--print-plan", *arguments), expect=expect)

    def test_a_machine_of_the_table(self):
        out = self.plan("--hardware", "16x8xh100", "--zero", "3").stdout
        self.assertIn("ZeRO-3 over 128 ranks (planned only)", out)
        self.assertRegex(out, r"(?m)^foreseen: .* at data sheet rates$")
        self.assertIn("\"device\": " + str((80 << 30) - 1_600_000_000), out, "what driver and libraries leave")
        self.assertIn("this plan fits", out)
        error = self.plan("--hardware", "rtx4090", expect=HOST).stderr
        self.assertIn("the Plan allows 24769803776", error)

    def test_arenas_of_large_models_are_tight(self):
        """bench/layouts.py has all combinations; the worst of a 7B is 1.0504, in fp32."""
        for tiers in ([], ["--offload-optimizer", "cpu"], ["--offload-optimizer", "cpu", "--offload-param", "cpu"]):
            out = self.run_program(train("--model", "llama-2-7b", "--bf16", "--sequence-length", "4096", "--micro-batch", "1", "--steps", "0", "--device",
                                         "cuda", "--host-memory", "9000GB", "--activation-checkpointing", "--print-program", *tiers)).stdout
            sizes = re.findall(r"(?m)^program \S+: .* device arena \d+ bytes: \d+ kept, (\d+) within a step, of these at most (\d+) in use", out)
            self.assertTrue(sizes)
            for arena, in_use in sizes:
                self.assertLessEqual(int(arena), 1.05 * int(in_use), tiers)

    def test_a_file_of_doctor(self):
        self.run_program([str(BIN / "doctor"), "--write-hardware", "here.json"])
        found = json.loads(self.read("here.json"))
        self.assertEqual(found["device"]["backend"] == "cpu", found["device"]["names"] == [])
        self.assertEqual(found["device"]["bytes_per_second"][1], "measured" if found["device"]["backend"] == "cpu" else "data sheet")
        out = self.run_program(train(*QUICK, "--steps", "0", "--print-plan", "--hardware", "here.json")).stdout
        self.assertIn(found["description"] + ", planned for from its file", out)

    def test_what_is_wrong_is_said(self):
        (self.home / "bad.json").write_text('{"version": 1, "nam": "x"}')
        self.assertRegex(self.plan("--hardware", "rtx409", expect=CONFIGURATION).stderr, r"'rtx409' is not known, did you mean 'rtx4090'\? It is neither a file nor one of .*rtx4090")
        self.assertIn("unknown key 'lnk', did you mean 'link'?", self.plan("--hardware", "rtx4090,lnk=12GB/s", expect=CONFIGURATION).stderr)
        self.assertRegex(self.plan("--hardware", "bad.json", expect=CONFIGURATION).stderr, r'bad\.json:1: .*misses the key "name"')
        self.assertIn("--hardware h100 computes on cuda, and --device cpu asks for another",
                      self.plan("--hardware", "h100", "--device", "cpu", expect=CONFIGURATION).stderr)
        error = self.run_program(train(*QUICK, "--hardware", "h100"), expect=USAGE).stderr
        self.assertIn("--hardware plans for a machine and trains nothing", error)


if __name__ == "__main__":
    unittest.main()
