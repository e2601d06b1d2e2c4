"""A file system that takes no writes and does not answer, as one on a dead server: who waits for it cannot even be killed. mlaunch
must end all the same, and say which files are missing."""
import os
import re
import shutil
import subprocess
import unittest
import unittest.mock

from programs import BIN, LIMIT_S, SOON_S, ProgramTest, living

TOOLS = ("mkfs.ext4", "mount", "umount", "fsfreeze")
UNTIL_TOLD = "until [ -e go ]; do sleep 0.1; done; exit 3"


def run(*command):
    subprocess.run(command, check=True, capture_output=True)


class FrozenDisk(ProgramTest):
    def setUp(self):
        super().setUp()
        if os.geteuid() != 0 or not all(map(shutil.which, TOOLS)):
            self.skipTest("only root may mount and freeze a disk, with " + ", ".join(TOOLS))
        self.disk = self.home / "disk"
        self.disk.mkdir()
        (self.home / "run").mkdir()
        with open(self.home / "image", "wb") as image:
            image.truncate(16 << 20)
        run("mkfs.ext4", "-q", "-m", "0", str(self.home / "image"))
        try:
            run("mount", "-o", "loop", str(self.home / "image"), str(self.disk))
        except subprocess.CalledProcessError as error:
            self.skipTest(f"no disk can be mounted here: {error.stderr.decode().strip()}")
        self.addCleanup(run, "umount", "--lazy", str(self.disk))
        self.is_frozen = False
        # Reports are kept on the disk, the run's socket is not there.
        environment = unittest.mock.patch.dict(os.environ, XDG_STATE_HOME=str(self.disk), XDG_RUNTIME_DIR=str(self.home / "run"))
        environment.start()
        self.addCleanup(environment.stop)
        os.environ.pop("STRATA_RUNS_DIR", None)

    def freeze(self):
        run("fsfreeze", "--freeze", str(self.disk))
        self.is_frozen = True

    def thaw(self):
        if self.is_frozen:
            run("fsfreeze", "--unfreeze", str(self.disk))
        self.is_frozen = False

    def start_and_fail(self, *options, script=UNTIL_TOLD):
        """Starts a run whose rank fails once the disk is frozen; returns its mlaunch."""
        mlaunch = self.start([str(BIN / "mlaunch"), "-np", "1", *options, "sh", "-c", script])
        self.wait_until(lambda: list((self.home / "run").rglob("*.sock*")), "the run's socket")
        self.addCleanup(self.thaw)  # before the end of who might wait for the disk
        self.freeze()
        self.write("go", "")
        return mlaunch

    def test_a_report_there_keeps_nobody_from_ending(self):
        mlaunch = self.start_and_fail()
        _, error = mlaunch.communicate(timeout=SOON_S)
        self.assertEqual(mlaunch.returncode, 3, error)
        self.assertIn("mlaunch: rank 0 of 1 failed: sh exited with code 3", error)
        json, text = (rf"{self.disk}/strata/runs/\w+/attempt_0/report\.{kind}" for kind in ("json", "txt"))
        self.assertRegex(error, rf"mlaunch: note: {json} is still being written; is its file system slow\?\n")
        missing = re.search(rf"mlaunch: note: missing at the end: ({json}) \(process (\d+)\), ({text}) \(process (\d+)\); "
                            "what writes a file ends once its file system answers\n", error)
        self.assertTrue(missing, error)
        writers = [int(missing[2]), int(missing[4])]
        self.assertEqual(living(writers), writers)
        self.thaw()
        self.wait_until(lambda: not living(writers), "the end of those who write")
        for name in (missing[1], missing[3]):
            self.assertIn("attempt", self.read(name))

    def test_a_report_that_fails_late_is_told(self):
        self.fill()
        # The run goes on until both files have failed, however long that takes.
        mlaunch = self.start_and_fail("--max-restarts", "1", script=f'[ "$STRATA_ATTEMPT" = 0 ] || exec sleep {LIMIT_S}; {UNTIL_TOLD}')
        said = []
        for line in mlaunch.stderr:
            said.append(line)
            if "is still being written" in line:
                self.thaw()
            if sum("is not kept" in line for line in said) == 2:
                break
        mlaunch.terminate()
        mlaunch.wait(LIMIT_S)
        for kind in ("json", "txt"):
            self.assertRegex("".join(said), rf"mlaunch: note: {self.disk}/strata/runs/\w+/attempt_0/report\.{kind} is not kept: .*No space left on device")
        self.assertNotIn("missing at the end", "".join(said))

    def fill(self):
        for size in (1 << 20, 1 << 10, 1):
            try:
                with open(self.disk / "filler", "ab", buffering=0) as filler:
                    while filler.write(b"x" * size):
                        pass
            except OSError:
                continue


if __name__ == "__main__":
    unittest.main()
