// What a person watches while a long text becomes tokens.
#pragma once

#include <chrono>

#include "train/data/tokenizer_tool.h"

namespace strata::train {

/// On a terminal one line that is rewritten, else a line every ten seconds.
class EncodingLine {
 public:
  EncodingLine(bool visible, bool terminal) : visible_(visible), terminal_(terminal) {}
  void show(const EncodingProgress& progress);
  /// Ends a rewritten line.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  bool visible_, terminal_;
  bool line_open_ = false;
  std::string text_;
  std::int64_t begin_bytes_ = 0;
  Clock::time_point begin_, printed_;
};

/// "corpus.txt: 45 % of 22.1 MB is 1.2 million tokens, 1.4 MB/s, 9 s left".
std::string describe(const EncodingProgress& progress, double bytes_per_second);

}  // namespace strata::train
