"""Files for people's tools: event files and CSVs of a run that is killed and resumed show every step once, with the
values of the metrics file. ToolsTest asks TensorBoard itself, in the Python environment that STRATA_PEERS names."""
import csv
import json
import os
import pathlib
import signal
import struct
import subprocess
import sys
import unittest

from programs import QUICK, ProgramTest, missing_packages, mlaunch, train

USAGE, IO = 2, 74
PEERS = os.environ.get("STRATA_PEERS", "")
PYTHON = f"{PEERS}/bin/python" if PEERS else sys.executable
BATCH = 4
JOB = ["--sequence-length", "16", "--micro-batch", str(BATCH), "--threads", "1", "--eval-every", "4", "--eval-samples", "4",
       "--save-every", "4", "--output", "out", "--resume", "auto", "--metrics", "m.jsonl",
       "--report-to", "tensorboard,csv", "--logging-dir", "logs", "--config", "ds.json"]
CONFIG = {"tensorboard": {"enabled": True, "output_path": "ds", "job_name": "job"},
          "csv_monitor": {"enabled": True, "output_path": "ds", "job_name": "job"}}
READER = """
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
log = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0})
log.Reload()
print(json.dumps({tag: [[e.step, e.value] for e in log.Scalars(tag)] for tag in log.Tags()["scalars"]}))
"""


def crc32c(data):
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value ^ 0xFFFFFFFF


def masked(data):
    value = crc32c(data)
    return ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(data):
    """Messages of a TFRecord file; a torn one at its end is none."""
    at = 0
    while at + 12 <= len(data):
        length, check = struct.unpack_from("<QI", data, at)
        assert check == masked(data[at:at + 8]), at
        message = data[at + 12:at + 12 + length]
        if at + 16 + length > len(data):
            return
        assert struct.unpack_from("<I", data, at + 12 + length)[0] == masked(message), at
        yield message
        at += 16 + length


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def fields(message):
    """Numbers and values of the fields of a Protobuf message."""
    at = 0
    while at < len(message):
        key, at = varint(message, at)
        if key & 7 == 0:
            value, at = varint(message, at)
        elif key & 7 == 2:
            size, at = varint(message, at)
            value, at = message[at:at + size], at + size
        else:
            size, form = (8, "<d") if key & 7 == 1 else (4, "<f")
            value, at = struct.unpack_from(form, message, at)[0], at + size
        yield key >> 3, value


def read_events(folder):
    """{tag: [[step, value]]} as a reader of TensorBoard has it: a session's start purges later steps."""
    scalars = {}
    for path in sorted(pathlib.Path(folder).glob("events.out.tfevents.*")):
        for message in records(path.read_bytes()):
            event = dict(fields(message))
            step = event.get(2, 0)
            if 7 in event:
                for tag in scalars:
                    scalars[tag] = [point for point in scalars[tag] if point[0] < step]
            for number, value in fields(event.get(5, b"")):
                value = dict(fields(value))
                scalars.setdefault(value[1].decode(), []).append([step, value[2]])
    return scalars


def as_float(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


class KilledRun(ProgramTest):
    ranks = 1

    def train_killed_and_resumed(self):
        self.write("ds.json", json.dumps(CONFIG))
        long = self.start(mlaunch(self.ranks, *JOB, "--steps", "1000000"))
        self.wait_until(lambda: (self.home / "out/latest").exists() and '"step": 11,' in self.read("m.jsonl"), "eleven steps")
        os.killpg(long.pid, signal.SIGKILL)
        long.wait()
        with (next((self.home / "logs").glob("events*"))).open("ab") as torn:
            torn.write(b"\x22\0\0")
        done = self.run_program(mlaunch(self.ranks, *JOB, "--steps", str(self.last_step() + 5)))
        self.assertRegex(done.stdout, "event files for TensorBoard are in logs")
        self.assertGreater(len(list((self.home / "logs").glob("events*"))), 1)

    def last_step(self):
        return max(line["step"] for line in self.step_metrics("m.jsonl"))

    def check_events(self, read):
        steps = self.step_metrics("m.jsonl")
        self.assertEqual([line["step"] for line in steps], list(range(1, len(steps) + 1)))
        evaluations = [line for line in self.metrics("m.jsonl") if "eval_loss" in line]
        for folder, unit, names in [
                ("logs", 1, {"train/loss": "loss", "train/learning_rate": "learning_rate", "train/grad_norm": "grad_norm",
                             "train/train_tokens_per_second": "tokens_per_second", "train/seconds_per_step": "seconds",
                             "memory/device_arena_bytes": "arena_bytes", "memory/process_peak_bytes": "peak_rss_bytes"}),
                ("ds/job", self.ranks * BATCH, {"Train/Samples/train_loss": "loss", "Train/Samples/lr": "learning_rate"})]:
            events = read(self.home / folder)
            for tag, key in names.items():
                expected = [[line["step"] * unit, line[key]] for line in steps]
                self.assertEqual(events[tag], [[x, as_float(y)] for x, y in expected], tag)
                with (self.home / folder / (tag.replace("/", "_") + ".csv")).open() as file:
                    header, *rows = csv.reader(file)
                self.assertEqual(header, ["step", tag.split("/")[-1]])
                self.assertEqual([[int(x), float(y)] for x, y in rows], expected, tag)
            self.assertNotIn("Train/Samples/loss_scale", events)
        self.assertEqual(read(self.home / "logs")["eval/loss"],
                         [[line["step"], as_float(line["eval_loss"])] for line in evaluations])


class LogsTest(KilledRun):
    def test_each_step_is_there_once(self):
        self.train_killed_and_resumed()
        self.check_events(read_events)

    def test_two_ranks_write_one_file(self):
        self.run_program(mlaunch(2, *QUICK, "--report-to", "tensorboard", "--output", "out"))
        (run,) = (self.home / "out/runs").iterdir()
        self.assertRegex(run.name, r"^[A-Z][a-z]{2}\d\d_\d\d-\d\d-\d\d_.+")
        self.assertEqual(len(list(run.iterdir())), 1)
        self.assertEqual([x for x, _ in read_events(run)["train/loss"]], [1, 2])

    def test_nothing_is_written_where_nothing_is_asked(self):
        self.run_program(train(*QUICK, "--report_to", "none", "--report_to", "wandb"))
        self.assertEqual(list(self.home.iterdir()), [])

    def test_folders_that_cannot_be_are_refused_before_training(self):
        self.write("file", "x")
        self.write("ds.json", json.dumps({"csv_monitor": {"enabled": True, "output_path": "file/x"}}))
        for flags, said in [(["--report-to", "csv", "--logging-dir", "file/x"], "file/x: cannot create the folder of --logging-dir"),
                            (["--config", "ds.json"], "cannot create the folder of csv_monitor.output_path")]:
            done = self.run_program(train(*QUICK, *flags), expect=IO)
            self.assertIn(said, done.stderr)
            self.assertNotIn("step 1/", done.stdout)
        done = self.run_program(train(*QUICK, "--report-to", "tensorbord"), expect=USAGE)
        self.assertIn("did you mean 'tensorboard'?", done.stderr)


class ToolsTest(KilledRun):
    ranks = 2

    def read_with_tensorboard(self, folder):
        done = subprocess.run([PYTHON, "-c", READER, str(folder)], capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    def test_tensorboard_shows_each_step_once(self):
        self.train_killed_and_resumed()
        self.check_events(self.read_with_tensorboard)


if __name__ == "__main__":
    if "ToolsTest" in sys.argv and (missing := missing_packages(PYTHON, ["tensorboard"])):
        print(f"skipped: {PYTHON} has no {', '.join(missing)}; STRATA_PEERS names an environment that has")
        sys.exit(77)
    unittest.main(argv=sys.argv if len(sys.argv) > 1 else [sys.argv[0], "LogsTest"])
