// The communicators of one rank, by the axes of the mesh that collectives name (design 2.9).
#pragma once

#include <array>
#include <string>

#include "comm/collective.h"
#include "comm/communicator.h"

namespace strata::comm {

/// A value to copy; what it points to must outlive it. Empty: a run without collectives.
class Communicators {
 public:
  Communicators() = default;

  /// There is none of these axes yet.
  void add(AxisSet axes, Communicator& communicator);
  [[nodiscard]] bool has(AxisSet axes) const { return by_axes_[axes.index()] != nullptr; }
  /// Throws InternalError naming the axes when this run has none such: a Program was made for
  /// another mesh.
  [[nodiscard]] Communicator& of(AxisSet axes) const;

  /// Communicator::check on each.
  void check() const;
  /// Whether one has more than this rank.
  [[nodiscard]] bool have_peers() const;

  /// Communicator::abort on each.
  void abort(const std::string& reason, ExitCode code) const noexcept;

 private:
  std::array<Communicator*, kAxisSets> by_axes_{};  // by AxisSet::index
  std::string present_;                             // names, for messages
};

}  // namespace strata::comm
