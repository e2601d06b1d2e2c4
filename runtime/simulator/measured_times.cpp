#include "runtime/simulator/measured_times.h"

#include <fmt/core.h>
#include <algorithm>
#include <utility>

#include "core/error.h"

namespace strata::runtime {
namespace {

using PerInstruction = std::vector<std::int64_t>;

/// Finds when each instruction of one run could begin, as far as its rank knows. `last_end_ns`: per
/// queue the end of what it did before the run, and then of the run.
PerInstruction ready_times(const RecordedRun& run, std::array<std::int64_t, kQueues>& last_end_ns) {
  const std::array<std::int64_t, kQueues> border_ns = last_end_ns;
  PerInstruction ready_ns;
  for (std::size_t i = 0; i < run.end_ns.size(); ++i) {
    const Instruction& in = run.program->instructions[i];
    std::int64_t& of_queue = last_end_ns[static_cast<std::size_t>(in.queue)];
    std::int64_t ready = std::max(run.started_ns, of_queue);
    for (const std::int32_t other : in.waits)
      ready = std::max(ready, run.end_ns[static_cast<std::size_t>(other)]);
    for (std::size_t q = 0; q < border_ns.size(); ++q)
      if ((in.border_waits >> q & 1U) != 0) ready = std::max(ready, border_ns[q]);
    ready_ns.push_back(ready);
    of_queue = std::max(of_queue, run.end_ns[i]);
  }
  return ready_ns;
}

/// Lets each collective begin when the last rank has come to it.
void meet(const std::vector<Recording>& ranks, std::vector<std::vector<PerInstruction>>& ready_ns) {
  std::vector<std::vector<std::int64_t*>> meetings(ranks.size());  // by rank, in order
  for (std::size_t r = 0; r < ranks.size(); ++r)
    for (std::size_t k = 0; k < ranks[r].size(); ++k)
      for (std::size_t i = 0; i < ready_ns[r][k].size(); ++i)
        if (ranks[r][k].program->instructions[i].collective)
          meetings[r].push_back(&ready_ns[r][k][i]);
  for (const auto& of_rank : meetings)
    if (of_rank.size() != meetings[0].size())
      throw InvalidArgument(
          fmt::format("ranks recorded {} and {} collectives; record the same steps on all of them",
                      meetings[0].size(), of_rank.size()));
  for (std::size_t m = 0; m < meetings[0].size(); ++m) {
    std::int64_t last = 0;
    for (const auto& of_rank : meetings) last = std::max(last, *of_rank[m]);
    for (const auto& of_rank : meetings) *of_rank[m] = last;
  }
}

}  // namespace

void MeasuredTimes::set(const Program& program, int instruction, std::int64_t ns) {
  std::vector<std::int64_t>& of_program = ns_[program.name];
  of_program.resize(program.instructions.size(), -1);
  of_program[static_cast<std::size_t>(instruction)] = ns;
}

InstructionWork MeasuredTimes::work_of(const Program& program, int instruction) const {
  const auto found = ns_.find(program.name);
  if (found == ns_.end() && otherwise_ != nullptr) return otherwise_->work_of(program, instruction);
  const auto place = static_cast<std::size_t>(instruction);
  if (found == ns_.end() || found->second.size() != program.instructions.size() ||
      found->second[place] < 0)
    throw InvalidArgument(fmt::format(
        "nobody measured instruction {} ('{}') of Program '{}'; measure a run of the same Programs",
        instruction, program.instructions[place].label, program.name));
  return {std::max<std::int64_t>(1, found->second[place]), {}};
}

std::vector<std::vector<std::vector<std::int64_t>>> durations(const std::vector<Recording>& ranks) {
  std::vector<std::vector<PerInstruction>> ns(ranks.size());  // when ready, then how long
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    std::array<std::int64_t, kQueues> last_end_ns{};
    for (const RecordedRun& run : ranks[r]) ns[r].push_back(ready_times(run, last_end_ns));
  }
  meet(ranks, ns);
  for (std::size_t r = 0; r < ranks.size(); ++r)
    for (std::size_t k = 0; k < ranks[r].size(); ++k)
      for (std::size_t i = 0; i < ns[r][k].size(); ++i)
        ns[r][k][i] = std::max<std::int64_t>(1, ranks[r][k].end_ns[i] - ns[r][k][i]);
  return ns;
}

std::vector<MeasuredTimes> mean_times(const std::vector<Recording>& ranks, std::int64_t first_step,
                                      const InstructionTimes* otherwise) {
  const auto ns = durations(ranks);
  std::vector<MeasuredTimes> all;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    std::map<const Program*, std::pair<std::int64_t, PerInstruction>> sums;  // runs, and their ns
    for (std::size_t k = 0; k < ranks[r].size(); ++k) {
      const RecordedRun& run = ranks[r][k];
      if (run.step < first_step) continue;
      auto& [runs, sum] = sums[run.program];
      ++runs;
      sum.resize(ns[r][k].size(), 0);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += ns[r][k][i];
    }
    MeasuredTimes& times = all.emplace_back(otherwise);
    for (const auto& [program, of] : sums)
      for (int i = 0; i < static_cast<int>(of.second.size()); ++i)
        times.set(*program, i, of.second[static_cast<std::size_t>(i)] / of.first);
  }
  return all;
}

}  // namespace strata::runtime
