#include "launcher/report/report_json.h"

#include "core/clock.h"
#include "core/error.h"
#include "core/json_writer.h"

namespace strata::launcher {
namespace {

void write_rank(JsonWriter& json, const std::string& host, int number, const EndedRank& rank) {
  json.begin_object();
  json.member("rank", number).member("host", host);
  if (rank.ending)
    json.member("exit_code", rank.ending->exit_code()).member("ending", rank.ending->describe());
  if (rank.step >= 0) json.member("step", rank.step);
  json.member("where", rank.where).member("error", rank.error);
  if (!rank.stays.empty()) json.member("stays", rank.stays);
  if (rank.peak_rss_bytes > 0) json.member("peak_rss_bytes", rank.peak_rss_bytes);
  json.end_object();
}

void write_cause(JsonWriter& json, const AttemptReport& report) {
  const AttemptReport::OfHost& host = report.hosts[static_cast<std::size_t>(report.failed_host)];
  // After a hang or the loss of a host, mlaunch kills the ranks, so their exit codes say nothing.
  const bool ended_by_us = report.hung_rank || !report.lost_because.empty();
  if (ended_by_us || host.facts)
    json.member("exit_code",
                ended_by_us ? static_cast<int>(ExitCode::try_again) : host.facts->exit_code);
  if (report.hung_rank) {
    json.member("cause", "hang").member("rank", *report.hung_rank).member("host", host.host);
    json.member("text", report.hung_because);
  } else if (!report.lost_because.empty() || !host.facts) {
    json.member("cause", "lost host").member("host", host.host).member("text", report.lost_because);
  } else if (host.facts->failed) {
    const AttemptFacts::Failed& failed = *host.facts->failed;
    json.member("cause", failed.spawn_error.empty() ? "failed rank" : "rank not started");
    json.member("rank", failed.rank).member("host", host.host);
    json.member("text", failed.spawn_error).member("error_tail", failed.error_tail);
  } else {
    json.member("cause", "request").member("signal", host.facts->user_signal);
  }
}

}  // namespace

std::string report_json(const Run& run, const AttemptReport& report,
                        std::chrono::system_clock::time_point ended_at) {
  JsonWriter json;
  json.begin_object();
  json.member("version", 1).member("run", run.run_id).member("attempt", report.attempt);
  json.member("program", run.options.command.front());
  json.member("ended_at", utc_text(ended_at));
  write_cause(json, report);
  json.member("starts_again", report.is_started_again);
  if (report.committed >= 0)
    json.member("committed_step", report.committed).member("checkpoint", report.checkpoint);
  json.key("ranks").begin_array();
  for (const AttemptReport::OfHost& host : report.hosts) {
    if (!host.facts) continue;
    int number = host.first_rank;
    for (const EndedRank& rank : host.facts->ranks) write_rank(json, host.host, number++, rank);
  }
  json.end_array().end_object();
  return json.finish() + "\n";
}

}  // namespace strata::launcher
