"""Hosts whose clocks differ by hours are hosts like others."""
import shutil
import subprocess
import unittest

from several_hosts import ACTOR, BIN, HostsTest

SECONDS = "8"  # longer than a host may be silent


class Clocks(HostsTest):
    def shifted_by(self, *command):
        """Returns a command that shows others another time, or skips the test."""
        if shutil.which(command[0]) is None or subprocess.run([*command, "true"], capture_output=True).returncode != 0:
            self.skipTest(f"{command[0]} does not work here")
        return list(command)

    def expect_like_others(self, program, prefix=(), secret="secret"):
        """Runs two hosts, the second one with the prefix; returns what the first one said."""
        first = self.start_host(self.command(0, 2, 1, program, secret=secret))
        second = self.start_host([*prefix, *self.command(1, 2, 1, program, secret=secret)])
        ends = [self.ended(host) for host in (first, second)]
        self.assertEqual([end[0] for end in ends], [0, 0], ends)
        self.assertNotIn("is lost", ends[0][2])
        return ends[0][2]

    # Fault 34.
    def test_the_time_since_the_start(self):
        shifted = self.shifted_by("unshare", "--time", "--fork", "--boottime", "7200", "--monotonic", "7200")
        self.expect_like_others(["sleep", SECONDS], shifted)
        self.assertIn("starting the ranks again from step 5", self.expect_like_others([ACTOR, "commit", "5", "ks"], shifted))

    # Fault 34.
    def test_the_time_of_day_where_the_secret_was_made(self):
        """A whole mlaunch under faketime may hang, since a kernel that waits for a time does not know of it."""
        for secret, hours in (("ahead", "+2h"), ("behind", "-2h")):
            with self.subTest(hours):
                self.run_program([*self.shifted_by("faketime", "-f", hours), str(BIN / "mlaunch"), "secret", secret])
                self.expect_like_others(["true"], secret=secret)


if __name__ == "__main__":
    unittest.main()
