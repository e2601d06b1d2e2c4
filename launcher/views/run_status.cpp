#include "launcher/views/run_status.h"

#include <array>
#include <string_view>

#include "core/clock.h"
#include "core/json_writer.h"

namespace strata::launcher {
namespace {

constexpr std::array<std::string_view, 4> kTiers{"device", "pinned", "pageable", "disk"};

/// What is not known is null.
template <typename Number>
void write_known(JsonWriter& json, std::string_view name, Number number, bool is_known) {
  json.key(name);
  if (is_known)
    json.value(number);
  else
    json.null();
}

void write_rank(JsonWriter& json, const RunStatus::Rank& one) {
  const RankState& rank = one.state;
  const RankView& view = rank.view;
  json.begin_object();
  json.member("rank", rank.rank).member("host", one.host);
  write_known(json, "process", view.process, view.process > 0);
  json.member("beats", rank.beats)
      .member("progress_age_seconds", one.progress_age)  // NaN is written as null
      .member("phase", name_of(rank.phase))
      .member("phase_seconds", view.phase_seconds);
  write_known(json, "step", rank.step, rank.step >= 0);
  json.member("collective", rank.collective).member("collective_name", rank.collective_name);
  json.member("loss", view.loss);  // NaN is written as null
  write_known(json, "tokens_per_second", view.tokens_per_second, view.tokens_per_second > 0);
  json.key("memory_bytes").begin_object();
  for (std::size_t tier = 0; tier < kTiers.size(); ++tier)
    json.member(kTiers[tier], view.tier_bytes[tier]);
  json.end_object();
  write_known(json, "committed_step", rank.committed, rank.committed >= 0);
  json.member("checkpoint", rank.checkpoint).member("where", rank.where);
  json.key("failed_save");
  if (view.save_failure)
    view.save_failure->write(json);
  else
    json.null();
  json.member("ended", rank.ended).member("held", rank.held).member("traced", rank.traced);
  json.member("frozen", rank.frozen);
  json.end_object();
}

void write_waiting(JsonWriter& json, const WaitingView& waiting) {
  const auto seconds = [](std::chrono::steady_clock::duration time) {
    return std::chrono::duration<double>(time).count();
  };
  json.begin_object();
  json.member("hosts_there", waiting.there).member("hosts_needed", waiting.needed);
  json.member("hosts_of_run", waiting.all).member("missing", waiting.missing);
  json.member("refused", waiting.refused);
  json.member("seconds", seconds(waiting.since)).member("limit_seconds", seconds(waiting.limit));
  json.end_object();
}

void write_host(JsonWriter& json, const HostView& host) {
  json.begin_object();
  json.member("host", host.number).member("name", host.name).member("address", host.address);
  write_known(json, "slots", host.slots, host.slots > 0);
  json.member("ranks", host.ranks).member("state", host.state).member("why", host.why);
  json.end_object();
}

/// Writes what is told of any run that is over.
void write_past(JsonWriter& json, const RunStatus& status, std::int64_t committed,
                const std::string& checkpoint) {
  json.member("started_at", utc_text(status.started_at)).member("seconds", status.seconds);
  json.member("log_folder", status.log_folder).member("world_size", status.world);
  write_known(json, "committed_step", committed, committed >= 0);
  json.member("checkpoint", checkpoint).key("ranks").begin_array().end_array();
}

std::string_view state_of(const RunStatus& status) {
  if (status.stopping) return "stopping";
  return status.waiting ? "waiting" : "running";
}

}  // namespace

std::string status_json(const RunStatus& status) {
  JsonWriter json(0);
  json.begin_object();
  json.member("version", 1).member("run", status.run_id).member("program", status.program);
  json.member("state", state_of(status));
  json.member("host", status.host).member("process", status.process);
  json.member("started_at", utc_text(status.started_at)).member("seconds", status.seconds);
  write_known(json, "attempt", status.attempt, status.attempt >= 0);
  json.member("restarts_in_hour", status.restarts).member("max_restarts", status.most_restarts);
  json.member("grace_seconds", status.grace_seconds).member("log_folder", status.log_folder);
  write_known(json, "committed_step", status.committed, status.committed >= 0);
  json.member("checkpoint", status.checkpoint);
  json.member("checkpoint_age_seconds", status.checkpoint_age);  // NaN is written as null
  json.member("lost_steps", status.lost_steps).member("goodput", status.goodput);
  json.member("restarts", status.all_restarts).member("regroupings", status.regroupings);
  json.key("waiting");
  if (status.waiting)
    write_waiting(json, *status.waiting);
  else
    json.null();
  json.key("hosts").begin_array();
  for (const HostView& host : status.hosts) write_host(json, host);
  json.end_array().key("ranks").begin_array();
  for (const RunStatus::Rank& rank : status.ranks) write_rank(json, rank);
  json.end_array().end_object();
  return json.finish();
}

std::string runs_json(const std::string& status) {
  return "{\"version\":1,\"runs\":[" + status + "]}";
}

std::string stop_json(const StopAnswer& answer) {
  const auto seconds = [](std::chrono::milliseconds time) {
    return std::chrono::floor<std::chrono::seconds>(time).count();
  };
  JsonWriter json(0);
  json.begin_object().member("run", answer.run_id).member("was_asked", answer.was_asked);
  json.member("grace_seconds", seconds(answer.grace));
  json.member("held_limit_seconds", seconds(answer.held_limit));
  json.key("held").begin_array();
  for (const RankState& rank : answer.ranks) {
    if (!rank.held) continue;
    json.begin_object().member("rank", rank.rank).member("process", rank.view.process);
    json.member("frozen", rank.frozen).end_object();
  }
  return json.end_array().end_object().finish();
}

std::string ended_json(const RunStatus& status, const RunEnding& ending) {
  JsonWriter json(0);
  json.begin_object();
  json.member("version", 1).member("run", status.run_id).member("program", status.program);
  json.member("state", "ended").member("exit_code", ending.exit_code).member("host", status.host);
  json.member("ended_at", utc_text(ending.ended_at));
  json.key("killed").begin_array();
  for (const int rank : ending.killed.ranks) json.value(rank);
  json.end_array().member("killed_on_request", ending.killed.on_request);
  write_past(json, status, ending.committed, ending.checkpoint);
  return json.end_object().finish();
}

std::string record_json(const RunStatus& status, std::chrono::system_clock::time_point seen_at) {
  JsonWriter json(0);
  json.begin_object();
  json.member("version", 1).member("run", status.run_id).member("program", status.program);
  json.member("state", "killed").member("host", status.host).member("process", status.process);
  if (status.process_start) json.member("process_start", *status.process_start);
  json.member("seen_at", utc_text(seen_at));
  write_past(json, status, status.committed, status.checkpoint);
  return json.end_object().finish();
}

}  // namespace strata::launcher
