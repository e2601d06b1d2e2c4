// The communicators of one rank, by the mesh axis that collectives name (design.md 2.9).
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

  /// The axis must be free.
  void add(MeshAxis axis, Communicator& communicator);
  [[nodiscard]] bool has(MeshAxis axis) const { return pointer(axis) != nullptr; }
  /// Throws InternalError naming the axis when this run has none such: a Program was made for
  /// another mesh.
  [[nodiscard]] Communicator& of(MeshAxis axis) const;

  /// Communicator::check on every axis.
  void check() const;
  /// Whether some axis has more than this rank.
  [[nodiscard]] bool have_peers() const;

  /// Communicator::abort on every axis.
  void abort(const std::string& reason, ExitCode code) const noexcept;

 private:
  [[nodiscard]] Communicator* pointer(MeshAxis axis) const {
    return by_axis_[static_cast<std::size_t>(axis)];
  }
  std::array<Communicator*, kMeshAxes> by_axis_{};
};

}  // namespace strata::comm
