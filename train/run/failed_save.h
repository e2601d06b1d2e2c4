// Why the newest attempt to save has failed, for those who end the run before another succeeds.
#pragma once

#include <mutex>
#include <string>
#include <utility>

namespace strata::train {

/// Any thread may call anything.
class FailedSave {
 public:
  void note(std::string why) {
    const std::scoped_lock lock(mutex_);
    why_ = std::move(why);
  }
  void forget() { note({}); }
  /// The reason, "; " after it; "" if no attempt has failed since the last that succeeded.
  [[nodiscard]] std::string before_other_words() const {
    const std::scoped_lock lock(mutex_);
    return why_.empty() ? "" : why_ + "; ";
  }

 private:
  mutable std::mutex mutex_;
  std::string why_;
};

}  // namespace strata::train
