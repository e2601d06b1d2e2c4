"""Runs over several hosts: ranks die, agents die or fall silent, the coordinator dies, users stop runs and mistype."""
import os
import re
import shutil
import signal
import time
import unittest

from several_hosts import ACTOR, BIN, SOON_S, HostsTest, children, is_running

SAY_WHO = ["sh", "-c", 'echo "rank $RANK of $WORLD_SIZE, $LOCAL_RANK of $LOCAL_WORLD_SIZE on $GROUP_RANK of '
                       '$GROUP_WORLD_SIZE, first $STRATA_FIRST_RANKS, at $STRATA_HOST_ADDRESS, cross $CROSS_RANK of '
                       '$CROSS_SIZE, master $MASTER_ADDR:$MASTER_PORT, run $STRATA_RUN_ID"']


class Hosts(HostsTest):
    def ranks_of(self, host, count):
        self.wait_until(lambda: len(children(host.pid)) == count, "the ranks of a host")
        return children(host.pid)

    def test_ranks_know_their_places(self):
        first, second = (self.ended(host) for host in self.start_hosts([1, 2], SAY_WHO))
        self.assertEqual((first[0], second[0]), (0, 0), (first, second))
        lines = (first[1] + second[1]).splitlines()
        place = r"first 0,1, at 127\.0\.0\.1, cross {} of {}, master 127\.0\.0\.1:(\d+), run (\w+)"
        expected = [r"\[0\] rank 0 of 3, 0 of 1 on 0 of 2, " + place.format(0, 2),
                    r"\[1\] rank 1 of 3, 0 of 2 on 1 of 2, " + place.format(1, 2),
                    r"\[2\] rank 2 of 3, 1 of 2 on 1 of 2, " + place.format(0, 1)]
        found = [re.fullmatch(pattern, line) for pattern, line in zip(expected, sorted(lines))]
        self.assertTrue(all(found) and len(lines) == 3, lines)
        self.assertEqual(len({match.groups() for match in found}), 1, "one port, one run")
        self.assertNotEqual(found[0][1], str(self.port), "it is the coordinator's")
        joined = rf"mlaunch: this host has joined run {found[0][2]} as host 1; the mlaunch at 127\.0\.0\.1:{self.port} watches over it\n"
        self.assertRegex(second[2], joined + r"mlaunch: ranks 1 to 2 of 3 start here\n")

    # Fault 1.
    def test_a_rank_that_fails_ends_all_hosts_and_is_told_with_its_host(self):
        for program, code, words in [([ACTOR, "fail", "2", "78"], 78, "the flux of rank 2 is wrong"),
                                     ([ACTOR, "signal", "1", "9"], 137, "in collective 1 'reduce_scatter layer4'")]:
            with self.subTest(code):
                first, second = self.start_hosts([1, 2], program)
                begin = time.monotonic()
                code_of_first, _, report = self.ended(first)
                code_of_second, _, said = self.ended(second)
                self.assertLess(time.monotonic() - begin, 6)
                self.assertEqual((code_of_first, code_of_second), (code, code), report + said)
                self.assertRegex(report, r"mlaunch: rank [12] of 3 failed: .*rank_actor")
                self.assertRegex(report, r"  host    1 \(.+\)\n")
                self.assertIn(words, report)
                self.assertIn(f"the run has ended with code {code}; its first host says why", said)

    # Fault 1.
    def test_a_run_starts_again_after_a_failure_elsewhere(self):
        first, second = self.start_hosts([1, 1], [ACTOR, "commit", "5", "ks"])
        code, _, said = self.ended(first)
        self.assertEqual((code, self.ended(second)[0]), (0, 0), said)
        self.assertIn("starting the ranks again from step 5", said)

    # Fault 10.
    def test_an_agent_that_dies_takes_its_ranks_along_and_is_a_lost_host(self):
        first, second = self.start_hosts([1, 2], [ACTOR, "fail", "7", "1"], ["--max-restarts", "0"])
        ranks = self.ranks_of(second, 2)
        os.kill(second.pid, signal.SIGKILL)
        begin = time.monotonic()
        code, _, report = self.ended(first)
        self.assertLess(time.monotonic() - begin, 15)
        self.assertEqual(code, 75, report)
        self.assertEqual(len(re.findall(r"mlaunch: host 1 \(.+\) is lost: its mlaunch has ended", report)), 1, "at once")
        self.assertRegex(report, r"mlaunch: the ranks have ended: host 1 \(.+\) is lost: its mlaunch has ended")
        self.assertFalse([pid for pid in ranks if is_running(pid)])

    # Fault 10.
    def test_an_agent_that_comes_again_takes_part_in_the_next_attempt(self):
        options = ["--max-restarts", "2", "--log-dir", "logs"]
        first, second = self.start_hosts([1, 1], [ACTOR, "commit", "5", "ws"], options)
        self.ranks_of(second, 1)
        self.wait_for_commit(first, 5)
        os.kill(second.pid, signal.SIGKILL)
        third = self.start_host(self.command(1, 2, 1, [ACTOR, "commit", "5", "ws"], options))
        code, _, said = self.ended(first)
        self.assertEqual((code, self.ended(third)[0]), (0, 0), said)
        self.assertIn("starting the ranks again", said)
        [run] = (self.home / "logs").iterdir()
        self.assertEqual({entry.name for entry in run.iterdir() if entry.is_file()}, {"mlaunch.log", "mlaunch.1.log", "mlaunch.1.again_1.log"})

    # Fault 10.
    def test_a_silent_host_is_lost_and_its_ranks_end(self):
        first, second = self.start_hosts([1, 1], [ACTOR, "fail", "7", "1"], ["--max-restarts", "0"])
        ranks = self.ranks_of(second, 1)
        self.wait_for_beats(first, 2, step=12)
        os.kill(second.pid, signal.SIGSTOP)
        begin = time.monotonic()
        code, _, report = self.ended(first)
        took = time.monotonic() - begin
        self.assertEqual(code, 75, report)
        self.assertRegex(report, r"(?s)host 1 \(.+\) has been silent for .+ s; it counts as lost after 6\.5 s"
                                 r".*host 1 \(.+\) is lost: it has given no sign of life for [56] s")
        self.assertTrue(4.5 < took < 9, took)
        os.kill(second.pid, signal.SIGCONT)
        self.wait_until(lambda: not is_running(ranks[0]), "the end of a rank whose lease has ended")
        second.kill()

    # Faults 12, 13.
    def test_ranks_end_with_the_lease_when_the_coordinator_dies(self):
        first, second = self.start_hosts([1, 1], [ACTOR, "fail", "7", "1"])
        ranks = self.ranks_of(second, 1)
        self.wait_for_beats(first, 2, step=12)
        os.kill(first.pid, signal.SIGKILL)
        begin = time.monotonic()
        self.wait_until(lambda: not is_running(ranks[0]), "the end of the lease", 8)
        self.assertTrue(3 < time.monotonic() - begin < 6)
        os.kill(second.pid, signal.SIGKILL)
        said = second.communicate()[1]
        self.assertIn("has not answered this host in time: its ranks here are killed", said)
        self.assertIn(f"host 0 does not answer any more at 127.0.0.1:{self.port} ", said)
        self.assertIn("this host waits for it up to 60 s", said)

    # Faults 13, 36.
    def test_a_signal_that_the_coordinator_no_longer_hears_ends_its_host(self):
        first, second = self.start_hosts([1, 1], [ACTOR, "fail", "7", "1"])
        self.wait_for_beats(first, 2, step=12)
        os.kill(first.pid, signal.SIGKILL)
        os.kill(second.pid, signal.SIGTERM)
        code, _, said = self.ended(second, SOON_S)
        self.assertEqual(code, 75, said)

    # Fault 36.
    def test_a_signal_to_one_host_or_all_lets_all_ranks_save(self):
        for which in ([1], [0, 1]):
            with self.subTest(which):
                hosts = self.start_hosts([1, 2], [ACTOR, "save"])
                for host, count in zip(hosts, [1, 2]):
                    self.wait_for_lines(host.stdout, "ready", count)
                for node in which:
                    hosts[node].send_signal(signal.SIGTERM)
                ends = [self.ended(host) for host in hosts]
                self.assertEqual([end[0] for end in ends], [75, 75], ends)
                self.assertEqual("".join(end[1] for end in ends).count("saved"), 3, ends)

    # Fault 7.
    def test_what_holds_a_rank_on_another_host_is_said(self):
        first, second = self.start_hosts([1, 2], [ACTOR, "stop", "2"], ["--max-restarts", "0"])
        code, _, report = self.ended(first)
        self.assertEqual(code, 75, report)
        self.assertRegex(report, r"mlaunch: rank 2 on host 1 \(.+\) has been stopped or frozen for \d+ s")
        self.assertRegex(report, r"(?m)^mlaunch: rank 2 of 3 hung\n  host    1 \(.+\)$")
        self.assertRegex(report, r"(?m)^  held    rank 2: stopped", report)
        self.assertEqual(self.ended(second)[0], 75)

    def test_status_and_stop_reach_ranks_of_all_hosts(self):
        first, second = self.start_hosts([1, 2], [ACTOR, "save"])
        for host, count in zip([first, second], [1, 2]):
            self.wait_for_lines(host.stdout, "ready", count)
        self.wait_for_beats(first, 3)
        run = self.status_of(first)
        self.assertEqual([rank["rank"] for rank in run["ranks"]], [0, 1, 2])
        hosts = [rank["host"] for rank in run["ranks"]]
        self.assertTrue(hosts[0].startswith("0 (") and hosts[1] == hosts[2] and hosts[1].startswith("1 ("), hosts)
        self.run_program([str(BIN / "mlaunch"), "stop", run["run"]])
        self.assertEqual([self.ended(host)[0] for host in (first, second)], [75, 75])

    # Fault 35.
    def test_what_a_run_waits_for_and_whom_it_refuses_is_shown(self):
        program = ["sh", "-c", "exit 0"]
        first = self.start(self.command(0, 2, 1, program))
        self.wait_until(lambda: self.status_of(first), "the run")
        run = self.status_of(first)
        self.assertEqual(run["state"], "waiting")
        waiting = run["waiting"]
        self.assertEqual([waiting[name] for name in ("hosts_there", "hosts_needed", "hosts_of_run", "missing", "limit_seconds")],
                         [1, 2, 2, "1", 300])
        self.assertEqual([(host["host"], host["state"], host["address"]) for host in run["hosts"]],
                         [("0", "ready", "127.0.0.1"), ("1", "missing", "")])
        text = self.run_program([str(BIN / "mlaunch"), "status", run["run"]]).stdout
        self.assertRegex(text, r"waits for hosts for \d+ s of 5 min: 1 of 2 there, 2 needed; missing: 1\n")
        self.assertEqual(self.ended(self.start(self.command(1, 2, 1, program, ["--rejoin", "30"])))[0], 78)
        self.assertEqual(self.ended(self.start(self.command(1, 2, 1, program, ["--rejoin", "30"])))[0], 78)
        shown = self.status_of(first)["hosts"][1]
        words = "it was told --rejoin 30, this host 60: give all of them the same"
        self.assertEqual((shown["state"], shown["address"], shown["why"]), ("refused", "127.0.0.1", words))
        second = self.start(self.command(1, 2, 1, program))
        code, _, said = self.ended(first)
        self.assertEqual((code, self.ended(second)[0]), (0, 0), said)
        self.assertRegex(said, rf"mlaunch: host 1 \(.+ at 127\.0\.0\.1\) may not take part: {words}\n")
        self.assertEqual(said.count("may not take part"), 1, said)

    # Fault 35.
    def test_a_run_that_waits_for_refused_hosts_alone_asks_for_no_other_start(self):
        first = self.start_host(self.command(0, 2, 1, ["true"], ["--rdzv-conf", "join_timeout=8"]))
        second = self.start_host(self.command(1, 2, 1, ["true"], ["--rejoin", "30"]))
        self.assertEqual(self.ended(second)[0], 78)
        code, _, said = self.ended(first, SOON_S)
        self.assertEqual(code, 78, said)
        self.assertIn("may not take part: it was told --rejoin 30, this host 60: give all of them the same. Mend that before it starts again\n", said)

    def test_an_end_while_a_run_waits_for_hosts_is_said(self):
        for how, words in [("SIGTERM", ""), ("stop", "mlaunch: mlaunch stop ends the run\n")]:
            first = self.start(self.command(0, 2, 1, ["true"]))
            self.wait_for_lines(first.stderr, "for 1 more host, up to 300 s\n")
            self.wait_until(lambda: self.status_of(first), "the run")
            if how == "stop":
                self.run_program([str(BIN / "mlaunch"), "stop"])
            else:
                first.send_signal(signal.SIGTERM)
            code, _, said = self.ended(first, SOON_S)
            self.assertEqual((code, said), (75, words + "mlaunch: the run ends, as it was asked to; it waited for hosts and has no ranks\n"))

    # Fault 35.
    def test_options_that_are_the_run_s_are_compared(self):
        first = self.start(self.command(0, 2, 1, ["true"], ["--max-restarts", "5", "--hang-timeout", "60"]))
        for options, words in [([], "this host was told --max-restarts 3, the coordinator 5"),
                               (["--max-restarts", "5"], "this host was told --hang-timeout 30, the coordinator 60")]:
            code, _, said = self.ended(self.start(self.command(1, 2, 1, ["true"], options)))
            self.assertEqual(code, 78, said)
            self.assertIn(words, said)
        second = self.start(self.command(1, 2, 1, ["true"], ["--max-restarts", "5", "--hang-timeout", "60", "--grace", "7", "--no-prefix"]))
        self.assertEqual([self.ended(host)[0] for host in (first, second)], [0, 0])

    # Fault 35.
    def test_the_number_of_ranks_is_compared(self):
        first = self.start(self.command(0, "2:3", 1, ["true"], ["--elastic", "2:4"]))
        code, _, said = self.ended(self.start(self.command(1, "2:3", 1, ["true"], ["--elastic", "2:3"])))
        self.assertEqual(code, 78, said)
        self.assertIn("this host was told --elastic 2:3, the coordinator 2:4", said)
        self.assertIsNone(first.poll())

    def test_a_host_says_soon_that_nothing_answers(self):
        for address, words in [("127.0.0.1", r"at 127\.0\.0\.1:\d+ \(nobody listens there\)"),
                               ("no.such.host.invalid", r"at no\.such\.host\.invalid:\d+ \(this host's DNS does not know the name; .*\)")]:
            command = self.command(1, 2, 1, ["true"])
            command[command.index("--master-addr") + 1] = address
            host = self.start(command)
            begin = time.monotonic()
            said = host.stderr.readline()
            self.assertRegex(said, f"mlaunch: host 0 does not answer {words}: it has not started yet, or the run is over; "
                                   "this host tries again for up to 300 s\n")
            self.assertLess(time.monotonic() - begin, 10)
            host.kill()

    # A scheduler must not start it again and again.
    def test_a_host_that_comes_after_the_end_ends_with_the_code_of_one_that_nobody_answers(self):
        first, second = self.start_hosts([1, 1], ["true"])
        self.assertEqual([self.ended(host)[0] for host in (first, second)], [0, 0])
        late = self.start_host(self.command(1, 2, 1, ["true"], ["--rdzv-conf", "join_timeout=5"]))
        code, _, said = self.ended(late, SOON_S)
        self.assertEqual(code, 69, said)
        self.assertRegex(said, r"\(nobody listens there\): it has not started yet, or the run is over; this host tries again for up to 5 s\n")
        self.assertRegex(said, r"for 5 s \(nobody listens there\): it has not started, or the run is over; this host ends\n")

    def test_hosts_wait_as_long_as_they_are_told(self):
        first = self.start_host(self.command(0, 2, 1, ["true"], ["--rdzv-conf", "join_timeout=2"]))
        code, _, said = self.ended(first, SOON_S)
        self.assertEqual(code, 75, said)
        self.assertIn("for 1 more host, up to 2 s\n", said)

    def test_hosts_may_keep_logs_in_one_folder(self):
        first, second = self.start_hosts([1, 2], SAY_WHO, ["--log-dir", "logs"])
        ends = [self.ended(host) for host in (first, second)]
        self.assertEqual([end[0] for end in ends], [0, 0], ends)
        [run] = (self.home / "logs").iterdir()
        self.assertEqual(sorted(entry.name for entry in run.iterdir()), ["attempt_0", "mlaunch.1.log", "mlaunch.log"])
        self.assertEqual(sorted(entry.name for entry in (run / "attempt_0").iterdir()), ["rank_0", "rank_1", "rank_2"])

    # Fault 35.
    def test_a_host_that_the_run_does_not_have_is_refused(self):
        first = self.start_host(self.command(0, 2, 1, ["true"]))
        code, _, said = self.ended(self.start_host(self.command(2, 3, 1, ["true"])))
        self.assertEqual(code, 78, said)
        self.assertIn("this host was told --nnodes 3, the coordinator 2", said)
        self.assertIsNone(first.poll())

    # Fault 35.
    def test_a_host_with_another_build_is_refused_and_a_copy_is_not(self):
        copy = self.home / "copy"
        (copy / "bin").mkdir(parents=True)
        shutil.copy(BIN / "mlaunch", copy / "bin")
        os.symlink(BIN.parent / "lib", copy / "lib")
        for change, expected in ((b"", 0), (b"another build", 78)):
            with open(copy / "bin/mlaunch", "ab") as program:
                program.write(change)
            first = self.start_host(self.command(0, 2, 1, ["true"]))
            code, _, said = self.ended(self.start_host([str(copy / "bin/mlaunch"), *self.command(1, 2, 1, ["true"])[1:]]))
            self.assertEqual(code, expected, said)
        self.assertRegex(said, r"this host has mlaunch [0-9a-f]{16}, the coordinator [0-9a-f]{16}; install the same Strata everywhere")
        self.assertNotIn("control", said, "what is equal is not listed")
        self.assertIsNone(first.poll())

    def test_an_agent_without_a_coordinator_ends_by_signals(self):
        for number, code in ((signal.SIGTERM, 75), (signal.SIGINT, 130)):
            agent = self.start_host(self.command(1, 2, 1, ["true"]))
            self.wait_for_lines(agent.stderr, "nobody listens there")
            agent.send_signal(number)
            ended, _, said = self.ended(agent, SOON_S)
            self.assertEqual(ended, code, said)

    # Fault 35.
    def test_an_interface_that_a_host_does_not_have_is_refused_before_it_joins(self):
        for node in (0, 1):
            done = self.run_program(self.command(node, 2, 1, ["true"], ["--interface", "none0"]), expect=2)
            self.assertRegex(done.stderr, r"--interface none0: this host has no interface of that name with an address; it has .*lo \(127\.0\.0\.1\)")

    def test_a_folder_for_logs_that_a_host_cannot_make_is_refused_before_it_joins(self):
        first = self.start_host(self.command(0, 2, 1, ["true"]))
        self.wait_for_lines(first.stderr, "for 1 more host, up to 300 s\n")
        done = self.run_program(self.command(1, 2, 1, ["true"], ["--log-dir", "secret"]), expect=69)
        self.assertIn("--log-dir secret: the folder ", done.stderr)
        second = self.start_host(self.command(1, 2, 1, ["true"]))
        (code, _, said), (second_code, _, _) = self.ended(first), self.ended(second)
        self.assertEqual((code, second_code), (0, 0))
        self.assertNotIn("is lost", said)

    def test_what_is_mistyped_is_said(self):
        missing = self.run_program([str(BIN / "mlaunch"), "--nnodes", "2", "true"], expect=2)
        self.assertIn("--nnodes 2 also needs, on each host: --node-rank R", missing.stderr)
        nothing = self.run_program(self.command(0, 2, 1, ["true"], secret="nothing"), expect=69)
        self.assertIn("cannot read the run's secret nothing", nothing.stderr)
        (self.home / "open").write_text(self.read("secret"))
        (self.home / "open").chmod(0o644)
        readable = self.run_program(self.command(0, 2, 1, ["true"], secret="open"), expect=78)
        self.assertIn("chmod 600 open", readable.stderr)
        again = self.run_program([str(BIN / "mlaunch"), "secret", "secret"], expect=2)
        self.assertIn("hosts of a run may have read it", again.stderr)

    # Faults 31, 32.
    def test_a_host_with_another_secret_or_a_foreign_port_is_refused(self):
        first, second = self.start_hosts([1, 1], [ACTOR, "fail", "7", "1"])
        self.ranks_of(first, 1)
        self.run_program([str(BIN / "mlaunch"), "secret", "other"])
        wrong = self.run_program(self.command(1, 2, 1, ["true"], secret="other"), expect=78)
        self.assertIn(f"host 0 does not let this one in: the secret in other is not that of the run at 127.0.0.1:{self.port} (the certificate differs); "
                      "compare it with the --run-secret file of host 0, and give all hosts the same", wrong.stderr)
        self.wait_for_lines(first.stderr, "a host at 127.0.0.1 may not take part: its secret is not the one in secret; "
                                          "compare its --run-secret file with that, and give all hosts the same")
        refused = self.status_of(first)["hosts"][2:]
        self.assertEqual([(host["host"], host["address"], host["state"]) for host in refused], [("", "127.0.0.1", "refused")])
        taken = self.run_program(self.command(0, 2, 1, ["true"]), expect=69)
        self.assertIn(f"process {first.pid} (mlaunch) has the port: if that is host 0 of this run, this host has another --node-rank; "
                      "if it is another run, name another one with --master-port", taken.stderr)
        self.assertIsNone(first.poll())
        self.assertIsNone(second.poll())

    # Fault 32.
    @unittest.skipUnless(shutil.which("openssl"), "makes a certificate with openssl")
    def test_another_program_with_a_certificate_is_no_run_with_another_secret(self):
        self.run_program(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                          "-subj", "/CN=elsewhere", "-keyout", "key.pem", "-out", "certificate.pem"])
        server = self.start_host(["openssl", "s_server", "-accept", str(self.port), "-key", "key.pem", "-cert", "certificate.pem", "-www"])
        self.wait_for_lines(server.stdout, "ACCEPT")
        asked = self.run_program([str(BIN / "mlaunch"), "status", "--at", f"127.0.0.1:{self.port}", "--run-secret", "secret"],
                                 expect=69)
        self.assertIn("what answers there is not mlaunch", asked.stderr)
        host = self.start_host(self.command(1, 2, 1, ["true"]))
        self.wait_for_lines(host.stderr, "what answers there is not mlaunch")
        self.assertIsNone(host.poll(), "it waits for its run")
        for process in (host, server):
            process.kill()

    # Fault 31.
    def test_a_number_that_two_hosts_have_is_refused_to_the_later_one(self):
        early = self.start_host(self.command(1, 3, 1, ["true"]))
        first = self.start_host(self.command(0, 3, 1, ["true"]))
        self.wait_for_lines(early.stderr, "this host has joined run")
        code, _, said = self.ended(self.start_host(self.command(1, 3, 1, ["true"])))
        self.assertEqual(code, 75)
        self.assertRegex(said, r"host 1 is there already \(.+\), and answers: give each host a --node-rank of its own")
        third = self.start_host(self.command(2, 3, 1, ["true"]))
        self.assertEqual([self.ended(host)[0] for host in (first, early, third)], [0, 0, 0])

    def test_the_doctor_refuses_hosts_that_start_in_different_folders(self):
        (self.home / "other").mkdir()
        doctor = [str(BIN / "doctor"), "--hosts", "--output", "out"]
        first = self.start_host(self.command(0, 2, 1, doctor))
        second = self.start_host(["sh", "-c", 'cd other && exec "$@"', "sh", *self.command(1, 2, 1, doctor, secret=str(self.home / "secret"))])
        code, said, error = self.ended(first)
        self.assertEqual((code, self.ended(second)[0]), (69, 69), said + error)
        self.assertIn(f"host 0's file is not seen there, which is {self.home}/other here and {self.home} on host 0", said)

    def test_a_host_says_that_its_standard_output_is_lost(self):
        first = self.start_host(self.command(0, 2, 1, ["echo", "hi"]))
        second = self.start_host(["sh", "-c", 'exec "$@" > /dev/full', "sh", *self.command(1, 2, 1, ["echo", "hi"])])
        self.assertEqual(self.ended(first)[0], 0)
        code, _, said = self.ended(second)
        self.assertEqual(code, 74, said)
        self.assertIn("standard output is not whole: No space left on device", said)

    def test_a_mistake_in_the_arguments_of_train_waits_for_no_host(self):
        for node in range(2):
            done = self.run_program(["env", "RANK=1", *self.command(node, 2, 1, ["train", "--stepz", "3"])], expect=2, limit_s=SOON_S)
            self.assertEqual(done.stderr, "mlaunch: train: unknown flag --stepz, did you mean '--steps'? (train --help lists the flags)\n")

    # Fault 35.
    def test_hosts_that_would_run_different_things_are_refused(self):
        first = self.start_host(self.command(0, 2, 1, ["sh", "-c", "exit 0"]))
        for count, program, words in [(2, ["sh", "-c", "exit 1"], "-c is 'exit 1' on this host and 'exit 0' there"),
                                      (3, ["sh", "-c", "exit 0"], "this host was told --nnodes 3, the coordinator 2")]:
            code, _, said = self.ended(self.start_host(self.command(1, count, 1, program)))
            self.assertEqual(code, 78, said)
            self.assertIn(words, said)
        second = self.start_host(self.command(1, 2, 1, ["sh", "-c", "exit 0"]))
        self.assertEqual([self.ended(host)[0] for host in (first, second)], [0, 0])


if __name__ == "__main__":
    unittest.main()
