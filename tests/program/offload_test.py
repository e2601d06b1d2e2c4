"""State on a drive, tested on whole programs: the same bits, and what happens when drives, ranks or limits fail."""
import ctypes
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import time
import unittest

from programs import SOON_S, ProgramTest, children, living, mlaunch, parent, train

WITHOUT_IO_URING = "--without-io-uring"
DATA, HOST, IO, TRY_AGAIN, DO_NOT_RESTART = 65, 69, 74, 75, 93
MIB = 1 << 20
MEMORY_GROUPS = [pathlib.Path("/sys/fs/cgroup/memory"), pathlib.Path("/sys/fs/cgroup")]
JOB = ["--device", "cpu", "--zero", "3", "--sequence-length", "32", "--micro-batch", "1", "--threads", "1"]
ENDLESS = ["--steps", "1000000", "--metrics", "metrics"]


def on_drive(path="swap"):
    """Returns flags with which everything leaves the device that can, small parameters included."""
    return ["--offload-optimizer", "nvme", "--offload-param", "nvme", "--param-persistence-threshold", "0",
            "--nvme-path", path]


def forbid_io_uring():
    """Makes io_uring_setup fail with EPERM in this process and those that it starts, as a container's policy does."""
    no_new_privileges, seccomp, filter_mode = 38, 22, 2
    io_uring_setup, refuse, allow = 425, 0x00050001, 0x7FFF0000
    code = b"".join(struct.pack("HBBI", *line) for line in [
        (0x20, 0, 0, 0),                    # load the system call's number
        (0x15, 0, 1, io_uring_setup),       # if it is another one, skip a line
        (0x06, 0, 0, refuse), (0x06, 0, 0, allow)])
    lines = ctypes.create_string_buffer(code, len(code))

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("lines", ctypes.c_void_p)]
    program = Program(4, ctypes.addressof(lines))
    call = ctypes.CDLL(None, use_errno=True).prctl
    call.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
    if call(no_new_privileges, 1, 0, 0, 0) or call(seccomp, filter_mode, ctypes.addressof(program), 0, 0):
        sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")


def swap_files(pid, folder):
    """Returns the open descriptors of a process, as paths, whose files in `folder` have no name."""
    found = []
    try:
        for fd in pathlib.Path("/proc", str(pid), "fd").iterdir():
            target = os.readlink(fd)
            if target.startswith(str(folder) + "/") and target.endswith(" (deleted)"):
                found.append(fd)
    except OSError:
        pass  # the process or the descriptor has gone
    return found


def is_stopped(pid):
    return pathlib.Path("/proc", str(pid), "stat").read_text().rsplit(")", 1)[1].split()[0] == "T"


def group_number(group, *names):
    return int(next(group / name for name in names if (group / name).exists()).read_text())


def planned_arenas(printed):
    """Reads the bytes per tier from the table that train prints."""
    titles = re.search(r"memory planned for rank 0:\n(.*)", printed)[1].replace("[0]", "").split()
    arenas = re.search(r"^.* arena  +(.*)", printed, re.M)[1].split("  ")
    arenas = [float(amount) * {"bytes": 1, "KiB": 1 << 10, "MiB": MIB, "GiB": 1 << 30}[unit]
              for amount, unit in (cell.split() for cell in arenas if cell)]
    return dict(zip(titles, arenas, strict=True))


class OffloadTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.swap = self.home.resolve() / "swap"
        self.swap.mkdir()

    def steps_done(self, metrics="metrics"):
        path = self.home / metrics
        return len(path.read_text().splitlines()) if path.exists() else 0

    def start_training(self, ranks, *arguments, prefix=()):
        """Starts a run and waits until some steps are done and all ranks have swap files; returns the process and their pids."""
        process = self.start([*prefix, *mlaunch(ranks, *JOB, *ENDLESS, *on_drive(), *arguments)])
        self.wait_until(lambda: self.steps_done() >= 3 or process.poll() is not None, "three steps")
        self.assertIsNone(process.poll(), "it goes on")
        pids = children(process.pid)
        self.assertEqual(len(pids), ranks)
        return process, pids

    def stop(self, pids):
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        self.wait_until(lambda: all(map(is_stopped, pids)), "ranks to stop")

    def state(self, command):
        """Runs a command; returns the digests of all state, and what it printed."""
        done = self.run_program([*command, "--dump-state", "state"])
        state = self.read("state")
        (self.home / "state").unlink()
        return state, done.stdout

    def assert_nothing_left(self, pids):
        self.wait_until(lambda: not living(pids), "ranks end")
        self.assertEqual(list(self.swap.iterdir()), [])
        holders = [pid for pid in os.listdir("/proc") if pid.isdigit() and swap_files(pid, self.swap)]
        self.assertEqual(holders, [])


class SameResult(OffloadTest):
    STEPS = ["--steps", "4"]

    def test_no_step_beats_its_bound(self):
        """The metrics of a step are read when the next one has begun, whose work is not its own."""
        out = self.run_program(train("--model", "llama-bytes-1m", "--device", "cpu", "--threads", "1", "--zero", "1", "--sequence-length", "128",
                                     "--micro-batch", "4", "--accumulation", "4", "--offload-optimizer", "cpu", "--steps", "4", "--calibrate", "off",
                                     "--metrics", "metrics")).stdout
        steps = self.step_metrics("metrics")
        for line in steps:
            self.assertLessEqual(line["bound_reached"], 1, line)
            self.assertGreater(line["bound_seconds"], 0, line)
        told = re.search(r"foreseen [\d.e-]+ s per step, measured ([\d.e-]+) s \(mean of 2 steps, without the first 2\)\n(?:.*\n)*?bound ([\d.e-]+) s", out)
        self.assertAlmostEqual(float(told[1]), (steps[2]["seconds"] + steps[3]["seconds"]) / 2, delta=0.01 * float(told[1]))
        self.assertLessEqual(float(told[2]), float(told[1]))

    def test_same_state_as_without_offload(self):
        for model in ("gpt2-tiny", "llama-tiny"):
            with self.subTest(model=model):
                job = mlaunch(2, *JOB, *self.STEPS, "--model", model)
                expected, plain = self.state(job)
                self.assertIn("moment2", expected)
                self.assertNotIn("disk", plain)
                state, printed = self.state([*job, *on_drive()])
                self.assertEqual(state, expected)
                self.assertRegex(printed, r"disk read \d+\.\d+ .iB, disk write \d+\.\d+ .iB")
        self.assertEqual(list(self.swap.iterdir()), [])

    # Fault 5.
    def test_gradients_follow_where_host_memory_is_too_little(self):
        """Kills the run in the middle and resumes it: the state must be that of a run without a drive."""
        job = mlaunch(2, *JOB, "--model", "gpt2-bytes-10m", "--steps", "12")
        expected, _ = self.state(job)
        # A rank needs 42 MB of host memory for saving; gradients are 22 MB, windows 14 MB.
        limited = [*job, *on_drive(), "--device-memory", "100MB", "--host-memory", "120MB", "--output", "out",
                   "--save-every", "2"]
        process = self.start([limited[0], "--max-restarts", "0", *limited[1:]])
        self.wait_until(lambda: (self.home / "out/latest").exists() or process.poll() is not None, "a checkpoint")
        self.assertIsNone(process.poll(), "it goes on")
        os.kill(children(process.pid)[0], signal.SIGKILL)
        process.communicate(timeout=SOON_S)
        state, printed = self.state([*limited, "--resume", "auto", "--print-plan"])
        self.assertIn("resumed from out/step-", printed)
        self.assertIn('"gradient": "disk"', printed)
        self.assertNotIn('"gradient": "pinned"', printed)
        self.assertEqual(state, expected)
        self.assertEqual(list(self.swap.iterdir()), [])

    def test_updates_behind_their_gradients(self):
        job = mlaunch(2, *JOB, *self.STEPS, "--gradient-clipping", "0")
        expected, _ = self.state(job)
        state, printed = self.state([*job, *on_drive(), "--update-time", "gradient", "--print-plan"])
        self.assertEqual(state, expected)
        self.assertIn('"updates": "gradient"', printed)

    # Fault 33.
    def test_two_jobs_on_one_path(self):
        """Runs the second job from start to end while the first one is in the middle of its run."""
        jobs = {seed: [*JOB, "--steps", "60", "--seed", seed] for seed in "12"}
        expected = {seed: self.state(mlaunch(2, *job))[0] for seed, job in jobs.items()}
        self.assertNotEqual(expected["1"], expected["2"])
        first = self.start(mlaunch(2, *jobs["1"], *on_drive(), "--metrics", "metrics", "--dump-state", "first",
                                   options=["--hang-timeout", "0"]))
        self.wait_until(lambda: self.steps_done() >= 2, "two steps of the first job")
        ranks = children(first.pid)
        self.stop(ranks)
        self.assertTrue(all(swap_files(pid, self.swap) for pid in ranks))
        self.assertFalse((self.home / "first").exists())
        state, _ = self.state(mlaunch(2, *jobs["2"], *on_drive()))
        self.assertEqual(state, expected["2"])
        for pid in ranks:
            os.kill(pid, signal.SIGCONT)
        _, error = first.communicate(timeout=SOON_S)
        self.assertEqual(first.returncode, 0, error)
        self.assertEqual(self.read("first"), expected["1"])
        self.assert_nothing_left(ranks)

    def test_with_little_locked_memory(self):
        """Runs as an ordinary user, because the limit does not bind root."""
        limited = ["prlimit", "--memlock=65536:65536"]
        if os.geteuid() == 0:
            limited += ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
            self.home.chmod(0o777)
            self.swap.chmod(0o777)
        if subprocess.run([*limited, *train("--help")], capture_output=True).returncode != 0:
            self.skipTest("an ordinary user cannot start the programs of this build")
        job = mlaunch(2, *JOB, *self.STEPS)
        expected, _ = self.state(job)
        done = self.run_program([*limited, *job, *on_drive(), "--dump-state", "state"])
        self.assertEqual(self.read("state"), expected)
        self.assertEqual(len(re.findall(r"does not register \d+ bytes for disk transfers \(.*ulimit -l\)", done.stderr)),
                         1, done.stderr)

    def test_without_io_uring(self):
        job = mlaunch(2, *JOB, *self.STEPS)
        expected, _ = self.state(job)
        forbidden = [sys.executable, str(pathlib.Path(__file__).resolve()), WITHOUT_IO_URING]
        done = self.run_program([*forbidden, *job, *on_drive(), "--dump-state", "state"])
        self.assertEqual(self.read("state"), expected)
        self.assertEqual(done.stderr.count("io_uring is forbidden here"), 1, done.stderr)
        self.assertIn("threads that read and write instead", done.stderr)


class Failing(OffloadTest):
    # Fault 5.
    def test_a_killed_rank_leaves_nothing(self):
        process, ranks = self.start_training(2)
        self.assertTrue(all(swap_files(pid, self.swap) for pid in ranks), "the check below is able to fail")
        begin = time.monotonic()
        os.kill(ranks[1], signal.SIGKILL)
        _, error = process.communicate(timeout=SOON_S)
        self.assertEqual(process.returncode, 128 + signal.SIGKILL)
        self.assertRegex(error, r"mlaunch: rank 1 of 2 failed: .*killed by signal 9 \(SIGKILL\)")
        self.assert_nothing_left(ranks)
        self.figure("killed until all has ended and 0 bytes are left", time.monotonic() - begin)
        self.run_program(mlaunch(2, *JOB, "--steps", "2", *on_drive()))

    def flip(self, pid):
        """Flips a bit in every byte of a stopped rank's swap file."""
        for fd in swap_files(pid, self.swap):
            with open(fd, "r+b", buffering=0) as file:
                content = file.read()
                file.seek(0)
                file.write(bytes(byte ^ 0x10 for byte in content))

    # Fault 20.
    def test_a_gradient_that_is_not_finite_behind_updates(self):
        """Makes the first update much too large, so that the second step's loss or gradient is not finite; which of the two depends
        on how a processor's products round."""
        job = mlaunch(2, *JOB, "--steps", "6", "--gradient-clipping", "0", "--learning-rate", "1e6")
        done = self.run_program([*job, *on_drive(), "--update-time", "gradient", "--output", "out"],
                                expect=DO_NOT_RESTART)
        said = re.findall("step 2: the loss is (?:not finite \\(or over 8,192\\)|finite, but a gradient is not): the run ends", done.stderr)
        self.assertEqual(len(said), 1, done.stderr)
        self.assertIn("have already changed parameters and optimizer state", done.stderr)
        self.assertIn("lower the learning rate", done.stderr)
        self.assertIn("values of its state are not finite, either, and not saved", done.stderr)
        self.assertEqual(list((self.home / "out").glob("step-*")), [])
        self.assertEqual(list(self.swap.iterdir()), [])

    # Fault 19.
    def test_flipped_bits_in_the_swap_file(self):
        process, ranks = self.start_training(2, "--dump-state", "state", "--output", "out")

        def spoilt():
            """Flips bits again until they are found, because a write of what was in memory when the rank stopped replaces them."""
            if process.poll() is None and parent(ranks[1]) == process.pid:
                self.stop([ranks[1]])
                self.flip(ranks[1])
                os.kill(ranks[1], signal.SIGCONT)
            return process.poll() is not None
        self.wait_until(spoilt, "the flipped bits to be found")
        _, error = process.communicate(timeout=SOON_S)
        self.assertEqual(process.returncode, DATA, error)
        self.assertRegex(error, "mlaunch: rank 1 of 2 failed")
        self.assertRegex(error, r"swap at byte \d+: \d+ bytes of (read|read ahead|write) \w+/[\w.]+(/\d+)? are not what was written")
        self.assertFalse((self.home / "state").exists())
        self.assertFalse((self.home / "out/latest").exists())
        self.assert_nothing_left(ranks)

    def refuse(self, words, *arguments):
        done = self.run_program(mlaunch(2, *JOB, "--steps", "2", *on_drive(), *arguments), expect=HOST)
        for word in words:
            self.assertEqual(len(re.findall(word, done.stderr)), 1, f"{word!r} in {done.stderr}")
        self.assertNotIn("step 1/", done.stdout)
        return done.stderr

    def test_folders_that_cannot_serve(self):
        self.write("file", "")
        for path in ("nowhere", "file"):
            with self.subTest(path=path):
                done = self.run_program(mlaunch(2, *JOB, "--steps", "2", *on_drive(path)), expect=IO)
                self.assertEqual(done.stderr.count(f"{path}: cannot make a file for offloaded tensors"), 1, done.stderr)
                self.assertNotIn("step 1/", done.stdout)

    def test_limits_that_are_too_small(self):
        needs = r"out of memory in tier device: its budget is 100000 bytes, and this Plan needs at least (\d+)"
        refused = self.refuse([needs, "raise --device-memory or --host-memory"], "--device-memory", "100KB")
        # Rates are measured, so orders and the memory that they need vary a little.
        enough = int(re.search(needs, refused)[1]) * 105 // 100
        self.run_program(mlaunch(2, *JOB, "--steps", "2", *on_drive(), "--device-memory", enough))
        # Everything is on the disk that can be; first windows are too large, then what the host writes and reads.
        self.refuse([r"this plan needs [\d.]+ MiB per rank, [\d.]+ MiB on this host in all, and 97.66 KiB are what --host-memory allows"],
                    "--host-memory", "100KB")
        self.refuse(["out of memory in tier pinned: its budget is 50000 bytes"], "--host-memory", "100KB",
                    "--device-memory", "100MB")
        self.refuse(["each of 2 ranks may use 20000 bytes of what --host-memory allows",
                     "raise the budget; "], "--host-memory", "40KB")


class SmallDrive(OffloadTest):
    """Runs on a file system of its own size, which only the run and those that look into it see."""

    def setUp(self):
        super().setUp()
        tried = subprocess.run(self.on_drive_of("1m", "true"), cwd=self.home, capture_output=True, text=True)
        if tried.returncode != 0:
            self.skipTest(f"cannot mount a tmpfs: {tried.stderr.strip()}")

    @staticmethod
    def on_drive_of(size, *command):
        user = [] if os.geteuid() == 0 else ["--map-root-user"]
        return ["unshare", "--mount", *user, "sh", "-c", f"mount -t tmpfs -o size={size} tmpfs swap && exec \"$@\"",
                "sh", *command]

    # Fault 15.
    def test_too_little_space(self):
        job = mlaunch(1, *JOB, "--steps", "2", "--model", "gpt2-bytes-10m", *on_drive())
        done = self.run_program(self.on_drive_of("8m", *job), expect=IO)
        needed = re.search(r"swap: cannot reserve (\d+) bytes for offloaded tensors, 8388608 bytes are available; "
                           "free space there or choose another directory: No space left on device", done.stderr)
        self.assertTrue(needed, done.stderr)
        planned = planned_arenas(done.stdout)["disk"]
        self.assertAlmostEqual(int(needed[1]) / planned, 1, delta=0.001)
        self.assertNotIn("step 1/", done.stdout)

    # Fault 15.
    def test_a_drive_that_others_fill(self):
        """The run goes on, because it reserved all space before the first step."""
        process, ranks = self.start_training(2, prefix=self.on_drive_of("16m"))
        drive = pathlib.Path(f"/proc/{ranks[0]}/root{self.swap}")
        with self.assertRaisesRegex(OSError, "No space left"):
            with open(drive / "filler", "wb", buffering=0) as filler:
                while True:
                    filler.write(bytes(MIB))
        self.assertEqual(shutil.disk_usage(drive).free, 0)
        full = self.steps_done()
        self.wait_until(lambda: self.steps_done() > full + 5, "steps on a full drive")
        process.send_signal(signal.SIGTERM)
        _, error = process.communicate(timeout=SOON_S)
        self.assertEqual(process.returncode, TRY_AGAIN, error)


class InMemoryGroup(OffloadTest):
    def setUp(self):
        super().setUp()
        if os.environ.get("STRATA_SANITIZE"):
            self.skipTest("sanitizers use memory of their own")
        why = "no memory control group"
        for root in MEMORY_GROUPS:
            group = root / f"strata-test-{os.getpid()}"
            try:
                group.mkdir()
            except OSError as error:
                why = str(error)
                continue
            self.addCleanup(group.rmdir)
            if any((group / name).exists() for name in ("memory.max", "memory.limit_in_bytes")):
                self.group = group
                return
        self.skipTest(f"cannot make a memory control group: {why}")

    def run_inside(self, limit_bytes, job, expect=0):
        """Runs a job in the group; returns its output and errors, and the highest memory use of the group in bytes."""
        self.run_program(train(*JOB, "--steps", "1"))  # fills the page cache with program and libraries outside the group
        limit = self.group / "memory.max"
        (limit if limit.exists() else self.group / "memory.limit_in_bytes").write_text(str(limit_bytes))
        done = self.run_program(["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', str(self.group), *job], expect)
        return done.stdout + done.stderr, group_number(self.group, "memory.peak", "memory.max_usage_in_bytes")

    def test_state_larger_than_the_group_s_memory(self):
        """Keeps optimizer state and parameters on the drive; the memory in use is as planned."""
        preset = json.loads((pathlib.Path(__file__).parents[2] / "configs/models/gpt2-bytes-10m.json").read_text())
        self.write("model/config.json", json.dumps(preset | {"n_embd": 512, "n_layer": 8, "n_head": 8}))
        job = train(*JOB, "--steps", "2", "--model", "model/config.json", "--sequence-length", "16",
                    "--metrics", "metrics")
        limit = 240 * MIB
        printed, peak = self.run_inside(limit, [*job, *on_drive(), "--device-memory", "50MB", "--host-memory",
                                                "150MB"])
        self.assertIn("step 2/2", printed)
        arenas = self.metrics("metrics")[-1]["ranks"][0]["arenas"]
        self.assertGreater(arenas["disk"]["planned_bytes"], limit)
        for tier, arena in arenas.items():
            self.assertIn(arena["used_bytes"] - arena["planned_bytes"], range(os.sysconf("SC_PAGE_SIZE")), tier)
        memory = sum(arena["used_bytes"] for tier, arena in arenas.items() if tier != "disk")
        # The arenas are mapped whole from the start. The rest does not depend on the model's size: writable pages of programs and
        # libraries, stacks, Graph and Programs, code that a library generates, page cache of text and metrics.
        self.assertGreater(peak, memory)
        self.assertLess(peak, memory + 24 * MIB)
        self.assertLess(peak, limit)

    # Fault 24.
    def test_without_offload_it_does_not_fit(self):
        """Refuses by the plan, so that the kernel need not kill the run."""
        printed, _ = self.run_inside(100 * MIB, train(*JOB, "--model", "gpt2-bytes-10m"), expect=HOST)
        self.assertRegex(printed, r"out of memory: the one rank on this host plans \d+\.\d+ MiB, and \d\d\.\d+ MiB are free")

    # Fault 24.
    def test_a_rank_that_the_kernel_kills(self):
        hungry = "import os, time\nheld = b'x' * (1 << 30) if os.environ['RANK'] == '1' else b''\ntime.sleep(60)"
        job = [*mlaunch(2)[:3], sys.executable, "-c", hungry]
        printed, _ = self.run_inside(200 * MIB, job, expect=128 + signal.SIGKILL)
        self.assertRegex(printed, r"mlaunch: rank 1 of 2 failed: .*killed by signal 9 \(SIGKILL\)")
        self.assertRegex(printed, r"\n  memory  1\d\d MiB at its peak\n")
        self.assertIn("the kernel killed 1 process(es) of this machine for lack of memory during this run", printed)


if __name__ == "__main__":
    if sys.argv[1:2] == [WITHOUT_IO_URING]:
        forbid_io_uring()
        os.execvp(sys.argv[2], sys.argv[2:])
    unittest.main()
