// A model's tokenizer.json, used through Python's `tokenizers` package (scripts/tokenize.py, which
// is built into the program).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace strata::train {

class TokenizerTool {
 public:
  /// `tokenizer_json`: path of the file. `python`: program, looked up in PATH when it has no slash.
  explicit TokenizerTool(std::string tokenizer_json, std::string python = "python3");

  /// Token files with the ids of `text_path` (UTF-8), in order. They are kept in `cache_directory`
  /// under a hash of text, tokenizer and versions, and made only once; ranks that ask at the same
  /// time wait for the first. An empty directory: $XDG_CACHE_HOME/strata/tokens or
  /// ~/.cache/strata/tokens.
  [[nodiscard]] std::vector<std::string> encode_file(const std::string& text_path,
                                                     const std::string& cache_directory) const;
  /// A prompt, with the special tokens that the tokenizer adds by itself.
  [[nodiscard]] std::vector<std::int32_t> encode(std::string_view text) const;
  /// Special tokens are left out.
  [[nodiscard]] std::string decode(std::span<const std::int32_t> ids) const;

  // All three throw HostError saying what to install when Python or the package is missing,
  // DataError when text or tokenizer are at fault.

 private:
  [[nodiscard]] std::string run(std::vector<std::string> arguments, const std::string& input) const;

  std::string tokenizer_json_;
  std::string python_;
};

}  // namespace strata::train
