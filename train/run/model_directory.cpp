#include "train/run/model_directory.h"

#include <filesystem>

#include "core/error.h"
#include "core/file.h"
#include "train/checkpoint/checkpoint_directory.h"
#include "train/files/model_files.h"
#include "train/models/presets.h"

namespace strata::train {
namespace {
namespace fs = std::filesystem;
constexpr std::int64_t kLargestConfigBytes = 1 << 20;
}  // namespace

std::string resolve_model_directory(const std::string& model) {
  const fs::path latest = fs::path(model) / kLatestName;
  if (!fs::exists(fs::path(model) / "config.json") && fs::is_directory(latest))
    return latest.string();
  return model;
}

void require_weights(const std::string& model) {
  if (!fs::is_directory(model) || ModelFiles::has_weights(model)) return;
  throw DataError(model + ": found neither model.safetensors nor model.safetensors.index.json " +
                  "(PyTorch's .bin files are not read); name " +
                  (fs::path(model) / "config.json").string() + " to start from new weights");
}

std::string config_text(const std::string& model) {
  return read_whole_file(find_model_config(model), kLargestConfigBytes);
}

}  // namespace strata::train
