#include "train/run/lost_steps.h"

#include <fmt/core.h>
#include <exception>
#include <optional>
#include <vector>

#include "core/file_system.h"
#include "train/checkpoint/checkpoint_directory.h"

namespace strata::train {
namespace {

std::optional<FoundCheckpoint> newest_in(const std::string& output) noexcept {
  try {
    PosixFileSystem files;
    if (const auto all = list_checkpoints(files, output); !all.empty()) return all.back();
  } catch (const std::exception&) {
  }
  return {};
}

std::string steps(std::int64_t first, std::int64_t last) {
  if (first >= last) return fmt::format("step {} is lost", last);
  return fmt::format("steps {} to {} are lost", first, last);
}

}  // namespace

std::string what_is_lost(const std::string& output, std::int64_t step) noexcept {
  if (output.empty()) return steps(1, step) + ": there is no --output";
  const auto newest = newest_in(output);
  if (!newest) return steps(1, step) + ": " + output + " has no checkpoint";
  if (newest->step >= step) return "nothing is lost: " + newest->path + " is of this step";
  return steps(newest->step + 1, step) + ": the newest checkpoint is " + newest->path;
}

}  // namespace strata::train
