"""Plants bugs in the coordinator, the agent and the restart policy, one at a time, and expects the simulation of whole runs
to find each.

    planted_bugs_test.py [NAME...]     only these; prints which check found each bug, and by which seed

A bug is a replacement of text that must occur once, so that a change of the code that it aims at fails here.
"""
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONTROL = "launcher/control"
MACHINES = ["agent", "coordinator", "coordinator_attempts", "coordinator_control", "coordinator_hosts", "coordinator_leases", "coordinator_views",
            "hang_watch", "restart_policy", "straggler_watch", "worlds"]
SEEDS = "200000"
COMPILER = os.environ.get("CXX", "g++")

BUGS = {
    "no margin": ("coordinator_leases.cpp", "host.last_beat + *settings_.lease + kLeaseMargin", "host.last_beat + *settings_.lease"),
    "lease counted from the answer": ("agent.cpp", "const TimePoint until = *sent + *lease_;", "const TimePoint until = now_ + *lease_;"),
    "an old attempt may start": ("agent.cpp", "start.placement.attempt <= hello_.newest ||", ""),
    "lease not looked at when ranks start": ("agent.cpp", " ||\n      !may_have_ranks())\n    return;", ")\n    return;"),
    "ranks live on without a lease": ("agent.cpp", "if (!has_ranks_ || !lease_end_ || now_ < *lease_end_) return;", "return;"),
    "StopAttempt refuses no start under way": ("agent.cpp", "  hello_.newest = stop.attempt;", "  "),
    "StopAttempt of another attempt": ("agent.cpp", "if (has_ranks_ && stop.attempt == hello_.newest)", "if (has_ranks_)"),
    "facts are told once": ("agent.cpp", "if (last_end_) send(*last_end_);", ""),
    "leases do not reach ranks": ("agent.cpp", "if (has_ranks_) actions_.emplace_back(SetLease{until});", ""),
    "a signal that comes twice is two": ("agent.cpp", " || signal.index != signals_", ""),
    "signals are told once": ("coordinator.cpp", "    forward_signals(host, heartbeat.signals);", "    {}"),
    "requests of ranks are told once": ("agent.cpp", "for (const auto& [id, request] : asked_) send(StoreRequest{hello_.newest, request});", ""),
    "answers to ranks of any attempt": ("agent.cpp", "reply.attempt != hello_.newest || asked_.erase", "asked_.erase"),
    "answers that come twice are two": ("agent.cpp", " || asked_.erase(reply.answer.id) == 0) return;", ") return;"),
    "requests of ranks of any attempt": ("coordinator.cpp", "if (asked.attempt != attempt() || !is_in_attempt(host)) return;", "if (!is_in_attempt(host)) return;"),
    "values outlive their attempt": ("coordinator_attempts.cpp", "values_.begin();", ""),
    "RankFailed of any attempt": ("coordinator.cpp", "if (!is_in_attempt(host) || failed.attempt != placement_->attempt) return;", "if (!is_in_attempt(host)) return;"),
    "AttemptEnded of any attempt": ("coordinator.cpp", "|| ended.attempt != placement_->attempt || host.facts) return;", "|| host.facts) return;"),
    "a successor counts at once": ("coordinator_hosts.cpp", "|| !may_have_ranks(host)) return adopt(host, hello);", "|| true) return adopt(host, hello);"),
    "another agent's heartbeats count": ("coordinator.cpp", "if (event.agent != host->agent) return;", ""),
    "agents of before are heard": ("coordinator_hosts.cpp", "if (host.former.contains(hello.agent)) return dismiss(host, hello.agent, kAnotherCame);", ""),
    "a broken connection ends a host": ("coordinator_leases.cpp", 'lose(host, kItsConnectionBroke);', 'lose(host, "it broke"), host.is_over = true;'),
    "attempts of the coordinator before are not counted": ("coordinator_attempts.cpp", "std::max(attempt(), newest_) + 1", "attempt() + 1"),
    "ranks of the coordinator before are let live": ("coordinator.cpp", 'send(host, StopAttempt{host.newest, "the run starts again"});', "{}"),
    "a lost host's lock is not waited for": ("coordinator_attempts.cpp", "if (!report.lost_because.empty() || end.is_kept_out) return", "if (end.is_kept_out) return"),
    "locks are waited for long for ever": ("coordinator_attempts.cpp", "? kKilledRanksLock : lock_wait_;", "? lock_wait_ : lock_wait_;"),
    "starts that a lock kept out are failures": ("restart_policy.cpp", "if (!ends_[i].is_kept_out) ++count;", "++count;"),
    "starts that a lock kept out break a row": ("restart_policy.cpp", "if (end->is_kept_out) continue;", ""),
    "hosts of the coordinator before count as free": ("coordinator_hosts.cpp", "host.has_ranks = hello.has_had_ranks;", "host.has_ranks = false;"),
    "ranks that have not come are not waited for": ("coordinator_attempts.cpp", "if (const auto end = earlier_ranks_end(); end && now_ < *end) return;", ""),
    "the last rank behind is to blame": ("hang_watch.cpp", "return *std::ranges::min_element(ranks, {}, order);", "return *std::ranges::max_element(ranks, {}, order);"),
    "the collective of most is the other one": ("hang_watch.cpp", "std::ranges::min_element(names, {}, count)", "std::ranges::max_element(names, {}, count)"),
    "stopped ranks are behind if the limit is short": ("hang_watch.cpp", "is_stuck ? kHeldWhereStuck : kHeld", "kHeld"),
    "stopped ranks are not seen": ("hang_watch.cpp", "is_stuck ? kHeldWhereStuck : kHeld)) return hang;", "Seconds(86400))) return hang;"),
    "who waits for a reader hangs": ("hang_watch.cpp", "if (is_new || is_unread)", "if (is_new)"),
    "ranks of a silent host are blamed": ("coordinator_leases.cpp", "return is_in_attempt(host) && !host.is_over && !are_states_new(host);", "return false;"),
    "hangs are not looked for": ("coordinator_control.cpp", "if (!hang) return;", "return;"),
    "starts are told once": ("coordinator.cpp", "if (state_ == State::running && !has_heard) send(", "if (false) send("),
    "the first cause is kept": ("coordinator.cpp", "if (!cause_ || (cause_->blames_a_peer && !cause.blames_a_peer)) cause_", "if (!cause_) cause_"),
    "ended leases are no cause": ("coordinator.cpp", "if (ended.lease_ended)", "if (false)"),
    "too few hosts start": ("worlds.cpp", "if (std::ssize(slots) < least_hosts_) return {};", ""),
    "a host that is told to end ends the run": ("coordinator_hosts.cpp", "if (number != SIGTERM || asked_to_stop_) return false;", "return false;"),
    "to let a host leave is a failure": ("coordinator_hosts.cpp", "!std::exchange(is_regrouping_, true))", "true)"),
    "ranks on too few hosts": ("worlds.cpp", "left - std::max(still_needed, 0)", "left"),
    "spare hosts end attempts for nothing": ("coordinator_attempts.cpp", "if (possible <= world())", "if (possible < world())"),
    "runs without a checkpoint grow": ("coordinator_attempts.cpp", "committed_ > *spare_since_", "true"),
    "to grow is a failure": ("coordinator_attempts.cpp", "if (is_regrouping_ && !asked_to_stop_", "if (false && !asked_to_stop_"),
    "a host that misses the word to stop ends the run": ("coordinator_attempts.cpp", "(!cause_ || all_stopped_on_request(report))", "!cause_"),
    "a host that stopped with the others is lost": ("coordinator_attempts.cpp", "(!cause_ || all_stopped_on_request(report))",
                                                  "(!cause_ || (report.lost_because.empty() && all_stopped(report)))"),
    "worlds that rank 0 refuses": ("worlds.cpp", "return !are_said_ || ", "return true || "),
    "another number of ranks is tried for ever": ("coordinator_attempts.cpp", "!worlds_.admits(world()) && user_signal_ == 0", "user_signal_ == 0"),
    "no restart at all": ("restart_policy.cpp", "  return {.restart = true};", "  return ends;"),
    "signals do not end the run": ("coordinator_attempts.cpp", "AttemptEnd end{.was_asked = asked_to_stop_ || !cause_ ||", "AttemptEnd end{.was_asked = !cause_ ||"),
    "was_asked ignored": ("restart_policy.cpp", "if (end.was_asked || end.done ||", "if (end.done ||"),
    "restarts not counted": ("restart_policy.cpp", "if (decision.restart) restarts_.push_back(now);", ""),
    "final codes start again": ("restart_policy.cpp", " || is_final(end.exit_code) ||", " ||"),
    "alike for ever": ("restart_policy.cpp", "if (alike_in_a_row() >= kAlike)", "if (false)"),
    "no commit for ever": ("restart_policy.cpp", "if (in_a_row_without_commit() >= kAlike)", "if (false)"),
    "restarts without a commit": ("restart_policy.cpp", "if (end.committed < 0 && !limits_.without_commit)", "if (false)"),
}


def compile_file(source, target, include):
    subprocess.run([COMPILER, "-std=c++20", "-O1", "-w", "-DFMT_SHARED", f"-I{include}", "-c", source, "-o", target], check=True,
                   capture_output=True, text=True)


class Workplace:
    """A copy of the sources; the simulation and the sound machines are compiled once."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        for name in ("core", "launcher"):
            shutil.copytree(ROOT / name, self.folder / name)
        control = self.folder / CONTROL
        sources = [*(control / "testing").glob("*.cpp"), control / "simulation_test.cpp", control / "ending.cpp",
                   self.folder / "core/integer.cpp", self.folder / "core/shared_values.cpp",
                   *(control / f"{name}.cpp" for name in MACHINES)]
        self.objects = {source.stem: self.folder / f"{source.stem}.o" for source in sources}
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(lambda source: compile_file(source, self.objects[source.stem], self.folder), sources))

    def run(self, name, objects, seeds):
        program = self.folder / f"{name}_test"
        libraries = ["-lgtest", "-lgtest_main", "-lfmt", "-lpthread"]
        subprocess.run([COMPILER, *objects.values(), *libraries, "-o", program], check=True, capture_output=True)
        result = subprocess.run([program], env=os.environ | {"STRATA_SEEDS": seeds}, capture_output=True, text=True)
        program.unlink()
        return result

    def plant(self, number, file, before, after):
        """Returns the result of the simulation with the bug."""
        text = (ROOT / CONTROL / file).read_text()
        if text.count(before) != 1:
            raise AssertionError(f"{file} has {text.count(before)} times {before!r}")
        stem = f"planted_{number}"
        source = self.folder / CONTROL / f"{stem}.cpp"
        source.write_text(text.replace(before, after))
        planted = self.folder / f"{stem}.o"
        compile_file(source, planted, self.folder)
        return self.run(stem, self.objects | {file.removesuffix(".cpp"): planted}, SEEDS)


def finding(result):
    """Returns "seed 7, check 'two attempts': ..." of a run that failed."""
    if found := re.search(r"seed \d+, check .*", result.stdout):
        return found[0]
    return (result.stderr.strip().splitlines() or ["it crashed"])[-1]


class PlantedBugs(unittest.TestCase):
    def test_each_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            place = Workplace(folder)
            sound = place.run("sound", place.objects, "2000")
            self.assertEqual(sound.returncode, 0, sound.stdout[-4000:])
            chosen = {name: bug for name, bug in BUGS.items() if not NAMES or name in NAMES}
            with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
                tasks = {name: pool.submit(place.plant, number, *bug) for number, (name, bug) in enumerate(chosen.items())}
            for name, task in tasks.items():
                with self.subTest(name):
                    result = task.result()
                    print(f"{name}: {finding(result) if result.returncode else 'NOT FOUND'}", flush=True)
                    self.assertNotEqual(result.returncode, 0, f"{name} is found by none of {SEEDS} seeds")


NAMES = []
if __name__ == "__main__":
    NAMES, sys.argv[1:] = sys.argv[1:], []
    unittest.main()
