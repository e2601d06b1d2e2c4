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

 private:
  const std::vector<std::vector<std::int64_t>>& ns_;
  std::size_t run_ = 0;
};

}  // namespace

std::vector<std::vector<ReplayedRun>> replay(const comm::Mesh& mesh,
                                             const std::vector<Recording>& ranks) {
  const auto ns = durations(ranks);
  std::vector<TimesOfRuns> times(ns.begin(), ns.end());
  std::vector<const InstructionTimes*> of_ranks;
  for (const TimesOfRuns& of_rank : times) of_ranks.push_back(&of_rank);
  SimulatedRanks world(mesh, 1, of_ranks);
  const std::size_t runs = ranks.at(0).size();
  for (std::size_t k = 0; k < runs; ++k)
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      if (ranks[r].size() != runs)
        throw InvalidArgument(fmt::format(
            "rank {} recorded {} runs, and rank 0 {}; record the same steps on all of them", r,
            ranks[r].size(), runs));
      SimulatedRank& rank = world.rank(static_cast<int>(r));
      if (k > 0) rank.wait_inputs_read(static_cast<RunNumber>(k) - 1);
      times[r].select(k);
      const int handle = rank.borrow(*ranks[r][k].program);
      rank.start(handle, ranks[r][k].step);
    }
  std::vector<std::vector<ReplayedRun>> replayed(ranks.size());
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    world.rank(static_cast<int>(r)).wait_all();
    std::int64_t end_ns = 0;
    for (std::size_t k = 0; k < runs; ++k) {
      const RecordedRun& run = ranks[r][k];
      for (const std::int64_t end : run.end_ns) end_ns = std::max(end_ns, end);
      replayed[r].push_back({run.step, end_ns - ranks[r][0].started_ns,
                             world.rank(static_cast<int>(r)).ended_ns(static_cast<RunNumber>(k))});
    }
  }
  return replayed;
}

}  // namespace strata::runtime
