"""Output of train, mlaunch and generate, and files that only report."""
import json
import pathlib
import re
import shutil
import unittest

from programs import BIN, QUICK, ProgramTest, mlaunch, train


def spans(events, queue):
    """Returns (begin, end, name) of the events on a queue."""
    return [(e["ts"], e["ts"] + e["dur"], e["name"]) for e in events
            if e["ph"] == "X" and e["tid"] == queue]


class Output(ProgramTest):
    def test_help_fits_a_terminal_and_names_the_flags(self):
        for program, words in [("train", ["--zero", "--model", "--config", "--threads", "--trace"]),
                               ("mlaunch", ["-np N", "--launcher", "Ctrl-C", "Exit codes"]),
                               ("generate", ["--model", "--prompt", "--temperature"]),
                               ("doctor", ["--nvme-path", "--json"]),
                               ("inspect", ["verify", "diff", "digest", "list", "--statistics"])]:
            with self.subTest(program=program):
                done = self.run_program([str(BIN / program), "--help"])
                self.assertEqual(done.stderr, "")
                for word in words:
                    self.assertIn(word, done.stdout)
                for line in done.stdout.splitlines():
                    self.assertLessEqual(len(line), 100, line)

    def test_help_of_many_ranks_is_printed_once(self):
        done = self.run_program(mlaunch(3, "--help"))
        self.assertEqual(done.stdout.count("usage: train"), 1)

    def test_few_lines_into_a_pipe(self):
        done = self.run_program(mlaunch(2, "--steps", "200", "--sequence-length", "16",
                                        "--micro-batch", "1"))
        steps = re.findall(r"^\[0\] [\d-]{10} [\d:]{8}  step (\d+)/200  loss \d", done.stdout, re.M)
        self.assertEqual(steps, ["1", "200"])
        self.assertNotIn("\r", done.stdout)
        self.assertNotIn("\033", done.stdout)
        self.assertLess(len(done.stdout.splitlines()), 30)
        self.assertEqual(done.stderr, "")

    @unittest.skipUnless(shutil.which("script"), "no script(1) here")
    def test_one_rewritten_line_on_a_terminal(self):
        command = " ".join(mlaunch(2, "--steps", "200", "--sequence-length", "128"))
        done = self.run_program(["script", "-qefc", command, "/dev/null"])
        lines = [line for line in done.stdout.split("\n") if "step 1/200" in line]
        self.assertEqual(len(lines), 1)
        shown = re.findall(r"\r?\x1b\[K(?:\[0\] )?(?:\x1b\[K)?step (\d+)/200  loss ", lines[0])
        steps = [int(step) for step in dict.fromkeys(shown)]
        self.assertEqual(steps, sorted(steps))
        self.assertEqual(steps[-1], 200)
        # Short steps are not all shown: nobody reads twenty lines a second.
        self.assertGreaterEqual(len(steps), 3)
        self.assertGreaterEqual(lines[0].count("\r"), 3)

    def test_steps_and_memory_are_listed_at_the_start(self):
        done = self.run_program(train(*QUICK))
        self.assertIn("\ntraining: 2 steps of 1 sample (1 rank x micro-batch 1 x accumulation 1), 32 tokens", done.stdout)
        self.assertRegex(done.stdout, r"(?m)^ +device +pinned$")
        for word in ["parameters", "gradients", "optimizer state", "transient", "arena"]:
            self.assertRegex(done.stdout, rf"(?m)^  {word}.* [\d.]+ [KM]iB +(-|[\d.]+ (bytes|KiB))$")

    def test_gathers_run_during_compute(self):
        """Ranks of two threads gather a layer while they compute the one before (one thread would gain nothing by it)."""
        self.run_program(mlaunch(2, "--zero", "3", "--model", "gpt2-bytes-10m", "--steps", "6",
                                 "--micro-batch", "1", "--sequence-length", "64", "--threads", "2",
                                 "--trace", "trace.json"))
        trace = json.loads(self.read("trace.json"))["traceEvents"]
        for rank in range(2):
            events = [event for event in trace if event["pid"] == rank]
            compute = spans(events, 0)
            self.assertGreater(len(compute), 100)
            # Nothing can compute before layer 0 is there, so its gathers do not count.
            gathers = [(begin, end) for begin, end, what in spans(events, 1) if re.fullmatch(r"gather layer\.[1-5]\.matrices", what)]
            self.assertEqual(len(gathers), 6 * 5)
            hidden = [sum(max(0, min(end, c_end) - max(begin, c_begin)) for c_begin, c_end, _ in compute)
                      for begin, end in gathers]
            mostly = sum(part > (end - begin) / 2 for part, (begin, end) in zip(hidden, gathers))
            self.assertGreater(mostly, len(gathers) / 2, f"rank {rank}: of {len(gathers)} gathers {mostly} lie mostly in computation")

    def test_one_trace_shows_the_chosen_steps_of_all_ranks_on_one_clock(self):
        self.run_program(mlaunch(3, "--zero", "3", "--steps", "12", "--micro-batch", "1",
                                 "--sequence-length", "64", "--threads", "1", "--accumulation", "2",
                                 "--param-persistence-threshold", "0", "--trace", "trace.json",
                                 "--trace-steps", "5:7"))
        self.assertEqual([path.name for path in self.home.iterdir()], ["trace.json"])
        trace = json.loads(self.read("trace.json"))
        self.assertEqual(trace["otherData"]["dropped"], 0)
        gathers = []
        for rank in range(3):
            events = [event for event in trace["traceEvents"] if event["pid"] == rank]
            whole = [event for event in events if event.get("cat") == "step"]
            self.assertEqual([event["name"] for event in whole], ["step 5", "step 6", "step 7"])
            for one, next_one in zip(whole, whole[1:]):
                self.assertLessEqual(one["ts"] + one["dur"], next_one["ts"])
            inside = [event for event in events if event["ph"] == "X" and event["tid"] < 7]
            self.assertEqual({event["args"]["step"] for event in inside}, {5, 6, 7})
            for event in inside:
                if event["tid"] == 0:
                    step = whole[event["args"]["step"] - 5]
                    self.assertGreaterEqual(event["ts"], step["ts"])
                    self.assertLessEqual(event["ts"] + event["dur"], step["ts"] + step["dur"] + 0.002)
            bytes_in_use = [event["args"]["device"] for event in events if event["ph"] == "C"]
            self.assertGreater(len(set(bytes_in_use)), 10)
            starts = {e["id"]: e["ts"] for e in events if e["ph"] == "s"}
            ends = {e["id"]: e["ts"] for e in events if e["ph"] == "f"}
            self.assertGreater(len(starts), 10)
            self.assertEqual(starts.keys(), ends.keys())
            for key, begin in starts.items():
                self.assertLessEqual(begin, ends[key] + 0.002)
            gathers.append([span for span in spans(events, 1) if span[2].startswith("gather ")])
        self.assertGreater(len(gathers[0]), 10)
        # A gather ends on no rank before it has begun on every rank.
        for same in zip(*gathers, strict=True):
            self.assertGreaterEqual(min(end for _, end, _ in same) + 50, max(begin for begin, _, _ in same))

    def test_print_plan(self):
        text = self.run_program(mlaunch(2, *QUICK, "--zero", "3", "--print-plan",
                                        options=["--no-prefix"])).stdout
        plan, _ = json.JSONDecoder().raw_decode(text[text.index("{"):])
        self.assertEqual(plan["mesh"]["data"], 2)
        self.assertIn("limits", plan)

    def test_print_program(self):
        serial = self.run_program(train(*QUICK, "--print-program")).stdout
        sharded = self.run_program(mlaunch(2, *QUICK, "--zero", "3", "--print-program",
                                           "--param-persistence-threshold", "0")).stdout
        gather = r"\[communication, layer\.1, forward\] gather layer\.1\.matrices = all_gather"
        self.assertNotRegex(serial, gather)
        self.assertRegex(sharded, gather)
        self.assertRegex(serial, r"(?m)^program train\.only: \d+ instructions")

    def test_print_config_names_origins(self):
        self.write("ds.json", '{"train_micro_batch_size_per_gpu": 2, "gradient_clipping": 0.5}')
        text = self.run_program(train("--config", "ds.json", "--steps", "1", "--sequence-length",
                                      "16", "--print-config")).stdout
        for setting, value, origin in [("gradient_clipping", "0.5", "ds.json"),
                                       ("micro_batch", "2", "ds.json"), ("steps", "1", "--steps"),
                                       ("seed", "1", "default")]:
            self.assertRegex(text, rf"(?m)^\s*{setting}\b.*\b{value}\b.*{origin}")

    def test_check_config(self):
        self.write("ds.json", '{"train_batch_size": 32, "zero_optimization": {"stage": 2}}')
        text = self.run_program(train("--check-config", "ds.json", "--world-size", "4")).stdout
        self.assertRegex(text, r"zero\.stage\b.*\b2\b.*ds.json")
        self.assertNotIn("step 1/", text)
        self.write("bad.json", '{"train_batch_size": 31}')
        error = self.run_program(train("--check-config", "bad.json", "--world-size", "4"),
                                 expect=78).stderr
        self.assertIn("train_batch_size 31 is not divisible", error)

    def test_check_config_of_ready_files_with_auto(self):
        files = sorted((pathlib.Path(__file__).parents[2] / "configs/deepspeed").glob("*_auto.json"))
        self.assertGreaterEqual(len(files), 2)
        for file in files:
            check = train("--check-config", file)
            error = self.run_program(check, expect=78).stderr
            for flag in ("--micro-batch N", "--learning-rate X"):
                self.assertIn(f'"auto" needs {flag}', error)
            self.run_program([*check, "--micro-batch", "2", "--lr", "1e-4"])

    def test_check_config_warns_of_misspelt_switches_and_long_warm_ups(self):
        self.write("ds.json", json.dumps({
            "train_batch_size": 4, "bf16": {"enable": True},
            "scheduler": {"type": "WarmupDecayLR", "params": {"warmup_num_steps": 100, "total_num_steps": "auto"}}}))
        check = train("--check-config", "ds.json", "--steps", "50")
        error = self.run_program(check).stderr
        self.assertIn("warning: ds.json:1: bf16.enable: unknown key, did you mean 'enabled'?\n", error)
        self.assertIn("the warm-up of 100 steps is longer than the run of 50: ", error)
        error = self.run_program([*check, "--strict-config"], expect=78).stderr
        self.assertIn("bf16.enable: unknown key, did you mean 'enabled'?\n", error)

    def test_generate_refuses(self):
        for code, word, arguments in [(78, "nosuch", ["--model", "nosuch"]), (2, "--model", []),
                                      (2, "--tokens -5", ["--model", "m", "--tokens", "-5"]),
                                      (2, "--temperature nan", ["--model", "m", "--temperature", "nan"])]:
            with self.subTest(arguments=arguments):
                done = self.run_program([str(BIN / "generate"), *arguments], expect=code)
                self.assertIn(word, done.stderr)


if __name__ == "__main__":
    unittest.main()
