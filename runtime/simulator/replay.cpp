#include "runtime/simulator/replay.h"

#include <fmt/core.h>
#include <algorithm>
#include <memory>

#include "core/error.h"
#include "runtime/simulator/simulated_ranks.h"

namespace strata::runtime {
namespace {

/// The durations of one run of a rank, the next one's when the next one is loaded.
class TimesOfRuns final : public InstructionTimes {
 public:
  explicit TimesOfRuns(const std::vector<std::vector<std::int64_t>>& ns) : ns_(ns) {}
  void select(std::size_t run) { run_ = run; }
  [[nodiscard]] InstructionWork work_of(const Program&, int instruction) const override {
    return {ns_[run_][static_cast<std::size_t>(instruction)], {}};
  }
  [[nodiscard]] bool ranks_leave_alone() const override { return true; }

 private:
  const std::vector<std::vector<std::int64_t>>& ns_;
  std::size_t run_ = 0;
};

/// Starts the next run of each rank as soon as its host may, until all are started.
void start_all(SimulatedRanks& world, const std::vector<Recording>& ranks,
               std::vector<TimesOfRuns>& times) {
  std::vector<std::size_t> next(ranks.size(), 0);
  const auto goes_on = [&](std::size_t r) { return next[r] < ranks[r].size(); };
  while (true) {
    bool has_started = false, is_left = false;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      SimulatedRank& rank = world.rank(static_cast<int>(r));
      for (; goes_on(r) && rank.takes_another(); ++next[r], has_started = true) {
        times[r].select(next[r]);
        const RecordedRun& run = ranks[r][next[r]];
        rank.start(rank.borrow(*run.program), run.step);
      }
      is_left = is_left || goes_on(r);
    }
    if (!is_left) return;
    if (!has_started) world.advance();
  }
}

}  // namespace

std::vector<std::vector<ReplayedRun>> replay(const comm::Mesh& mesh,
                                             const std::vector<Recording>& ranks,
                                             CountedFrom from) {
  for (const Recording& of_rank : ranks)
    if (of_rank.size() != ranks.at(0).size())
      throw InvalidArgument(
          fmt::format("ranks recorded {} and {} runs; record the same steps on all of them",
                      ranks[0].size(), of_rank.size()));
  const auto ns = durations(ranks, from);
  std::vector<TimesOfRuns> times(ns.begin(), ns.end());
  std::vector<const InstructionTimes*> of_ranks;
  for (const TimesOfRuns& of_rank : times) of_ranks.push_back(&of_rank);
  SimulatedRanks world(mesh, 1, of_ranks);
  start_all(world, ranks, times);
  const std::int64_t start_ns = first_start_ns(ranks);
  std::vector<std::vector<ReplayedRun>> replayed(ranks.size());
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    SimulatedRank& rank = world.rank(static_cast<int>(r));
    rank.wait_all();
    std::int64_t end_ns = 0;
    for (std::size_t k = 0; k < ranks[r].size(); ++k) {
      const RecordedRun& run = ranks[r][k];
      for (const std::int64_t end : run.end_ns) end_ns = std::max(end_ns, end);
      replayed[r].push_back(
          {run.step, end_ns - start_ns, rank.ended_ns(static_cast<RunNumber>(k))});
    }
  }
  return replayed;
}

}  // namespace strata::runtime
