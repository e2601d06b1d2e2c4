"""The page of a run (mlaunch --web): what it serves, to whom, and how it looks in a browser."""
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import unittest

from programs import BIN, SOON_S, UNTIL_TOLD, ProgramTest, children, missing_packages, train

ENDLESS = train("--model", "gpt2-tiny", "--steps", "1000000", "--sequence-length", "16", "--micro-batch", "1", "--threads", "1",
                "--save-every", "20", "--output", "out")
SKIPPED = 77
HAS_MODULE = (BIN.parent / "lib" / "libstrata_web.so").exists()
BROWSER = next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None)
PEERS = os.environ.get("STRATA_PEERS", "")
PYTHON = f"{PEERS}/bin/python" if PEERS else sys.executable
# Prints what Prometheus' own parser makes of figures: of each family name, kind, description and samples with their labels.
PARSE = """
import json, sys
from prometheus_client.parser import text_fd_to_metric_families
json.dump([(one.name, one.type, one.documentation, [(sample.labels, sample.value) for sample in one.samples])
           for one in text_fd_to_metric_families(sys.stdin)], sys.stdout)
"""
# A line of Prometheus' text format (docs: Exposition formats).
SAMPLE = re.compile(r'[a-z_:][a-z0-9_:]*\{([a-z_]+="(\\.|[^"\\\n])*",?)*\} (-?\d+(\.\d+)?([eE][-+]?\d+)?|NaN|[-+]Inf)')


class Pages(ProgramTest):
    def setUp(self):
        super().setUp()
        if not HAS_MODULE:
            self.skipTest("this build has no libstrata_web.so")

    def start_run(self, program=None, options=()):
        """Starts a run with a page; returns its process."""
        run = self.start([str(BIN / "mlaunch"), "--web", "0", "-np", "2", *options, *(program or ENDLESS)])
        line = run.stderr.readline()
        self.port = int(re.fullmatch(r"mlaunch: the run is shown at http://127\.0\.0\.1:(\d+)\n", line)[1])
        return run

    def ask(self, path, method="GET", host=None):
        server = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SOON_S)
        server.request(method, path, headers={"Host": host} if host else {})
        answer = server.getresponse()
        return answer.status, answer.read().decode()

    def get_json(self, path):
        code, text = self.ask(path)
        self.assertEqual(code, 200, text)
        return json.loads(text)

    def status(self):
        return self.get_json("/status.json")["runs"][0]

    def figures(self):
        lines = [line for line in self.ask("/metrics")[1].splitlines() if line[0] != "#"]
        return {line.split("{")[0]: line.rsplit(" ", 1)[1] for line in lines}


class WebPage(Pages):
    def test_it_shows_what_status_does_and_what_came_before(self):
        run = self.start_run()
        self.wait_until(lambda: (self.status()["committed_step"] or 0) >= 20, "a checkpoint")
        shown, printed = self.get_json("/status.json"), json.loads(self.run_program([str(BIN / "mlaunch"), "status", "--json"]).stdout)
        self.assertEqual(list(shown["runs"][0]), list(printed["runs"][0]))
        self.assertEqual(shown["runs"][0]["run"], printed["runs"][0]["run"])
        os.kill(children(run.pid)[1], signal.SIGKILL)
        self.wait_until(lambda: self.status()["attempt"] == 1 and self.status()["ranks"], "another start")
        self.wait_until(lambda: len(self.get_json("/history.json")["events"]) >= 3, "its event")
        self.wait_until(lambda: self.status()["goodput"] is not None, "a look at a step")
        history = self.get_json("/history.json")
        self.assertEqual(history["events"][0]["text"], "the ranks start")
        self.assertTrue(any("the ranks start again from step" in event["text"] for event in history["events"]))
        self.assertEqual(sorted(set(history["step"])), history["step"], "each step once")
        self.assertEqual(len(history["step"]), len(history["loss"]))
        code, text = self.ask("/metrics")
        self.assertEqual(code, 200)
        for line in text.splitlines():
            self.assertTrue(line.startswith("# ") or SAMPLE.fullmatch(line), line)
        self.wait_until(lambda: {"strata_loss", "strata_tokens_per_second"} <= self.figures().keys(), "a step of the second start")
        figures = self.figures()
        self.assertEqual(figures["strata_restarts_total"], "1")
        self.assertEqual(figures["strata_up"], "1")
        self.assertLessEqual(float(figures["strata_goodput_ratio"]), 1)
        for name in ("step", "loss", "tokens_per_second", "lost_steps_total", "checkpoint_step", "checkpoint_age_seconds"):
            self.assertIn("strata_" + name, figures)

    def test_it_only_shows_and_only_here(self):
        run = self.start_run(["sleep", "60"])
        self.assertEqual(self.ask("/")[0], 200)
        self.assertEqual(self.ask("/", method="POST")[0], 405)
        self.assertEqual(self.ask("/stop")[0], 404)
        self.assertEqual(self.ask("/status.json", host=f"evil.example:{self.port}")[0], 403)
        self.assertEqual(self.ask("/status.json", host=f"localhost:{self.port}")[0], 200)
        listening = subprocess.run(["ss", "-Hltnp"], capture_output=True, text=True).stdout if shutil.which("ss") else ""
        for line in listening.splitlines():
            if f"pid={run.pid}," in line:
                self.assertIn(f"127.0.0.1:{self.port}", line)
        self.assertIsNone(run.poll())

    def test_many_who_are_silent_or_do_not_read_harm_no_run(self):
        run = self.start_run(["sh", "-c", f"{UNTIL_TOLD}; echo done"])
        lazy = []
        for i in range(120):  # more would wait until others have gone
            peer = socket.create_connection(("127.0.0.1", self.port))
            self.addCleanup(peer.close)
            lazy.append(peer)
            if i % 3 == 0:
                peer.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20)
            elif i % 3 == 1:
                peer.sendall(os.urandom(100))
        for peer in lazy[::2]:
            peer.close()
        self.write("told", "")
        output, error = run.communicate(timeout=SOON_S)
        self.assertEqual(run.returncode, 0, error)
        self.assertEqual(output.count("done"), 2)

    def test_bad_ports_are_refused(self):
        for port in ("-1", "65536", "http", ""):
            self.assertIn("--web", self.run_program([str(BIN / "mlaunch"), "--web", port, "true"], expect=2).stderr)
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = str(taken.getsockname()[1])
            done = self.run_program([str(BIN / "mlaunch"), "--web", port, "true"], expect=69)
            self.assertRegex(done.stderr, rf"process {os.getpid()} \(.+\) has the port: name another one, or 0 for a free one")
        mpi = self.run_program([str(BIN / "mlaunch"), "--launcher", "mpi", "--web", "0", "true"], expect=2)
        self.assertIn("--web 0 has no effect: with --launcher mpi", mpi.stderr)


class ForPrometheus(Pages):
    """Prometheus' own parser reads the figures, in this Python or in the environment that STRATA_PEERS names."""

    def parsed(self, text):
        done = subprocess.run([PYTHON, "-c", PARSE], input=text, capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    def test_its_parser_reads_all_figures(self):
        self.start_run()
        code, text = self.ask("/metrics")
        self.assertEqual(code, 200)
        code, parsed, error = self.parsed(text)
        self.assertEqual(code, 0, error)
        families = json.loads(parsed)
        kinds = dict(re.findall(r"(?m)^# TYPE (\S+) (\S+)$", text))
        self.assertEqual({name + "_total" * (kind == "counter"): kind for name, kind, help, samples in families}, kinds)
        self.assertTrue(all(help and samples for name, kind, help, samples in families), families)
        self.assertEqual(sum(len(samples) for name, kind, help, samples in families), sum(line[0] != "#" for line in text.splitlines()))
        [hosts] = [samples for name, kind, help, samples in families if name == "strata_hosts"]
        self.assertEqual(sum(value for labels, value in hosts), 1, hosts)

    def test_a_line_that_is_broken_is_found(self):
        self.start_run()
        text = self.ask("/metrics")[1]
        for broken in (text.replace('run="', "run=", 1), text.replace("} 1\n", "} one\n", 1), text.replace("{run=", "{run", 1)):
            self.assertNotEqual(broken, text)
            self.assertNotEqual(self.parsed(broken)[0], 0, broken)


class Browser(Pages):
    """Opens the page in a headless Chromium, where there is one; pictures go to $STRATA_PICTURES."""

    def open_page(self, scheme, width=1280):
        pictures = pathlib.Path(os.environ.get("STRATA_PICTURES", self.home))
        command = [BROWSER, "--headless=new", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--virtual-time-budget=5000",
                   "--disable-background-networking", "--enable-logging=stderr", f"--window-size={width},1200",
                   f"--blink-settings=preferredColorScheme={int(scheme == 'light')}", f"--user-data-dir={self.home}/profile",
                   *(["--no-sandbox"] if os.geteuid() == 0 else [])]
        page = f"http://127.0.0.1:{self.port}/"
        drawn = subprocess.run([*command, f"--screenshot={pictures}/run-{scheme}-{width}.png", page], capture_output=True, text=True, timeout=120)
        dumped = subprocess.run([*command, "--dump-dom", page], capture_output=True, text=True, timeout=120)
        return dumped.stdout, re.findall(r"CONSOLE.*", drawn.stderr + dumped.stderr)

    def test_the_page_draws_a_run_and_says_no_error(self):
        run = self.start_run()
        self.wait_until(lambda: len(self.get_json("/history.json")["step"]) >= 4, "a curve")
        os.kill(children(run.pid)[1], signal.SIGSTOP)
        for scheme, width in (("light", 1280), ("dark", 500)):
            page, errors = self.open_page(scheme, width)
            self.assertEqual(errors, [])
            for words in ("<title>train: step", "<svg", "the ranks start", "is saved in", "stopped"):
                self.assertIn(words, page)

    def test_a_run_that_has_ended_is_said_to_have(self):
        run = self.start_run(["sh", "-c", UNTIL_TOLD])
        page = self.ask("/")[1]
        self.write("told", "")
        run.wait(timeout=SOON_S)
        self.assertIn("the run has ended, or its mlaunch is suspended", page)


if __name__ == "__main__":
    if "ForPrometheus" in sys.argv and missing_packages(PYTHON, ["prometheus_client"]):
        print(f"skipped: {PYTHON} has no prometheus_client; STRATA_PEERS names an environment that has")
        sys.exit(SKIPPED)
    if "Browser" in sys.argv and not BROWSER:
        print("skipped: there is no Chromium to open the page in (apt-get install chromium)")
        sys.exit(SKIPPED)
    unittest.main(argv=sys.argv if len(sys.argv) > 1 else [sys.argv[0], "WebPage"])
