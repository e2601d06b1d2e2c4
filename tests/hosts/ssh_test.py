"""Hosts that mlaunch starts by ssh, through a real sshd on this machine."""
import os
import pathlib
import pwd
import shutil
import signal
import socket
import subprocess
import unittest

from several_hosts import ACTOR, BIN, SOON_S, HostsTest, agents, children, free_port, is_running

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/bin:/sbin:/bin")
CLIENT = """Host b c
  HostName 127.0.0.1
Host *
  Port {port}
  User {user}
  IdentityFile {home}/key
  IdentitiesOnly yes
  UserKnownHostsFile {home}/known
  StrictHostKeyChecking accept-new
  LogLevel ERROR
"""
SERVER = """Port {port}
ListenAddress 127.0.0.1
HostKey {home}/host_key
AuthorizedKeysFile {home}/key.pub
PidFile {home}/sshd.pid
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin yes
"""


class Ssh(HostsTest):
    def setUp(self):
        super().setUp()
        if SSHD is None or shutil.which("ssh") is None:
            self.skipTest("there is no sshd")
        if os.geteuid() != 0:
            self.skipTest("this sshd needs root")
        for name in ("key", "host_key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.home / name], check=True)
        facts = {"port": free_port(), "user": pwd.getpwuid(os.getuid()).pw_name, "home": self.home}
        self.write("sshd_config", SERVER.format(**facts))
        self.write("ssh_config", CLIENT.format(**facts))
        # mlaunch calls ssh, as its users do; this one reads the configuration of the test.
        self.write("bin/ssh", f'#!/bin/sh\nexec {shutil.which("ssh")} -F {self.home}/ssh_config "$@"\n').chmod(0o755)
        self.write("hosts", "localhost slots=4\nb slots=4\nc slots=2\n")
        os.makedirs("/run/sshd", exist_ok=True)
        self.sshd = self.start([SSHD, "-D", "-e", "-f", str(self.home / "sshd_config")])
        self.wait_until(lambda: subprocess.run([str(self.home / "bin/ssh"), "b", "true"], capture_output=True).returncode == 0, "sshd")
        path = os.environ["PATH"]
        os.environ["PATH"] = f"{self.home}/bin:{path}"
        self.addCleanup(os.environ.__setitem__, "PATH", path)

    def launch(self, *arguments):
        # Both ends are this machine, so its agents reach the coordinator by the loopback.
        return self.start([str(BIN / "mlaunch"), "--master-addr", "127.0.0.1", *arguments])

    def test_ranks_run_on_listed_hosts_and_what_they_print_comes_here(self):
        run = self.launch("-H", "localhost:1,b:2", "sh", "-c", 'echo "$RANK of $WORLD_SIZE on $GROUP_RANK in $PWD, $1"; '
                          "echo to stderr >&2", "sh", "it's $HOME")
        code, output, error = self.ended(run)
        self.assertEqual(code, 0, error)
        self.assertEqual(sorted(output.splitlines()),
                         [f"[{rank}] {rank} of 3 on {int(rank > 0)} in {self.home}, it's $HOME" for rank in range(3)])
        self.assertEqual(sorted(line for line in error.splitlines() if line.startswith("[")),
                         [f"[{rank}] to stderr" for rank in range(3)])

    def test_a_network_and_slots_are_chosen_for_all_hosts(self):
        run = self.launch("--interface", "lo", "--hostfile", "hosts", "--include", "b:1,3@c:0", "sh", "-c",
                          'echo "$RANK of $WORLD_SIZE by $STRATA_INTERFACE${STRATA_HOST_ADDRESS-}, GPU $CUDA_VISIBLE_DEVICES"')
        code, output, error = self.ended(run)
        self.assertEqual(code, 0, error)
        self.assertEqual(sorted(output.splitlines()), ["[0] 0 of 3 by lo, GPU 1,3", "[1] 1 of 3 by lo, GPU 1,3", "[2] 2 of 3 by lo, GPU 0"])

    def test_views_reach_a_run_with_a_secret_from_a_file(self):
        run = self.launch("--run-secret", "secret", "--master-port", str(self.port), "-H", "localhost:1,b:1", ACTOR, "save")
        self.wait_until(lambda: len(children(run.pid)) == 2, "a rank and the starter of the other")
        logs = [str(BIN / "mlaunch"), "logs", "1", "-f", "--at", f"127.0.0.1:{self.port}", "--run-secret", "secret"]
        follower = self.start(logs)
        self.assertEqual(follower.stdout.readline(), "ready\n", "of a rank on the other host")
        self.wait_for_lines(run.stdout, "ready", 2)
        self.run_program([str(BIN / "mlaunch"), "stop", *logs[4:]])
        self.assertEqual(self.ended(run)[0], 75)
        self.assertIn("saved after signal", follower.communicate(timeout=SOON_S)[0])

    def test_a_hostfile_may_leave_this_host_out(self):
        self.write("hosts", "b slots=1\nc slots=1 # both play on this machine\n")
        code, output, error = self.ended(self.launch("--hostfile", "hosts", ACTOR, "commit", "5", "ks"))
        self.assertEqual(code, 0, error)
        self.assertIn("attempt 1 after step 10", output)
        self.assertRegex(error, r"rank 1 of 2 failed")

    def test_all_ranks_may_be_on_one_other_host(self):
        code, output, error = self.ended(self.launch("-H", "b:2", "sh", "-c", 'echo "$RANK of $WORLD_SIZE"'))
        self.assertEqual((code, sorted(output.splitlines())), (0, ["[0] 0 of 2", "[1] 1 of 2"]), error)

    def test_a_host_that_cannot_be_reached_ends_the_start(self):
        self.sshd.terminate()
        self.sshd.wait()
        code, _, error = self.ended(self.launch("-H", "localhost,b", "true"))
        self.assertEqual(code, 69, error)
        self.assertRegex(error, r"host 1 cannot take part: ssh: connect to host .* refused")
        code, _, error = self.ended(self.launch("-H", "localhost,b,c", "doctor", "--hosts"))
        self.assertEqual(code, 69, error)
        for host in (1, 2):  # the doctor names them all
            self.assertRegex(error, f"host {host} cannot take part: ssh: connect to host .* refused")

    def test_a_host_that_does_not_come_is_named_while_ssh_waits(self):
        # This one is as silent as a host that is down: it takes the connection, and says nothing.
        silent = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(silent.close)
        config = self.read("ssh_config")
        self.write("ssh_config", f"Host c\n  Port {silent.getsockname()[1]}\n" + config)
        run = self.launch("-H", "localhost,b,c", "true")
        said = []
        while "ssh still waits" not in "".join(said[-1:]):
            said.append(run.stderr.readline())
            self.assertTrue(said[-1], said)
        self.assertIn("mlaunch: after 10 s ssh still waits for c; is it up, and does ssh c true end at once?", said[-1])
        run.send_signal(signal.SIGINT)
        self.assertEqual(self.ended(run)[0], 130)

    def test_the_doctor_says_that_hosts_can_work_together(self):
        run = self.launch("-H", "localhost:4,b:4", "doctor", "--hosts", "--output", "out")
        code, output, error = self.ended(run)
        self.assertEqual(code, 0, output + error)
        name = os.uname().nodename
        self.assertRegex(output, rf"(?m)^{name} +127\.0\.0\.1 \(lo\) +{len(os.sched_getaffinity(0))} ")
        self.assertRegex(output, r"(?m)^ok    strata +the same programs and modules in \S+ on all hosts$")
        self.assertRegex(output, r"(?m)^ok    ports +all hosts reach one another")
        self.assertRegex(output, r"(?m)^ok    network +there and back in \d+\.\d+ ms at most; \d+\.\d+ GB/s to ")
        self.assertRegex(output, r"(?m)^ok    output +out is one folder on all hosts, and locks hold$")
        self.assertFalse([path.name for path in self.home.iterdir() if path.name.startswith((".doctor", "out"))])

    def test_the_doctor_refuses_a_folder_that_is_not_shared(self):
        # Each end of the run is in a mount namespace of its own, and sees another folder under this name.
        (self.home / "mine").mkdir()
        hidden = f"mount -t tmpfs tmpfs {self.home}/mine && exec \"$@\""
        run = self.start(["unshare", "--mount", "sh", "-c", hidden, "sh", str(BIN / "mlaunch"), "--master-addr", "127.0.0.1",
                          "-H", "localhost,b", "doctor", "--hosts", "--output", "mine"])
        code, output, error = self.ended(run)
        if "unshare" in error or "mount:" in error:
            self.skipTest(f"this system allows no mount namespaces: {error}")
        self.assertEqual(code, 69, output + error)
        self.assertRegex(output, r"(?m)^bad   output +mine on .* \(host 1\): host 0's file is not seen there; a checkpoint is one folder")

    def test_a_name_that_leads_nowhere_is_named_with_its_list(self):
        self.write("hosts", "nowhere.invalid\nb\n")
        for names in (["-H", "nowhere.invalid,b"], ["--hostfile", "hosts"]):
            run = self.start([str(BIN / "mlaunch"), *names, "true"])
            code, _, error = self.ended(run)
            self.assertEqual(code, 69, error)
            self.assertRegex(error, f"{' '.join(names)}: cannot find the host nowhere.invalid: .*; cannot find the host b: ")

    # Fault 10.
    def test_an_agent_that_dies_is_started_again(self):
        run = self.launch("-H", "localhost:1,b:1", "--max-restarts", "1", ACTOR, "commit", "5", "ws")
        self.wait_until(lambda: len(self.actors()) == 2, "two ranks")
        self.wait_for_commit(run, 5)
        for agent in agents(self.home):
            os.kill(agent, signal.SIGKILL)
        code, _, error = self.ended(run)
        self.assertEqual(code, 0, error)
        self.assertIn("starting the ranks again from step 5", error)

    # Fault 10.
    def test_a_spare_that_is_started_again_is_no_leftover_of_the_ranks(self):
        run = self.launch("--nnodes", "2:3", "--elastic", "2:2", "-H", "localhost:1,b:1,c:1", ACTOR, "commit", "5", "ww")
        spares = lambda: [agent for agent in agents(self.home) if not set(self.actors()) & set(children(agent))]
        self.wait_until(lambda: len(self.actors()) == 2 and len(agents(self.home)) == 2 and len(spares()) == 1, "two ranks and a spare host")
        ranks, before = set(self.actors()), set(children(run.pid))
        [spare] = spares()
        os.kill(spare, signal.SIGKILL)
        self.wait_until(lambda: set(children(run.pid)) - before and len(set(agents(self.home)) - {spare}) == 2, "another agent of that host")
        [starter] = set(children(run.pid)) - before
        os.kill(min(ranks), signal.SIGKILL)
        self.wait_until(lambda: len(set(self.actors()) - ranks) == 2, "the next attempt")
        self.assertTrue(is_running(starter), "it starts and ends with its host")
        run.send_signal(signal.SIGINT)
        self.assertEqual(self.ended(run)[0], 130)

    def test_a_wrong_program_is_told_with_its_host(self):
        code, _, error = self.ended(self.launch("-H", "localhost,b", "no_such_program"))
        self.assertEqual(code, 2, error)

    # Fault 12.
    def test_ctrl_c_and_the_death_of_mlaunch_leave_nothing(self):
        for number, limit in ((signal.SIGINT, 5), (signal.SIGKILL, 8)):
            with self.subTest(number):
                before = set(self.actors())
                run = self.launch("-H", "localhost:1,b:1", ACTOR, "fail", "7", "1")
                self.wait_until(lambda: len(set(self.actors()) - before) == 2, "two ranks")
                ranks = set(self.actors()) - before
                self.wait_for_beats(run, 2, step=12)
                os.kill(run.pid, number)
                self.wait_until(lambda: not [pid for pid in ranks if is_running(pid)], "the end of all ranks", limit)

    def actors(self):
        """Returns the ranks of this test; other tests may have some at the same time."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if (entry.name.isdigit() and os.readlink(entry / "exe") == os.path.realpath(ACTOR)
                        and os.readlink(entry / "cwd") == str(self.home)):
                    found.append(int(entry.name))
            except OSError:
                pass  # it has ended
        return found


if __name__ == "__main__":
    unittest.main()
