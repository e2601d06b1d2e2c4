// Measured times of kinds of instructions on a machine. Foreseen times are these where there are
// any (machine/demand.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"
#include "machine/resource.h"

namespace strata::machine {

/// One kind of instruction, alone on its rank's share of the machine.
struct OperationTime {
  /// Hash of operation, types, shapes and attributes (runtime/program/node_demand.h).
  std::uint64_t signature = 0;
  std::string operation;
  Resource resource = Resource::device;
  DType type = DType::f32;    ///< Demand::type
  std::int64_t ns = 0;        ///< measured, > 0
  std::int64_t guess_ns = 0;  ///< what was foreseen from the machine's rates, > 0
  bool operator==(const OperationTime&) const = default;
};

/// A set of measured kinds of instructions; a plain value.
class OperationTimes {
 public:
  OperationTimes() = default;
  /// Keeps the last of those with equal signatures.
  explicit OperationTimes(std::vector<OperationTime> times);

  /// Adds `more`, which replaces what is known of the same signatures.
  void merge(const OperationTimes& more);

  /// Returns the measured time of a signature; nullopt: it was not measured.
  [[nodiscard]] std::optional<std::int64_t> find(std::uint64_t signature) const;
  /// Returns measured over guessed time of the operation on this resource and in this type: the
  /// median of what was measured, weighted by time; 1 where nothing was.
  [[nodiscard]] double slowness(std::string_view operation, Resource resource, DType type) const;

  /// Lists all, in the order of their signatures.
  [[nodiscard]] const std::vector<OperationTime>& all() const { return times_; }
  [[nodiscard]] bool empty() const { return times_.empty(); }
  bool operator==(const OperationTimes& other) const { return times_ == other.times_; }

 private:
  struct Slowness {
    std::string operation;
    Resource resource = Resource::device;
    DType type = DType::f32;
    double factor = 1;
  };
  void find_slowness();

  std::vector<OperationTime> times_;
  std::vector<Slowness> slowness_;  ///< by operation, resource and type; follows from times_
};

}  // namespace strata::machine
