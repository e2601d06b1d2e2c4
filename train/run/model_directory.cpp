#include "train/run/model_directory.h"

#include <cstdio>
#include <filesystem>

#include "core/error.h"
#include "core/file.h"
#include "train/files/commit.h"
#include "train/files/model_files.h"
#include "train/models/presets.h"

namespace strata::train {
namespace {
namespace fs = std::filesystem;
constexpr std::int64_t kLargestConfigBytes = 1 << 20;
}  // namespace

std::string step_directory(const std::string& output, std::int64_t step) {
  char name[32];
  std::snprintf(name, sizeof name, "step-%08lld", static_cast<long long>(step));
  return (fs::path(output) / name).string();
}

void require_new_step_directory(const std::string& output, std::int64_t step) {
  require_new_directory(step_directory(output, step));
}

void point_latest(const std::string& output, std::int64_t step) {
  const fs::path link = fs::path(output) / "latest", fresh = fs::path(output) / "latest.tmp";
  std::error_code error;
  fs::remove(fresh, error);
  fs::create_directory_symlink(fs::path(step_directory(output, step)).filename(), fresh, error);
  if (!error) fs::rename(fresh, link, error);
  if (error) throw IoError(link.string(), 0, "cannot point to the newest step", error.value());
}

void copy_tokenizer(const std::string& model, const std::string& directory) {
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
                           "generation_config.json", "vocab.json", "merges.txt"}) {
    const fs::path from = fs::path(model) / name;
    if (!fs::is_regular_file(from)) continue;
    std::error_code error;
    fs::copy_file(from, fs::path(directory) / name, fs::copy_options::overwrite_existing, error);
    if (error) throw IoError(from.string(), 0, "cannot copy to " + directory, error.value());
  }
}

std::string resolve_model_directory(const std::string& model) {
  const fs::path latest = fs::path(model) / "latest";
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
