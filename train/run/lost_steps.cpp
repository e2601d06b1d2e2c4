#include "train/run/lost_steps.h"

#include <fmt/core.h>
#include <algorithm>
#include <exception>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "core/file_system.h"
#include "train/checkpoint/checkpoint_directory.h"

namespace strata::train {
namespace {

/// Lists the checkpoints in a folder, by their names; none if it cannot be read.
std::vector<FoundCheckpoint> all_in(const std::string& output) noexcept {
  if (output.empty()) return {};
  try {
    PosixFileSystem files;
    return list_checkpoints(files, output);
  } catch (const std::exception&) {
    return {};
  }
}

std::string steps(std::int64_t first, std::int64_t last) {
  if (first >= last) return fmt::format("step {} is lost", last);
  return fmt::format("steps {} to {} are lost", first, last);
}

}  // namespace

void LostSteps::go_on_from(std::int64_t step, std::string directory, bool is_own) {
  const std::scoped_lock lock(mutex_);
  goes_on_from_ = {step, std::move(directory), is_own};
}

void LostSteps::count(std::int64_t step, bool is_finite) {
  const std::scoped_lock lock(mutex_);
  (is_finite ? written_ : not_finite_).insert(step);
}

std::optional<LostSteps::Known> LostSteps::newest() const noexcept {
  const std::vector<FoundCheckpoint> all = all_in(output_);
  const std::scoped_lock lock(mutex_);
  std::optional<Known> found;
  std::error_code unknown;
  if (goes_on_from_ && !goes_on_from_->is_own &&
      std::filesystem::exists(goes_on_from_->directory, unknown))
    found = goes_on_from_;
  const std::int64_t own = goes_on_from_ && goes_on_from_->is_own ? goes_on_from_->step : 0;
  for (const FoundCheckpoint& one : all)
    if ((one.step <= own || written_.contains(one.step)) && (!found || found->step <= one.step))
      found = {one.step, one.path, true};
  return found;
}

bool LostSteps::has_not_finite_after(std::int64_t step) const noexcept {
  const std::vector<FoundCheckpoint> all = all_in(output_);
  const std::scoped_lock lock(mutex_);
  return std::ranges::any_of(all, [&](const FoundCheckpoint& one) {
    return one.step > step && not_finite_.contains(one.step);
  });
}

std::string LostSteps::lack() const noexcept {
  const std::string_view kind = has_not_finite_after(-1) ? "finite checkpoint" : "checkpoint";
  return fmt::format("{} has no {}{}", output_, kind,
                     all_in(output_).empty() ? "" : " of this run");
}

std::string LostSteps::rest() const noexcept {
  const auto found = newest();
  if (!found) return lack() + ": all steps are lost";
  if (found->is_own) return "earlier checkpoints in " + output_ + " are whole";
  return found->directory + ", which the run went on from, is whole";
}

std::string LostSteps::text(std::int64_t step) const noexcept {
  if (step < 1) return "nothing is lost: no step has begun";
  const auto found = newest();
  if (!found) return steps(1, step) + ": " + (output_.empty() ? "there is no --output" : lack());
  if (found->step >= step) return "nothing is lost: " + found->directory + " is of this step";
  return fmt::format("{}: the newest {}checkpoint is {}", steps(found->step + 1, step),
                     has_not_finite_after(found->step) ? "finite " : "", found->directory);
}

}  // namespace strata::train
