#include "launcher/control/hang_watch.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace strata::launcher {
namespace {

using Seconds = HangWatch::Seconds;

/// Limits of the phases until something longer was learned; that of steps is the user's.
constexpr Seconds kStart{300}, kLoad{300}, kFirstStep{120}, kSave{120};

/// True for ranks that can be judged: they live, write their page, and no debugger holds them.
bool is_watched(const RankState& rank) {
  return !rank.ended && rank.beats > 0 && rank.phase != Phase::done && rank.phase != Phase::failed;
}

/// Returns the rank that has begun fewest collectives; of several, one outside of any.
const RankState& first_behind(std::span<const RankState> ranks) {
  return *std::ranges::min_element(ranks, [](const RankState& a, const RankState& b) {
    if (a.collective != b.collective) return a.collective < b.collective;
    return a.collective_name.empty() && !b.collective_name.empty();
  });
}

/// Says who is to blame, of ranks that all get nowhere.
Hang judged(std::span<const RankState> ranks) {
  const RankState& behind = first_behind(ranks);
  Hang hang{.rank = behind.rank, .where = behind.where};
  for (const RankState& other : ranks) {
    if (other.collective_name.empty()) continue;
    hang.waiting.push_back(other.rank);
    if (other.collective < hang.collective) continue;
    hang.collective = other.collective;
    hang.collective_name = other.collective_name;
  }
  const bool all_in = hang.waiting.size() == ranks.size();
  if (hang.waiting.empty() || ranks.size() == 1) {
    hang.kind = Hang::Kind::alone;
  } else if (!all_in || behind.collective < hang.collective) {
    hang.kind = Hang::Kind::behind;
  } else {
    hang.kind = Hang::Kind::in_it;
    for (const RankState& other : ranks) {
      if (other.collective_name == behind.collective_name) continue;
      hang.kind = Hang::Kind::different;
      hang.collective_name = behind.collective_name;
      hang.other_name = other.collective_name;
    }
  }
  return hang;
}

}  // namespace

std::string Hang::describe() const {
  const auto seconds = for_how_long.count();
  const std::string place = where.empty() ? "" : fmt::format("; it is at {}", where);
  const std::string in = fmt::format("collective {} '{}'", collective, collective_name);
  const std::string who =
      waiting.size() == 1 ? "another rank waits" : fmt::format("{} ranks wait", waiting.size());
  switch (kind) {
    case Kind::held:
      if (held.size() > 1)
        return fmt::format("ranks {} are stopped or frozen, rank {} for {} s{}",
                           fmt::join(held, ", "), rank, seconds, place);
      return fmt::format("rank {} has been stopped or frozen for {} s{}", rank, seconds, place);
    case Kind::behind:
      return fmt::format("rank {} has not come to {}, in which {}; nothing got done for {} s{}",
                         rank, in, who, seconds, place);
    case Kind::different:
      return fmt::format(
          "rank {} is in {}, another rank in '{}' under the same number; nothing got done for {} s",
          rank, in, other_name, seconds);
    case Kind::in_it:
      return fmt::format(
          "all ranks are in {}, and nothing got done for {} s: the network or a device does not "
          "answer",
          in, seconds);
    case Kind::alone:
      break;
  }
  return fmt::format("rank {} got nothing done for {} s{}", rank, seconds, place);
}

std::optional<Hang> HangWatch::look(TimePoint now, std::span<const RankState> ranks) {
  std::vector<RankState> watched;
  std::ranges::copy_if(ranks, std::back_inserter(watched), is_watched);
  const bool traced = std::ranges::any_of(watched, &RankState::traced);
  // After a pause of mlaunch itself, or under a debugger, nobody knows what ranks could have done.
  const bool is_new = !last_look_ || now - *last_look_ > kLateLook || traced || watched.empty();
  last_look_ = now;
  if (is_new)
    for (Seen& one : seen_) one.held_since.reset();
  if (take_progress(watched)) {
    if (!is_new) learn(now - last_progress_, watched);
    last_progress_ = now;
  }
  if (is_new) last_progress_ = now;
  if (limit_ == Seconds(0) || traced || watched.empty()) return {};
  if (std::optional<Hang> hang = held(now, watched)) return hang;
  if (now - last_progress_ < limit_of(watched)) return {};
  Hang hang = judged(watched);
  hang.for_how_long = std::chrono::duration_cast<Seconds>(now - last_progress_);
  return hang;
}

/// Returns the rank that is held longest, if that is too long, with all others that are held.
std::optional<Hang> HangWatch::held(TimePoint now, std::span<const RankState> ranks) {
  Hang hang{.kind = Hang::Kind::held};
  std::optional<TimePoint> first;
  for (const RankState& rank : ranks) {
    std::optional<TimePoint>& since = seen(rank.rank).held_since;
    if (!rank.held) since.reset();
    if (!rank.held) continue;
    if (!since) since = now;
    hang.held.push_back(rank.rank);
    if (first && *first <= *since) continue;
    first = since;
    hang.rank = rank.rank;
    hang.where = rank.where;
  }
  if (!first || now - *first < kHeld) return {};
  hang.for_how_long = std::chrono::duration_cast<Seconds>(now - *first);
  return hang;
}

/// Returns true if a rank has got something done since the last look.
bool HangWatch::take_progress(std::span<const RankState> ranks) {
  bool progress = false;
  for (const RankState& rank : ranks) {
    Seen& before = seen(rank.rank);
    progress |= std::exchange(before.beats, rank.beats) != rank.beats;
    if (first_step_ < 0 && rank.step >= 0) first_step_ = rank.step;
  }
  return progress;
}

/// Keeps how long a pause was after which ranks in these phases went on.
void HangWatch::learn(std::chrono::steady_clock::duration pause, std::span<const RankState> ranks) {
  for (const RankState& rank : ranks) {
    auto& longest = longest_[static_cast<std::size_t>(stage_of(rank))];
    longest = std::max(longest, pause);
  }
}

void HangWatch::start_again() {
  seen_.clear();
  last_look_.reset();
  first_step_ = -1;
}

HangWatch::Stage HangWatch::stage_of(const RankState& rank) const {
  switch (rank.phase) {
    case Phase::starting:
    case Phase::planning:
      return Stage::start;
    case Phase::loading:
      return Stage::load;
    case Phase::evaluate:
      return Stage::evaluate;
    case Phase::saving:
      return Stage::save;
    default:
      return rank.step > first_step_ ? Stage::step : Stage::first_step;
  }
}

Seconds HangWatch::limit_of(Stage stage) const {
  constexpr std::array<Seconds, kStages> kFloors{kStart,     kLoad,      kFirstStep,
                                                 Seconds(0), Seconds(0), kSave};
  const auto index = static_cast<std::size_t>(stage);
  const auto learned = std::chrono::ceil<Seconds>(kLearned * longest_[index]);
  return std::max({limit_, kFloors[index], learned});
}

Seconds HangWatch::limit_of(std::span<const RankState> ranks) const {
  Seconds limit{0};
  for (const RankState& rank : ranks)
    limit = std::max(
        {limit, limit_of(stage_of(rank)), std::chrono::ceil<Seconds>(kLearned * rank.quiet)});
  return limit;
}

HangWatch::Seen& HangWatch::seen(int rank) {
  const auto found = std::ranges::find(seen_, rank, &Seen::rank);
  return found != seen_.end() ? *found : seen_.emplace_back(Seen{.rank = rank});
}

}  // namespace strata::launcher
