#include "train/run/beside_weights.h"

#include <algorithm>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/file.h"
#include "train/checkpoint/manifest.h"

namespace strata::train {
namespace {

namespace fs = std::filesystem;

/// Limits on the files, which stay in memory during the run and are written with each checkpoint.
constexpr std::int64_t kLargestBytes = std::int64_t{64} << 20;
constexpr std::int64_t kMostBytes = std::int64_t{128} << 20;

/// Endings of files with tensors in any format, or that belong to them.
constexpr std::string_view kWeights[] = {
    ".safetensors", ".bin",     ".pt",     ".pth", ".ckpt",   ".gguf",      ".ggml",
    ".h5",          ".msgpack", ".onnx",   ".ot",  ".pkl",    ".npz",       ".npy",
    ".data",        ".mlmodel", ".tflite", ".pb",  ".engine", ".index.json"};

/// Files about the run that wrote the directory, not about its model.
constexpr std::string_view kOfAnotherRun[] = {"config.json", "trainer_state.json",
                                              "strata_choices.json"};

/// Names of other files that models and checkpoints come with; not those of choices, which
/// --choices may name to write them.
constexpr std::string_view kOfModels[] = {"config.json",        "generation_config.json",
                                          "trainer_state.json", kManifestName,
                                          "README.md",          "LICENSE"};

/// Names of what Git and downloads leave in a directory.
constexpr std::string_view kOfTheDownload[] = {".git", ".gitattributes", ".gitignore", ".cache"};

/// The only folder whose files transformers reads: chat templates with names.
constexpr std::string_view kTemplates = "additional_chat_templates";

/// Beginnings of the names of a tokenizer's files.
constexpr std::string_view kTokenizer[] = {
    "tokenizer", "special_tokens_map", "added_tokens",  "chat_template", "vocab",
    "merges",    "spiece.model",       "sentencepiece", "normalizer",    kTemplates};

bool is_weights(std::string_view name) {
  return std::any_of(std::begin(kWeights), std::end(kWeights),
                     [&](std::string_view end) { return name.ends_with(end); });
}

bool is_tokenizer(std::string_view name) {
  return std::any_of(std::begin(kTokenizer), std::end(kTokenizer),
                     [&](std::string_view begin) { return name.starts_with(begin); });
}

bool is_one_of(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// True if the file is about another run. Another program's manifest.json belongs to the model.
bool is_of_another_run(const fs::path& path, std::string_view name) {
  if (name != kManifestName) return is_one_of(kOfAnotherRun, name);
  return fs::is_regular_file(path) && is_manifest(read_whole_file(path, kManifestLimitBytes));
}

class Collector {
 public:
  explicit Collector(BesideWeights& beside) : beside_(beside) {}

  /// Adds the files of a folder whose names are `wanted`.
  template <typename Wanted>
  void add_folder(const fs::path& folder, const Wanted& wanted) {
    left_.clear();
    add_files(folder, "", wanted);
    if (!left_.empty())
      beside_.notes.push_back(folder.string() + ": not copied to the output: " + left_);
  }

 private:
  /// Adds files whose names in the output begin with `prefix`.
  template <typename Wanted>
  void add_files(const fs::path& folder, const std::string& prefix, const Wanted& wanted) {
    std::vector<fs::directory_entry> entries{fs::directory_iterator(folder), {}};
    // In one order everywhere; what a tokenizer needs finds room first.
    std::ranges::sort(entries, {}, [](const fs::directory_entry& entry) {
      std::string name = entry.path().filename().string();
      const bool is_first = is_tokenizer(name) || name == kTemplates;
      return std::pair(!is_first, std::move(name));
    });
    for (const fs::directory_entry& entry : entries) {
      const std::string name = prefix + entry.path().filename().string();
      if (is_one_of(kOfTheDownload, name) || is_weights(name) || !wanted(name) ||
          is_of_another_run(entry.path(), name))
        continue;
      if (name == kTemplates && entry.is_directory())
        add_files(entry.path(), name + "/", wanted);
      else if (const std::string why = add(entry, name); !why.empty())
        left_ += (left_.empty() ? "" : ", ") + name + " (" + why + ")";
    }
  }

  /// Adds a file; returns why it is left out, or "" if it is not.
  std::string add(const fs::directory_entry& entry, const std::string& name) {
    if (entry.path().filename().string().starts_with('.')) return "hidden";
    if (entry.is_directory()) return "a folder";
    if (!entry.is_regular_file()) return "no file";
    if (name == kManifestName) return "each checkpoint has its own";
    if (!is_whole_file_name(name)) return "its name has blanks or characters beyond ASCII";
    const auto size = static_cast<std::int64_t>(entry.file_size());
    if (size > kLargestBytes) return "more than 64 MiB";
    if (total_bytes_ + size > kMostBytes) return "more than 128 MiB in all";
    total_bytes_ += size;
    beside_.files[name] = read_whole_file(entry.path().string(), kLargestBytes);
    return "";
  }

  BesideWeights& beside_;
  std::string left_;  ///< names of files left out of one folder, and why
  std::int64_t total_bytes_ = 0;
};

}  // namespace

bool is_model_file(std::string_view name) {
  const bool is_read = name.ends_with(".safetensors") || name.ends_with(".index.json");
  return is_read || is_tokenizer(name) || is_one_of(kOfModels, name);
}

BesideWeights read_beside_weights(const std::string& model, const std::string& tokenizer) {
  BesideWeights beside;
  Collector collector(beside);
  if (fs::is_directory(model)) {
    collector.add_folder(model, [](const std::string&) { return true; });
  } else if (fs::is_regular_file(model) && tokenizer.empty()) {
    const fs::path parent = fs::path(model).parent_path();
    collector.add_folder(parent.empty() ? "." : parent, is_tokenizer);
  }
  if (tokenizer.empty()) return beside;
  std::erase_if(beside.files, [](const auto& file) { return is_tokenizer(file.first); });
  if (fs::is_directory(tokenizer))
    collector.add_folder(tokenizer, is_tokenizer);
  else
    beside.files["tokenizer.json"] = read_whole_file(tokenizer, kLargestBytes);
  return beside;
}

}  // namespace strata::train
