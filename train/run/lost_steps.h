// Says what a run that ends now loses.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

namespace strata::train {

/// Any thread may call anything.
class LostSteps {
 public:
  /// `output`: the folder of checkpoints; empty: none.
  explicit LostSteps(std::string output) : output_(std::move(output)) {}

  /// Counts the checkpoint of this step, which the run goes on from or has written, and earlier
  /// ones. Those of later steps are another run's, or were passed over.
  void count_to(std::int64_t step) { counted_ = step; }

  /// Returns "" if a checkpoint that counts is in the folder, by its name; else "out has no
  /// checkpoint", or "... of this run" if there are others.
  [[nodiscard]] std::string lack() const noexcept;
  /// Returns "steps 5 to 17 are lost: the newest checkpoint is out/step-00000004", by names in the
  /// folder; one that cannot be read counts as empty. `step`: the last one under way or done; less
  /// than 1: none has begun.
  [[nodiscard]] std::string text(std::int64_t step) const noexcept;

 private:
  const std::string output_;
  std::atomic<std::int64_t> counted_{0};
};

}  // namespace strata::train
