// What `train` says to people, through one door: lines, notes and warnings, and on a terminal one
// progress line below them that is rewritten in place and never wider than the screen.
#pragma once

#include <chrono>
#include <cstdio>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/rank_context.h"

namespace strata::train {

/// Where a Console writes.
struct ConsoleStreams {
  std::FILE* output = stdout;
  std::FILE* error = stderr;
  bool output_is_terminal = false;
  bool error_is_terminal = false;
  /// Width of the terminal, asked for each line; 0: not known.
  std::function<int()> columns = [] { return 0; };
};

/// This process's own, or the terminal of the launcher that passes its output on. Of `context`
/// nothing is kept.
ConsoleStreams console_streams(const RankContext& context);

/// Only rank 0 is heard, but for fail(). Any thread may call anything. What cannot be written is
/// dropped: training does not end because nobody listens.
class Console {
 public:
  explicit Console(const RankContext& context) : Console(console_streams(context), context.rank) {}
  explicit Console(ConsoleStreams streams, int rank = 0);

  /// Text on standard output; ends with a newline, or is given one.
  void print(std::string_view text);
  /// "note: ..." on standard error: what people may want to know.
  void note(std::string_view text);
  /// "warning: ..." on standard error.
  void warn(std::string_view text);
  /// "train: ..." on standard error, of any rank: why it ends.
  void fail(std::string_view text);

  /// On a terminal: the progress line is now these fields, as many of the first ones as fit. Drawn
  /// at most 20 times a second; the last one always stays. Elsewhere nothing.
  void show_progress(std::vector<std::string> fields);
  /// The progress line stands as it is; the next text comes below it.
  void end_progress();
  /// The progress line goes.
  void drop_progress();

  /// Whether there is a progress line.
  [[nodiscard]] bool rewrites() const { return heard_ && streams_.output_is_terminal; }

 private:
  using Clock = std::chrono::steady_clock;
  void say(std::FILE* file, bool terminal, std::string_view label, std::string_view text);
  void draw();

  const ConsoleStreams streams_;
  const bool heard_;
  std::mutex mutex_;
  std::vector<std::string> fields_;  ///< of the progress line; empty: there is none
  bool drawn_ = false;               ///< as fields_ says
  Clock::time_point drawn_at_{};
};

/// The fields joined by two spaces, as many of the first ones as `columns` hold (0: all); of a
/// first one that is too long its beginning.
std::string fit_fields(const std::vector<std::string>& fields, int columns);

/// "2026-11-22 12:17:16", local time.
std::string time_stamp(std::chrono::system_clock::time_point time);

}  // namespace strata::train
