"""Docs are true of the repository: paths exist, cited numbers of docs/design.md exist, docs/program.md shows the Program that is printed."""
import fnmatch
import pathlib
import re
import subprocess
import unittest

from programs import BIN, ProgramTest, train

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGES = sorted(str(page.relative_to(ROOT)) for folder in ("docs", "docs/formats") for page in (ROOT / folder).glob("*.md")
               if page.name != "log.md")  # the log tells of files as they were
ENDINGS = "h|cpp|cu|cuh|py|json|jsonl|md|txt"
PATH = re.compile(rf"(?<![\w/.<-])(?:(?:[\w*.-]+/)+(?:[\w*.-]*[\w*])?|[\w*-]+\.(?:{ENDINGS})\b)")
OTHERS = {"ds_to_universal.py", "zero_to_fp32.py"}  # scripts that DeepSpeed brings
CITED = re.compile(r"design(?:\.md)?,?(?: |\s*//+ )(?:section )?(\d+(?:\.\d+)?)")


def repository_files():
    """Lists tracked files and new ones that git does not ignore; outside a clone, all files that lie there."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, capture_output=True, text=True)
    if listing.returncode == 0 and listing.stdout:
        return [name for name in listing.stdout.split("\0") if name and (ROOT / name).is_file()]
    return [str(path.relative_to(ROOT)) for path in ROOT.rglob("*")
            if path.is_file() and not path.relative_to(ROOT).parts[0].startswith(("build", ".", "out"))]


def names_in_strings(files):
    """Returns names that strings of the sources end with: files that programs write or read, such as manifest.json, and tags such as train/loss."""
    names = set()
    for name in files:
        if name.endswith((".h", ".cpp", ".py")) and not name.startswith("tests/"):
            for quoted in re.findall(r"""["']([\w./-]+)["']""", (ROOT / name).read_text(errors="replace")):
                names |= {quoted, quoted.rsplit("/", 1)[-1]}
    return {name for name in names if not name.endswith((".h", ".cpp", ".cu", ".cuh", ".py"))}


def dead_paths(text, files, others=frozenset()):
    """Yields what looks like a path of the repository and is none. A bare name may lie in any folder; docs/adr/0012 is the beginning of one.
    `others`: names that are no paths of the repository."""
    known = set(files) | {str(parent) for name in files for parent in pathlib.PurePath(name).parents}
    folders = {name.split("/")[0] for name in files if "/" in name}
    names = {name.rsplit("/", 1)[-1] for name in files}
    for path in sorted(set(PATH.findall(text))):
        bare = path.rstrip("/")
        if "NAME" in bare or "KEY" in bare or bare in others or "/" in path and bare.split("/")[0] not in folders:
            continue  # a placeholder, or no path of the repository, such as "gate/up"
        among = known if "/" in path else names
        if bare not in among and not any(fnmatch.fnmatch(name, pattern) for name in among
                                         for pattern in (bare, f"{bare}.h", f"{bare}.cpp", f"{bare}-*.md")):
            yield path


class Docs(ProgramTest):
    def test_paths_exist(self):
        files = repository_files()
        others = names_in_strings(files) | OTHERS
        self.assertEqual(list(dead_paths("zero/policy.cpp, core/, gpt2.cpp, resolver_*.cpp, docs/adr/0012, runtime/program/waits, b/c", files)), [])
        self.assertEqual(list(dead_paths("zero/polic.cpp, gpt3.cpp, core/no/, docs/adr/9999", files)),
                         ["core/no/", "docs/adr/9999", "gpt3.cpp", "zero/polic.cpp"])
        self.assertEqual(list(dead_paths("manifest.json, train/loss, manifests.json, train/los, zero/polic.cpp", files, others)),
                         ["manifests.json", "train/los", "zero/polic.cpp"])
        for page in PAGES:
            with self.subTest(page=page):
                self.assertEqual(list(dead_paths((ROOT / page).read_text(), files, others)), [])

    def test_cited_numbers_of_the_design_exist(self):
        design = (ROOT / "docs/design.md").read_text()
        there = set(re.findall(r"(?m)^## (\d+)", design)) | {f"2.{n}" for n in re.findall(r"(?m)^(\d+)\. ", design)}
        cited = {}
        for name in repository_files():
            if name.endswith((".h", ".cpp", ".cu", ".cuh", ".md", ".py")) and name != "tests/program/docs_test.py":
                cited |= dict.fromkeys(CITED.findall((ROOT / name).read_text(errors="replace")), name)
        self.assertGreater(len(cited), 10)
        self.assertEqual({number: name for number, name in cited.items() if number not in there}, {})

    def test_decisions_have_status_and_date(self):
        decisions = sorted((ROOT / "docs/adr").glob("*.md"))
        self.assertGreater(len(decisions), 10)
        for path in decisions:
            with self.subTest(path=path.name):
                head = "\n".join(path.read_text().split("\n")[:4])
                self.assertRegex(head, r"\A# \d+\. .+\n\nStatus: (accepted|replaced by \d{4})\b.*\. Date: \d{4}-\d\d-\d\d\.\n\Z")

    def test_the_doors_of_the_planner_are_those_of_its_programs(self):
        page = (ROOT / "docs/plan.md").read_text()
        shared, alone = (set(re.findall(r"`(--[a-z-]+)`", re.search(rf"(?m)^ +- of {of}: (.*)$", page)[1])) for of in ("`train` and `plan`", "`plan` alone"))
        told = {program: set(re.findall(r"(?m)^ +(--[a-z-]+)", self.run_program([str(BIN / program), "--help"]).stdout)) for program in ("train", "plan")}
        self.assertEqual(shared | alone, told["plan"] - {"--version"})
        self.assertEqual((shared | alone) & told["train"], shared)

    def test_the_program_shown_is_the_one_printed(self):
        page = (ROOT / "docs/program.md").read_text()
        blocks = dict(re.findall(r"(?ms)^```(\w+)\n(.*?)^```$", page))
        self.write("config.json", blocks["json"])
        program, *arguments = blocks["sh"].split()
        self.assertEqual(program, "train")
        printed = [without_places(line) for line in self.run_program(train(*arguments)).stdout.splitlines()]
        for line in blocks["text"].splitlines():
            pattern = ".*".join(map(re.escape, without_places(line).split(" ... ")))
            number = line.split(" ", 1)[0]
            now = next((other for other in printed if other.split(" ", 1)[0] == number), "nothing")
            self.assertRegex(now, f"^{pattern}$", "docs/program.md shows another line")
        count = re.search(r"\d+ instructions", blocks["text"])[0].split()[0]
        self.assertIn(f"Of the {count} lines", page)


def without_places(line):
    """Returns a line of a Program without places and sizes, which layouts and kernels' scratch decide."""
    return re.sub(r"@\d+(\+\d+)?|device arena \d+ bytes: \d+ kept, \d+ within a step, of these at most \d+ in use", "@", line)


if __name__ == "__main__":
    unittest.main()
