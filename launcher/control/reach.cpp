#include "launcher/control/reach.h"

#include <fmt/core.h>

#include <utility>

namespace strata::launcher {

std::optional<std::string> Reach::complaint(TimePoint now) {
  if (said_ || !is_quiet(now)) return {};
  said_ = true;
  return fmt::format("the coordinator of the run does not answer, waiting for it up to {} s{}",
                     limit().count(), reason_.empty() ? "" : " (" + reason_ + ")");
}

std::optional<Reach::TimePoint> Reach::next_deadline() const {
  if (!since_) return {};
  return *since_ + (said_ ? limit() : kQuiet);
}

}  // namespace strata::launcher
