"""The watch over memory files, which all tests of hosts have, sees what it is for."""
import tempfile
import unittest

from several_hosts import HostsTest

MAP = """
import mmap, os, sys, time
file = open(sys.argv[1], "rb")
mapped = mmap.mmap(file.fileno(), 4096, prot=mmap.PROT_READ)
while not os.path.exists("told"):
    time.sleep(0.05)
"""


class Watched(HostsTest):
    def test_hosts_that_map_one_file_are_seen(self):
        with tempfile.NamedTemporaryFile(dir="/dev/shm") as file:
            file.write(bytes(4096))
            file.flush()
            hosts = self.start_hosts([1, 1], ["python3", "-c", MAP, file.name])
            self.wait_until(lambda: len(self.memory.shared()) == 1, "the watch to see it")
            self.write("told", "")
            self.assertEqual([self.ended(host)[0] for host in hosts], [0, 0])
        self.assertEqual(len(self.memory.shared()), 1)
        self.memory.files.clear()  # the end of this test shall not complain


if __name__ == "__main__":
    unittest.main()
