#include "train/run/late_failures.h"

#include <fmt/core.h>

namespace strata::train {

void LateFailures::add(ExitCode code, const std::string& message) {
  if (count_++ == 0) {
    code_ = code;
    first_ = message;
  }
  listeners_.warn(message + "; training goes on");
}

void LateFailures::throw_if_any(bool has_saved) const {
  if (count_ == 0) return;
  std::string text =
      fmt::format("all steps are done{}, but: {}", has_saved ? " and saved" : "", first_);
  if (count_ > 1) text += fmt::format(" (and {} more, said when they came)", count_ - 1);
  throw Error(code_, text);
}

}  // namespace strata::train
