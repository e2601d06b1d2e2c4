"""`doctor` says what this machine can do, for people and for machines."""
import json
import os
import re
import resource
import subprocess
import tempfile
import unittest

from programs import BIN, ProgramTest

USAGE, IO = 2, 74
DOCTOR = [str(BIN / "doctor")]
THROUGH_MLAUNCH = [str(BIN / "mlaunch"), "doctor"]


class Doctor(ProgramTest):
    def test_a_page_for_people(self):
        (self.home / "drive").mkdir()
        for start in (DOCTOR, THROUGH_MLAUNCH):
            with self.subTest(start=start):
                page = self.run_program([*start, "--nvme-path", "drive"]).stdout
                cores = len(os.sched_getaffinity(0))
                self.assertRegex(page, rf"(?m)^cores +{cores} usable of \d+")
                self.assertRegex(page, r"(?m)^memory +\d+\.\d+ GiB available of \d+\.\d+ GiB")
                self.assertRegex(page, r"(?m)^ +\d+\.\d+ GB/s copied")
                self.assertRegex(page, r"(?m)^io_uring +(allowed|.*forbidden|.*io_uring)")
                self.assertRegex(page, r"(?m)^memlock +(unlimited|\d+\.\d+ .iB)[,:] .*")
                self.assertRegex(page, r"(?m)^GPU +\S.*(\n +\d+\.\d+ GB/s to the device|steps run on the CPU)")
                self.assertRegex(page, r"(?m)^disk +drive: \w+ on \S+, \d+\.\d+ .iB free, (no )?O_DIRECT\n +\d+\.\d+ GB/s "
                                       r"read, \d+\.\d+ GB/s written, .*; chosen: requests of \d\.00 MiB, \d+ at a time")
                self.assertRegex(page, r"(?m)^(nothing to change|to change\n  \S)")
                self.assertLessEqual(len(page.splitlines()), 40)
        self.assertEqual(os.listdir(self.home / "drive"), [])

    def test_json(self):
        for name in ("a", "b"):
            (self.home / name).mkdir()
        facts = json.loads(self.run_program([*THROUGH_MLAUNCH, "--json", "--nvme-path", "a,b"]).stdout)
        self.assertEqual(facts["cores"]["allowed"], len(os.sched_getaffinity(0)))
        self.assertEqual(facts["memory"]["total_bytes"], os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
        self.assertGreater(facts["host_copy_rate"], 1e8)
        self.assertEqual([disk["path"] for disk in facts["disks"]], ["a", "b"])
        for speed in [*facts["disks"], facts["striped"]]:
            for rate in ("read_rate", "write_rate", "mixed_rate"):
                self.assertGreater(speed[rate], 1e6)
            self.assertEqual(speed["request_bytes"] % (1 << 20), 0)
        self.assertEqual(bool(facts["devices"]), not facts["why_no_device"])
        limit = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
        self.assertEqual(facts["io_uring"]["locked_memory_limit_bytes"],
                         None if limit == resource.RLIM_INFINITY else limit)

    def test_a_disk_is_that_of_the_innermost_mount(self):
        if not os.path.ismount("/dev/shm"):
            self.skipTest("/dev/shm is no file system of its own here")
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            os.mkdir(f"{folder}/inner")
            facts = json.loads(self.run_program([*DOCTOR, "--json", "--nvme-path", f"{folder}/inner"]).stdout)
        mounts = subprocess.run(["findmnt", "-no", "FSTYPE,SOURCE", "/dev/shm"], check=True, capture_output=True, text=True).stdout
        self.assertEqual(facts["disks"][0]["file_system"].split(" on "), mounts.splitlines()[-1].split())

    def test_without_folders_no_disk_is_touched(self):
        facts = json.loads(self.run_program([*DOCTOR, "--json"]).stdout)
        self.assertEqual((facts["disks"], facts["striped"]), ([], None))

    def test_folders_that_cannot_serve(self):
        self.write("file", "")
        for path in ("nowhere", "file"):
            with self.subTest(path=path):
                (self.home / "good").mkdir(exist_ok=True)
                done = self.run_program([*DOCTOR, "--nvme-path", "good", path], expect=IO)
                self.assertEqual(done.stdout, "")
                self.assertRegex(done.stderr, rf"\Adoctor: {path}: cannot make a file for offloaded tensors .*\n\Z")
                done = self.run_program([*THROUGH_MLAUNCH, "--nvme-path", path], expect=IO)
                self.assertEqual(len(re.findall("cannot make a file", done.stderr)), 1, done.stderr)

    def test_it_looks_at_one_machine(self):
        done = self.run_program([str(BIN / "mlaunch"), "-np", "2", "doctor"], expect=USAGE)
        self.assertIn("start it once, without -np", done.stderr)
        self.run_program([*DOCTOR, "--nosuch"], expect=USAGE)
        said = self.run_program([*DOCTOR, "--nvme", "/tmp"], expect=USAGE).stderr
        self.assertIn("unknown flag --nvme, did you mean '--nvme-path'?", said)


if __name__ == "__main__":
    unittest.main()
