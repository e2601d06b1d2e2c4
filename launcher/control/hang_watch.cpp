#include "launcher/control/hang_watch.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

namespace strata::launcher {
namespace {

using Seconds = HangWatch::Seconds;

/// Time after which a stopped rank is to blame if no rank gets on: by then two heartbeats would
/// have shown that it only was stopped for a moment, as a slow one is again and again.
constexpr Seconds kHeldWhereStuck{2};

/// Limits of the phases until something longer was learned; that of steps is the user's.
constexpr Seconds kStart{300}, kLoad{300}, kFirstStep{120}, kEvaluate{120}, kSave{120}, kEnding{60};

bool is_over(const RankState& rank) {
  return rank.phase == Phase::done || rank.phase == Phase::failed;
}

bool beats(const RankState& rank) { return rank.beats > 0; }

/// Returns the rank that has begun fewest collectives; of several, one outside of any, whose work
/// is not over.
const RankState& first_behind(std::span<const RankState> ranks) {
  const auto order = [](const RankState& rank) {
    return std::tuple(rank.collective, !rank.collective_name.empty(), is_over(rank));
  };
  return *std::ranges::min_element(ranks, {}, order);
}

/// Names the collectives of ranks that are in several under one number: `rank` is in the one that
/// fewest are in.
Hang different(std::span<const RankState> ranks) {
  std::map<std::string, std::vector<int>> names;
  for (const RankState& rank : ranks) names[rank.collective_name].push_back(rank.rank);
  const auto count = [](const auto& one) { return std::pair(one.second.size(), one.second); };
  const auto fewest = std::ranges::min_element(names, {}, count);
  const auto most = std::ranges::max_element(names, {}, count);
  Hang hang{.kind = Hang::Kind::different, .rank = fewest->second.front()};
  hang.collective = ranks.front().collective;
  hang.collective_name = fewest->first;
  hang.other_name = most->first;
  hang.waiting = most->second;
  hang.where = std::ranges::find(ranks, hang.rank, &RankState::rank)->where;
  return hang;
}

/// Says who is to blame, of ranks that all get nowhere.
Hang judged(std::span<const RankState> ranks) {
  if (const auto failed = std::ranges::find(ranks, Phase::failed, &RankState::phase);
      failed != ranks.end())
    return {.kind = Hang::Kind::ending, .rank = failed->rank, .where = failed->where};
  if (const auto silent = std::ranges::find_if_not(ranks, beats); silent != ranks.end())
    return {.kind = Hang::Kind::silent, .rank = silent->rank};
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
  const auto is_in_another = [&](const RankState& other) {
    return other.collective_name != behind.collective_name;
  };
  if (hang.waiting.empty() || ranks.size() == 1)
    hang.kind = is_over(behind) ? Hang::Kind::ending : Hang::Kind::alone;
  else if (!all_in || behind.collective < hang.collective)
    hang.kind = Hang::Kind::behind;
  else if (std::ranges::any_of(ranks, is_in_another))
    hang = different(ranks);
  else
    hang.kind = Hang::Kind::in_it;
  return hang;
}

std::string ranks_that(const std::vector<int>& ranks, std::string_view one_does,
                       std::string_view many_do) {
  return ranks.size() == 1 ? fmt::format("rank {} {}", ranks.front(), one_does)
                           : fmt::format("{} ranks {}", ranks.size(), many_do);
}

}  // namespace

std::string_view name_of(Hang::Kind kind) {
  switch (kind) {
    case Hang::Kind::held:
      return "held";
    case Hang::Kind::behind:
      return "behind";
    case Hang::Kind::different:
      return "different";
    case Hang::Kind::in_it:
      return "in_it";
    case Hang::Kind::alone:
      return "alone";
    case Hang::Kind::ending:
      return "ending";
    case Hang::Kind::silent:
      return "silent";
  }
  return "";
}

std::string Hang::subject() const {
  if (kind == Kind::in_it) return "all ranks";
  const std::string on = host.empty() ? "" : " on host " + host;
  return held.size() > 1 ? fmt::format("ranks {}", fmt::join(held, ", "))
                         : fmt::format("rank {}{}", rank, on);
}

std::string Hang::cause() const {
  const std::string in = fmt::format("collective {} '{}'", collective, collective_name);
  switch (kind) {
    case Kind::held:
      return held.size() > 1 ? "are stopped or frozen" : "has been stopped or frozen";
    case Kind::behind:
      return fmt::format("has not come to {}, in which {}", in,
                         ranks_that(waiting, "waits", "wait"));
    case Kind::different:
      return fmt::format("is in {}, {} '{}' under the same number", in,
                         ranks_that(waiting, "in", "in"), other_name);
    case Kind::in_it:
      return fmt::format("are in {}: the network or a device does not answer", in);
    case Kind::ending:
      return "has ended its work, but its process does not end";
    case Kind::silent:
      return "has told nothing since its start, and others wait";
    case Kind::alone:
      break;
  }
  return "got nothing done";
}

std::string Hang::timed_cause() const {
  const auto seconds = for_how_long.count();
  if (kind == Kind::held && held.size() > 1)
    return fmt::format("{}, rank {} for {} s", cause(), rank, seconds);
  if (kind == Kind::held || kind == Kind::alone)
    return fmt::format("{} for {} s", cause(), seconds);
  return fmt::format("{}; nothing got done for {} s", cause(), seconds);
}

std::string Hang::describe() const {
  const bool has_place = !where.empty() && kind != Kind::in_it;
  return fmt::format("{} {}{}{}", subject(), timed_cause(), has_place ? "; it is at " : "",
                     has_place ? where : "");
}

std::string Hang::signature() const {
  return fmt::format("hang: {}, '{}', '{}'", name_of(kind), collective_name, other_name);
}

std::optional<Hang> HangWatch::look(TimePoint now, std::span<const RankState> ranks,
                                    TimePoint known) {
  std::vector<RankState> living;
  std::ranges::copy_if(ranks, std::back_inserter(living), std::not_fn(&RankState::ended));
  const bool traced = std::ranges::any_of(living, &RankState::traced);
  // After a pause of mlaunch itself, or under a debugger, nobody knows what ranks could have done.
  const bool is_new = !last_look_ || now - *last_look_ > kLateLook || traced || living.empty();
  // Ranks that write wait for who reads from mlaunch, and others wait for them.
  const bool is_unread = std::ranges::any_of(living, &RankState::unread);
  last_look_ = now;
  if (is_new)
    for (Seen& one : seen_) one.held_since.reset();
  if (take_progress(living)) heard_ = now;
  if (heard_ > last_progress_) {
    if (!is_new)
      for (std::size_t stage = 0; stage < kStages; ++stage)
        if (stages_[stage]) pauses_[stage].add(heard_ - last_progress_);
    last_progress_ = heard_;
  }
  stages_ = stages_of(living);
  if (is_new || is_unread) last_progress_ = now;
  limit_seen_.reset();
  if (limit_ == Seconds(0) || traced || living.empty()) return {};
  if (std::ranges::any_of(living, beats)) limit_seen_ = limit_of(living);
  std::optional<Hang> is_stuck = stuck(known, living);
  // Who is stopped is to blame, even if a short limit ends sooner.
  if (std::optional<Hang> hang = held(now, living, is_stuck ? kHeldWhereStuck : kHeld)) return hang;
  return is_stuck;
}

/// Returns who is to blame if no rank has got anything done for too long.
std::optional<Hang> HangWatch::stuck(TimePoint known, std::span<const RankState> ranks) const {
  if (!is_due(known)) return {};
  Hang hang = judged(ranks);
  hang.for_how_long = std::chrono::duration_cast<Seconds>(known - last_progress_);
  return hang;
}

/// Returns the rank that is held longest, if that is for `limit`, with all others that are held.
std::optional<Hang> HangWatch::held(TimePoint now, std::span<const RankState> ranks,
                                    Seconds limit) {
  Hang hang{.kind = Hang::Kind::held};
  std::optional<TimePoint> first;
  for (const RankState& rank : ranks) {
    Seen& one = seen(rank.rank);
    std::optional<TimePoint>& since = one.held_since;
    if (!rank.held) since.reset();
    if (!rank.held) continue;
    if (!since) since = now;
    if (one.is_slowed && now - *since < kHeld) continue;  // it will run again
    hang.held.push_back(rank.rank);
    if (first && *first <= *since) continue;
    first = since;
    hang.rank = rank.rank;
    hang.where = rank.where;
  }
  if (!first || now - *first < limit) return {};
  hang.for_how_long = std::chrono::duration_cast<Seconds>(now - *first);
  return hang;
}

/// Returns true if a rank has got something done since the last look.
bool HangWatch::take_progress(std::span<const RankState> ranks) {
  bool progress = false;
  for (const RankState& rank : ranks) {
    Seen& before = seen(rank.rank);
    const bool beat = std::exchange(before.beats, rank.beats) != rank.beats;
    const bool ran = std::exchange(before.switches, rank.switches) != rank.switches;
    const bool is_held_again = std::exchange(before.held, rank.held) && rank.held;
    if (beat || (ran && !rank.frozen)) {  // signals count as switches of a frozen one
      before.held_since.reset();
      before.is_slowed |= is_held_again;
    }
    progress = progress || beat;
    if (first_step_ < 0 && rank.step >= 0) first_step_ = rank.step;
  }
  return progress;
}

void HangWatch::start_again() { *this = HangWatch(limit_); }

HangWatch::Stages HangWatch::stages_of(std::span<const RankState> ranks) const {
  Stages stages{};
  for (const RankState& rank : ranks)
    if (beats(rank)) stages[static_cast<std::size_t>(stage_of(rank))] = true;
  return stages;
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
    case Phase::done:
    case Phase::failed:
      return Stage::end;
    default:
      return rank.step > first_step_ ? Stage::step : Stage::first_step;
  }
}

Seconds HangWatch::limit_of(Stage stage) const {
  constexpr std::array<Seconds, kStages> kFloors{kStart,    kLoad, kFirstStep, Seconds(0),
                                                 kEvaluate, kSave, kEnding};
  const auto index = static_cast<std::size_t>(stage);
  const auto learned = std::chrono::ceil<Seconds>(kLearned * pauses_[index].p99());
  return std::max({limit_, kFloors[index], learned});
}

Seconds HangWatch::limit_of(std::span<const RankState> ranks) const {
  if (!std::ranges::all_of(ranks, beats)) return limit_of(Stage::start);
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
