// Uses a model's tokenizer through Python's `tokenizers` package (built in: scripts/tokenize.py).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace strata::train {

/// The ids of one text.
struct EncodedText {
  std::vector<std::string> files;  ///< token files with its ids, in order
  std::int64_t tokens = 0;
};

/// The token that marks the end of a text.
struct EndToken {
  std::int32_t id = 0;
  std::string text;  ///< as the tokenizer writes it
  std::string from;  ///< file that names it
};

struct EncodedTexts {
  std::vector<EncodedText> texts;  ///< same order as the request
  std::optional<EndToken> end;     ///< nullopt: neither tokenizer nor model names one
  std::vector<std::string> notes;
};

/// The progress of encoding a text.
struct EncodingProgress {
  std::string text;
  std::int64_t bytes = 0;
  std::int64_t size_bytes = 0;
  std::int64_t tokens = 0;
};

class TokenizerTool {
 public:
  /// `tokenizer`: a tokenizer.json, or a folder with one or with files from which Python's
  /// `transformers` makes one. `cache_directory` keeps results; empty:
  /// $XDG_CACHE_HOME/strata/tokens or ~/.cache/strata/tokens. `python`: a program, looked up in
  /// PATH if it has no slash.
  explicit TokenizerTool(std::string tokenizer, std::string cache_directory = "",
                         std::string python = "python3");

  /// Encodes all texts (UTF-8) with one start of Python, in bounded memory. Results are cached
  /// under a hash of text, tokenizer and versions, and made only once; processes that ask at the
  /// same time wait for the first. Ids are below `vocabulary`. Returns the answer for
  /// parse_encoded_texts, in this process or in another on this host.
  [[nodiscard]] std::string encode_texts(
      const std::vector<std::string>& paths, std::int64_t vocabulary,
      const std::function<void(const EncodingProgress&)>& hear = {}) const;
  /// Encodes a prompt, with the special tokens that the tokenizer adds by itself.
  [[nodiscard]] std::vector<std::int32_t> encode(std::string_view text) const;
  /// Decodes ids, leaving out special tokens.
  [[nodiscard]] std::string decode(std::span<const std::int32_t> ids) const;

  // All three throw HostError saying what to install if Python or a package is missing, and
  // DataError if text or tokenizer are at fault.

 private:
  [[nodiscard]] std::string run(const std::string& mode, std::vector<std::string> arguments,
                                const std::string& input,
                                const std::function<void(std::string_view)>& hear = {}) const;

  std::string tokenizer_;
  std::string cache_directory_;
  std::string python_;
};

EncodedTexts parse_encoded_texts(const std::string& answer);

}  // namespace strata::train
