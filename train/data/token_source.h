// Token ids in one long row, wherever they come from.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace strata::train {

/// Reading is safe from several threads.
class TokenSource {
 public:
  virtual ~TokenSource() = default;
  /// Number of tokens.
  [[nodiscard]] virtual std::int64_t size() const = 0;
  /// Tokens [first, first + out.size()), which must exist. Throws DataError naming file and
  /// position of an id that the vocabulary lacks, IoError when a file fails.
  virtual void read(std::int64_t first, std::span<std::int32_t> out) const = 0;
  /// Ids are below it.
  [[nodiscard]] virtual std::int64_t vocabulary_bound() const = 0;
  /// The file or files, for messages.
  [[nodiscard]] virtual std::string name() const = 0;
};

/// One after the other; at least one. Windows run across their borders.
std::shared_ptr<const TokenSource> concatenate(
    std::vector<std::shared_ptr<const TokenSource>> parts);

/// Tokens [begin, begin + size) of `source`.
std::shared_ptr<const TokenSource> slice(std::shared_ptr<const TokenSource> source,
                                         std::int64_t begin, std::int64_t size);

/// The same tokens under another name, for what was made of the file that a user named.
std::shared_ptr<const TokenSource> renamed(std::shared_ptr<const TokenSource> source,
                                           std::string name);

/// A source of one token, to stand between the tokens of two files.
std::shared_ptr<const TokenSource> single_token(std::int32_t id, std::int64_t vocabulary);

/// Training and held-out part of one source.
struct SplitTokens {
  std::shared_ptr<const TokenSource> training;
  std::shared_ptr<const TokenSource> held_out;
};

/// The last `fraction` (0 < fraction < 1) of the tokens is held out. ConfigError on other
/// fractions.
SplitTokens hold_out(const std::shared_ptr<const TokenSource>& source, double fraction);

}  // namespace strata::train
