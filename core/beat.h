// A word from long work that it gets on, so that slow work and work that hangs can be told apart.
#pragma once

#include <functional>
#include <utility>

namespace strata {

/// Called after each piece of long work: a tensor, a block, a batch. Any thread may call. By
/// default nobody hears it; a run's reaches the rank's status page (StatusPage::beat).
class Beat {
 public:
  Beat() = default;
  /// `hear` must be callable from any thread as long as copies of this object live.
  explicit Beat(std::function<void()> hear) : hear_(std::move(hear)) {}
  void operator()() const {
    if (hear_) hear_();
  }

 private:
  std::function<void()> hear_;
};

}  // namespace strata
