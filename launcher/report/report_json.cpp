#include "launcher/report/report_json.h"

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <vector>

#include "core/clock.h"
#include "core/error.h"
#include "core/json_writer.h"
#include "launcher/report/run_report.h"

namespace strata::launcher {
namespace {

/// Writes where a rank was; what is not known is missing.
void write_place(JsonWriter& json, const EndedRank& rank) {
  json.member("phase", name_of(rank.phase));
  if (rank.step >= 0) json.member("step", rank.step);
  if (rank.instruction >= 0)
    json.member("instruction", rank.instruction).member("instruction_name", rank.instruction_name);
  if (rank.collective > 0) json.member("collective", rank.collective);
  if (!rank.collective_name.empty()) json.member("collective_name", rank.collective_name);
}

/// Says how a rank ended. After a request, or where it could not save, its 75 blames no other rank.
std::string ending_text(const EndedRank& rank, bool was_requested) {
  constexpr int kStopped = static_cast<int>(ExitCode::try_again);
  if (*rank.ending == Ending{Ending::Kind::exited, kStopped}) {
    if (was_requested) return fmt::format("exited with code {} (stopped on request)", kStopped);
    if (rank.ended_by_failed_save())
      return fmt::format("exited with code {} (could not save)", kStopped);
  }
  return rank.ending->describe();
}

void write_rank(JsonWriter& json, const std::string& host, int number, const EndedRank& rank,
                bool was_requested) {
  json.begin_object();
  json.member("rank", number).member("host", host);
  if (rank.ending)
    json.member("exit_code", rank.ending->exit_code())
        .member("ending", ending_text(rank, was_requested));
  write_place(json, rank);
  json.member("where", rank.where).member("error", rank.error);
  if (rank.save_failure) {
    json.key("failed_save");
    rank.save_failure->write(json);
  }
  if (!rank.stays.empty()) json.member("stays", rank.stays);
  if (rank.peak_rss_bytes > 0) json.member("peak_rss_bytes", rank.peak_rss_bytes);
  json.end_object();
}

void write_numbers(JsonWriter& json, std::string_view name, const std::vector<int>& numbers) {
  if (numbers.empty()) return;
  json.key(name).begin_array();
  for (const int number : numbers) json.value(number);
  json.end_array();
}

/// Writes the collective in which others wait, not that of the rank to blame.
void write_hang(JsonWriter& json, const AttemptReport& report) {
  const Hang& hang = *report.hang;
  json.key("hang").begin_object();
  json.member("kind", name_of(hang.kind));
  json.member("seconds", std::int64_t{hang.for_how_long.count()});
  if (hang.collective > 0)
    json.member("collective", hang.collective).member("collective_name", hang.collective_name);
  if (!hang.other_name.empty()) json.member("other_collective_name", hang.other_name);
  write_numbers(json, "waiting", hang.waiting);
  write_numbers(json, "held", hang.held);
  json.end_object();
  json.key("evidence").begin_array();
  for (const AttemptReport::OfRanks& one : report.evidence) {
    json.begin_object().member("host", one.host).member("text", one.text);
    json.member("details", one.details).end_object();
  }
  json.end_array();
}

/// Writes the rank that failed first, or all hosts if none is to blame alone.
void write_who_failed(JsonWriter& json, const AttemptReport& report) {
  const std::vector<std::string> alike = hosts_that_failed_alike(report);
  if (alike.empty()) {
    const FailedRank first = first_to_fail(report);
    json.member("rank", first.rank).member("host", first.host->host);
    return;
  }
  json.key("hosts").begin_array();
  for (const std::string& host : alike) json.value(host);
  json.end_array();
}

void write_cause(JsonWriter& json, const AttemptReport& report) {
  const AttemptReport::OfHost& host = report.hosts[static_cast<std::size_t>(report.failed_host)];
  // After a hang or the loss of a host, mlaunch kills the ranks, so their exit codes say nothing.
  const bool ended_by_us = report.hang || !report.lost_because.empty();
  if (ended_by_us || host.facts)
    json.member("exit_code",
                ended_by_us ? static_cast<int>(ExitCode::try_again) : host.facts->exit_code);
  if (report.hang) {
    json.member("cause", "hang").member("rank", report.hang->rank).member("host", host.host);
    json.member("text", report.hang->subject() + " " + report.hang->timed_cause());
  } else if (!report.lost_because.empty() || !host.facts) {
    json.member("cause", "lost host").member("host", host.host).member("text", report.lost_because);
  } else if (host.facts->failed) {
    const AttemptFacts::Failed& failed = *host.facts->failed;
    json.member("cause", failed.spawn_error.empty() ? "failed rank" : "rank not started");
    write_who_failed(json, report);
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
  if (const EndedRank* rank = culprit(report);
      rank != nullptr && hosts_that_failed_alike(report).empty())
    write_place(json, *rank);
  if (const std::string advice = advice_of(run, report); !advice.empty())
    json.member("advice", advice);
  if (report.hang) write_hang(json, report);
  json.member("starts_again", report.is_started_again);
  if (report.committed >= 0)
    json.member("committed_step", report.committed).member("checkpoint", report.checkpoint);
  const bool was_requested = !is_failure(report);
  json.key("ranks").begin_array();
  for (const AttemptReport::OfHost& host : report.hosts) {
    if (!host.facts) continue;
    int number = host.first_rank;
    for (const EndedRank& rank : host.facts->ranks)
      write_rank(json, host.host, number++, rank, was_requested);
  }
  json.end_array().end_object();
  return json.finish() + "\n";
}

}  // namespace strata::launcher
