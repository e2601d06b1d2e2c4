// A watch for tests: says what it was told to say, and keeps what it heard.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "comm/watch.h"

namespace strata::comm {

class TestWatch final : public Watch {
 public:
  explicit TestWatch(std::string reason = "") : reason_(std::move(reason)) {}
  /// From here on the rank must end. Any thread.
  void order_stop() { stop_ = true; }

  [[nodiscard]] std::optional<std::string> stop_reason() const override {
    return stop_ ? std::optional(reason_) : std::nullopt;
  }
  void begin_collective(std::int64_t number, std::string_view name) override {
    heard.push_back(std::to_string(number) + " " + std::string(name));
  }
  void end_collective() override { heard.emplace_back("end"); }

  std::vector<std::string> heard;  ///< written by the thread that communicates

 private:
  std::string reason_;
  std::atomic<bool> stop_ = false;
};

}  // namespace strata::comm
