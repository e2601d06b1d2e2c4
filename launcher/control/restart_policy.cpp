#include "launcher/control/restart_policy.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "core/error.h"

namespace strata::launcher {
namespace {

constexpr int kGaveUp = static_cast<int>(ExitCode::do_not_restart);

/// True for endings that come again however often a run starts.
bool is_final(int exit_code) {
  constexpr std::array kFinal{ExitCode::usage, ExitCode::data, ExitCode::configuration,
                              ExitCode::do_not_restart};
  return std::ranges::find(kFinal, static_cast<ExitCode>(exit_code)) != kFinal.end();
}

/// Failures whose step nobody knows are alike only if the run has not got on between them.
bool fail_alike(const AttemptEnd& a, const AttemptEnd& b) {
  if (a.step != b.step || a.signature != b.signature) return false;
  return a.step >= 0 || a.committed == b.committed;
}

std::string place_of(const AttemptEnd& end) {
  return end.step >= 0 ? fmt::format("at step {}", end.step) : "before the first step";
}

}  // namespace

RestartPolicy::Decision RestartPolicy::after(TimePoint now, const AttemptEnd& end) {
  ends_.push_back(end);
  Decision decision = judge(now, end);
  if (decision.restart) restarts_.push_back(now);
  return decision;
}

RestartPolicy::Decision RestartPolicy::judge(TimePoint now, const AttemptEnd& end) const {
  const Decision ends{.exit_code = end.exit_code};
  const auto ends_since = [&](std::string why) {
    return Decision{.exit_code = end.exit_code, .why = std::move(why)};
  };
  if (end.was_asked || end.done || limits_.most_restarts == 0 || is_final(end.exit_code) ||
      !end.could_start)
    return ends;
  if (end.left_behind)
    return ends_since("the ranks do not start again beside a process that was killed and is left");
  if (end.committed < 0 && !limits_.without_commit)
    return end.step >= 0 || end.exit_code == static_cast<int>(ExitCode::try_again)
               ? ends_since(
                     "the ranks do not start again by themselves, as nothing has been saved yet "
                     "(train --save-every N saves each N steps); with --max-restarts N they start "
                     "again all the same, from the beginning")
               : ends;
  const auto before = ends_.rbegin() + 1;
  if (end.is_kept_out && before != ends_.rend() &&
      before->exit_code == static_cast<int>(ExitCode::io))
    return {.exit_code = before->exit_code,
            .why =
                "the ranks cannot start again after the failed save or read that ended them "
                "before, as the error above says; mend that first"};
  // A host that refuses the first start would refuse the next one: nothing was done in between.
  if (end.exit_code == static_cast<int>(ExitCode::host) && end.step < 0 && !end.is_kept_out &&
      !limits_.without_commit)
    return ends;
  if (end.out_of_memory && before != ends_.rend() && before->out_of_memory &&
      before->step == end.step)
    return ends_since(fmt::format(
        "the kernel killed a rank for lack of memory {} twice; one more start would end alike",
        place_of(end)));
  if (alike_in_a_row() >= kAlike)
    return {.exit_code = kGaveUp,
            .why = fmt::format("{} starts failed alike {}", kAlike, place_of(end)),
            .gave_up = true};
  if (in_a_row_without_commit() >= kAlike)
    return {.exit_code = kGaveUp,
            .why = fmt::format("{} starts have committed no newer checkpoint", kAlike),
            .gave_up = true};
  if (restarts_within(now) >= limits_.most_restarts)
    return ends_since(
        fmt::format("it has started again {} times within an hour, which is what "
                    "--max-restarts allows",
                    limits_.most_restarts));
  return {.restart = true};
}

int RestartPolicy::restarts_within(TimePoint now) const {
  return static_cast<int>(
      std::ranges::count_if(restarts_, [&](TimePoint time) { return now - time < kWindow; }));
}

/// Counts the last attempts that failed like the newest one.
int RestartPolicy::alike_in_a_row() const {
  if (ends_.back().is_kept_out) return 0;
  int count = 0;
  for (auto end = ends_.rbegin(); end != ends_.rend(); ++end) {
    if (end->is_kept_out) continue;
    if (!fail_alike(*end, ends_.back())) break;
    ++count;
  }
  return count;
}

/// Counts the last attempts that did not commit anything newer than what there was before them.
int RestartPolicy::in_a_row_without_commit() const {
  int count = 0;
  for (std::size_t i = ends_.size(); i-- > 0;) {
    const std::int64_t before = i == 0 ? -1 : ends_[i - 1].committed;
    if (ends_[i].committed > before) break;
    if (!ends_[i].is_kept_out) ++count;
  }
  return count;
}

}  // namespace strata::launcher
