#include "launcher/control/reach.h"

#include <fmt/core.h>

#include <utility>

namespace strata::launcher {

std::optional<std::string> Reach::found() {
  const bool is_again = std::exchange(ever_found_, true) && since_ && said_;
  since_.reset();
  another_.clear();
  if (!is_again) return {};
  return fmt::format("host 0 answers again at {}", where_);
}

std::optional<std::string> Reach::found_another(TimePoint now, const std::string& reason) {
  lost(now, "what answers there is not host 0 of this run: " + reason);
  if (std::exchange(another_, reason) == reason) return {};
  said_ = true;
  return fmt::format(
      "what answers at {} is not host 0 of this run: {}; this host waits for the right one up to "
      "{} "
      "s",
      where_, reason, limit().count());
}

std::optional<std::string> Reach::complaint(TimePoint now) {
  if (said_ || !is_quiet(now)) return {};
  said_ = true;
  const std::string why = reason_.empty() ? "" : fmt::format(" ({})", reason_);
  if (ever_found_)
    return fmt::format("host 0 does not answer any more at {}{}: this host waits for it up to {} s",
                       where_, why, limit().count());
  return fmt::format(
      "host 0 does not answer at {}{}: it has not started yet, or the run has ended; this host "
      "tries again for up to {} s",
      where_, why, limit().count());
}

std::string Reach::farewell() const {
  return fmt::format("host 0 has not answered {}at {} for {} s{}: this host ends",
                     ever_found_ ? "again " : "", where_, limit().count(),
                     reason_.empty() ? "" : fmt::format(" ({})", reason_));
}

std::optional<Reach::TimePoint> Reach::next_deadline() const {
  if (!since_) return {};
  return *since_ + (said_ ? limit() : kQuiet);
}

}  // namespace strata::launcher
