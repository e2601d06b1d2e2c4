#include "launcher/report/run_report.h"

#include <fmt/core.h>
#include <signal.h>

#include <algorithm>
#include <string>

#include "core/clock.h"
#include "launcher/group/signals.h"
#include "launcher/report/failure_report.h"

namespace strata::launcher {
namespace {

std::string why_it_ended(const Run& run, const AttemptFacts& facts) {
  const int number = facts.user_signal;
  const std::string who = number == run.ended_by.signal ? run.ended_by.words
                          : number == SIGINT            ? "Ctrl-C"
                                                        : signal_name(number);
  const std::string where = facts.ranks.empty() ? "" : facts.ranks.front().where;
  if (facts.all_stopped)
    return "mlaunch: stopped on request" + (number != 0 ? " (" + who + ")" : "");
  if (number != 0)
    return "mlaunch: ended by " + who + (where.empty() ? "" : "; rank 0 was at " + where);
  return "";
}

/// Says what the user may do; "" if mlaunch itself starts the ranks again, or nothing is saved.
std::string how_to_go_on(const AttemptReport& report) {
  return report.is_started_again ? "" : resume_text(report.committed, report.checkpoint);
}

const AttemptReport::OfHost& failed_host(const AttemptReport& report) {
  return report.hosts[static_cast<std::size_t>(report.failed_host)];
}

/// True if the attempt ended because of a rank that failed by itself.
bool has_failed_rank(const AttemptReport& report) {
  const AttemptReport::OfHost& host = failed_host(report);
  return !report.hang && report.lost_because.empty() && host.facts && host.facts->failed;
}

/// Describes the attempt by the rank that failed first.
FailureFacts facts_of_failure(const Run& run, const AttemptReport& report) {
  const AttemptReport::OfHost& host = failed_host(report);
  const AttemptFacts::Failed& failed = *host.facts->failed;
  FailureFacts facts;
  facts.rank = failed.rank;
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
  if (report.hosts.size() > 1) facts.host = host.host;
  const EndedRank& rank = *culprit(report);
  facts.ending = rank.ending.value_or(Ending{});
  facts.where = rank.where;
  facts.phase_seconds = rank.phase_seconds;
  facts.error = rank.error;
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

const EndedRank* culprit(const AttemptReport& report) {
  const AttemptReport::OfHost& host = failed_host(report);
  if (!host.facts || (!report.hang && !has_failed_rank(report))) return nullptr;
  const int rank = report.hang ? report.hang->rank : host.facts->failed->rank;
  const auto index = static_cast<std::size_t>(rank - host.first_rank);
  return index < host.facts->ranks.size() ? &host.facts->ranks[index] : nullptr;
}

std::string advice_of(const Run& run, const AttemptReport& report) {
  if (report.hang) return report.advice;
  return has_failed_rank(report) ? failure_advice(facts_of_failure(run, report)) : "";
}

bool is_failure(const AttemptReport& report) {
  return report.hang || !report.lost_because.empty() || !failed_host(report).facts ||
         has_failed_rank(report);
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
    add_field(text, "resume", how_to_go_on(report));
    add_field(text, "report", kept);
    add_field(text, "advice", report.advice);
  } else {
    text = !report.lost_because.empty() || !host.facts ? "mlaunch: " + report.lost_because
                                                       : why_it_ended(run, *host.facts);
    if (text.empty()) return "";
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
