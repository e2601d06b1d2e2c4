"""Looking at a run over several hosts from elsewhere: with its secret, without it, and where no run listens."""
import json
import os
import signal
import socket
import threading
import time
import unittest

from several_hosts import ACTOR, BIN, LIMIT_S, SOON_S, HostsTest

CHATTER = ["sh", "-c", 'i=0; while [ $i -lt 120 ]; do i=$((i + 1)); echo "line $i of $RANK"; sleep 0.05; done']


class Views(HostsTest):
    def at(self, command, *arguments, port=None, secret="secret", expect=0):
        # Nothing of this host is asked: there is no folder with runs.
        folder = os.environ["STRATA_RUNS_DIR"]
        os.environ["STRATA_RUNS_DIR"] = str(self.home / "elsewhere")
        self.addCleanup(os.environ.__setitem__, "STRATA_RUNS_DIR", folder)
        try:
            return self.run_program([str(BIN / "mlaunch"), command, *arguments, "--at", f"localhost:{port or self.port}",
                                     "--run-secret", secret], expect=expect)
        finally:
            os.environ["STRATA_RUNS_DIR"] = folder

    def start_and_wait(self, program=(ACTOR, "save"), first_words="ready"):
        """Starts two hosts, of which each rank prints `first_words`, if there are any; waits for these and for heartbeats."""
        hosts = self.start_hosts([1, 2], list(program))
        if first_words:
            for host, count in zip(hosts, [1, 2]):
                self.wait_for_lines(host.stdout, first_words, count)
        self.wait_for_beats(hosts[0], 3)
        return hosts

    def test_status_is_that_of_the_run_s_own_host(self):
        first, _ = self.start_and_wait()
        there = json.loads(self.at("status", "--json").stdout)
        here = json.loads(self.run_program([str(BIN / "mlaunch"), "status", "--json"]).stdout)
        here["runs"] = [run for run in here["runs"] if run["process"] == first.pid]
        for status in (there, here):
            for thing in (status["runs"][0], *status["runs"][0]["ranks"]):
                for name in ("seconds", "phase_seconds", "beats", "progress_age_seconds"):
                    thing.pop(name, None)
        self.assertEqual(there, here)
        run = there["runs"][0]["run"]
        self.assertIn(run, self.at("status", run[:5]).stdout)
        wrong = self.at("status", "zzz", expect=2)
        self.assertIn(f"the run that listens there is {run}, not zzz", wrong.stderr)

    def test_stop_lets_all_ranks_save_and_says_how_it_ended(self):
        hosts = self.start_and_wait()
        stopped = self.at("stop")
        self.assertRegex(stopped.stdout, r"run \w+ is asked to save and end\nrun \w+ has ended with code 75\n")
        ends = [self.ended(host) for host in hosts]
        self.assertEqual([end[0] for end in ends], [75, 75], ends)
        self.assertIn("mlaunch: stopped on request (mlaunch stop)", ends[0][2])
        gone = self.at("stop", expect=69)
        self.assertIn(f"no run answers at localhost:{self.port}: nobody listens there", gone.stderr)

    def test_stop_now_is_not_told_as_ctrl_c(self):
        hosts = self.start_and_wait([ACTOR, "fail", "7", "1"], first_words="")
        self.assertRegex(self.at("stop", "--now").stdout, r"ends at once\nrun \w+ has ended with code 130\n")
        for host in hosts:
            code, _, said = self.ended(host)
            self.assertEqual(code, 130, said)
            self.assertNotIn("ended by Ctrl-C", said)

    def test_a_watcher_sees_the_end(self):
        self.start_and_wait()
        watch = self.start([str(BIN / "mlaunch"), "status", "--watch", "--at", f"127.0.0.1:{self.port}", "--run-secret", "secret"])
        self.at("stop")
        output, error = watch.communicate(timeout=SOON_S)
        self.assertEqual(watch.returncode, 0, error)
        self.assertRegex(output, r"run \w+ has ended with code 75\n$")

    def test_logs_show_ranks_of_all_hosts(self):
        hosts = self.start_and_wait(CHATTER, first_words="line 3 of")
        here = self.run_program([str(BIN / "mlaunch"), "logs"])
        for logs in (here, self.at("logs")):
            for rank in range(3):
                self.assertIn(f"[{rank}] line 1 of {rank}\n", logs.stdout)
            self.assertEqual(logs.stderr, "")
        one = self.at("logs", "2", "--tail", "3").stdout.splitlines()
        self.assertEqual(len(one), 3, one)
        self.assertTrue(all(line.endswith(" of 2") for line in one), one)
        follower = self.start([str(BIN / "mlaunch"), "logs", "-f", "--at", f"127.0.0.1:{self.port}", "--run-secret", "secret"])
        self.assertEqual([self.ended(host)[0] for host in hosts], [0, 0])
        output, error = follower.communicate(timeout=SOON_S)
        self.assertEqual(follower.returncode, 0, error)
        for rank in range(3):
            lines = [line for line in output.splitlines() if line.startswith(f"[{rank}]")]
            self.assertEqual(lines, [f"[{rank}] line {i} of {rank}" for i in range(1, 121)], error)

    def test_kept_logs_of_other_hosts_are_said_to_be_there(self):
        hosts = [self.start_host(self.command(node, 2, 1, ["sh", "-c", "echo line of $RANK"], ["--log-dir", f"logs{node}"])) for node in range(2)]
        self.assertEqual([self.ended(host)[0] for host in hosts], [0, 0])
        [run] = (self.home / "logs0").iterdir()
        logs = [str(BIN / "mlaunch"), "logs", run.name]
        done = self.run_program(logs)
        self.assertEqual(done.stdout, "[0] line of 0\n")
        self.assertIn("mlaunch: ranks of other hosts are not shown; their logs are in the --log-dir of each host\n", done.stderr)
        self.assertNotIn("other hosts", self.run_program([*logs, "0"]).stderr)
        self.assertIn("rank 1 ran on another host; its logs are in that host's --log-dir", self.run_program([*logs, "1"], expect=2).stderr)
        self.assertIn("the run had ranks 0 to 1, and no rank 2", self.run_program([*logs, "2"], expect=2).stderr)

    def test_logs_of_a_host_that_is_silent_are_missed_and_that_is_said(self):
        hosts = self.start_and_wait([ACTOR, "save"])
        os.kill(hosts[1].pid, signal.SIGSTOP)
        logs = self.run_program([str(BIN / "mlaunch"), "logs"])
        self.assertIn("[0] ready", logs.stdout)
        self.assertRegex(logs.stderr, r"mlaunch: host 1 \(.+\) has not sent all that its ranks printed")

    def test_ranks_that_print_much_delay_nobody(self):
        flood = ["sh", "-c", 'case $RANK in 1) exec timeout 8 yes "a line that comes again and again";; *) sleep 8;; esac']
        hosts = self.start_and_wait(flood, first_words="")
        drains = [threading.Thread(target=host.stdout.read, daemon=True) for host in hosts]
        for drain in drains:
            drain.start()
        follower = self.start([str(BIN / "mlaunch"), "logs", "-f", "1"])
        lines = follower.stdout.read().splitlines()
        self.assertGreater(len(lines), 1000)
        # They are lost on the way from the host, or at the run for this reader.
        self.assertRegex("\n".join(lines) + follower.stderr.read(),
                         r"\d+ lines are gone: (its host prints more than can be sent|this reader is slower than the ranks)")
        self.assertEqual([host.wait(30) for host in hosts], [124, 124])

    def test_another_secret_is_refused(self):
        hosts = self.start_and_wait()
        self.run_program([str(BIN / "mlaunch"), "secret", "other"])
        token = next(line for line in self.read("other").splitlines() if line.startswith("token "))
        mixed = [token if line.startswith("token ") else line for line in self.read("secret").splitlines()]
        self.write("mixed", "\n".join(mixed) + "\n").chmod(0o600)
        for secret, part in (("other", "certificate"), ("mixed", "token")):
            for command in ("status", "stop", "logs"):
                done = self.at(command, secret=secret, expect=78)
                self.assertIn(f"the secret in {secret} is not that of the run at localhost:{self.port} (the {part} differs); "
                              "give --run-secret the file that the run was given", done.stderr)
                self.assertEqual(len(done.stderr.splitlines()), 1)
        self.assertIsNone(hosts[0].poll())

    def test_what_is_no_mlaunch_is_said_to_be_none(self):
        plain, closing = socket.create_server(("127.0.0.1", 0)), socket.create_server(("127.0.0.1", 0))
        self.addCleanup(plain.close)
        self.addCleanup(closing.close)
        stop = threading.Event()

        def serve(listener, words):
            while not stop.is_set():
                try:
                    peer, _ = listener.accept()
                except OSError:
                    return
                with peer:
                    peer.settimeout(2)
                    try:
                        peer.recv(1000)
                        peer.sendall(words)
                    except OSError:
                        pass

        for listener, words, said in ((plain, b"HTTP/1.1 400 Bad Request\r\n\r\n", "what answers there is not mlaunch"),
                                      (closing, b"", "it ended the connection")):
            threading.Thread(target=serve, args=(listener, words), daemon=True).start()
            done = self.at("status", port=listener.getsockname()[1], expect=69)
            self.assertIn(said, done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1)
        stop.set()
        # An agent of a run says so, too, while it waits.
        agent = self.start(self.command(1, 2, 1, ["true"], port=plain.getsockname()[1]))
        self.wait_until(lambda: "what answers there is not mlaunch" in agent.stderr.readline(), "its complaint", 10)

    def test_somebody_silent_is_not_waited_for_for_ever(self):
        silent = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(silent.close)
        begin = time.monotonic()
        self.at("status", port=silent.getsockname()[1], expect=69)
        self.assertLess(time.monotonic() - begin, 15)

    def test_command_lines_are_checked(self):
        for arguments, words in ((["status", "--at", "here"], "--at here: expected HOST:PORT"),
                                 (["logs", "--at", "here:1"], "--at also needs --run-secret FILE"),
                                 (["stop", "--run-secret", "secret"], "--run-secret goes with --at HOST:PORT")):
            done = self.run_program([str(BIN / "mlaunch"), *arguments], expect=2)
            self.assertIn(words, done.stderr)
        done = self.run_program([str(BIN / "mlaunch"), "status", "--at", "no.such.host.invalid:1", "--run-secret", "secret"], expect=69)
        self.assertIn("cannot find the host no.such.host.invalid", done.stderr)

    def test_many_ask_at_once(self):
        hosts = self.start_and_wait()
        askers = [self.start([str(BIN / "mlaunch"), "status", "--json", "--at", f"127.0.0.1:{self.port}", "--run-secret", "secret"])
                  for _ in range(20)]
        for asker in askers:
            output, error = asker.communicate(timeout=LIMIT_S)
            self.assertEqual(asker.returncode, 0, error)
            self.assertEqual(len(json.loads(output)["runs"][0]["ranks"]), 3)
        self.assertIsNone(hosts[0].poll())


if __name__ == "__main__":
    unittest.main()
