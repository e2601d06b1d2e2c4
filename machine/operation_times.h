// Measured times of kinds of instructions on a machine. Foreseen times are these where there are
// any, and those of other shapes follow the law of their operation (machine/demand.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"
#include "machine/operation_law.h"
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
  Work work = {};             ///< what the instruction does; all 0: not known
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
  /// Returns the time of a kind that was not measured, by what was measured of its operation on
  /// this resource and in this type: `law` of it, or `guess_ns` times the slowness of most of the
  /// measured time where there are too few kinds for a law. Where there are none: as slow as most
  /// of the measured time of the host's other updates on the host, since memory is what limits
  /// each of them; `guess_ns` elsewhere. A law that is fitted to short kinds promises long ones
  /// rates that no processor has: it does not get below `guess_ns` by more FLOPs per second than
  /// any measured kind had. > 0.
  [[nodiscard]] double foreseen_ns(std::string_view operation, Resource resource, DType type,
                                   const Work& work, double guess_ns) const;

  /// Lists all, in the order of their signatures.
  [[nodiscard]] const std::vector<OperationTime>& all() const { return times_; }
  [[nodiscard]] bool empty() const { return times_.empty(); }
  bool operator==(const OperationTimes& other) const { return times_ == other.times_; }

 private:
  /// Foretells kinds of an operation, resource and type from those of it that were measured.
  struct Family {
    std::string operation;
    Resource resource = Resource::device;
    DType type = DType::f32;
    double slowness = 1;  ///< measured over guessed time
    std::optional<OperationLaw> law = {};
    double least_ns_per_flop = 0;  ///< of the measured kinds that have FLOPs
  };
  void find_families();

  std::vector<OperationTime> times_;
  // These two follow from times_.
  std::vector<Family> families_;
  double host_slowness_ = 1;
};

}  // namespace strata::machine
