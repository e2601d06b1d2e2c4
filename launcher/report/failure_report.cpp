#include "launcher/report/failure_report.h"

#include <fmt/core.h>
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "core/without_numbers.h"

namespace strata::launcher {
namespace {

constexpr int kTailLines = 10;
constexpr std::size_t kMaxGroups = 4;
constexpr std::size_t kMaxErrorBytes = 400;

std::string signal_advice(const FailureFacts& facts) {
  switch (facts.ending.number) {
    case SIGKILL:
      if (facts.out_of_memory_kills > 0)
        return fmt::format(
            "the kernel killed {} process(es) of this machine for lack of memory during this run; "
            "lower what a rank needs (a higher --zero stage, a smaller --micro-batch, "
            "--activation-checkpointing) or start fewer ranks",
            facts.out_of_memory_kills);
      return "mlaunch did not send it: probably the kernel's out-of-memory killer (see dmesg), a "
             "memory limit of the container or job scheduler, or somebody's kill -9";
    case SIGSEGV:
    case SIGABRT:
    case SIGFPE:
    case SIGTRAP:
      return "this is a bug in the program; report it with the lines above (`ulimit -c unlimited` "
             "before the run keeps a core file)";
    case SIGILL:
      return "the program uses an instruction that this CPU or virtual machine does not have; "
             "build it on this machine";
    case SIGBUS:
      return "memory behind a mapped file could not be had: look for a full disk or a full "
             "/dev/shm (df -h), or a file that shrank while it was read";
    case SIGXCPU:
    case SIGXFSZ:
      return "a resource limit was reached; see ulimit -a";
    case SIGPIPE:
      return "it wrote to something whose reader had gone";
    default:
      return "somebody sent this signal to the rank: a job scheduler (time limit, preemption), an "
             "administrator or a script";
  }
}

std::string exit_advice(const FailureFacts& facts) {
  switch (static_cast<ExitCode>(facts.ending.number)) {
    case ExitCode::usage:
      return "correct the arguments after '" + facts.program + "'; see " + facts.program +
             " --help";
    case ExitCode::data:
      return "check or fetch again the file that the error names";
    case ExitCode::host:
      return "this machine cannot do what was asked: mend what the error names, or choose another";
    case ExitCode::internal:
      return "this is a bug in the program; report it with the lines above";
    case ExitCode::io:
      return "check the disk that the error names (df -h, dmesg)";
    case ExitCode::try_again:
      if (!facts.lost_save.empty())
        return "make room, or mend what the cause names, then start the run again";
      return "another rank was lost or gave no answer, or the time to save was over; start the run "
             "again";
    case ExitCode::configuration:
      return "correct the setting that the error names, or make alike what differs between hosts";
    case ExitCode::do_not_restart:
      return "starting it again would end the same way; change what the error names first";
    default:
      return "";
  }
}

std::string last_lines(const std::string& text) {
  std::size_t end = text.size();
  while (end > 0 && (text[end - 1] == '\n' || text[end - 1] == '\r')) --end;
  std::size_t begin = end;
  for (int lines = 0; begin > 0; --begin)
    if (text[begin - 1] == '\n' && ++lines == kTailLines) break;
  return text.substr(begin, end - begin);
}

/// Leaves out the notes of a program, which are no errors, with their lines that are indented.
std::string without_notes(std::string_view text) {
  std::string kept;
  bool in_note = false;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    in_note = text.starts_with("note: ") || (in_note && text.starts_with(' '));
    if (!in_note) kept += text.substr(0, end);
    text.remove_prefix(end);
  }
  return kept;
}

std::string memory_text(std::int64_t bytes) {
  constexpr std::int64_t kMiB = 1 << 20;
  if (bytes < 100 * kMiB) return "";  // too little to be the cause
  return fmt::format("{} MiB at its peak", (bytes + kMiB / 2) / kMiB);
}

std::string error_text(const FailureFacts& facts) {
  if (!facts.spawn_error.empty()) return facts.spawn_error;
  const std::string tail = last_lines(without_notes(facts.error_tail));
  // The standard error of a single rank is on the screen right above: do not repeat it.
  const bool on_screen =
      facts.ranks == 1 && (facts.error.empty() || tail.find(facts.error) != std::string::npos);
  if (on_screen) return "";
  return facts.error.empty() ? tail : facts.error;
}

/// Ranks grouped by a common text.
using Groups = std::map<std::string, std::vector<int>>;

/// Returns a line per group, those of the lowest ranks first; after too many, "and `rest`".
std::string group_lines(const Groups& groups, const std::string& rest) {
  std::vector<std::pair<std::vector<int>, std::string>> lines;
  for (const auto& [text, ranks] : groups) lines.emplace_back(ranks, text);
  std::sort(lines.begin(), lines.end());
  std::string text;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i == kMaxGroups) return text + "and " + rest + "\n";
    text += "rank " + rank_list(lines[i].first) + ": " + lines[i].second + "\n";
  }
  return text;
}

/// Returns a place, with the time in its phase if that is long enough to tell something.
std::string place_text(const std::string& where, double phase_seconds) {
  if (where.empty() || phase_seconds < 1) return where;
  return fmt::format("{}, for {:.0f} s in this phase", where, std::floor(phase_seconds));
}

/// Describes where the other ranks were, one line for equal places, with the longest time there.
std::string others_text(const FailureFacts& facts) {
  Groups places;
  std::map<std::string, double> longest;
  for (std::size_t rank = 0; rank < facts.others.size(); ++rank) {
    const RankFacts& other = facts.others[rank];
    if (static_cast<int>(rank) == facts.rank || other.where.empty()) continue;
    places[other.where].push_back(static_cast<int>(rank));
    longest[other.where] = std::max(longest[other.where], other.phase_seconds);
  }
  Groups told;
  for (auto& [where, ranks] : places) told[place_text(where, longest[where])] = std::move(ranks);
  return group_lines(told, "other places");
}

std::string in_one_line(const std::string& text) {
  std::istringstream words(text);
  std::string line;
  for (std::string word; words >> word;) line += (line.empty() ? "" : " ") + word;
  if (line.size() <= kMaxErrorBytes) return line;
  return line.substr(0, kMaxErrorBytes) + " ...";
}

/// True if all other ranks have the failed one's error, but for numbers.
bool all_failed_alike(const FailureFacts& facts) {
  if (facts.ranks < 2 || facts.error.empty()) return false;
  const std::string error = without_numbers(facts.error);
  for (std::size_t rank = 0; rank < facts.others.size(); ++rank)
    if (static_cast<int>(rank) != facts.rank && without_numbers(facts.others[rank].error) != error)
      return false;
  return true;
}

bool blames_a_peer(const Ending& ending) {
  return ending.kind == Ending::Kind::exited &&
         ending.number == static_cast<int>(ExitCode::try_again);
}

std::string likewise(const std::vector<int>& ranks, const char* how) {
  if (ranks.empty()) return "";
  return (ranks.size() == 1 ? "rank " : "ranks ") + rank_list(ranks) + " failed likewise" + how +
         "\n";
}

/// Describes the errors of other ranks. A rank that only blames the failed one is left out.
std::string other_errors_text(const FailureFacts& facts) {
  Groups different;
  std::vector<int> alike, nearly_alike;
  for (std::size_t i = 0; i < facts.others.size(); ++i) {
    const RankFacts& other = facts.others[i];
    const int rank = static_cast<int>(i);
    if (rank == facts.rank || other.error.empty()) continue;
    if (other.error == facts.error)
      alike.push_back(rank);
    else if (without_numbers(other.error) == without_numbers(facts.error))
      nearly_alike.push_back(rank);
    else if (!other.ending || !blames_a_peer(*other.ending) || blames_a_peer(facts.ending))
      different[in_one_line(other.error)].push_back(rank);
  }
  return group_lines(different, "other errors") + likewise(alike, "") +
         likewise(nearly_alike, ", with other numbers");
}

/// Describes the ending. The 75 of a rank that could not save blames no other rank.
std::string how_it_ended(const FailureFacts& facts) {
  if (facts.lost_save.empty() || !blames_a_peer(facts.ending)) return facts.ending.describe();
  return fmt::format("exited with code {}, as {}", facts.ending.number,
                     in_one_line(facts.lost_save));
}

}  // namespace

std::string resume_text(std::int64_t step, const std::string& checkpoint) {
  if (step < 0 || checkpoint.empty()) return "";
  return fmt::format(
      "step {} is saved in {}; the same command with --resume auto goes on from there", step,
      checkpoint);
}

void add_field(std::string& report, std::string_view name, const std::string& text) {
  if (text.empty()) return;
  std::istringstream lines(text);
  std::string label = "  " + std::string(name);
  label.resize(10, ' ');
  for (std::string line; std::getline(lines, line); label.assign(10, ' ')) {
    for (char& c : line)
      if ((static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f) c = ' ';
    report += label + line + "\n";
  }
}

std::string rank_list(const std::vector<int>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", ranks[i]);
    if (last > i) text += fmt::format("-{}", ranks[last]);
    i = last + 1;
  }
  return text;
}

std::string failure_report(const FailureFacts& facts) {
  const bool started = facts.spawn_error.empty();
  const bool alike = all_failed_alike(facts);
  const std::string who = facts.is_common
                              ? fmt::format("all {} ranks failed alike", facts.ranks)
                              : fmt::format("rank {} of {} failed{}", facts.rank, facts.ranks,
                                            alike ? ", and the others likewise" : "");
  std::string report = fmt::format("mlaunch: {}: {} {}\n", who, facts.program,
                                   started ? how_it_ended(facts) : "could not be started");
  add_field(report, facts.is_common ? "hosts" : "host", facts.host);
  add_field(report, "where", place_text(facts.where, facts.phase_seconds));
  if (!alike) add_field(report, "others", others_text(facts));
  add_field(report, "memory", memory_text(facts.peak_rss_bytes));
  if (!alike) add_field(report, "also", other_errors_text(facts));
  add_field(report, "error", error_text(facts));
  add_field(report, "resume", facts.resume);
  add_field(report, "report", facts.kept);
  add_field(report, "advice", failure_advice(facts));
  return report;
}

std::string failure_advice(const FailureFacts& facts) {
  if (!facts.spawn_error.empty()) return "";
  return facts.ending.kind == Ending::Kind::killed ? signal_advice(facts) : exit_advice(facts);
}

}  // namespace strata::launcher
