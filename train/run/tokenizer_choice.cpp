#include "train/run/tokenizer_choice.h"

#include <fmt/core.h>
#include <filesystem>

#include "core/error.h"

namespace strata::train {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kByteVocabulary = 256;

bool has(const fs::path& folder, const char* name) {
  std::error_code ignored;  // a path that cannot be examined counts as missing
  return fs::is_regular_file(folder / name, ignored);
}

/// True if the folder has what scripts/tokenize.py reads or converts.
bool holds_tokenizer(const fs::path& folder) {
  if (has(folder, "vocab.json") && has(folder, "merges.txt")) return true;
  for (const char* name : {"tokenizer.json", "vocab.txt", "tokenizer.model", "spiece.model",
                           "sentencepiece.bpe.model"})
    if (has(folder, name)) return true;
  return false;
}

}  // namespace

std::string tokenizer_of(const std::string& model) {
  std::error_code ignored;
  fs::path folder = model;
  if (fs::is_regular_file(model, ignored)) folder = fs::path(model).parent_path();
  if (folder.empty()) folder = ".";
  if (!fs::exists(model, ignored) || !holds_tokenizer(folder)) return "";
  return folder.string();
}

std::string choose_tokenizer(const std::string& asked, const std::string& model,
                             std::int64_t vocabulary) {
  if (asked == kBytesAsTokens) return "";
  if (!asked.empty()) {
    std::error_code ignored;
    if (fs::is_regular_file(asked, ignored) ||
        (fs::is_directory(asked, ignored) && holds_tokenizer(asked)))
      return asked;
    throw InvalidArgument("--tokenizer: found '" + asked +
                          "', expected a tokenizer.json, a directory with a tokenizer, or 'bytes'");
  }
  if (const std::string own = tokenizer_of(model); !own.empty()) return own;
  if (vocabulary <= kByteVocabulary) return "";
  throw InvalidArgument(
      fmt::format("--model {} has {} tokens and no tokenizer to make them from text: name one with "
                  "--tokenizer DIR (a directory with tokenizer.json), give token files (.bin), or "
                  "say --tokenizer bytes to make every byte a token",
                  model, vocabulary));
}

}  // namespace strata::train
