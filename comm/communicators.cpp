#include "comm/communicators.h"

#include <algorithm>

#include "core/check.h"
#include "core/error.h"

namespace strata::comm {

void Communicators::add(AxisSet axes, Communicator& communicator) {
  STRATA_CHECK(!has(axes), "a second communicator for mesh axis", to_string(axes));
  by_axes_[axes.index()] = &communicator;
  present_ += (present_.empty() ? "'" : ", '") + to_string(axes) + "'";
}

Communicator& Communicators::of(AxisSet axes) const {
  if (Communicator* communicator = by_axes_[axes.index()]) return *communicator;
  throw InternalError("a collective names mesh axis '" + to_string(axes) +
                      "', which this run does not have; it has " +
                      (present_.empty() ? "none" : present_));
}

void Communicators::check() const {
  for (Communicator* communicator : by_axes_)
    if (communicator != nullptr) communicator->check();
}

bool Communicators::have_peers() const {
  return std::ranges::any_of(by_axes_, [](const Communicator* communicator) {
    return communicator != nullptr && communicator->size() > 1;
  });
}

void Communicators::abort(const std::string& reason, ExitCode code) const noexcept {
  for (Communicator* communicator : by_axes_)
    if (communicator != nullptr) communicator->abort(reason, code);
}

}  // namespace strata::comm
