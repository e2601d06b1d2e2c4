// The last events of a simulated run, as lines for people; they are made only where asked for.
#pragma once

#include <fmt/core.h>

#include <cstddef>
#include <deque>
#include <string>

#include "launcher/control/testing/virtual_time.h"

namespace strata::launcher::simulation {

class Trace {
 public:
  static constexpr std::size_t kLines = 60;

  Trace(const EventQueue& queue, bool wanted) : queue_(queue), wanted_(wanted) {}

  /// Notes what `text` returns, which is not called if no trace is wanted.
  template <typename Text>
  void note(const Text& text) {
    if (!wanted_) return;
    if (lines_.size() == kLines) lines_.pop_front();
    const auto seconds = std::chrono::duration<double>(queue_.now().time_since_epoch()).count();
    lines_.push_back(fmt::format("{:10.4f} s  {}", seconds, text()));
  }
  [[nodiscard]] const std::deque<std::string>& lines() const { return lines_; }

 private:
  const EventQueue& queue_;
  bool wanted_;
  std::deque<std::string> lines_;
};

}  // namespace strata::launcher::simulation
