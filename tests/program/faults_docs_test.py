"""docs/faults.md says what its tests and its table say, and whatever is missing there is noticed."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import faults  # noqa: E402
import run_faults  # noqa: E402

ROWS = (faults.Row(1, "a rank dies", "it starts again", (faults.Figure("under 6 s", "tests/a_test.py", "assertLess(took, 6)"),
                                                         faults.Figure("7 ms", "bench/results/a.md", "| 7 ms |"))),
        faults.Row(2, "a bit flips", "it is found"),
        faults.Row(3, "the sun bursts", "nothing", missing="it has not yet"))
PYTHON = """import unittest


class Ranks(unittest.TestCase):
    #Fault 1.
    def test_they_die(self):
        self.assertLess(took, 6)

    #Faults 1, 2.
    # This one takes long.
    @unittest.skipIf(busy,
                     "now")
    def test_they_flip(self):
        pass
""".replace("#Fault", "# Fault")  # they mark no test of this file
CPP = """/// A fixture.
class Bits : public testing::Test {};

// Fault 2.
/// Says what it is about.
TEST_F(Bits,
       Flip) {}

// Faults of other kinds are no markers.
TEST(Bits, Stay) {}
"""
FUZZER = "// Fault 2.\nextern \"C\" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {\n"


class FaultsDocs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for name, text in {"tests/a_test.py": PYTHON, "core/b_test.cpp": CPP, "core/c_fuzz.cpp": FUZZER,
                           "bench/results/a.md": "| a death | 7 ms |\n", "build/core/b_test.cpp": CPP}.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def problems(self, rows=ROWS):
        return faults.check(self.root, rows)[0]

    def change(self, name, old, new):
        path = self.root / name
        text = path.read_text()
        self.assertEqual(text.count(old), 1)
        path.write_text(text.replace(old, new))

    def test_the_page_is_up_to_date(self):
        done = subprocess.run([sys.executable, ROOT / "scripts/faults.py"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)

    def test_tests_are_found_and_listed(self):
        problems, page = faults.check(self.root, ROWS)
        self.assertEqual(problems, [])
        for line in ("| 1 | a rank dies | it starts again | under 6 s; 7 ms |", "| 2 | a bit flips | it is found |  |", "Measured: bench/results/a.md.",
                     "- 3, the sun bursts: it has not yet.", "### 1. a rank dies\n\n- tests/a_test.py: `Ranks.test_they_die`, `Ranks.test_they_flip`\n",
                     "### 2. a bit flips\n\n- core/b_test.cpp: `Bits.Flip`\n- core/c_fuzz.cpp: `c_fuzz`\n- tests/a_test.py: `Ranks.test_they_flip`\n"):
            self.assertIn(line, page)

    def test_a_row_needs_a_test_or_a_reason(self):
        more = (*ROWS, faults.Row(4, "a disk melts", "it cools"))
        self.assertEqual(self.problems(more), ["fault 4 (a disk melts): no test has the comment `Fault 4.` above it"])

    def test_a_reason_does_not_stay_beside_a_test(self):
        self.change("core/c_fuzz.cpp", "Fault 2", "Faults 2, 3")
        self.assertEqual(self.problems(), ["fault 3 (the sun bursts): core/c_fuzz.cpp has a test of it, so its row needs no `missing`"])

    def test_a_number_is_one_of_the_table(self):
        self.change("core/b_test.cpp", "Fault 2.", "Faults 2, 99.")
        self.assertEqual(self.problems(), ["core/b_test.cpp:4: there is no fault 99 in scripts/faults.py"])

    def test_a_comment_stands_above_a_test(self):
        for name, old, new, line in (("core/b_test.cpp", "TEST_F(Bits,\n       Flip) {}", "void flip() {}", 4),
                                     ("tests/a_test.py", "    def test_they_flip", "\n    def test_they_flip", 9)):
            with self.subTest(name):
                self.change(name, old, new)
                self.assertEqual(self.problems(), [f"{name}:{line}: no test begins below this comment"])
                self.change(name, new, old)

    def test_a_comment_has_one_form(self):
        for wrong in ("Fault 2", "Faults 2 and 3.", "Fault 2. It flips."):
            with self.subTest(wrong):
                self.change("core/c_fuzz.cpp", "Fault 2.", wrong)
                self.assertEqual(self.problems(), ["core/c_fuzz.cpp:1: write `Fault 7.` or `Faults 7, 31.` and nothing else in this line"])
                self.change("core/c_fuzz.cpp", wrong, "Fault 2.")

    def test_a_figure_is_backed(self):
        self.change("tests/a_test.py", "(took, 6)", "(took, 60)")
        self.change("bench/results/a.md", "7 ms", "8 ms")
        self.assertEqual(self.problems(), ["fault 1: its figure 'under 6 s' is gone from tests/a_test.py, which lacks 'assertLess(took, 6)'",
                                           "fault 1: its figure '7 ms' is gone from bench/results/a.md, which lacks '| 7 ms |'"])
        elsewhere = faults.Row(2, "a bit flips", "it is found", (faults.Figure("under 1 s", "core/d_test.cpp", "1"),))
        self.assertIn("fault 2: its figure 'under 1 s' is of core/d_test.cpp, which has no test of it", self.problems((*ROWS[:1], elsewhere, ROWS[2])))

    def test_a_page_of_another_day_is_stale(self):
        for folder in ("scripts", "docs"):
            (self.root / folder).mkdir()
        for name in ("faults.py", "fault_markers.py"):
            (self.root / "scripts" / name).write_text((ROOT / "scripts" / name).read_text())
        command = [sys.executable, self.root / "scripts/faults.py"]
        subprocess.run([*command, "--write"], capture_output=True)
        stale = "docs/faults.md is not what its tests and table say"
        self.assertNotIn(stale, subprocess.run(command, capture_output=True, text=True).stdout)
        self.change("core/b_test.cpp", "Flip)", "Turn)")
        done = subprocess.run(command, capture_output=True, text=True)
        self.assertIn(stale, done.stdout)
        self.assertEqual(done.returncode, 1)


class RunFaults(unittest.TestCase):
    def test_how_a_test_ended_is_read_from_what_it_printed(self):
        for code, output, expected in (
                (0, "test_a (a.A.test_a) ... ok\n\nRan 1 test in 0.1s\n\nOK\n", ("passed", "")),
                (0, "test_a (a.A.test_a) ... skipped 'there is no sshd'\n\nOK (skipped=1)\nlast words\n", ("skipped", "there is no sshd")),
                (0, "\nRan 0 tests in 0.0s\n\nOK\n", ("failed", "there is no such test in this build")),
                (1, "FAIL: test_a\nAssertionError: 3 is not 4\n\nFAILED (failures=1)\n", ("failed", "FAILED (failures=1)")),
                (0, "[       OK ] A.B (1 ms)\n[  PASSED  ] 1 test.\n", ("passed", "")),
                (0, "a.cpp:7: Skipped\nno bridge\n[  SKIPPED ] A.B (0 ms)\n[  SKIPPED ] 1 test, listed below:\n", ("skipped", "no bridge")),
                (0, "[       OK ] X/A.B/0\n[  SKIPPED ] X/A.B/1 (0 ms)\n[  SKIPPED ] 1 test, listed below:\n", ("passed", "")),
                (0, "[==========] Running 0 tests from 0 test suites.\n", ("failed", "there is no such test in this build")),
                (3, "nothing of use\n", ("failed", "it ended with code 3"))):
            with self.subTest(output):
                self.assertEqual(run_faults.judge(code, output)[:2], expected)


if __name__ == "__main__":
    unittest.main()
