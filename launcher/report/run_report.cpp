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
  facts.resume = how_to_go_on(report);
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
  std::string text;
  if (!report.hung_rank && report.lost_because.empty() && host.facts && host.facts->failed) {
    text = failure_report(facts_of_failure(run, report));
  } else {
    if (report.hung_rank)
      text = "mlaunch: " + report.hung_because;
    else
      text = !report.lost_because.empty() || !host.facts ? "mlaunch: " + report.lost_because
                                                         : why_it_ended(run, *host.facts);
    if (text.empty()) return "";
    text += '\n';
    if (report.hung_rank && report.hosts.size() > 1) add_field(text, "host", host.host);
    add_field(text, "resume", how_to_go_on(report));
  }
  for (const AttemptReport::OfHost& one : report.hosts)
    if (one.facts)
      for (const EndedRank& rank : one.facts->ranks) add_field(text, "left", rank.stays);
  text.pop_back();
  return text;
}

std::string report_file(const Run& run, const AttemptReport& report, const std::string& text,
                        const std::string& hang, std::chrono::system_clock::time_point ended_at) {
  std::string file = fmt::format("run {}, attempt {}, ended at {} on host {}\n", run.run_id,
                                 report.attempt, utc_text(ended_at), run.host);
  const std::size_t first_line = std::min(text.find('\n'), text.size());
  file += text.substr(0, first_line) + "\n";
  // The first line of what was said of the hang is the same.
  if (const std::size_t end = hang.find('\n'); report.hung_rank && end != std::string::npos)
    file += hang.substr(end + 1) + "\n";
  if (first_line < text.size()) file += text.substr(first_line + 1) + "\n";
  if (report.is_started_again)
    add_field(file, "resume",
              report.committed >= 0
                  ? fmt::format("mlaunch itself started the ranks again from step {}, saved in {}",
                                report.committed, report.checkpoint)
                  : "mlaunch itself started the ranks again from the beginning: nothing was saved");
  return file;
}

}  // namespace strata::launcher
