#!/usr/bin/env python3
"""Plants random single-line bugs in production code and lists those that no test notices.

  scripts/dev mutants 20 --seed 3

Each bug is planted alone in a worktree under build/mutants, whose build folder stays warm. The targets that it needs are built,
then the tests declared beside the file run, and if these pass those of WIDER. Equal seeds plant equal bugs in equal
commits; results are JSON lines, and a run goes on where an earlier one of that seed and commit ended. After tests were
added, `--into HEAD` with that seed and commit says which of the survivors are noticed now, and goes on there.

Outcomes: killed (a test failed), timeout (no test failed, but one did not end: counts as killed), survived, stillborn
(did not compile: another bug is planted in its place), gone (a later commit has no such line: another bug, too).
"""
import argparse
import bisect
import contextlib
import itertools
import json
import os
import pathlib
import random
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from mutation_sites import Site, sites_of

ROOT = pathlib.Path(__file__).resolve().parents[1]
# Folders of production code; files that only tests, fuzzers and real GPUs run are left out.
FOLDERS = ["core", "machine", "comm", "runtime", "zero", "step", "offload", "compile", "plan", "train", "launcher", "kernels"]
LEFT_OUT = re.compile(r"_test[._]|_tests\.|/test_|/target_scope|_fuzz\.|testing|/fuzz/|^kernels/cuda/|_reference\."
                      r"|finite_difference|^comm/(nccl|mpi)/|reference_page|/bench")
# Tests of whole steps and programs by the file's folder (the longest name wins), for bugs that no test beside the file noticed.
STEPS = "^(golden_test|same_bits_test|offload_same_bits_test|virtual_ranks_test|optimizer_same_bits_test|engine_test" \
        "|loss_scale_test|evaluation_test|program_safety_test|training_(state|memory)_test|schedule_golden_test" \
        "|print_plan_test|peak_memory_test|warm_up_test|measured_memory_test|gather_limit_test|rank_order_test|read_ahead_test"
SAVES = "|training_(snapshot|checkpoint.*)_test"
DEVICES = "|device_training_test"
OPTIONS = "^(program_(options|bad_input|output|screen|same_bits|learning)_test|print_plan_test|option_effects_test"
PROGRAMS = OPTIONS + "|program_(resume|kept_work|failure|inspect|offload|profile)_test"
WIDER = {
    "core": "^(checkpoint_.*|manifest_test|comm_(shm|threads)_test|train_files_test|model_config_test|training_checkpoint_test|launcher_test"
            "|mlaunch_test|program_(failure|resume|inspect|bad_input)_test)$",
    "comm": "^(same_bits_test|virtual_ranks_test|rank_threads_test|program_(failure|same_bits)_test)$",
    "runtime": STEPS + SAVES + DEVICES + ")$",
    "machine": STEPS + DEVICES + "|hardware_file_test|memory_advice_test|program_(doctor|profile)_test)$",
    "zero": STEPS + SAVES + "|step_(versions|gather_pass|distributions|state_table)_test)$",
    "step": STEPS + SAVES + DEVICES + ")$",
    "compile": STEPS + SAVES + DEVICES + "|compile_test)$",
    "plan": STEPS + SAVES + "|memory_advice_test|program_plan_test)$",
    "offload": "^(offload_same_bits_test|training_snapshot_test|program_offload(_pairs)?_test)$",
    "kernels": STEPS + ")$",
    "launcher": "^(mlaunch_test|program_(failure|resume|output|launchers)_test)$",
    "train": STEPS + SAVES + DEVICES + ")$",
    "train/config": OPTIONS + ")$",
    "train/data": OPTIONS + "|program_(data|kept_work|resume)_test)$",
    "train/files": "^(training_.*|inspect_test|program_(inspect|resume|bad_input)_test|golden_test)$",
    "train/models": "^(golden_test|model_config_test|program_(learning|bad_input)_test|same_bits_test)$",
    "train/run": PROGRAMS + ")$",
    "train/checkpoint": "^(training_checkpoint.*|program_(resume|inspect)_test)$",
    "train/inspect": "^(program_(inspect|bad_input|failure)_test)$",
    "train/doctor": "^program_doctor_test$",
}
# Kinds take turns, or else a short run would be nearly all constants, which are most numerous.
TURNS = [{"border", "comparison", "logic", "choice"}, {"call left out", "assignment left out"}, {"arithmetic", "bits"},
         {"constant"}]
LONGER_S = [3, 30]  # tests that take longer wait for shorter ones
# Python tests start these programs.
PYTHON_TARGETS = ["train", "mlaunch", "generate", "doctor", "inspect", "train_on_threads"]


def wider_pattern(file):
    folder = max((name for name in WIDER if file.startswith(name + "/")), key=len)
    return WIDER[folder]


def production_files(names):
    return sorted(name for name in names
                  if name.endswith((".h", ".cpp")) and name.split("/")[0] in FOLDERS and not LEFT_OUT.search(name))


def draw(seed, read, names):
    """Returns all sites in an order that the seed alone decides, in which kinds of bugs take turns."""
    sites = [site for name in production_files(names) for site in sites_of(name, read(name))]
    random.Random(seed).shuffle(sites)
    rounds = [[site for site in sites if site.kind in kinds] for kinds in TURNS]
    assert sum(map(len, rounds)) == len(sites)
    return [site for turn in itertools.zip_longest(*rounds) for site in turn if site is not None]


def run(command, limit_s, cwd, env=None, silent_s=float("inf")):
    """Returns (exit code or None when it ran out of time, output); nothing that it started outlives it.
    `silent_s` is the longest time in which it may write no line."""
    process = subprocess.Popen(command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, start_new_session=True)
    end, output, code = time.monotonic() + limit_s, [], None
    with process.stdout as stream:
        while True:
            left = min(end - time.monotonic(), silent_s)
            if left <= 0 or not select.select([stream], [], [], left)[0]:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                break
            piece = os.read(stream.fileno(), 1 << 16)
            if not piece:
                code = process.wait()
                break
            output.append(piece)
    return code, b"".join(output).decode(errors="replace")


def confined(command, writable):
    """Confines a test, which under a bug may kill or remove anything: it sees no other processes, and all files but those
    under `writable` are read-only, if the system allows it. The folder's tmp stands for /tmp, which googletest writes to."""
    prepare = 'mount --bind "$0" "$0" && mkdir -p "$0/tmp" && mount --bind "$0/tmp" /tmp && mount -o remount,bind,ro / && exec "$@"'
    return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", prepare, writable, *command]


def can_confine(folder):
    return bool(shutil.which("unshare")) and run(confined(["true"], str(folder)), 20, ROOT)[0] == 0


class Workplace:
    """A worktree of the commit, with a build folder of its own."""

    def __init__(self, folder, commit, jobs):
        self.tree, self.commit, self.jobs = folder / "tree", commit, jobs
        self.temporary = folder / "tmp"
        self.durations_path = folder / "durations.json"
        self.durations = json.loads(self.durations_path.read_text()) if self.durations_path.exists() else {}
        self.build = self.tree / "build"
        git = ["git", "-C", str(ROOT)]
        if not self.tree.exists():
            folder.mkdir(parents=True, exist_ok=True)
            subprocess.run([*git, "worktree", "prune"], check=True)
            subprocess.run([*git, "worktree", "add", "--detach", "--force", str(self.tree), commit], check=True,
                           stdout=subprocess.DEVNULL)
        subprocess.run(["git", "-C", str(self.tree), "checkout", "--quiet", "--force", "--detach", commit], check=True)
        self.environment = os.environ | {"CCACHE_BASEDIR": str(self.tree), "CCACHE_NOHASHDIR": "1",
                                         "TMPDIR": str(self.temporary), "TEST_TMPDIR": str(self.temporary)}
        # Compiling and linking take most of the time.
        fast = ["-DSTRATA_CUDA=OFF", "-DSTRATA_PRECOMPILED=ALL", "-DSTRATA_WERROR=OFF", "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1",
                "-DSTRATA_SHARED=ON", "-DCMAKE_LINK_DEPENDS_NO_SHARED=ON"]
        done = subprocess.run(["cmake", "--preset", "cpu", *fast], cwd=self.tree, env=self.environment,
                              capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(done.stdout + done.stderr)
        listed = subprocess.run(["ctest", "--test-dir", str(self.build), "--show-only=json-v1"], check=True,
                                capture_output=True, text=True).stdout
        self.tests = json.loads(listed)
        known = subprocess.run(["ninja", "-C", str(self.build), "-t", "targets", "all"], check=True, capture_output=True,
                               text=True).stdout
        self.targets = {line.split(":")[0] for line in known.splitlines()}
        self.confine = can_confine(folder)
        if not self.confine:
            print("mutants: unshare(1) is not allowed here, so tests run unconfined", flush=True)
        self.writable = str(folder)
        self.sound, self.unsound = set(), set()  # tests that pass, and that fail, without a bug

    def names(self):
        return [test["name"] for test in self.tests["tests"] if test["name"] not in self.unsound]

    def tests_beside(self, file):
        """Returns the tests that the CMakeLists.txt of the file's folder, or of the nearest one above it, declares."""
        graph = self.tests["backtraceGraph"]
        declared = {}
        for test in self.tests["tests"]:
            node = graph["nodes"][test["backtrace"]]
            while "parent" in node and not graph["files"][node["file"]].endswith("CMakeLists.txt"):
                node = graph["nodes"][node["parent"]]
            folder = os.path.dirname(os.path.relpath(graph["files"][node["file"]], self.tree))
            declared.setdefault(folder, []).append(test["name"])
        folder = os.path.dirname(file)
        while folder and folder not in declared:
            folder = os.path.dirname(folder)
        return [name for name in declared.get(folder, []) if name not in self.unsound]

    def targets_of(self, names):
        """Returns the ninja targets of these tests: executables among their words, and programs that Python tests start."""
        wanted = set()
        for test in self.tests["tests"]:
            if test["name"] not in names:
                continue
            # ctest does not know the command of a program that is not built yet.
            command = test.get("command") or [f"{self.build}/{folder}/{test['name']}" for folder in ("tests", "bench", "bin")]
            words = [os.path.relpath(word, self.build) for word in command if word.startswith(str(self.build))]
            wanted |= {word for word in words if word in self.targets}
            if any(word.endswith(".py") for word in command) or "print_plan" in test["name"]:
                wanted |= set(PYTHON_TARGETS) & self.targets
        return sorted(wanted)

    def make(self, names, limit_s):
        targets = self.targets_of(names)
        if not targets:
            return 0, ""
        return run(["cmake", "--build", str(self.build), "-j", str(self.jobs), "--target", *targets], limit_s, self.tree,
                   self.environment)

    def remember(self, output):
        """Keeps the durations of tests that passed; ctest's own record also counts failures, which are short."""
        for name, seconds in re.findall(r"Test +#\d+: (\S+) \.* +Passed +([\d.]+) sec", output):
            self.durations[name] = max(float(seconds), self.durations.get(name, 0.0))
        self.durations_path.write_text(json.dumps(self.durations))

    def test(self, names, limit_s):
        """Returns (tests that failed, tests that did not end). Short tests run first; ctest alone begins with the longest."""
        known = self.durations
        long = lambda name: bisect.bisect(LONGER_S, known.get(name, limit_s))
        begin = time.monotonic()
        for part in ([name for name in names if long(name) == turn] for turn in range(len(LONGER_S) + 1)):
            if part:
                left = max(1, limit_s - (time.monotonic() - begin))
                # A test that hangs is given up early; one that waited for a busy disk gets a second chance.
                one_s = 40 + 6 * max(known.get(name, limit_s) for name in part)
                failed, late = self.test_together(part, left, one_s)
                if late and not failed:
                    failed, late = self.test_together(part, left, 2 * one_s)
                if failed or late:
                    return failed, late
        return [], []

    def test_together(self, names, limit_s, one_s):
        """Runs these tests at once, as test() does; `one_s` is the longest time in which none of them may end."""
        shutil.rmtree(self.temporary, ignore_errors=True)
        self.temporary.mkdir()
        pattern = "^(" + "|".join(map(re.escape, names)) + ")$"
        command = ["ctest", "--test-dir", str(self.build), "-R", pattern, "-j", str(self.jobs), "--stop-on-failure",
                   "--timeout", str(max(10, int(limit_s)))]
        code, output = run(confined(command, self.writable) if self.confine else command, limit_s, self.tree, self.environment,
                           one_s)
        self.remember(output)
        if "Unable to find executable" in output:
            sys.exit(f"mutants: a test's program was not built\n{output}")
        failed = re.findall(r"^\s*\d+ - (\S+) \((?!Skipped|Not Run \(Disabled|Timeout)", output, re.M)
        late = re.findall(r"^\s*\d+ - (\S+) \(Timeout", output, re.M)
        if code is None:
            late += sorted(set(re.findall(r"Start +\d+: (\S+)", output)) - set(re.findall(r"Test +#\d+: (\S+)", output))) or ["(ctest)"]
        return failed or ([] if code == 0 or late else ["(ctest)"]), late

    def prove(self, names, limits):
        """Runs each test once without a bug; returns whether all of them pass."""
        for name in set(names) - self.sound - self.unsound:
            self.make([name], limits.build_s)
            failed, late = self.test([name], limits.wider_s)
            (self.unsound if failed or late else self.sound).add(name)
        return not self.unsound & set(names)

    @contextlib.contextmanager
    def planted(self, site):
        path = self.tree / site.file
        text = path.read_text()
        lines = text.split("\n")
        assert lines[site.line - 1] == site.before, site
        lines[site.line - 1] = site.after
        path.write_text("\n".join(lines))
        try:
            yield
        finally:
            path.write_text(text)


def try_site(place, site, limits):
    """Plants the bug, tests it, and returns the outcome as a dict."""
    beside = place.tests_beside(site.file)
    wider = [name for name in place.names() if re.search(wider_pattern(site.file), name) and name not in beside]
    result = {"outcome": "survived", "by": "", "stage": "", "build_s": 0.0, "test_s": 0.0}
    left = lambda: max(1, limits.deadline - time.monotonic())
    with place.planted(site):
        for stage, names, limit_s in (("beside", beside, limits.beside_s), ("wider", wider, limits.wider_s)):
            if not names or limit_s <= 0:
                continue
            begin = time.monotonic()
            code, output = place.make(names, min(limits.build_s, left()))
            result["build_s"] += round(time.monotonic() - begin, 1)
            if left() <= 1:
                return result | {"outcome": "unfinished"}
            if code != 0:
                first = re.search(r"error: .*", output)
                return result | {"outcome": "stillborn" if code else "timeout", "by": first.group(0) if first else "", "stage": "build"}
            begin = time.monotonic()
            failed, late = place.test(names, min(limit_s, left()))
            result["test_s"] += round(time.monotonic() - begin, 1)
            if late and left() <= 1:
                return result | {"outcome": "unfinished"}
            if failed or late:
                return result | {"outcome": "killed" if failed else "timeout", "by": " ".join(failed or late), "stage": stage}
    return result


def judge(place, site, limits):
    """Returns what try_site finds with tests that pass without the bug."""
    while True:
        result = try_site(place, site, limits)
        if result["outcome"] != "killed" or place.prove(result["by"].split(), limits):
            return result
        print(f"mutants: fails without a bug, too, and is left out: {', '.join(sorted(place.unsound))}", flush=True)


NOT_TRIED = ("stillborn", "gone")


def summary(results):
    """Returns the text that ends a run."""
    count = lambda outcome: sum(result["outcome"] == outcome for result in results)
    tried = sum(result["outcome"] not in NOT_TRIED for result in results)
    if not tried:
        return "no bug was tried"
    dead = count("killed") + count("timeout")
    seconds = [result["build_s"] + result["test_s"] for result in results]
    lines = [f"{dead} of {tried} bugs noticed ({100 * dead / tried:.1f} %), {count('timeout')} of them by a time limit; "
             f"{count('stillborn')} more did not compile, {count('gone')} are in later commits no more; {sum(seconds) / tried:.0f} s each"]
    survivors = [result for result in results if result["outcome"] == "survived"]
    same = sum("no_difference" in result for result in survivors)
    if same:
        lines.append(f"{same} of the others make no difference that a test could see: {dead} of {tried - same} that do were noticed "
                     f"({100 * dead / max(1, tried - same):.1f} %)")
    for result in survivors:
        lines.append(f"\nsurvived: {result['file']}:{result['line']} ({result['kind']})\n-{result['before']}\n+{result['after']}")
        if "no_difference" in result:
            lines.append("no difference: " + result["no_difference"])
    return "\n".join(lines)


def last_words(path, seed, commit, only=""):
    """Returns what is known of the bugs of that run, by number. People add lines that explain in `no_difference` why no test can
    notice a bug, also before it is planted."""
    last = {}
    for line in map(json.loads, path.read_text().splitlines() if path.exists() else []):
        if (line["seed"], line["commit"], line["only"]) == (seed, commit, only):
            last[line["number"]] = last.get(line["number"], {}) | line
    return last


def judged(words):
    return [words[number] for number in sorted(words) if "outcome" in words[number]]


def same_site(result, text):
    """Finds a bug's site in a later text of its file: the nearest line with the same words, or None."""
    lines = [number for number, line in enumerate(text.split("\n"), 1) if line == result["before"]]
    if not lines:
        return None
    line = min(lines, key=lambda number: abs(number - result["line"]))
    return Site(result["file"], line, result["kind"], result["before"], result["after"])


def plant(place, words, sites, record, options):
    """Judges survivors once more if the workplace has a later commit, then bugs that are not judged yet. Among the first `count`,
    those that are said to make no difference come last and get only the tests beside them."""
    explained = argparse.Namespace(**vars(options) | {"wider_s": 0})
    results = judged(words)
    old = [result for result in results if result["outcome"] == "survived" and result.get("into") != place.commit
           and "no_difference" not in result]
    known = {result["number"] for result in results}
    new = [{"number": number, **vars(site)} for number, site in enumerate(sites) if number not in known]
    new.sort(key=lambda bug: (bug["number"] >= options.count, bug["number"] in words, bug["number"]))
    tried = sum(result["outcome"] not in NOT_TRIED for result in results)
    for bug in (old if options.into else []) + new:
        if time.monotonic() >= options.deadline or (bug in new and tried >= options.count):
            return
        path = place.tree / bug["file"]
        site = same_site(bug, path.read_text()) if path.exists() else None
        limits = explained if bug["number"] in words and bug in new else options
        verdict = judge(place, site, limits) if site else {"outcome": "gone", "by": "", "stage": "", "build_s": 0, "test_s": 0}
        if verdict["outcome"] == "unfinished":
            return
        tried += bug in new and verdict["outcome"] not in NOT_TRIED
        record(bug | verdict | {"into": place.commit})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int, help="bugs that compile")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--commit", default="HEAD", help="into which they are planted; a run that goes on names where it began")
    parser.add_argument("--only", default="", help="files whose path begins with this")
    parser.add_argument("--into", metavar="COMMIT", help="plant the bugs drawn from --commit into this later one, first those "
                                                         "that had survived")
    parser.add_argument("--list", action="store_true", help="print the bugs and plant none")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="compilers and tests at a time")
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "build/mutants", help="folder of the worktree and its build")
    parser.add_argument("--results", type=pathlib.Path, help="JSON lines (default: results.jsonl in the work folder)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="plant no more after this time, and give up what is under way")
    parser.add_argument("--build-limit", dest="build_s", type=int, default=3600, metavar="SECONDS")
    parser.add_argument("--beside-limit", dest="beside_s", type=int, default=300, metavar="SECONDS")
    parser.add_argument("--wider-limit", dest="wider_s", type=int, default=900, metavar="SECONDS")
    options = parser.parse_args()
    options.deadline = time.monotonic() + options.seconds

    git = lambda *words: subprocess.run(["git", "-C", str(ROOT), *words], check=True, capture_output=True, text=True).stdout

    def commit_of(flag, name):
        try:
            return git("rev-parse", "--verify", f"{name}^{{commit}}").strip()
        except subprocess.CalledProcessError as error:
            sys.exit(f"mutants: {flag} {name}: {error.stderr.strip()}")

    commit = commit_of("--commit", options.commit)
    names = [name for name in git("ls-tree", "-r", "--name-only", commit).splitlines() if name.startswith(options.only)]
    sites = draw(options.seed, lambda name: git("show", f"{commit}:{name}"), names)
    if options.list:
        for site in sites[:options.count]:
            print(site.diff())
        return
    results_path = options.results or options.work / "results.jsonl"
    results_path.parent.mkdir(parents=True, exist_ok=True)
    words = last_words(results_path, options.seed, commit, options.only)
    place = Workplace(options.work.resolve(), commit_of("--into", options.into) if options.into else commit, options.jobs)

    def record(result):
        result = {"seed": options.seed, "commit": commit, "only": options.only, **result}
        with open(results_path, "a") as out:
            out.write(json.dumps(result) + "\n")
        print(f"{result['number']}: {result['file']}:{result['line']} ({result['kind']}) {result['outcome']} {result['by']} "
              f"[{result['build_s']:.0f} + {result['test_s']:.0f} s]", flush=True)

    plant(place, words, sites, record, options)
    print(summary(judged(last_words(results_path, options.seed, commit, options.only))))


if __name__ == "__main__":
    main()
