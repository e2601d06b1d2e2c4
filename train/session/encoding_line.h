// Shows progress while a long text is encoded as tokens.
#pragma once

#include <chrono>

#include "train/data/tokenizer_tool.h"
#include "train/session/console.h"

namespace strata::train {

/// Rewrites one line on a terminal, otherwise prints a line every ten seconds.
class EncodingLine {
 public:
  explicit EncodingLine(Console& console) : console_(console) {}
  void show(const EncodingProgress& progress);
  /// Ends a rewritten line.
  void finish() { console_.end_progress(); }

 private:
  using Clock = std::chrono::steady_clock;
  Console& console_;
  std::string text_;
  std::int64_t begin_bytes_ = 0;
  Clock::time_point begin_, printed_;
};

/// "corpus.txt: 45 % of 22.1 MB is 1.2 million tokens, 1.4 MB/s, 9 s left".
std::string describe(const EncodingProgress& progress, double bytes_per_second);

}  // namespace strata::train
