#include "launcher/report/hang_report.h"

#include <fmt/core.h>

#include <algorithm>

#include "launcher/report/failure_report.h"

namespace strata::launcher {
namespace {

constexpr std::size_t kMostStackLines = 24, kMostStackLinesOfWaiting = 10;

std::string advice_for_held(const std::vector<HangEvidence>& evidence) {
  std::string thaws;
  for (const HangEvidence& one : evidence)
    if (one.process.frozen && thaws.find(one.process.thaw) == std::string::npos)
      thaws += (thaws.empty() ? "" : "; ") + one.process.thaw;
  const std::string ends = "; the ranks are ended now (mlaunch --hang-timeout 0 waits for ever)";
  if (!thaws.empty())
    return "a job scheduler or container engine did that: scontrol resume or docker unpause thaws "
           "it, or " +
           thaws + ends;
  return "kill -STOP, a debugger or a job scheduler did that, and kill -CONT in time undoes it; to "
         "suspend a run stop mlaunch itself (Ctrl-Z)" +
         ends;
}

/// Returns so many lines, without a newline at the end.
std::string first_lines(const std::string& text, std::size_t count) {
  std::size_t end = 0;
  for (std::size_t line = 0; line < count && end != std::string::npos; ++line)
    end = text.find('\n', end + (line > 0 ? 1 : 0));
  return text.substr(0, text.ends_with('\n') ? std::min(end, text.size() - 1) : end);
}

}  // namespace

std::string describe_evidence(const Hang& hang, const std::vector<HangEvidence>& evidence) {
  const bool names_ranks = evidence.size() > 1 || !hang.host.empty();
  std::string held, waits, threads, stacks;
  for (const HangEvidence& one : evidence) {
    const std::string who = names_ranks ? fmt::format("rank {}: ", one.rank) : "";
    if (!one.stacks.empty())
      stacks += (names_ranks ? fmt::format("rank {}:\n", one.rank) : "") +
                first_lines(one.stacks, one.waits ? kMostStackLinesOfWaiting : kMostStackLines) +
                "\n";
    if (one.threads.empty()) continue;
    const std::string what =
        one.process.frozen ? "in a frozen control group" : what_holds(one.threads);
    if (one.waits)
      waits += who + one.where + (one.where.empty() ? "" : "; ") + what + "\n";
    else
      held += who + what + "\n";
    threads += who + describe_threads(one.threads, one.process.frozen) + "\n";
  }
  std::string text;
  add_field(text, "held", held);
  add_field(text, "waits", waits);
  add_field(text, "threads", threads);
  add_field(text, "stack", stacks);
  if (!text.empty()) text.pop_back();
  return text;
}

std::string hang_advice(const Hang& hang, const std::vector<HangEvidence>& evidence) {
  const bool waits_for_device =
      !evidence.empty() && std::ranges::find(evidence.front().threads, 'D', &ThreadFacts::state) !=
                               evidence.front().threads.end();
  const bool pages =
      !evidence.empty() && std::ranges::any_of(evidence.front().threads, &ThreadFacts::pages);
  switch (hang.kind) {
    case Hang::Kind::held:
      return advice_for_held(evidence);
    case Hang::Kind::different:
      return "the ranks do not run the same Programs; this is a bug, report it with these lines";
    case Hang::Kind::in_it:
      return "look at the network, and at the GPUs (nvidia-smi, dmesg)";
    case Hang::Kind::ending:
      return "what a program does after its work, as in destructors, must end, too; its stack says "
             "what it waits for";
    case Hang::Kind::silent:
      return "look at what starts the program there: a wrapper, its disk or network file system "
             "(df -h, dmesg)";
    default:
      if (pages)
        return "memory is short on its host, or the disk does not answer (free -h, dmesg): lower "
               "what ranks need (--target-memory), or end what else runs there";
      return waits_for_device
                 ? "look at the disk or file system that it waits for (df -h, dmesg)"
                 : "if it only needs longer, give more: mlaunch --hang-timeout SECONDS";
  }
}

std::string why_it_stays(pid_t pid, const HangEvidence& evidence) {
  const std::string who =
      fmt::format("rank {} (process {}) was killed but does not end", evidence.rank, pid);
  if (evidence.process.frozen)
    return fmt::format("{}: its control group is frozen. It ends once that is thawed: {}", who,
                       evidence.process.thaw);
  return fmt::format(
      "{}: it waits inside the kernel ({}), for a disk, a network file system or a driver that "
      "does not answer; see dmesg. The machine may need a restart",
      who, what_holds(evidence.threads));
}

}  // namespace strata::launcher
