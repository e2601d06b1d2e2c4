// Sequences of token ids, wherever they come from.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace strata::train {

/// A sequence of tokens. Several threads may read it.
class TokenSource {
 public:
  virtual ~TokenSource() = default;
  /// Number of tokens.
  [[nodiscard]] virtual std::int64_t size() const = 0;
  /// Reads tokens [first, first + out.size()), which must exist. Throws DataError naming file and
  /// position of an id beyond the vocabulary, and IoError if a file fails.
  virtual void read(std::int64_t first, std::span<std::int32_t> out) const = 0;
  /// All ids are below this number.
  [[nodiscard]] virtual std::int64_t vocabulary_bound() const = 0;
  /// The name of the file or files, for messages.
  [[nodiscard]] virtual std::string name() const = 0;
};

/// Joins one source or more, one after another. Windows may cross their borders.
std::shared_ptr<const TokenSource> concatenate(
    std::vector<std::shared_ptr<const TokenSource>> parts);

/// The tokens [begin, begin + size) of `source`.
std::shared_ptr<const TokenSource> slice(std::shared_ptr<const TokenSource> source,
                                         std::int64_t begin, std::int64_t size);

/// The same tokens under another name, for a file that was made of one that a user named.
std::shared_ptr<const TokenSource> renamed(std::shared_ptr<const TokenSource> source,
                                           std::string name);

/// A source of one token, to separate the tokens of two files.
std::shared_ptr<const TokenSource> single_token(std::int32_t id, std::int64_t vocabulary);

/// The training part and the held-out part of a source.
struct SplitTokens {
  std::shared_ptr<const TokenSource> training;
  std::shared_ptr<const TokenSource> held_out;
};

/// Holds out the last `fraction` of the tokens. Throws ConfigError unless it is between 0 and 1.
SplitTokens hold_out(const std::shared_ptr<const TokenSource>& source, double fraction);

}  // namespace strata::train
