// The communicators of one rank, by the axes of the mesh that collectives name (design 2.9).
#pragma once

#include <array>
#include <string>

#include "comm/collective.h"
#include "comm/communicator.h"

namespace strata::comm {

/// A value to copy; the communicators must outlive it. Empty for a run without collectives.
class Communicators {
 public:
  Communicators() = default;

  /// Adds the communicator of `axes`, which must not have one yet.
  void add(AxisSet axes, Communicator& communicator);
  [[nodiscard]] bool has(AxisSet axes) const { return by_axes_[axes.index()] != nullptr; }
  /// Throws InternalError that names the axes when this run has no such communicator: the Program
  /// was made for another mesh.
  [[nodiscard]] Communicator& of(AxisSet axes) const;

  /// Calls Communicator::check on each.
  void check() const;
  /// True if any communicator has more than one rank.
  [[nodiscard]] bool have_peers() const;

  /// Calls Communicator::abort on each.
  void abort(const std::string& reason, ExitCode code) const noexcept;

 private:
  std::array<Communicator*, kAxisSets> by_axes_{};  // index: AxisSet::index
  std::string present_;                             // names of the axes, for messages
};

}  // namespace strata::comm
