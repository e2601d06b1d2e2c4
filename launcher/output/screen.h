// Combines what ranks print on mlaunch's standard output and standard error: whole lines, each with
// its rank; on a terminal, rank 0's progress line stays below them.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "launcher/output/output_queue.h"

namespace strata::launcher {

enum class OutputKind { standard_output, standard_error };
inline constexpr std::array<OutputKind, 2> kOutputKinds{OutputKind::standard_output,
                                                        OutputKind::standard_error};

class Screen {
 public:
  static constexpr std::size_t kMaxLineBytes = std::size_t{1}
                                               << 20;  ///< longer lines are cut into pieces
  static constexpr std::size_t kTailBytes = 4096;

  /// The output of a single rank passes unchanged and at once, unless both outputs are a terminal:
  /// there its two streams must not mix in one line. `prefix` begins lines with "[3] ".
  /// `alone`: no other host has ranks of the run.
  Screen(int ranks, bool prefix, int output_fd, int error_fd, bool alone = true);

  /// Takes bytes that a rank wrote.
  void feed(int rank, OutputKind kind, std::string_view bytes);
  /// Call when the rank's stream is closed: ends an unfinished line.
  void finish_line(int rank, OutputKind kind);
  /// Prints a line as it is.
  void print(OutputKind kind, std::string_view line);
  /// Prints a line of mlaunch itself on standard error, and tells it to `listen`'s argument.
  void say(std::string_view line);
  void listen(std::function<void(std::string_view)> listener) { listener_ = std::move(listener); }

  /// Call it before ranks start: the first of them has this number in the run, and error_tail()
  /// tells of the new ones alone. Ranks are counted from 0 here.
  void begin(int first_rank);

  [[nodiscard]] OutputQueue& queue(OutputKind kind) { return queues_[static_cast<int>(kind)]; }
  /// Returns the last kTailBytes that a rank wrote to standard error.
  [[nodiscard]] const std::string& error_tail(int rank) const {
    return tails_[static_cast<std::size_t>(rank)];
  }

 private:
  struct Stream {
    int rank;
    OutputKind kind;
    std::string prefix;
    std::string partial;  // text since the last newline
  };

  Stream& stream(int rank, OutputKind kind);
  void keep_tail(int rank, std::string_view bytes);
  void print_line(const Stream& stream, std::string_view first, std::string_view second);
  void update_progress(const Stream& stream);
  void rewrite(const Stream& stream, std::string text);
  void hide_progress(OutputQueue& queue);
  void show_progress(OutputQueue& queue);
  [[nodiscard]] bool rewrites_lines(const Stream& stream) const;

  OutputQueue queues_[2];
  std::function<void(std::string_view)> listener_;
  const bool alone_;  // true: there is one rank
  const bool prefix_;
  const bool pass_through_;
  bool line_open_ = false;       // pass-through only: standard error is in the middle of a line
  std::vector<Stream> streams_;  // two per rank
  std::vector<std::string> tails_;
  std::string progress_;  // rank 0's unfinished line as the terminal shows it
  OutputKind progress_of_ = OutputKind::standard_output;  // stream of that line
};

}  // namespace strata::launcher
