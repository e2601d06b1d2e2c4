#include "train/session/missing_steps.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace strata::train {

std::string MissingSteps::take(std::int64_t step, bool is_written) {
  const bool was_writing = std::exchange(is_writing_, is_written);
  if (is_written) {
    if (was_writing || stretches_.size() > 1) return "";
    return fmt::format("written again from step {} on; {}", step, text());
  }
  ++count_;
  if (was_writing) stretches_.push_back({step, step});
  stretches_.back().last = step;
  return "";
}

std::string MissingSteps::text() const {
  constexpr std::size_t kTold = 5;
  if (count_ == 0) return "";
  std::string text = fmt::format("{} {} missing: ", count_, count_ == 1 ? "step is" : "steps are");
  for (std::size_t i = 0; i < std::min(kTold, stretches_.size()); ++i) {
    const auto& [first, last] = stretches_[i];
    text += i == 0 ? "" : ", ";
    text += first == last ? std::to_string(first) : fmt::format("{} to {}", first, last);
  }
  if (stretches_.size() > kTold) text += fmt::format(", and more until {}", stretches_.back().last);
  return text;
}

}  // namespace strata::train
