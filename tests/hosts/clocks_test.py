"""Hosts whose clocks differ by hours are hosts like others."""
import shutil
import subprocess
import unittest

from several_hosts import ACTOR, HostsTest

SECONDS = 8  # longer than a host may be silent


class Clocks(HostsTest):
    def expect_no_difference(self, shifted):
        if shutil.which(shifted[0]) is None or subprocess.run([*shifted, "true"], capture_output=True).returncode != 0:
            self.skipTest(f"{shifted[0]} does not work here")
        for program in (["sleep", str(SECONDS)], [ACTOR, "commit", "5", "ks"]):
            first = self.start(self.command(0, 2, 1, program))
            second = self.start([*shifted, *self.command(1, 2, 1, program)])
            ends = [self.ended(host) for host in (first, second)]
            self.assertEqual([end[0] for end in ends], [0, 0], ends)
            self.assertNotIn("is lost", ends[0][2])
        self.assertIn("starting the ranks again from step 5", ends[0][2])

    # Fault 34.
    def test_the_time_since_the_start(self):
        self.expect_no_difference(["unshare", "--time", "--fork", "--boottime", "7200", "--monotonic", "7200"])

    # Fault 34.
    def test_the_time_of_day(self):
        for hours in ("+2h", "-2h"):
            with self.subTest(hours):
                self.expect_no_difference(["faketime", "-m", "-f", hours])


if __name__ == "__main__":
    unittest.main()
