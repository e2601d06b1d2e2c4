#include "launcher/report/run_report.h"

#include <signal.h>

#include <string>

#include "launcher/group/signals.h"
#include "launcher/report/failure_report.h"

namespace strata::launcher {
namespace {

std::string why_it_ended(const AttemptFacts& facts) {
  const int number = facts.user_signal;
  const std::string who = number == SIGINT ? "Ctrl-C" : signal_name(number);
  const std::string& where = facts.ranks.front().where;
  if (facts.all_stopped)
    return "mlaunch: stopped on request" + (number != 0 ? " (" + who + ")" : "");
  if (number != 0)
    return "mlaunch: ended by " + who + (where.empty() ? "" : "; rank 0 was at " + where);
  return "";
}

/// Describes the attempt by the rank that failed first.
FailureFacts facts_of_failure(const Run& run, const AttemptReport& report) {
  const AttemptReport::OfHost& host = report.hosts[static_cast<std::size_t>(report.failed_host)];
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
  for (const AttemptReport::OfHost& one : report.hosts)
    if (one.facts && one.facts->committed > facts.committed_step) {
      facts.committed_step = one.facts->committed;
      facts.checkpoint = one.facts->checkpoint;
    }
  facts.ranks = report.world;
  if (report.hosts.size() > 1) facts.host = host.host;
  const EndedRank& rank =
      host.facts->ranks[static_cast<std::size_t>(failed.rank - host.first_rank)];
  facts.ending = rank.ending.value_or(Ending{});
  facts.where = rank.where;
  facts.phase_seconds = rank.phase_seconds;
  facts.error = rank.error;
  facts.peak_rss_bytes = rank.peak_rss_bytes;
  return facts;
}

}  // namespace

std::string attempt_text(const Run& run, const AttemptReport& report) {
  const AttemptReport::OfHost& host = report.hosts[static_cast<std::size_t>(report.failed_host)];
  if (report.hung_rank) return "mlaunch: " + report.hung_because;
  if (!host.facts) return "mlaunch: " + report.lost_because;
  if (!host.facts->failed) return why_it_ended(*host.facts);
  std::string text = failure_report(facts_of_failure(run, report));
  text.pop_back();
  return text;
}

}  // namespace strata::launcher
