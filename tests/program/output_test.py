"""What train, mlaunch and generate print, and the files that only look."""
import json
import re
import shutil
import unittest

from programs import BIN, QUICK, ProgramTest, mlaunch, train


def spans(events, queue):
    """(begin, end, name) of what ran on it."""
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
        steps = re.findall(r"^\[0\] step (\d+)/200  loss \d", done.stdout, re.M)
        self.assertEqual(steps, ["1"] + [str(20 * i) for i in range(1, 11)])
        self.assertNotIn("\r", done.stdout)
        self.assertNotIn("\033", done.stdout)
        self.assertLess(len(done.stdout.splitlines()), 30)
        self.assertEqual(done.stderr, "")

    @unittest.skipUnless(shutil.which("script"), "no script(1) here")
    def test_one_rewritten_line_on_a_terminal(self):
        command = " ".join(mlaunch(2, "--steps", "20", "--sequence-length", "16"))
        done = self.run_program(["script", "-qefc", command, "/dev/null"])
        lines = [line for line in done.stdout.split("\n") if "step 1/20" in line]
        self.assertEqual(len(lines), 1)
        shown = re.findall(r"\r?\x1b\[K(?:\[0\] )?(?:\x1b\[K)?step (\d+)/20  loss ", lines[0])
        steps = [int(step) for step in dict.fromkeys(shown)]
        self.assertEqual(steps, sorted(steps))
        self.assertEqual(steps[-1], 20)
        # Lines that arrive together may be shown as the last of them.
        self.assertGreaterEqual(len(steps), 10)
        self.assertGreaterEqual(lines[0].count("\r"), 9)

    def test_memory_is_listed_at_the_start(self):
        done = self.run_program(train(*QUICK))
        self.assertRegex(done.stdout, r"(?m)^ +device +pinned$")
        for word in ["parameters", "gradients", "optimizer state", "transient", "arena"]:
            self.assertRegex(done.stdout, rf"(?m)^  {word}.* [\d.]+ [KM]iB +(-|[\d.]+ (bytes|KiB))$")

    def test_gathers_run_during_compute(self):
        """Ranks of two threads gather a layer while they compute the one before (with one thread nothing is won by it)."""
        self.run_program(mlaunch(2, "--zero", "3", "--model", "gpt2-bytes-10m", "--steps", "6",
                                 "--micro-batch", "1", "--sequence-length", "64", "--threads", "2",
                                 "--trace", "trace.json"))
        for name in ["trace.json", "trace.json.rank1"]:
            events = json.loads(self.read(name))["traceEvents"]
            compute = spans(events, 0)
            self.assertGreater(len(compute), 100)
            # Nothing computes before the first layer is there.
            gathers = [(begin, end) for begin, end, what in spans(events, 1) if re.fullmatch(r"gather layer\.[1-5]\.matrices", what)]
            self.assertEqual(len(gathers), 6 * 5)
            hidden = [sum(max(0, min(end, c_end) - max(begin, c_begin)) for c_begin, c_end, _ in compute)
                      for begin, end in gathers]
            mostly = sum(part > (end - begin) / 2 for part, (begin, end) in zip(hidden, gathers))
            self.assertGreater(mostly, len(gathers) / 2, f"{name}: of {len(gathers)} gathers {mostly} lie mostly in computation")

    def test_print_plan(self):
        text = self.run_program(mlaunch(2, *QUICK, "--zero", "3", "--print-plan",
                                        options=["--no-prefix"])).stdout
        plan, _ = json.JSONDecoder().raw_decode(text[text.index("{"):])
        self.assertEqual(plan["world"], 2)
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

    def test_generate_refuses(self):
        for code, word, arguments in [(78, "nosuch", ["--model", "nosuch"]), (2, "--model", [])]:
            with self.subTest(arguments=arguments):
                done = self.run_program([str(BIN / "generate"), *arguments], expect=code)
                self.assertIn(word, done.stderr)


if __name__ == "__main__":
    unittest.main()
