"""Runs over hosts that share neither memory nor processes nor a network interface."""
import concurrent.futures
import os
import time
import unittest

from namespaces import Namespaces, run
from several_hosts import ACTOR, children


class Apart(Namespaces):
    HOSTS = 3

    def test_ranks_are_on_their_hosts(self):
        tell = ["sh", "-c", 'echo "$RANK $(hostname) $STRATA_HOST_ADDRESS $MASTER_ADDR $(ls /dev/shm | wc -l)"']
        ends = [self.ended(host) for host in self.launch([1, 2, 1], tell)]
        self.assertEqual([end[0] for end in ends], [0, 0, 0], ends)
        lines = sorted("".join(end[1] for end in ends).splitlines())
        self.assertEqual(lines, [f"[{rank}] {rank} host{host} {self.address(host)} {self.address(0)} 0"
                                 for rank, host in enumerate([0, 1, 1, 2])])

    def test_ranks_meet_over_the_network_and_their_host_is_named_when_they_fail(self):
        ends = [self.ended(host) for host in self.launch([1, 1, 1], [ACTOR, "commit", "5", "f"], ["--max-restarts", "0"])]
        self.assertEqual([end[0] for end in ends], [1, 1, 1], ends)
        self.assertIn("rank 1 of 3 failed", ends[0][2])
        self.assertIn("  host    1 (host1)", ends[0][2])

    def test_the_doctor_names_hosts_that_do_not_reach_one_another(self):
        run("ip", "-n", "stratahost1", "route", "add", "prohibit", f"{self.address(2)}/32")
        ends = [self.ended(host) for host in self.launch([1, 1, 1], ["doctor", "--hosts"])]
        self.assertEqual(ends[0][0], 69, ends)
        lines = ends[0][1].splitlines()
        self.assertEqual([" ".join(line.split()[:3]) for line in lines[1:4]],
                         [f"host{host} {self.address(host)} (eth0)" for host in range(3)])
        bad = [line for line in lines if line.startswith("bad")]
        self.assertTrue(any(f"host1 does not reach host2 at {self.address(2)}, port " in line for line in bad), lines)
        self.assertFalse(any("host0" in line for line in bad), bad)

    # Faults 10, 11.
    def test_a_host_that_is_cut_off_ends_its_ranks_before_others_start(self):
        hosts = self.launch([1, 1], [ACTOR, "commit", "5", "ws"], ["--max-restarts", "1"])
        self.wait_until(lambda: self.committed(hosts), "a commit")
        time.sleep(1.5)  # until a heartbeat has told of it
        self.cut(1)
        begin = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor() as readers:
            lost = readers.submit(self.wait_for_line, hosts[0].stderr, "host 1 (host1) is lost: it has given no sign of life")
            killed = readers.submit(self.wait_for_line, hosts[1].stderr, "has not answered this host in time: its ranks here are killed")
        self.assertTrue(4 < lost.result() - begin < 8, lost.result() - begin)
        self.assertLess(killed.result(), lost.result(), "the lease ends before the coordinator counts on its end")
        self.mend(1)
        self.assertEqual([self.ended(host)[0] for host in hosts], [0, 0])

    def committed(self, hosts):
        if not hasattr(self, "seen"):
            self.seen = hosts[0].stdout.readline()
        return "attempt 0" in self.seen

    @staticmethod
    def wait_for_line(stream, words):
        """Returns when a line with these words came."""
        for line in stream:
            if words in line:
                return time.monotonic()
        raise AssertionError(f"the stream ended without: {words}")

    # Faults 11, 13.
    def test_agents_of_a_coordinator_that_is_cut_off_wait_for_it_a_minute(self):
        hosts = self.launch([1, 1], [ACTOR, "fail", "7", "1"])
        self.wait_for_process(hosts[1], "rank_actor")
        time.sleep(1.5)
        self.cut(0)
        begin = time.monotonic()
        self.wait_for_line(hosts[1].stderr, "this host waits for it up to 60 s")
        self.assertLess(time.monotonic() - begin, 15)

    def wait_for_process(self, host, name):
        def there(pid):
            try:
                return os.path.basename(os.readlink(f"/proc/{pid}/exe")) == name or any(there(child) for child in children(pid))
            except OSError:
                return False
        self.wait_until(lambda: there(host.pid), name)

    def test_an_address_that_others_cannot_reach_is_refused(self):
        refused = self.on_host(0, ["sh", "-c", 'echo "127.0.1.1 node0" > /tmp/hosts; mount --bind /tmp/hosts /etc/hosts; exec "$@"', "sh",
                                   *self.command(0, 2, 1, ["true"])[:5], "--master-addr", "node0",
                                   *self.command(0, 2, 1, ["true"])[7:]])
        code, _, said = self.ended(refused)
        self.assertEqual(code, 78, said)
        self.assertIn("--master-addr node0 leads to 127.0.1.1 on this host, where no other host can reach it", said)


if __name__ == "__main__":
    unittest.main()
