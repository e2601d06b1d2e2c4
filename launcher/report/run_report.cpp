#include "launcher/report/run_report.h"

#include <fmt/core.h>
#include <signal.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/error.h"
#include "launcher/group/signals.h"
#include "launcher/report/failure_report.h"

namespace strata::launcher {
namespace {

/// Says which checkpoint a rank of the host could not write; "" if there is none.
std::string lost_save_text(const AttemptFacts& facts) {
  for (const EndedRank& rank : facts.ranks)
    if (rank.save_failure) return "; " + rank.save_failure->describe();
  return "";
}

/// Says which ranks were killed after a request to end; "" if none.
std::string killed_text(const AttemptReport& report) {
  const std::vector<int> killed = killed_ranks(report);
  if (killed.empty()) return "";
  return fmt::format("rank{} {} {}{} killed", killed.size() > 1 ? "s" : "", rank_list(killed),
                     was_kill_asked(report) ? "" : "did not end in time and ",
                     killed.size() > 1 ? "were" : "was");
}

std::string why_it_ended(const Run& run, const AttemptReport& report) {
  const AttemptFacts& facts = *report.hosts[static_cast<std::size_t>(report.failed_host)].facts;
  const int number = facts.user_signal;
  const std::string who = number == run.ended_by.signal ? run.ended_by.words
                          : number == SIGINT            ? "Ctrl-C"
                                                        : signal_name(number);
  std::string where = facts.ranks.empty() ? "" : facts.ranks.front().where;
  if (!where.empty()) where.insert(0, "; rank 0 was at ");
  if (facts.all_stopped)
    return "mlaunch: stopped on request" + (number != 0 ? " (" + who + ")" : "");
  if (number == 0) return "";
  const std::string killed = killed_text(report);
  return "mlaunch: ended by " + who + lost_save_text(facts) +
         (killed.empty() ? "" : "; " + killed) + where;
}

const AttemptReport::OfHost& failed_host(const AttemptReport& report) {
  return report.hosts[static_cast<std::size_t>(report.failed_host)];
}

/// True if the attempt ended because of a rank that failed by itself.
bool has_failed_rank(const AttemptReport& report) {
  const AttemptReport::OfHost& host = failed_host(report);
  return !report.hang && report.lost_because.empty() && host.facts && host.facts->failed;
}

/// Returns the rank with a number; its host is that of the failed one if no host has told of it.
FailedRank find_rank(const AttemptReport& report, int rank) {
  for (const AttemptReport::OfHost& host : report.hosts) {
    const int index = rank - host.first_rank;
    if (host.facts && index >= 0 && std::cmp_less(index, host.facts->ranks.size()))
      return {rank, &host, &host.facts->ranks[static_cast<std::size_t>(index)]};
  }
  return {rank, &failed_host(report), nullptr};
}

FailedRank ended_first(const AttemptReport& report) {
  return find_rank(report, failed_host(report).facts->failed->rank);
}

/// Returns the rank that the error of the one that ended first is of, if that says so and the two
/// have it in common.
std::optional<FailedRank> named_by_error(const AttemptReport& report) {
  const FailedRank first = ended_first(report);
  const std::string error = first.ended != nullptr ? first.ended->error : "";
  for (int rank = 0; rank < report.world; ++rank) {
    const FailedRank other = find_rank(report, rank);
    const bool is_named = (" " + error).find(fmt::format(" rank {}: ", rank)) != std::string::npos;
    if (is_named && other.ended != nullptr && other.ended->error == error) return other;
  }
  return {};
}

/// True if the same command would fail again: before any step the rank that failed found fault with
/// the command, the settings or the stored data.
bool refused_to_begin(const AttemptReport& report) {
  for (const AttemptReport::OfHost& host : report.hosts)
    if (host.facts)
      for (const EndedRank& rank : host.facts->ranks)
        if (rank.step >= 0) return false;
  const EndedRank* failed = culprit(report);
  if (failed == nullptr || !failed->ending || failed->ending->kind != Ending::Kind::exited)
    return false;
  const auto code = static_cast<ExitCode>(failed->ending->number);
  return code == ExitCode::usage || code == ExitCode::data || code == ExitCode::configuration;
}

/// Says what the user may do; "" if mlaunch itself starts the ranks again, nothing is saved, or the
/// same command cannot go on.
std::string how_to_go_on(const AttemptReport& report) {
  if (report.is_started_again || refused_to_begin(report)) return "";
  return resume_text(report.committed, report.checkpoint);
}

/// True if ranks of several hosts have all told one error that is of no rank: where hosts differ,
/// none of them is to blame alone.
bool is_common(const AttemptReport& report) {
  const FailedRank first = ended_first(report);
  if (report.hosts.size() < 2 || first.ended == nullptr || first.ended->error.empty() ||
      named_by_error(report))
    return false;
  for (int rank = 0; rank < report.world; ++rank) {
    const EndedRank* ended = find_rank(report, rank).ended;
    if (ended == nullptr || ended->error != first.ended->error) return false;
  }
  return true;
}

/// Lists the hosts of an attempt, or the first ones of many.
std::string hosts_of(const AttemptReport& report) {
  constexpr std::size_t kMost = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(report.hosts.size(), kMost); ++i)
    text += (i == 0 ? "" : ", ") + report.hosts[i].host;
  if (report.hosts.size() <= kMost) return text;
  return fmt::format("{} and {} more", text, report.hosts.size() - kMost);
}

/// Describes the attempt by the rank that failed first.
FailureFacts facts_of_failure(const Run& run, const AttemptReport& report) {
  const AttemptReport::OfHost& host = failed_host(report);
  const AttemptFacts::Failed& failed = *host.facts->failed;
  const FailedRank first = first_to_fail(report);
  FailureFacts facts;
  facts.rank = first.rank;
  facts.program = run.options.command.front();
  facts.spawn_error = failed.spawn_error;
  facts.error_tail = failed.error_tail;
  facts.out_of_memory_kills = host.facts->out_of_memory_kills;
  for (const AttemptReport::OfHost& one : report.hosts) {
    if (!one.facts) continue;
    facts.others.resize(static_cast<std::size_t>(one.first_rank));  // of hosts that are lost
    for (const EndedRank& rank : one.facts->ranks)
      facts.others.push_back({rank.where, rank.error, rank.ending, rank.phase_seconds});
  }
  facts.resume = how_to_go_on(report);
  facts.ranks = report.world;
  facts.is_common = is_common(report);
  if (report.hosts.size() > 1) facts.host = facts.is_common ? hosts_of(report) : first.host->host;
  const EndedRank rank = first.ended != nullptr ? *first.ended : EndedRank{};
  facts.ending = rank.ending.value_or(Ending{});
  facts.where = rank.where;
  facts.phase_seconds = rank.phase_seconds;
  facts.error = rank.error;
  if (rank.ended_by_failed_save()) facts.lost_save = rank.save_failure->describe();
  facts.peak_rss_bytes = rank.peak_rss_bytes;
  return facts;
}

std::string hang_text(const AttemptReport& report) {
  const Hang& hang = *report.hang;
  std::string who = fmt::format("rank {} of {}", hang.rank, report.world);
  if (hang.kind == Hang::Kind::in_it) who = fmt::format("all {} ranks", report.world);
  if (hang.held.size() > 1) who = fmt::format("ranks {} of {}", rank_list(hang.held), report.world);
  std::string text = fmt::format("mlaunch: {} hung\n", who);
  add_field(text, "host", hang.host);
  add_field(text, "where", hang.where);
  add_field(text, "cause", hang.timed_cause());
  if (const EndedRank* rank = culprit(report)) add_field(text, "error", rank->error);
  for (const AttemptReport::OfRanks& one : report.evidence)
    if (!one.text.empty()) text += one.text + "\n";
  return text;
}

}  // namespace

FailedRank first_to_fail(const AttemptReport& report) {
  return named_by_error(report).value_or(ended_first(report));
}

std::vector<std::string> hosts_that_failed_alike(const AttemptReport& report) {
  std::vector<std::string> hosts;
  if (has_failed_rank(report) && is_common(report))
    for (const AttemptReport::OfHost& one : report.hosts) hosts.push_back(one.host);
  return hosts;
}

const EndedRank* culprit(const AttemptReport& report) {
  if (report.hang) return find_rank(report, report.hang->rank).ended;
  return has_failed_rank(report) ? first_to_fail(report).ended : nullptr;
}

std::string advice_of(const Run& run, const AttemptReport& report) {
  if (report.hang) return report.advice;
  return has_failed_rank(report) ? failure_advice(facts_of_failure(run, report)) : "";
}

std::vector<int> killed_ranks(const AttemptReport& report) {
  std::vector<int> killed;
  for (const AttemptReport::OfHost& host : report.hosts) {
    if (!host.facts || host.facts->user_signal == 0 || (host.facts->failed && !report.hang))
      continue;
    int rank = host.first_rank;
    for (const EndedRank& one : host.facts->ranks) {
      if (!one.ending || *one.ending == Ending{Ending::Kind::killed, SIGKILL})
        killed.push_back(rank);
      ++rank;
    }
  }
  return killed;
}

bool was_kill_asked(const AttemptReport& report) {
  return std::ranges::any_of(report.hosts, [](const AttemptReport::OfHost& host) {
    return host.facts && host.facts->kill_asked;
  });
}

bool is_failure(const AttemptReport& report) {
  return report.hang || !report.lost_because.empty() || !failed_host(report).facts ||
         has_failed_rank(report);
}

bool is_worth_words(const Run& run, const AttemptReport& report) {
  return is_failure(report) || !why_it_ended(run, report).empty();
}

std::string attempt_text(const Run& run, const AttemptReport& report, const std::string& kept) {
  const AttemptReport::OfHost& host = failed_host(report);
  std::string text;
  if (has_failed_rank(report)) {
    FailureFacts facts = facts_of_failure(run, report);
    facts.kept = kept;
    text = failure_report(facts);
  } else if (report.hang) {
    text = hang_text(report);
    add_field(text, "killed", killed_text(report));
    add_field(text, "resume", how_to_go_on(report));
    add_field(text, "report", kept);
    add_field(text, "advice", report.advice);
  } else {
    text = !report.lost_because.empty() || !host.facts
               ? "mlaunch: the ranks have ended: " + report.lost_because
               : why_it_ended(run, report);
    text += '\n';
    add_field(text, "resume", how_to_go_on(report));
    add_field(text, "report", kept);
  }
  for (const AttemptReport::OfHost& one : report.hosts)
    if (one.facts)
      for (const EndedRank& rank : one.facts->ranks) add_field(text, "left", rank.stays);
  text.pop_back();
  return text;
}

std::string report_file(const Run& run, const AttemptReport& report, const std::string& text,
                        std::chrono::system_clock::time_point ended_at) {
  std::string file = fmt::format("run {}, attempt {}, ended at {} on host {}\n{}\n", run.run_id,
                                 report.attempt, utc_text(ended_at), run.host, text);
  for (const AttemptReport::OfRanks& one : report.evidence)
    add_field(file, "details", (one.host.empty() ? "" : one.host + "\n") + one.details);
  if (report.is_started_again)
    add_field(file, "resume",
              report.committed >= 0
                  ? fmt::format("mlaunch itself started the ranks again from step {}, saved in {}",
                                report.committed, report.checkpoint)
                  : "mlaunch itself started the ranks again from the beginning: nothing was saved");
  return file;
}

}  // namespace strata::launcher
