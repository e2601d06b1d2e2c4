// What the ranks print, put together for mlaunch's standard output and standard error: whole lines,
// each with its rank, and on a terminal rank 0's progress line kept below them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launcher/output_queue.h"

namespace strata::launcher {

enum class OutputKind { standard_output, standard_error };

class Screen {
 public:
  static constexpr std::size_t kMaxLineBytes = std::size_t{1}
                                               << 20;  ///< longer lines are cut in pieces
  static constexpr std::size_t kTailBytes = 4096;

  /// With one rank bytes pass unchanged and at once, unless both outputs are a terminal: there its
  /// two streams must not mix in one line. `prefix`: "[3] " before lines of rank 3.
  Screen(int ranks, bool prefix, int output_fd, int error_fd);

  /// Takes what a rank wrote.
  void feed(int rank, OutputKind kind, std::string_view bytes);
  /// The rank's stream is closed: an unfinished line is finished.
  void finish_line(int rank, OutputKind kind);
  /// A line of mlaunch itself, on standard error.
  void say(std::string_view line);

  [[nodiscard]] OutputQueue& queue(OutputKind kind) { return queues_[static_cast<int>(kind)]; }
  /// The last lines a rank wrote to standard error.
  [[nodiscard]] const std::string& error_tail(int rank) const {
    return tails_[static_cast<std::size_t>(rank)];
  }

 private:
  struct Stream {
    int rank;
    OutputKind kind;
    std::string prefix;
    std::string partial;  // since the last newline
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
  const bool alone_;  // there is one rank
  const bool pass_through_;
  bool line_open_ = false;       // pass-through only: standard error is in the middle of a line
  std::vector<Stream> streams_;  // two per rank
  std::vector<std::string> tails_;
  std::string progress_;  // rank 0's line that is not finished yet, as shown on the terminal
  OutputKind progress_of_ = OutputKind::standard_output;  // the stream that it belongs to
};

}  // namespace strata::launcher
