"""`train --memory-report`: what the files of a report hold, of a run and of a plan, and where none can be written; BrowserTest opens the page."""
import csv
import html.parser
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

from programs import BIN, LIMIT_S, QUICK, ProgramTest, mlaunch, train

FILES = {"summary.txt", "about.json", "operations.csv", "layers.csv", "timeline.csv", "steps.csv", "trace.json", "report.html"}
USAGE, DATA, HOST, CANNOT_WRITE, DO_NOT_RESTART, CONFIGURATION = 2, 65, 69, 74, 93, 78
CHECK_PAGE = pathlib.Path(__file__).resolve().parents[2] / "scripts/check_report_page.py"
SKIPPED = 77
VOID = {"meta", "link", "input", "br", "img"}


class Page(html.parser.HTMLParser):
    """Finds what is not well-formed, and what a page could load."""

    def __init__(self, text):
        super().__init__()
        self.open, self.wrong, self.addresses, self.data, self.ids = [], [], [], "", set()
        self.feed(text)
        self.close()
        self.wrong += [f"{tag} is not closed" for tag in self.open]

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.addresses += [value for name, value in attrs if name in ("src", "href", "action")]
        if "id" in attributes:
            if attributes["id"] in self.ids:
                self.wrong.append("twice: " + attributes["id"])
            self.ids.add(attributes["id"])
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}> at {self.getpos()}")

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_data(self, data):
        if self.open and self.open[-1] == "script" and not self.data:
            self.data = data


class MemoryReport(ProgramTest):
    def table(self, name):
        with open(self.home / name, newline="") as file:
            return list(csv.DictReader(file))

    def check_page(self, name):
        text = self.read(name)
        page = Page(text)
        self.assertEqual(page.wrong, [])
        self.assertEqual(page.addresses, ["data:,"])
        self.assertNotRegex(text, r"https?://(?!www\.w3\.org)")
        self.assertNotRegex(text, r"\b(fetch|XMLHttpRequest|WebSocket|import)\s*\(|@import|url\(")
        return json.loads(page.data)

    def check_timeline(self, folder):
        """The largest sums of a tier are its peak in the summary; purposes add up."""
        rows = self.table(f"{folder}/timeline.csv")
        for tier in ("device", "pinned"):
            most = max(int(row[f"{tier}_bytes"]) for row in rows)
            found = re.search(rf"(?m)^{tier}: arena .*?\((\d+) bytes\)\n  peak .*?\((\d+) bytes\)", self.read(f"{folder}/summary.txt"))
            self.assertEqual(most, int(found[2]))
            self.assertLessEqual(most, int(found[1]))
        for row in rows:
            for tier in ("device", "pinned", "pageable", "disk"):
                self.assertEqual(sum(int(value) for name, value in row.items() if re.match(tier + r"_\w+_bytes", name)), int(row[f"{tier}_bytes"]))
            self.assertLessEqual(float(row["foreseen_begin_ms"]), float(row["foreseen_end_ms"]))
        self.assertEqual([int(row["instruction"]) for row in rows if row["program"] == rows[0]["program"]],
                         list(range(sum(row["program"] == rows[0]["program"] for row in rows))))
        return rows

    def check_layers(self, folder, printed):
        """Sums of layers.csv are what the table of the plan shows."""
        *layers, total = self.table(f"{folder}/layers.csv")
        self.assertEqual((layers[0]["block"], total["block"]), ("embedding", "total"))
        for column, line in (("parameter_bytes", "parameters"), ("gradient_bytes", "gradients"), ("optimizer_bytes", "optimizer state")):
            self.assertEqual(sum(int(layer[column]) for layer in layers), int(total[column]))
            shown = re.search(rf"  {line} +(\d.*?)(?:  |$)", printed, re.MULTILINE)[1]
            number, unit = shown.split()
            scale = {"bytes": 1, "KiB": 2**10, "MiB": 2**20}[unit]
            self.assertAlmostEqual(int(total[column]), float(number) * scale, delta=0.005 * scale + 1)

    def test_a_run_of_two_ranks(self):
        (self.home / "report").mkdir()
        (self.home / "report/mine.txt").write_text("mine")
        done = self.run_program(mlaunch(2, *QUICK, "--steps", "9", "--zero", "2", "--accumulation", "2", "--metrics", "metrics",
                                        "--memory-report", "report", options=["--no-prefix"]))
        self.assertIn("memory report: report/report.html", done.stdout)
        self.assertEqual({file.name for file in (self.home / "report").iterdir()}, FILES | {"mine.txt"})
        self.check_layers("report", done.stdout)
        timeline = self.check_timeline("report")
        self.assertEqual([row for row in timeline if not row["measured_mean_ms"]], [], "every instruction was measured")
        steps = self.table("report/steps.csv")
        self.assertEqual([int(row["step"]) for row in steps], list(range(1, 10)))
        for row, line in zip(steps, self.step_metrics("metrics")):
            self.assertAlmostEqual(float(row["loss"]), line["loss"], places=6)
            self.assertAlmostEqual(float(row["seconds"]), line["seconds"], places=5)
            self.assertEqual(int(row["device_arena_bytes"]), line["arena_bytes"])
            self.assertEqual(int(row["peak_rss_bytes"]), line["peak_rss_bytes"])
        page = self.check_page("report/report.html")
        self.assertEqual(page["steps"]["step"], list(range(1, 10)))
        self.assertTrue(all("measured" in program for program in page["programs"]))
        trace = json.loads(self.read("report/trace.json"))["traceEvents"]
        self.assertEqual({event["args"]["step"] for event in trace if event["ph"] == "X"}, {3, 4, 5, 6, 7})
        self.assertTrue([event for event in trace if event["name"] == "device bytes by purpose"])
        self.assertRegex(self.read("report/summary.txt"), r"measured: mean [\d.e-]+ s of 7 steps, without the first 2, .* of all 9 ")

    def test_a_plan_without_a_run(self):
        done = self.run_program(train("--model", "gpt2-tiny", "--steps", "0", "--print-plan", "--world-size", "4", "--zero", "3",
                                      "--memory-report", "deep/report"))
        self.assertEqual({file.name for file in (self.home / "deep/report").iterdir()}, FILES)
        self.check_layers("deep/report", done.stdout)
        rows = self.check_timeline("deep/report")
        self.assertEqual({row["measured_mean_ms"] for row in rows}, {""})
        self.assertEqual(self.table("deep/report/steps.csv"), [])
        page = self.check_page("deep/report/report.html")
        self.assertEqual((page["ranks"], page["steps"]["step"]), (4, []))
        slices = [event for event in json.loads(self.read("deep/report/trace.json"))["traceEvents"] if event["ph"] == "X" and event["cat"] != "step"]
        self.assertEqual(len(slices), len(rows))

    def test_a_run_that_goes_on_is_reported_with_the_batch_of_its_checkpoint(self):
        steps = ["--micro-batch", "1", "--output", "out"]
        self.run_program(mlaunch(4, *QUICK, *steps, "--steps", "2"))
        done = self.run_program(mlaunch(2, *QUICK, *steps, "--steps", "4", "--resume", "auto", "--memory-report", "report"))
        self.assertIn("global batch 4", done.stdout + done.stderr)
        settings = json.loads(self.read("report/about.json"))["settings"]
        self.assertEqual([settings["global_batch"], settings["accumulation"]], ["4", "2"])

    def test_a_run_that_is_stopped_early_is_reported_too(self):
        run = self.start(train("--model", "gpt2-tiny", "--steps", "100000", "--metrics", "metrics", "--memory-report", "report"))
        self.wait_until(lambda: (self.home / "metrics").exists() and self.read("metrics").count("\n") > 3, "steps")
        time.sleep(0.05)
        self.assertFalse(list((self.home / "report").iterdir()), "nothing is written before the end")
        run.send_signal(signal.SIGTERM)
        run.communicate(timeout=LIMIT_S)
        self.assertEqual(len(self.table("report/steps.csv")), len(self.step_metrics("metrics")))

    def check_failed(self, done, folder, reason, steps):
        """A report of a failure: all files, why, and the steps before it."""
        self.assertIn(f"memory report: {folder}/report.html", done.stdout + done.stderr)
        self.assertEqual({file.name for file in (self.home / folder).iterdir()}, FILES)
        summary = self.read(f"{folder}/summary.txt")
        self.assertRegex(summary, rf"(?m)^It failed {'after step ' + str(steps) if steps else 'before any step was done'}: .*{reason}")
        self.assertRegex(self.check_page(f"{folder}/report.html")["failure"], reason)
        self.assertEqual(len(self.table(f"{folder}/steps.csv")), steps)
        self.check_timeline(folder)

    def test_a_run_that_fails_is_reported_with_its_reason(self):
        job = [*QUICK, "--memory-report", "report"]
        done = self.run_program(train(*job, "--model", "qwen2.5-7b"), expect=HOST)  # none of its memory is touched
        self.assertIn("out of memory", done.stderr)
        self.check_failed(done, "report", "out of memory", 0)
        done = self.run_program(train(*job, "--learning-rate", "1e5", "--gradient-clipping", "0", "--weight-decay", "10", "--steps", "200"),
                                expect=DO_NOT_RESTART)
        bad = int(re.search(r"step (\d+): the loss is not finite", done.stderr)[1])
        self.check_failed(done, "report", f"step {bad}: the loss is not finite", len(self.table("report/steps.csv")))
        self.assertGreaterEqual(len(self.table("report/steps.csv")), bad)

    def test_a_run_whose_checkpoint_cannot_be_written_is_reported(self):
        if os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0:
            self.skipTest("cannot leave the mount namespace")
        (self.home / "out").mkdir()
        self.write("small", """mount -t tmpfs -o size=2500k tmpfs out && exec "$@"
""")
        job = train("--device", "cpu", *QUICK, "--steps", "5", "--output", "out", "--save-every", "1", "--async-save", "false", "--on-save-error", "stop",
                    "--memory-report", "report")
        done = self.run_program(["unshare", "--mount", "sh", "small", *job], expect=CANNOT_WRITE)
        self.check_failed(done, "report", "No space left on device", len(self.table("report/steps.csv")))
        self.assertIn(len(self.table("report/steps.csv")), (1, 2))

    def test_a_plan_that_does_not_fit_is_reported_if_there_are_programs(self):
        job = ["--model", "gpt2-tiny", "--device", "cpu", "--steps", "0", "--print-plan"]
        done = self.run_program(train(*job, "--host-memory", "100KB", "--memory-report", "report"), expect=HOST)
        self.check_failed(done, "report", "what --host-memory allows", 0)
        nothing = "no memory report is written, since no Programs were made"
        scheduled = ["--device-memory", "100KB", "--offload-optimizer", "cpu", "--offload-param", "cpu", "--memory-report", "none"]
        done = self.run_program(train(*job, *scheduled), expect=HOST)
        self.assertIn(nothing, done.stderr)
        done = self.run_program(train(*job, "--threads", "1", "--target-memory", "33811KB", "--memory-report", "none"), expect=HOST)
        self.assertIn(nothing, done.stderr)
        done = self.run_program(train("--device", "cpu", *QUICK, *scheduled), expect=HOST)
        self.assertIn("no memory report is written: no Programs were made", done.stdout + done.stderr)
        self.assertFalse((self.home / "none").exists())

    def compare(self, *arguments, expect=0):
        return self.run_program([str(BIN / "plan"), "compare", *arguments], expect=expect)

    def test_what_was_foreseen_is_compared_with_what_was_measured(self):
        job = ["--model", "gpt2-tiny", "--sequence-length", "32", "--micro-batch", "1", "--threads", "1"]
        self.run_program(train(*job, "--steps", "0", "--print-plan", "--memory-report", "foreseen"))
        self.run_program(train(*job, "--steps", "6", "--accumulation", "2", "--memory-report", "measured"))
        self.run_program(train(*job, "--model", "llama-tiny", "--steps", "0", "--print-plan", "--memory-report", "other"))
        out = self.compare("foreseen", "measured").stdout
        self.assertRegex(out, r"(?m)^step: foreseen [\d.e-]+ s, measured [\d.e-]+ s \([\d.]+ x\), the mean of 4 steps, without the first 2$")
        rows = [line.split() for line in re.search(r"(?ms)^operation .*?\n(.*?)\n\n", out)[1].splitlines()]
        self.assertIn("linear", {row[0] for row in rows})
        apart = [abs(float(row[-1])) for row in rows]
        self.assertEqual(apart, sorted(apart, reverse=True), "worst first")
        self.assertRegex(out, r"(?m)^process, highest +\d.*iB +\d.*iB +\d+\.\d\d +[-+]\d.*B$")
        self.assertIn("  accumulation: 1 foreseen, 2 measured\n", out)
        memory = re.search(r"(?ms)^memory .*?\n(.*)\Z", out)[1]
        self.assertRegex(memory, r"(?m)^device buffers, highest +\d.*B +\d.*B +\d+\.\d\d")
        units = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
        apart = [float(amount) * units[unit] for amount, unit in re.findall(r"(?m) [-+](\d[\d.]*) (\w+)$", memory)]
        self.assertGreater(len(apart), 1)
        self.assertEqual(apart, sorted(apart, reverse=True), "worst first")
        self.assertNotIn("  steps:", out)
        self.assertIn("includes pages that processes share", out)
        same = json.loads(self.compare("--json", "foreseen", "measured").stdout)
        self.assertEqual([row["memory"] for row in same["memory"]], [re.split("  +", line)[0] for line in memory.splitlines()[:len(same["memory"])]])
        self.assertEqual([row["operation"] for row in same["operations"]], [row[0] for row in rows])
        self.assertEqual(same["settings"]["accumulation"], {"foreseen": "1", "measured": "2"})
        self.assertEqual(same["measured_steps"], 4)
        self.assertNotIn("CPU (", self.read("measured/about.json"), "what computes, not why it was chosen")
        itself = self.compare("measured", "measured").stdout
        self.assertNotIn("what was foreseen is not what was run", itself)
        self.assertRegex(itself, r"(?m)^device buffers, highest +(\d.*B) +\1 +1\.00 +-$", "what ran reached what was planned")
        # Sums of operations.csv are those of timeline.csv.
        operations = self.table("measured/operations.csv")
        self.assertEqual([row for row in operations if not row["measured_ms"]], [])
        runs = {"train.first": 1, "train.last": 1}
        timeline = self.table("measured/timeline.csv")
        self.assertAlmostEqual(sum(float(row["foreseen_ms"]) for row in operations),
                               sum(runs[row["program"]] * (float(row["foreseen_end_ms"]) - float(row["foreseen_begin_ms"])) for row in timeline), places=2)
        self.assertAlmostEqual(sum(float(row["measured_ms"]) for row in operations),
                               sum(runs[row["program"]] * float(row["measured_mean_ms"]) for row in timeline), places=2)

        def refused(*arguments, code=USAGE):
            return self.compare(*arguments, expect=code).stderr
        self.assertIn("compare needs two directories", refused("foreseen"))
        self.assertIn("compare: '--jsn' is no flag of it", refused("--jsn", "foreseen", "measured"))
        self.assertEqual(self.run_program([str(BIN / "plan"), "compar", "foreseen", "measured"], expect=USAGE).stderr,
                         "plan: plan has no command compar, did you mean 'compare'? (see plan --help)\n")
        self.assertRegex(self.compare("-h").stdout, r"\Ausage: plan compare \[--json\] FORESEEN MEASURED\n       plan compare --page FILE REPORT RUN\.\.\.\n")
        self.assertIn("nowhere holds no memory report: it has no about.json; train --memory-report nowhere writes one", refused("nowhere", "measured"))
        self.assertIn("other is about another model than measured", refused("other", "measured"))
        self.assertIn("other is the report of a plan, and nothing was measured there", refused("other", "other"))
        about = self.read("foreseen/about.json")
        self.write("foreseen/about.json", about.replace('"version": 2', '"version": 1'))
        self.assertIn("foreseen/about.json:2: version: expected 2, found integer 1", refused("foreseen", "measured", code=CONFIGURATION))

    def test_the_steps_of_several_runs_are_drawn_in_one_page(self):
        for name, steps, rate in (("first", 3, "0.001"), ("second", 2, "0.01"), ("third", 4, "0.001")):
            self.run_program(train(*QUICK, "--steps", steps, "--lr", rate, "--memory-report", name))
        self.assertEqual(self.check_page("first/report.html")["compared"], [])
        done = self.compare("--page", "all.html", "third", "first", "second/steps.csv")
        self.assertEqual(done.stdout, "page: all.html\n")
        page = self.check_page("all.html")
        self.assertEqual((page["name"], page["steps"]["step"]), ("third", [1, 2, 3, 4]))
        self.assertEqual([(run["name"], run["steps"]["step"]) for run in page["compared"]], [("first", [1, 2, 3]), ("second/steps.csv", [1, 2])])
        first = self.table("first/steps.csv")
        for column in ("loss", "learning_rate", "grad_norm", "seconds"):
            self.assertEqual(page["compared"][0]["steps"][column], [float(row[column]) for row in first])
        self.assertNotEqual(page["compared"][1]["steps"]["learning_rate"], page["steps"]["learning_rate"][:2])
        self.run_program(train("--model", "gpt2-tiny", "--steps", "0", "--print-plan", "--memory-report", "plan"))
        self.compare("--page=plan.html", "plan", "first")
        self.assertEqual([run["name"] for run in self.check_page("plan.html")["compared"]], ["first"])
        (self.home / "<b>&").symlink_to("first")
        self.compare("--page", "odd.html", "third", "<b>&")
        self.assertEqual(self.check_page("odd.html")["compared"][0]["name"], "<b>&")

        self.run_program(train(*QUICK, "--steps", 3, "--lr", "0.001", "--metrics", "first.m"))
        self.compare("--page", "metrics.html", "third", "first", "first.m")
        [as_table, as_metrics] = [run["steps"] for run in self.check_page("metrics.html")["compared"]]
        for column in ("step", "loss", "learning_rate", "grad_norm"):
            for rounded, exact in zip(as_table[column], as_metrics[column], strict=True):
                self.assertAlmostEqual(rounded, exact, delta=1e-6 * exact)

        self.write("none.csv", "step,loss\n1,2\n")
        wrong = self.compare("--page", "new.html", "first.m", "none.csv", "first", "missing", expect=USAGE).stderr
        self.assertEqual(re.findall(r"(first\.m) is a file; the first argument is the directory|(none\.csv):1: misses|(missing): there is no", wrong),
                         [("first.m", "", ""), ("", "none.csv", ""), ("", "", "missing")], wrong)
        self.write("old/report.html", "<html></html>")
        for words, says, code in ((["third", "missing"], "missing: there is no missing; name the directory of train --memory-report of a run", USAGE),
                                  (["third", "."], ".: there is no ./steps.csv", USAGE),
                                  (["missing", "first"], "missing: there is no missing/report.html", USAGE),
                                  (["third"], "compare --page needs a directory of --memory-report and at least one run", USAGE),
                                  (["--json", "third", "first"], "--page writes a page and no JSON", USAGE),
                                  (["third", "none.csv"], "none.csv:1: misses the column learning_rate", CONFIGURATION),
                                  (["third", "plan"], "plan/steps.csv has no steps", CONFIGURATION),
                                  (["old", "first"], "old/report.html is the page of another version", CONFIGURATION)):
            self.assertIn(says, self.compare("--page", "new.html", *words, expect=code).stderr)
        self.assertIn("expected a name that ends with .html", self.compare("--page", "third/steps.csv", "third", "first", expect=USAGE).stderr)
        self.assertIn("--page needs a file", self.compare("third", "first", "--page", expect=USAGE).stderr)
        (self.home / "runs.html").symlink_to("first.m")
        for page, read in (("third/report.html", "REPORT third/report.html"), ("first/report.html", "RUN first/report.html"), ("runs.html", "RUN runs.html")):
            said = self.compare("--page", page, "third", "first", "runs.html", expect=USAGE).stderr
            self.assertIn(f"--page {page} is the file of {read}, which would be overwritten; name another", said)
        self.assertIn("nowhere/new.html", self.compare("--page", "nowhere/new.html", "third", "first", expect=CANNOT_WRITE).stderr)
        self.assertFalse((self.home / "new.html").exists())

    def test_where_no_report_can_be(self):
        self.write("file", "text")
        (self.home / "taken/layers.csv").mkdir(parents=True)
        for directory, says in (("file", "--memory-report asks for a directory, and this is a file"),
                                ("file/inside", "--memory-report"), ("/proc/strata", "cannot create the --memory-report directory"),
                                ("taken", "--memory-report writes a file of this name")):
            for more in ([], ["--steps", "0", "--print-plan"]):
                done = self.run_program(train(*QUICK, *more, "--memory-report", directory), expect=CANNOT_WRITE)
                self.assertIn(says, done.stderr, directory)
                self.assertNotIn("step 1/", done.stdout)
        done = self.run_program(train(*QUICK, "--memory-report", "here", "--metrics", "here/steps.csv"), expect=USAGE)
        self.assertIn("--memory-report here/steps.csv is the file of --metrics", done.stderr)
        self.assertFalse((self.home / "here").exists(), "a folder that was made for nothing")

    def test_no_folder_is_left_without_a_report(self):
        self.write("short.txt", "brief")
        report = ["--memory-report", "new/report"]
        no_room = ["--target-memory", "1MB", *report]
        for command, code in ((mlaunch(2, *QUICK, "--data", "short.txt", *report), DATA),
                              (train(*QUICK, "--steps", "0", "--print-plan", *no_room), HOST),
                              ([BIN / "plan", "--model", "gpt2-tiny", "--sequence-length", "32", "--global-batch-size", "8", *no_room], 1)):
            with self.subTest(command=command[0], code=code):
                self.run_program(command, expect=code)
                self.assertFalse((self.home / "new").exists())


class BrowserTest(ProgramTest):
    """Opens pages in a headless Chromium, where there is one."""

    def check(self, folder):
        return subprocess.run([sys.executable, str(CHECK_PAGE), str(self.home / folder / "report.html"), str(self.home / "pictures")],
                              capture_output=True, text=True, timeout=300)

    def drawn(self, folder):
        """Returns the names of the runs that have curves, which is the same in the light and the dark page."""
        done = self.check(folder)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        names = set(re.findall(r"\n  curves of: (.*)", done.stdout))
        self.assertEqual(len(names), 1, done.stdout)
        return names.pop()

    def test_pages_say_no_error_and_ask_for_nothing(self):
        job = ["--model", "gpt2-tiny", "--sequence-length", "32", "--micro-batch", "1", "--threads", "1"]
        self.run_program(train(*job, "--steps", "0", "--print-plan", "--world-size", "2", "--zero", "3", "--memory-report", "planned"))
        self.run_program(train(*job, "--steps", "4", "--accumulation", "2", "--memory-report", "run"))
        for folder in ("planned", "run"):
            done = self.check(folder)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_curves_of_several_runs_are_drawn(self):
        for name in ("first", "second"):
            self.run_program(train(*QUICK, "--steps", "3", "--memory-report", name))
            self.assertEqual(self.drawn(name), "this run")
        (self.home / "both").mkdir()
        self.run_program([str(BIN / "plan"), "compare", "--page", "both/report.html", "second", "first"])
        self.assertEqual(self.drawn("both"), "second, first")
        # A file that a user opens in the page.
        opened = ("<script>const files = new DataTransfer(); files.items.add(new File([%s], 'more.csv'));"
                  "$('runs').files = files.files; $('runs').dispatchEvent(new Event('change'));</script>" % json.dumps(self.read("first/steps.csv")))
        self.write("both/report.html", self.read("both/report.html").replace("</body>", opened + "</body>"))
        self.assertEqual(self.drawn("both"), "second, first, more.csv")

    def test_a_broken_page_is_noticed(self):
        self.run_program(train("--model", "gpt2-tiny", "--steps", "0", "--print-plan", "--memory-report", "report"))
        page = self.read("report/report.html")
        unguarded = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
        self.assertNotEqual(unguarded, page)
        for whole, more, said in ((page, "<script>throw new Error('broken')</script>", "console: "),
                                  (unguarded, "<img src='http://127.0.0.1:9/x.png'>", "asked for http://127.0.0.1:9/x.png")):
            self.write("report/report.html", whole.replace("</body>", more + "</body>"))
            done = self.check("report")
            self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
            self.assertIn(said, done.stdout)


if __name__ == "__main__":
    if "BrowserTest" in sys.argv:
        found = [name for name in ("chromium", "chromium-browser", "google-chrome") if shutil.which(name)]
        if not found:
            print("skipped: there is no Chromium to open report.html in (apt-get install chromium)")
            sys.exit(SKIPPED)
    unittest.main(argv=sys.argv if len(sys.argv) > 1 else [sys.argv[0], "MemoryReport"])
