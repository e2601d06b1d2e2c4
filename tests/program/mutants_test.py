"""Tests which bugs scripts/mutants.py plants, and how it judges results. Nothing is built here."""
import contextlib
import json
import pathlib
import sys
import tempfile
import types
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import mutants
from mutation_sites import Site, blank, sites_of


def bugs(text):
    """Returns {(line number, kind): replacements of the line}."""
    found = {}
    for site in sites_of("a.cpp", text):
        found.setdefault((site.line, site.kind), []).append(site.after.strip())
    return found


class Sites(unittest.TestCase):
    def test_borders_and_comparisons(self):
        self.assertEqual(bugs("  if (a < b) f();")[1, "border"], ["if (a <= b) f();"])
        self.assertEqual(bugs("  if (a >= b) f();")[1, "border"], ["if (a > b) f();"])
        self.assertEqual(bugs("  return a == b;")[1, "comparison"], ["return a != b;"])

    def test_template_brackets_and_pointers_are_no_operators(self):
        self.assertEqual(bugs("std::vector<int> a;\nint* p;\nconst T& r;\nT&& moved;"), {})

    def test_operators(self):
        self.assertEqual(bugs("x = a + b * c;")[1, "arithmetic"], ["x = a - b * c;", "x = a + b / c;"])
        self.assertEqual(bugs("if (a && !b) f();")[1, "logic"], ["if (a || !b) f();", "if (a && b) f();"])
        self.assertEqual(bugs("x = std::min(a, b);")[1, "choice"], ["x = std::max(a, b);"])

    def test_constants(self):
        self.assertEqual(bugs("int a = 7;")[1, "constant"], ["int a = 6;", "int a = 8;"])
        self.assertEqual(bugs("int a = 0;")[1, "constant"], ["int a = 1;"])
        self.assertEqual(bugs("double a = 1e-6;")[1, "constant"], ["double a = (2 * 1e-6);"])
        self.assertEqual(bugs("bool a = true;")[1, "constant"], ["bool a = false;"])
        self.assertEqual(bugs("float32x4 a_1 = b.c2;"), {})

    def test_statements_left_out(self):
        self.assertEqual(bugs("  files.sync_directory(output);")[1, "call left out"], ["{}"])
        self.assertEqual(bugs("  schedule.rate = s.rate;")[1, "assignment left out"], ["{}"])
        for line in ("  return f(x);", "  int a = f(x);", "  if (a) f(x);", "  f(x,", "      y);", "void f(int x);"):
            self.assertNotIn("left out", " ".join(kind for _, kind in bugs(line)), line)
        # The second line is not a statement by itself.
        self.assertEqual(bugs("  const int a =\n      f(b);"), {})

    def test_what_says_checks_or_declares_is_left_alone(self):
        for line in ("// a < b", "/* a == b */", '#include "a/b.h"', "#if A < 2", "STRATA_CHECK(a < b, a);",
                     'throw IoError(path, 0, "a" + b, 1);', "static_assert(sizeof(a) == 4);", "virtual void f() = 0;",
                     'text += "a < b";', "using A = B;"):
            self.assertEqual([kind for _, kind in bugs(line) if kind != "assignment left out"], [], line)
        # Lines on which a check continues are left alone, too.
        self.assertEqual(bugs("  STRATA_CHECK(a == 1,\n               b + 1);"), {})
        self.assertEqual(len(bugs("  STRATA_CHECK(a == 1,\n               b + 1);\n  x = 1;")), 2)

    def test_blank_keeps_positions(self):
        text = 'a = "x // y"; // b\nc = \'"\'; /* d\n e */ f(1\'000);\nR"(a" < b)" < g;'
        self.assertEqual([len(line) for line in blank(text).split("\n")], [len(line) for line in text.split("\n")])
        self.assertEqual(blank(text).split("\n")[0].rstrip(), 'a = "      ";')
        self.assertIn("f(1'000)", blank(text))
        self.assertNotIn("<", blank(text).split("\n")[3].split("g")[0][:9])


class Draw(unittest.TestCase):
    NAMES = ["core/a.cpp", "core/a_test.cpp", "tests/b.cpp", "core/testing/c.cpp", "zero/d.h", "kernels/cuda/e.cu", "README.md",
             "core/testing/test_directory.h", "kernels/testing/layer_test_cpu.cpp", "kernels/testing/target_scope.h", "launcher/test_programs/f.cpp"]

    def drawn(self, seed):
        text = "int f() {\n  g(1);\n  x = a < 2 ? 3 : 4;\n  return a + b;\n}\n"
        return mutants.draw(seed, lambda name: text, self.NAMES)

    def test_equal_seeds_give_equal_bugs(self):
        self.assertEqual(self.drawn(1), self.drawn(1))
        self.assertNotEqual(self.drawn(1), self.drawn(2))
        self.assertEqual(set(self.drawn(1)), set(self.drawn(2)))

    def test_production_code_alone(self):
        self.assertEqual({site.file for site in self.drawn(1)}, {"core/a.cpp", "zero/d.h"})

    def test_kinds_take_turns(self):
        first = [site.kind for site in self.drawn(3)[:4]]
        for kind, turn in zip(first, mutants.TURNS):
            self.assertIn(kind, turn)

    def test_every_folder_has_wider_tests(self):
        for folder in mutants.FOLDERS:
            self.assertTrue(mutants.wider_pattern(folder + "/x.cpp"))
        self.assertEqual(mutants.wider_pattern("train/config/x.cpp"), mutants.WIDER["train/config"])
        self.assertEqual(mutants.wider_pattern("train/engine/x.cpp"), mutants.WIDER["train"])


class FakePlace(mutants.Workplace):
    """A workplace with two tests beside each file, `broken`, which always fails, and `aimed`, which may notice a bug."""

    def __init__(self, notices):
        self.notices, self.bug, self.ran = notices, None, []
        self.sound, self.unsound = set(), set()

    def tests_beside(self, file):
        return [name for name in ("aimed", "broken") if name not in self.unsound]

    def names(self):
        return [name for name in ("aimed", "broken", "golden_test") if name not in self.unsound]

    def make(self, names, limit_s):
        return (1, "a.cpp:1: error: no") if self.bug and self.bug.after == "?" else (0, "")

    def test(self, names, limit_s):
        self.ran.append((bool(self.bug), names))
        failed = [name for name in names if name == "broken" or (self.bug and name == self.notices)]
        return failed, []

    @contextlib.contextmanager
    def planted(self, site):
        self.bug = site
        yield
        self.bug = None


class Targets(unittest.TestCase):
    def test_programs_that_are_not_built_yet_are_found_by_the_test_s_name(self):
        place = FakePlace("nobody")
        place.build, place.targets = pathlib.Path("/b"), {"tests/new_test", "tests/old_test", "bench/speed", "train", "mlaunch"}
        place.tests = {"tests": [{"name": "new_test"}, {"name": "old_test", "command": ["/b/tests/old_test"]}, {"name": "speed"},
                                 {"name": "program_test", "command": ["python3", "program_test.py"]}]}
        self.assertEqual(place.targets_of(["new_test", "speed"]), ["bench/speed", "tests/new_test"])
        self.assertEqual(place.targets_of(["old_test"]), ["tests/old_test"])
        self.assertEqual(place.targets_of(["program_test"]), ["mlaunch", "train"])


class Durations(unittest.TestCase):
    def test_only_what_passed_says_how_long_a_test_takes(self):
        with tempfile.TemporaryDirectory() as folder:
            place = FakePlace("nobody")
            place.durations, place.durations_path = {"b_test": 3.0}, pathlib.Path(folder, "durations.json")
            mutants.Workplace.remember(place, "1/3 Test  #7: a_test .....................   Passed   12.50 sec\n"
                                              "2/3 Test #11: b_test ...***Failed    0.02 sec\n3/3 Test #12: c_test ..   Passed    0.01 sec\n")
            self.assertEqual(json.loads(place.durations_path.read_text()), {"a_test": 12.5, "b_test": 3.0, "c_test": 0.01})


class Judge(unittest.TestCase):
    LIMITS = types.SimpleNamespace(build_s=1, beside_s=1, wider_s=1, deadline=float("inf"))

    def judged(self, place, after="x"):
        return mutants.judge(place, Site("zero/a.cpp", 1, "border", "y", after), self.LIMITS)

    def test_tests_beside_the_file_come_first(self):
        place = FakePlace("aimed")
        result = self.judged(place)
        self.assertEqual((result["outcome"], result["by"], result["stage"]), ("killed", "aimed", "beside"))
        self.assertNotIn("golden_test", [name for _, names in place.ran for name in names])

    def test_what_they_do_not_notice_goes_to_wider_ones(self):
        result = self.judged(FakePlace("golden_test"))
        self.assertEqual((result["outcome"], result["by"], result["stage"]), ("killed", "golden_test", "wider"))

    def test_a_test_that_fails_without_the_bug_kills_nothing(self):
        place = FakePlace("nobody")
        self.assertEqual(self.judged(place)["outcome"], "survived")
        self.assertEqual(place.unsound, {"broken"})

    def test_what_does_not_compile_is_stillborn(self):
        result = self.judged(FakePlace("aimed"), after="?")
        self.assertEqual((result["outcome"], result["by"]), ("stillborn", "error: no"))

    def test_no_time_is_left(self):
        limits = types.SimpleNamespace(build_s=1, beside_s=1, wider_s=1, deadline=0)
        place = FakePlace("aimed")
        self.assertEqual(mutants.judge(place, Site("zero/a.cpp", 1, "border", "y", "x"), limits)["outcome"], "unfinished")


class Results(unittest.TestCase):
    def result(self, outcome, **more):
        return {"outcome": outcome, "file": "a.cpp", "line": 3, "kind": "border", "before": "a < b", "after": "a <= b",
                "build_s": 10, "test_s": 5, **more}

    def test_summary(self):
        text = mutants.summary([self.result(o) for o in ("killed", "killed", "timeout", "survived", "stillborn")])
        self.assertIn("3 of 4 bugs noticed (75.0 %), 1 of them by a time limit; 1 more did not compile, 0 are in later commits no more", text)
        self.assertIn("survived: a.cpp:3 (border)\n-a < b\n+a <= b", text)
        text = mutants.summary([self.result("killed"), self.result("survived"), self.result("survived", no_difference="b is no number")])
        self.assertIn("1 of the others make no difference that a test could see: 1 of 2 that do were noticed (50.0 %)", text)
        self.assertIn("+a <= b\nno difference: b is no number", text)

    def test_a_run_goes_on_from_results_of_its_seed_and_commit(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "results.jsonl")
            self.assertEqual(mutants.judged(mutants.last_words(path, 1, "c")), [])
            lines = [self.result("survived", seed=seed, commit=commit, only=only, number=0)
                     for seed, commit, only in ((1, "c", ""), (2, "c", ""), (1, "d", ""), (1, "c", "zero/"))]
            lines.append(lines[0] | {"outcome": "killed", "into": "d"})
            lines.append({name: lines[1][name] for name in ("seed", "commit", "only", "number")} | {"no_difference": "why"})
            lines.append(lines[-1] | {"number": 7})  # not tried yet
            path.write_text("".join(json.dumps(line) + "\n" for line in lines))
            self.assertEqual([line["outcome"] for line in mutants.judged(mutants.last_words(path, 1, "c"))], ["killed"])
            self.assertEqual([(line["outcome"], line["no_difference"]) for line in mutants.judged(mutants.last_words(path, 2, "c"))],
                             [("survived", "why")])

    def test_a_bug_is_found_again_in_a_later_text(self):
        result = self.result("survived")
        self.assertEqual(mutants.same_site(result, "a < b\n\n\na < b\n").line, 4)
        self.assertEqual(mutants.same_site(result, "x\n\n\n\na < b\n"), Site("a.cpp", 5, "border", "a < b", "a <= b"))
        self.assertIsNone(mutants.same_site(result, "  a < b\n"))

    def planted(self, results, count, into=None):
        """Returns (number, outcome) of what is recorded; four bugs can be drawn, the last one in a line that is gone."""
        sites = [Site("a.cpp", 3, "border", f"{word} < b", f"{word} <= b") for word in ("a", "aa", "aaa", "gone")]
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "a.cpp").write_text("\na < b\naa < b\naaa < b\n")
            place, recorded = FakePlace("golden_test"), []
            place.tree, place.commit = pathlib.Path(folder), "d"
            options = types.SimpleNamespace(build_s=1, beside_s=1, wider_s=1, deadline=float("inf"), count=count, into=into)
            with unittest.mock.patch.object(mutants, "wider_pattern", lambda file: "golden_test"):
                words = {result["number"]: result for result in results}
                mutants.plant(place, words, sites, recorded.append, options)
        self.assertEqual({line["into"] for line in recorded} | {"d"}, {"d"})
        return [(line["number"], line["outcome"]) for line in recorded]

    def test_a_run_goes_on(self):
        results = [self.result("survived", number=0, into="c"), self.result("stillborn", number=1, into="c")]
        self.assertEqual(self.planted(results, 2), [(2, "killed")])
        self.assertEqual(self.planted(results, 9), [(2, "killed"), (3, "gone")])

    def test_what_is_explained_already_comes_last(self):
        """Runs only the tests beside explained bugs, which notice nothing here."""
        self.assertEqual(self.planted([{"number": 0, "no_difference": "why"}], 3), [(1, "killed"), (2, "killed"), (0, "survived")])
        self.assertEqual(self.planted([{"number": 0, "no_difference": "why"}], 1), [(0, "survived")])

    def test_what_had_survived_is_planted_into_a_later_commit(self):
        results = [self.result("survived", number=0, into="c"), self.result("killed", number=1, into="c")]
        self.assertEqual(self.planted(results, 2, into="d"), [(0, "killed")])
        self.assertEqual(self.planted([results[1], self.result("survived", number=0, into="d")], 2, into="d"), [])

    def test_silence_ends_what_was_started(self):
        command = ["sh", "-c", "echo begun; sleep 0.2; echo on; sleep 60"]
        self.assertEqual(mutants.run(command, 50, "/", silent_s=2), (None, "begun\non\n"))

    def test_time_limits_end_what_was_started(self):
        code, output = mutants.run(["sh", "-c", "echo begun; sleep 60"], 1, "/")
        self.assertIsNone(code)
        self.assertEqual(output, "begun\n")


if __name__ == "__main__":
    unittest.main()
