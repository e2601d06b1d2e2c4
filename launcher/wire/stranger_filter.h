// Keeps calls without the run's secret, of which anybody can make any number, from the coordinator:
// it hears of the first of each address, and of few addresses.
#pragma once

#include <cstddef>
#include <mutex>
#include <set>
#include <string>

#include "launcher/control/coordinator.h"

namespace strata::launcher {

/// Lets through the first call from each of few addresses. Any thread may call.
class StrangerFilter {
 public:
  /// True for the first call from an address of the first few.
  [[nodiscard]] bool is_news(const std::string& address) {
    const std::lock_guard lock(mutex_);
    return (addresses_.size() < kMostRefused || addresses_.contains(address)) &&
           addresses_.insert(address).second;
  }
  /// A host with the secret has come from there: the next stranger there is another one.
  void let_in(const std::string& address) {
    const std::lock_guard lock(mutex_);
    addresses_.erase(address);
  }

 private:
  std::mutex mutex_;
  std::set<std::string> addresses_;
};

}  // namespace strata::launcher
