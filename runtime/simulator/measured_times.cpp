#include "runtime/simulator/measured_times.h"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "core/error.h"
#include "runtime/execute/bound_instruction.h"

namespace strata::runtime {
namespace {

using PerInstruction = std::vector<std::int64_t>;

using QueueTimes = std::array<std::int64_t, kQueues>;

/// Goes through the runs of one rank in their order.
class ReadyTimes {
 public:
  ReadyTimes(std::int64_t first_start_ns, CountedFrom from)
      : from_(from), can_start_ns_(first_start_ns) {}

  /// Finds when each instruction of the next run could begin, as far as its rank knows, or when it
  /// began. A queue ends its instructions in their order: transfers of a disk are told later than
  /// they end where an earlier one is under way.
  PerInstruction of(const RecordedRun& run) {
    const QueueTimes border_ns = queue_end_ns_;
    PerInstruction ready_ns, end_ns;
    std::int64_t inputs_read_ns = 0;
    for (std::size_t i = 0; i < run.end_ns.size(); ++i) {
      const Instruction& in = run.program->instructions[i];
      std::int64_t& of_queue = queue_end_ns_[static_cast<std::size_t>(in.queue)];
      ready_ns.push_back(std::max(
          of_queue, from_ == CountedFrom::begin ? run.begin_ns[i] : met_ns(in, end_ns, border_ns)));
      of_queue = std::max(of_queue, run.end_ns[i]);
      end_ns.push_back(of_queue);
      if (reads_staged_input(*run.program, in)) inputs_read_ns = std::max(inputs_read_ns, of_queue);
    }
    // Two runs may be under way, so the next one starts when the one before this one has ended.
    can_start_ns_ = std::max({can_start_ns_, inputs_read_ns, *std::ranges::max_element(border_ns)});
    return ready_ns;
  }

 private:
  /// Returns when all had ended that an instruction waits for. What the host took to start its run
  /// after it could is no part of it, and so counts as the instruction's own time.
  [[nodiscard]] std::int64_t met_ns(const Instruction& in, const PerInstruction& end_ns,
                                    const QueueTimes& border_ns) const {
    std::int64_t met = can_start_ns_;
    for (const std::int32_t other : in.waits)
      met = std::max(met, end_ns[static_cast<std::size_t>(other)]);
    for (std::size_t q = 0; q < border_ns.size(); ++q)
      if ((in.border_waits >> q & 1U) != 0) met = std::max(met, border_ns[q]);
    return met;
  }

  CountedFrom from_;
  std::int64_t can_start_ns_;  ///< the next run
  QueueTimes queue_end_ns_{};  ///< of what each queue did last
};

/// Lets each collective be ready when the last rank has come to it.
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

std::int64_t first_start_ns(const std::vector<Recording>& ranks) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (const Recording& of_rank : ranks)
    if (!of_rank.empty()) first = std::min(first, of_rank[0].started_ns);
  return first;
}

std::vector<std::vector<std::vector<std::int64_t>>> durations(const std::vector<Recording>& ranks,
                                                              CountedFrom from) {
  std::vector<std::vector<PerInstruction>> ns(ranks.size());  // when ready, then how long
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    ReadyTimes ready(first_start_ns(ranks), from);
    for (const RecordedRun& run : ranks[r]) ns[r].push_back(ready.of(run));
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
