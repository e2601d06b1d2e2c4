"""Hosts whose clocks differ by hours are hosts like others."""
import shutil
import subprocess
import time
import unittest

from several_hosts import ACTOR, BIN, HostsTest

SHIFTED_CLOCK = BIN.parent / "tests" / "libshifted_clock.so"
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
    def test_the_time_of_day_on_one_host(self):
        """All programs of a host see a time two hours off: mlaunch, gRPC's threads in it, and ranks."""
        if not SHIFTED_CLOCK.exists():
            self.skipTest("this build has no library that shifts clocks")
        job = [str(BIN / "train"), "--device", "cpu", "--threads", "1", "--sequence-length", "16", "--micro-batch", "1", "--steps", "3",
               "--calibrate", "off", "--output"]
        for hours in (2, -2):
            with self.subTest(hours):
                shifted = ["env", f"LD_PRELOAD={SHIFTED_CLOCK}", f"STRATA_SHIFTED_BY={hours * 3600}"]
                seen = int(self.run_program([*shifted, "date", "+%s"]).stdout) - time.time()
                self.assertLess(abs(seen - hours * 3600), 60)
                self.expect_like_others(["sleep", SECONDS], shifted)
                self.expect_like_others([*job, f"out{hours}"], shifted)

    # Fault 34.
    def test_the_time_of_day_where_the_secret_was_made(self):
        for secret, hours in (("ahead", "+2h"), ("behind", "-2h")):
            with self.subTest(hours):
                self.run_program([*self.shifted_by("faketime", "-f", hours), str(BIN / "mlaunch"), "secret", secret])
                self.expect_like_others(["true"], secret=secret)


if __name__ == "__main__":
    unittest.main()
