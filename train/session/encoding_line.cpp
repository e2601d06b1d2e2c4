#include "train/session/encoding_line.h"

#include <algorithm>
#include <cstdio>

namespace strata::train {

std::string describe(const EncodingProgress& progress, double bytes_per_second) {
  const auto done = static_cast<double>(progress.bytes);
  const auto size = static_cast<double>(std::max<std::int64_t>(progress.size_bytes, 1));
  char text[160];
  std::snprintf(text, sizeof text,
                ": %.0f %% of %.1f MB is %.1f million tokens, %.1f MB/s, %.0f s left",
                100 * done / size, size / 1e6, static_cast<double>(progress.tokens) / 1e6,
                bytes_per_second / 1e6, (size - done) / std::max(bytes_per_second, 1.0));
  return progress.text + text;
}

void EncodingLine::show(const EncodingProgress& progress) {
  const Clock::time_point now = Clock::now();
  if (text_ != progress.text) {
    finish();
    text_ = progress.text;
    begin_bytes_ = progress.bytes;  // bytes before the first report are not counted in the speed
    begin_ = printed_ = now;
    return;
  }
  constexpr std::chrono::seconds kBetweenLines{10};
  if (!console_.rewrites() && now - printed_ < kBetweenLines) return;
  printed_ = now;
  const double seconds = std::max(std::chrono::duration<double>(now - begin_).count(), 1e-3);
  const double rate = static_cast<double>(progress.bytes - begin_bytes_) / seconds;
  const std::string line = describe(progress, rate);
  if (console_.rewrites())
    console_.show_progress({line});
  else
    console_.print(line);
}

}  // namespace strata::train
