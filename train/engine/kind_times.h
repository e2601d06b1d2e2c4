// Times of runs of instructions, collected by kind (Demand::signature).
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "machine/machine.h"
#include "machine/operation_times.h"
#include "runtime/program/program.h"

namespace strata::train {

class KindTimes {
 public:
  /// Adds one run of `in`. Kinds without a signature are left out.
  void add(const runtime::Instruction& in, std::int64_t ns);
  /// Returns the median of each kind (of an even number the smaller one, since the first run of all
  /// may be slow); of collectives the least, since waiting for peers is part of the others.
  [[nodiscard]] machine::OperationTimes typical(const machine::Machine& machine) const;
  /// Returns the mean of each kind, whose sum over a step's instructions is the step's, without
  /// those that take three times the median or more, which something else held up. Collectives wait
  /// for peers in it, as steps do.
  [[nodiscard]] machine::OperationTimes mean(const machine::Machine& machine) const;

 private:
  struct Kind {
    machine::OperationTime time;  ///< without its times
    machine::Demand demand;
    bool of_collective = false;
    std::vector<std::int64_t> runs_ns;
  };
  template <typename TimeOf>  // of a kind, and its sorted nanoseconds
  [[nodiscard]] machine::OperationTimes times(const machine::Machine& machine,
                                              const TimeOf& time_of) const;

  std::map<std::uint64_t, Kind> kinds_;
};

}  // namespace strata::train
