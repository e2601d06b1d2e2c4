"""mlaunch logs: what the ranks of a run on this host have printed, while it lives."""
import json
import os
import pathlib
import signal
import subprocess
import unittest
import unittest.mock

from programs import BIN, LIMIT_S, SOON_S, UNTIL_TOLD, ProgramTest, children, clean_environment

ACTOR = str(BIN.parent / "tests" / "rank_actor")
USAGE = 2


class RunLogs(ProgramTest):
    def launch(self, ranks, script, options=()):
        # Nothing waits for a reader of its own output.
        return self.start(["sh", "-c", 'exec "$@" > printed', "sh",
                           str(BIN / "mlaunch"), "-np", str(ranks), *options, "sh", "-c", script])

    def logs(self, *arguments, expect=0):
        return self.run_program([str(BIN / "mlaunch"), "logs", *arguments], expect=expect)

    def follow(self, *arguments):
        return self.start([str(BIN / "mlaunch"), "logs", "-f", *arguments])

    def wait_for(self, words):
        def is_there():
            done = subprocess.run([str(BIN / "mlaunch"), "logs"], capture_output=True, text=True, env=clean_environment(), check=False)
            return words in done.stdout
        self.wait_until(is_there, words)

    def test_shows_all_or_one_rank_or_one_stream(self):
        self.launch(2, 'echo "out of $RANK"; echo "err of $RANK" >&2; sleep 60')
        self.wait_for("[1] err of 1")
        self.wait_for("[0] err of 0")
        self.assertEqual(sorted(self.logs().stdout.splitlines()), ["[0] err of 0", "[0] out of 0", "[1] err of 1", "[1] out of 1"])
        self.assertEqual(sorted(self.logs("1").stdout.splitlines()), ["err of 1", "out of 1"])
        self.assertEqual(self.logs("1", "--stderr").stdout, "err of 1\n")
        self.assertEqual(self.logs("0", "--stdout").stdout, "out of 0\n")
        self.assertIn("has ranks 0 to 1, and no rank 7", self.logs("7", expect=USAGE).stderr)
        (run,) = json.loads(self.run_program([str(BIN / "mlaunch"), "status", "--json"]).stdout)["runs"]
        self.assertEqual(self.logs(run["run"], "0", "--stdout").stdout, "out of 0\n")
        self.assertEqual([json.loads(line) for line in self.logs("1", "--json", "--stdout").stdout.splitlines()],
                         [{"rank": 1, "attempt": 0, "stream": "stdout", "text": "out of 1"}])

    def test_follows_to_the_end_over_starts(self):
        run = self.start([str(BIN / "mlaunch"), "-np", "2", "--max-restarts", "1", ACTOR, "commit", "5", "ks"])
        self.wait_until(lambda: children(run.pid), "ranks")
        follower = self.follow("--json")
        run.communicate(timeout=LIMIT_S)
        output, error = follower.communicate(timeout=SOON_S)
        self.assertEqual((follower.returncode, error), (0, ""))
        lines = [json.loads(line) for line in output.splitlines()]
        self.assertEqual({line["attempt"] for line in lines if line["rank"] is not None}, {0, 1})
        said = "\n".join(line["text"] for line in lines if line["rank"] is None)
        self.assertIn("mlaunch: rank 1 of 2 failed", said)
        self.assertIn("mlaunch: starting the ranks again from step 5", said)

    def test_the_last_lines_come_before_the_end(self):
        run = self.launch(1, f"echo first; {UNTIL_TOLD}; echo last; echo failed >&2; exit 7")
        self.wait_for("first")
        follower = self.follow("0")
        self.assertEqual(follower.stdout.readline(), "first\n")
        self.write("told", "")
        self.assertEqual(run.wait(timeout=SOON_S), 7)
        output, _ = follower.communicate(timeout=SOON_S)
        self.assertEqual(output, "last\nfailed\n")

    def test_begins_with_the_last_lines(self):
        self.launch(1, "for i in 1 2 3 4 5 6 7 8 9; do echo $i; done; sleep 60")
        self.wait_for("9")
        self.assertEqual(self.logs("-n", "2").stdout, "[0] 8\n[0] 9\n")
        self.assertEqual(self.logs("--tail=0").stdout, "")
        self.assertEqual(self.logs("0", "--tail", "100").stdout, "".join(f"{i}\n" for i in range(1, 10)))

    def test_old_lines_go_and_that_is_said(self):
        self.launch(2, 'if [ $RANK = 0 ]; then seq 200000; fi; echo "end of $RANK"; sleep 60')
        self.wait_for("end of 0")
        self.wait_for("end of 1")
        logs = self.logs("0")
        lines = logs.stdout.splitlines()
        self.assertEqual(lines[-2:], ["200000", "end of 0"])
        gone = 200001 - len(lines)
        self.assertGreater(gone, 0)
        self.assertEqual(logs.stderr, f"mlaunch: {gone} lines are gone: the run keeps the last of each rank\n")
        self.assertEqual(lines[0], str(gone + 1))
        self.assertEqual(self.logs("0", "--tail", "5").stderr, "", "who begins late misses nothing")
        self.assertIn("[1] end of 1", self.logs().stdout, "a rank that prints much takes nothing from another")

    def test_a_reader_that_stops_delays_no_rank(self):
        run = self.launch(1, 'for i in $(seq 30); do seq 3000; sleep 0.1; done; echo done')
        self.wait_for("1")
        follower = self.follow()  # nobody reads on from its pipe, and it stops
        follower.stdout.readline()
        os.kill(follower.pid, signal.SIGSTOP)
        self.assertEqual(run.wait(timeout=SOON_S), 0)
        self.assertTrue(self.read("printed").endswith("done\n"))
        os.kill(follower.pid, signal.SIGCONT)

    def test_says_what_is_left_of_a_run_that_has_ended(self):
        run = self.launch(1, f"echo gone; {UNTIL_TOLD}", ["--log-dir", "logs"])
        self.wait_for("gone")
        (status,) = json.loads(self.run_program([str(BIN / "mlaunch"), "status", "--json"]).stdout)["runs"]
        self.write("told", "")
        run.wait(timeout=SOON_S)
        kept = self.logs(status["run"])
        self.assertEqual(kept.stdout.strip(), "[0] gone")
        self.assertIn(f"run {status['run']} has ended; these are its files in ", kept.stderr)
        self.assertIn("no run is there", self.logs(expect=USAGE).stderr)
        self.assertIn("mlaunch -- logs", self.logs("--steps", expect=USAGE).stderr)

    def test_says_where_the_reports_of_a_run_that_failed_are(self):
        run = self.launch(1, f"echo here; {UNTIL_TOLD}; exit 3", ["--max-restarts", "0"])
        self.wait_for("here")
        (status,) = json.loads(self.run_program([str(BIN / "mlaunch"), "status", "--json"]).stdout)["runs"]
        self.write("told", "")
        run.wait(timeout=SOON_S)
        self.assertRegex(self.run_program([str(BIN / "mlaunch"), "status", status["run"]]).stdout, rf"its reports are in \S*{status['run']};")

    def test_says_once_that_reports_are_not_kept(self):
        self.write("file", "")
        with unittest.mock.patch.dict(os.environ, STRATA_RUNS_DIR=str(self.home / "file/runs")):
            run = self.launch(1, "exit 3", ["--max-restarts", "1"])
        _, error = run.communicate(timeout=LIMIT_S)
        self.assertRegex(error, rf"mlaunch: note: reports are not kept: {self.home}/file/runs/\w+/attempt_0/report.json: cannot make the folder .*: Not a directory")
        self.assertEqual(error.count(" kept"), 1, error)

    def test_the_last_words_of_a_run_that_gave_up_are_kept(self):
        # No rank ends before the last words of all are on their way.
        run = self.launch(4, 'seq -f "%0100.0f" 20000; echo last words; touch "said-$STRATA_ATTEMPT-$RANK"; '
                             'while [ $(ls said-$STRATA_ATTEMPT-* | wc -l) -lt 4 ]; do sleep 0.05; done; sleep 0.5; exit 3',
                          ["--max-restarts", "9"])
        self.assertEqual(run.wait(timeout=LIMIT_S), 93)
        (kept,) = pathlib.Path(os.environ["STRATA_RUNS_DIR"]).glob("*/output.txt")
        self.addCleanup(kept.unlink)
        self.assertIn("[2] last words\n", kept.read_text())
        self.assertLess(kept.stat().st_size, 1_200_000)

    def test_help_of_all_views_and_of_secret(self):
        for command in ("status", "stop", "logs", "secret"):
            done = self.run_program([str(BIN / "mlaunch"), command, "--help"])
            self.assertIn(f"mlaunch {command}", done.stdout)
            self.assertIn("Exit codes: 0", done.stdout)
            self.assertLessEqual(max(map(len, done.stdout.splitlines())), 100)
        wrong = self.run_program([str(BIN / "mlaunch"), "secret"], expect=USAGE)
        self.assertIn("expected: mlaunch secret FILE; see mlaunch secret --help", wrong.stderr)


if __name__ == "__main__":
    unittest.main()
