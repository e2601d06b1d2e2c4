// All that `train` prints for people goes through a Console: lines, notes and warnings, and on a
// terminal one progress line below them that is rewritten in place and never wider than the screen.
#pragma once

#include <chrono>
#include <cstdio>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/rank_context.h"
#include "core/standard_output.h"

namespace strata::train {

/// The streams of a Console.
struct ConsoleStreams {
  std::FILE* output = stdout;
  std::FILE* error = stderr;
  bool output_is_terminal = false;
  bool error_is_terminal = false;
  /// Width of the terminal, asked for before each line; 0: not known.
  std::function<int()> columns = [] { return 0; };
};

/// Returns this process's streams, or the terminal of the launcher that passes its output on.
ConsoleStreams console_streams(const RankContext& context);

/// Prints for rank 0 only, except fail(). Any thread may call anything. Output that cannot be
/// written is dropped: training does not end because nobody reads, or because a disk is full.
class Console {
 public:
  explicit Console(const RankContext& context) : Console(console_streams(context), context.rank) {}
  explicit Console(ConsoleStreams streams, int rank = 0);

  /// Writes text on standard output, and a newline if it does not end with one.
  void print(std::string_view text);
  /// Writes "note: ..." on standard error.
  void note(std::string_view text);
  /// "warning: ..." on standard error.
  void warn(std::string_view text);
  /// Writes "train: ..." on standard error, on any rank: the reason why it ends.
  void fail(std::string_view text);

  /// Shows these fields as the progress line of a terminal, as many of the first as fit. Draws at
  /// most 20 times a second, and the last call's always in the end. Does nothing elsewhere.
  void show_progress(std::vector<std::string> fields);
  /// Leaves the progress line on the screen; the next text comes below it.
  void end_progress();
  /// Removes the progress line.
  void drop_progress();

  /// Throws IoError, once, if standard output did not take text that somebody may miss.
  void throw_if_lost();
  /// The same at the end of the program, when also what is still on its way must have arrived.
  void finish();

  /// True if there can be a progress line.
  [[nodiscard]] bool rewrites() const { return heard_ && streams_.output_is_terminal; }

 private:
  using Clock = std::chrono::steady_clock;
  void say(std::FILE* file, bool terminal, std::string_view label, std::string_view text);
  void draw();

  const ConsoleStreams streams_;
  const bool heard_;
  std::mutex mutex_;
  StandardOutput output_;
  std::vector<std::string> fields_;  ///< the progress line's; empty: there is no line
  bool drawn_ = false;               ///< the screen shows fields_
  Clock::time_point drawn_at_{};
};

/// Joins the first fields by two spaces, as many as `columns` hold (0: all); cuts a long first one.
std::string fit_fields(const std::vector<std::string>& fields, int columns);

/// Local time as "2026-11-22 12:17:16".
std::string time_stamp(std::chrono::system_clock::time_point time);

}  // namespace strata::train
