// Says what a run that ends now loses.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace strata::train {

/// Any thread may call anything.
class LostSteps {
 public:
  /// `output`: the folder of checkpoints; empty: none.
  explicit LostSteps(std::string output) : output_(std::move(output)) {}

  /// Counts the checkpoint that the run goes on from, and where that is of --output (`is_own`) the
  /// earlier ones there. Others in --output are another run's, or were passed over.
  void go_on_from(std::int64_t step, std::string directory, bool is_own);
  /// Counts the checkpoint of this step that the run has written to --output. One that is not
  /// finite is only noted: --resume auto passes it over.
  void count(std::int64_t step, bool is_finite);

  /// True if no checkpoint that counts is there, by its name.
  [[nodiscard]] bool are_all() const noexcept { return !newest(); }
  /// Returns what is left: "earlier checkpoints in out are whole", or "other/step-00000004, which
  /// the run went on from, is whole", or "out has no checkpoint: all steps are lost".
  [[nodiscard]] std::string rest() const noexcept;
  /// Returns "steps 5 to 17 are lost: the newest checkpoint is out/step-00000004", by names in the
  /// folder; one that cannot be read counts as empty. "the newest finite checkpoint" if the run has
  /// written a later one that is not. `step`: the last one under way or done; less than 1: none has
  /// begun.
  [[nodiscard]] std::string text(std::int64_t step) const noexcept;

 private:
  struct Known {
    std::int64_t step = 0;
    std::string directory;
    bool is_own = true;
  };

  /// The newest checkpoint that counts.
  [[nodiscard]] std::optional<Known> newest() const noexcept;
  /// True if one after `step` that this process wrote is there, and is not finite.
  [[nodiscard]] bool has_not_finite_after(std::int64_t step) const noexcept;
  /// "out has no checkpoint", "... of this run" if there are others, or "out has no finite
  /// checkpoint of this run".
  [[nodiscard]] std::string lack() const noexcept;

  const std::string output_;
  mutable std::mutex mutex_;
  std::optional<Known> goes_on_from_;
  std::set<std::int64_t> written_;     ///< by this process, finite
  std::set<std::int64_t> not_finite_;  ///< by this process
};

}  // namespace strata::train
