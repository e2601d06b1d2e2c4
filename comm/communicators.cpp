#include "comm/communicators.h"

#include <algorithm>

#include "core/check.h"
#include "core/error.h"

namespace strata::comm {

void Communicators::add(MeshAxis axis, Communicator& communicator) {
  STRATA_CHECK(!has(axis), "a second communicator for mesh axis", name_of(axis));
  by_axis_[static_cast<std::size_t>(axis)] = &communicator;
}

Communicator& Communicators::of(MeshAxis axis) const {
  if (Communicator* communicator = pointer(axis)) return *communicator;
  std::string present;
  for (int i = 0; i < kMeshAxes; ++i)
    if (has(static_cast<MeshAxis>(i)))
      present +=
          (present.empty() ? "'" : ", '") + std::string(name_of(static_cast<MeshAxis>(i))) + "'";
  throw InternalError("a collective names mesh axis '" + std::string(name_of(axis)) +
                      "', which this run does not have; it has " +
                      (present.empty() ? "none" : present));
}

void Communicators::check() const {
  for (Communicator* communicator : by_axis_)
    if (communicator != nullptr) communicator->check();
}

bool Communicators::have_peers() const {
  return std::ranges::any_of(by_axis_, [](const Communicator* communicator) {
    return communicator != nullptr && communicator->size() > 1;
  });
}

void Communicators::abort(const std::string& reason, ExitCode code) const noexcept {
  for (Communicator* communicator : by_axis_)
    if (communicator != nullptr) communicator->abort(reason, code);
}

}  // namespace strata::comm
