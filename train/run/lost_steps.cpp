#include "train/run/lost_steps.h"

#include <fmt/core.h>
#include <exception>
#include <optional>
#include <vector>

#include "core/file_system.h"
#include "train/checkpoint/checkpoint_directory.h"

namespace strata::train {
namespace {

std::vector<FoundCheckpoint> all_in(const std::string& output) noexcept {
  try {
    PosixFileSystem files;
    return list_checkpoints(files, output);
  } catch (const std::exception&) {
    return {};
  }
}

/// Returns the newest checkpoint of at most step `most`.
std::optional<FoundCheckpoint> newest_of(std::vector<FoundCheckpoint> all, std::int64_t most) {
  std::erase_if(all, [most](const FoundCheckpoint& one) { return one.step > most; });
  return all.empty() ? std::nullopt : std::optional(all.back());
}

std::string steps(std::int64_t first, std::int64_t last) {
  if (first >= last) return fmt::format("step {} is lost", last);
  return fmt::format("steps {} to {} are lost", first, last);
}

}  // namespace

std::string LostSteps::lack() const noexcept {
  const std::vector<FoundCheckpoint> all = all_in(output_);
  if (newest_of(all, counted_)) return "";
  return output_ + " has no checkpoint" + (all.empty() ? "" : " of this run");
}

std::string LostSteps::text(std::int64_t step) const noexcept {
  if (step < 1) return "nothing is lost: no step has begun";
  if (output_.empty()) return steps(1, step) + ": there is no --output";
  const auto newest = newest_of(all_in(output_), counted_);
  if (!newest) return steps(1, step) + ": " + lack();
  if (newest->step >= step) return "nothing is lost: " + newest->path + " is of this step";
  return steps(newest->step + 1, step) + ": the newest checkpoint is " + newest->path;
}

}  // namespace strata::train
