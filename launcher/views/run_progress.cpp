#include "launcher/views/run_progress.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "core/clock.h"
#include "core/json_writer.h"

namespace strata::launcher {
namespace {

/// After a longer pause mlaunch was suspended, and nobody knows what ranks did.
constexpr double kMostPauseSeconds = 5;

bool is_in_step(Phase phase) {
  return phase == Phase::forward || phase == Phase::backward || phase == Phase::update ||
         phase == Phase::running;
}

/// Returns the first rank that tells what it does: those of other programs do not; null: none.
const RankState* teller(const RunStatus& status) {
  const auto found = std::ranges::find_if(status.ranks, [](const RunStatus::Rank& rank) {
    return !rank.state.ended && rank.state.beats > 0;
  });
  return found == status.ranks.end() ? nullptr : &found->state;
}

}  // namespace

void RunProgress::look(TimePoint now, std::chrono::system_clock::time_point wall,
                       const RunStatus& status) {
  const double seconds =
      looked_ ? std::min(std::chrono::duration<double>(now - *looked_).count(), kMostPauseSeconds)
              : 0;
  looked_ = now;
  if (status.attempt != attempt_) see_attempt(wall, status);
  if (status.committed > committed_) see_checkpoint(now, wall, status);
  see_save_failures(wall, status);
  see_beats(now, status);
  const RankState* rank = teller(status);
  if (rank == nullptr || rank->step < 0) return;
  has_steps_ = true;
  if (is_in_step(rank->phase) && rank->step > done_until_) useful_seconds_ += seconds;
  see_step(now, *rank);
}

/// What was done after the newest checkpoint is done again, and counts once.
void RunProgress::see_attempt(std::chrono::system_clock::time_point wall, const RunStatus& status) {
  attempt_ = status.attempt;
  beats_.clear();
  if (step_ >= 0) {
    // The step that ranks were in had not ended.
    const std::int64_t done = step_ - 1, kept = std::max<std::int64_t>(status.committed, 0);
    lost_steps_ += std::max<std::int64_t>(done - kept, 0);
    done_until_ = std::max(done_until_, done);
    step_ = -1;
  }
  tell(wall, true,
       attempt_ <= 0           ? std::string("the ranks start")
       : status.committed >= 0 ? fmt::format("the ranks start again from step {}", status.committed)
                               : std::string("the ranks start again from the beginning"));
}

void RunProgress::see_checkpoint(TimePoint now, std::chrono::system_clock::time_point wall,
                                 const RunStatus& status) {
  committed_ = status.committed;
  committed_at_ = now;
  tell(wall, false, fmt::format("step {} is saved in {}", status.committed, status.checkpoint));
}

/// Tells of the first one in a row: the end of the row is a checkpoint.
void RunProgress::see_save_failures(std::chrono::system_clock::time_point wall,
                                    const RunStatus& status) {
  const auto failing = std::ranges::find_if(status.ranks, [](const RunStatus::Rank& rank) {
    return rank.state.view.save_failure.has_value();
  });
  const bool fail = failing != status.ranks.end();
  if (fail && !saves_fail_) tell(wall, false, failing->state.view.save_failure->describe());
  saves_fail_ = fail;
}

void RunProgress::see_step(TimePoint now, const RankState& rank) {
  const bool goes_back = rank.step < step_ || (!points_.empty() && rank.step < points_.back().step);
  step_ = std::max(step_, rank.step);
  if (goes_back)  // a curve shows each step once
    std::erase_if(points_, [&](const Point& point) { return point.step >= rank.step; });
  const bool is_new = points_.empty() || rank.step > points_.back().step;
  if (!is_new || (added_ && now < *added_ + gap_)) return;
  added_ = now;
  points_.push_back({rank.step, rank.view.loss, rank.view.tokens_per_second});
  if (points_.size() < kMostPoints) return;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < points_.size(); i += 2) points_[kept++] = points_[i];
  points_.resize(kept);
  gap_ *= 2;
}

void RunProgress::see_beats(TimePoint now, const RunStatus& status) {
  for (const RunStatus::Rank& rank : status.ranks) {
    if (rank.state.beats == 0) continue;  // the program does not tell
    const auto [found, is_new] = beats_.try_emplace(rank.state.rank, Beats{rank.state.beats, now});
    if (!is_new && found->second.count != rank.state.beats) found->second = {rank.state.beats, now};
  }
}

/// Old checkpoints are forgotten before old starts.
void RunProgress::tell(std::chrono::system_clock::time_point wall, bool is_start,
                       std::string text) {
  events_.push_back({wall, is_start, std::move(text)});
  if (events_.size() <= kMostEvents) return;
  const auto checkpoint = std::ranges::find(events_, false, &Happened::is_start);
  events_.erase(checkpoint != events_.end() ? checkpoint : events_.begin());
}

void RunProgress::complete(TimePoint now, RunStatus& status) const {
  status.lost_steps = lost_steps_;
  if (has_steps_ && status.seconds > 0)
    status.goodput = std::min(useful_seconds_ / status.seconds, 1.0);
  if (status.committed > committed_)  // between two looks
    status.checkpoint_age = 0;
  else if (committed_at_)
    status.checkpoint_age = std::chrono::duration<double>(now - *committed_at_).count();
  for (RunStatus::Rank& rank : status.ranks) {
    const auto seen = beats_.find(rank.state.rank);
    if (seen == beats_.end() || rank.state.ended) continue;
    const bool has_gone_on = rank.state.beats != seen->second.count;
    rank.progress_age =
        has_gone_on ? 0 : std::chrono::duration<double>(now - seen->second.since).count();
  }
}

std::string RunProgress::json() const {
  JsonWriter json(0);
  json.begin_object().member("version", 1);
  json.key("step").begin_array();
  for (const Point& point : points_) json.value(point.step);
  json.end_array().key("loss").begin_array();
  for (const Point& point : points_) json.value(point.loss);
  json.end_array().key("tokens_per_second").begin_array();
  for (const Point& point : points_) json.value(point.tokens_per_second);
  json.end_array().key("events").begin_array();
  for (const Happened& event : events_)
    json.begin_object().member("at", utc_text(event.when)).member("text", event.text).end_object();
  return json.end_array().end_object().finish();
}

}  // namespace strata::launcher
