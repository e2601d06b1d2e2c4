// The last lines that ranks and mlaunch wrote, in memory, for `mlaunch logs`. Each rank has a limit
// of its own, so that one that writes much takes nothing from others; what was dropped is counted.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "launcher/control/view_question.h"
#include "launcher/output/screen.h"

namespace strata::launcher {

struct OutputLine {
  static constexpr int kMlaunch = -1;  ///< stands for a rank: mlaunch itself wrote it

  int rank = kMlaunch;  ///< in the whole run
  int attempt = -1;     ///< -1: before the first
  OutputKind kind = OutputKind::standard_output;
  std::string text = {};  ///< as a terminal would show it, without the newline
  bool operator==(const OutputLine&) const = default;
};

class RecentOutput {
 public:
  /// Longer lines are cut into pieces.
  static constexpr std::size_t kMaxLineBytes = std::size_t{64} << 10;
  /// Besides its text, a line counts so many bytes.
  static constexpr std::size_t kLineOverhead = 64;

  /// `most_bytes`: of the lines of each rank.
  explicit RecentOutput(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  /// Lines belong to this attempt from now on.
  void begin_attempt(int attempt) { attempt_ = attempt; }
  /// Takes bytes that a rank wrote; keeps them once a line has ended.
  void feed(int rank, OutputKind kind, std::string_view bytes);
  /// Ends an unfinished line.
  void finish_line(int rank, OutputKind kind);
  /// Keeps lines that mlaunch wrote; `text` may have several.
  void say(std::string_view text);
  /// Keeps a line of another host's rank.
  void add(OutputLine line);

  struct Piece {
    std::vector<OutputLine> lines;
    std::uint64_t next = 0;     ///< where the reader goes on
    std::uint64_t dropped = 0;  ///< lines on the way to `next` that are not here any more
    std::uint64_t end = 0;      ///< of all lines so far

    [[nodiscard]] bool more() const { return next < end; }
  };
  /// Returns what is asked for, as far as it is kept: at most about `most_bytes`, at least a line.
  [[nodiscard]] Piece read(const AskLogs& asked, std::size_t most_bytes) const;

  /// Returns the last lines of all, in order: an equal share of about `most_bytes` for each rank
  /// and for mlaunch.
  [[nodiscard]] std::vector<OutputLine> last_of_each(std::size_t most_bytes) const;

 private:
  struct Kept {
    std::uint64_t number;  ///< among the lines of all
    OutputLine line;
  };
  struct OfRank {
    std::deque<Kept> lines;
    std::size_t bytes = 0;
    std::uint64_t dropped = 0;  ///< older lines than the first of `lines`
    std::array<std::string, 2> partial;
  };

  /// The lines of a rank, from one on to the last.
  using Head = std::pair<std::deque<Kept>::const_iterator, std::deque<Kept>::const_iterator>;

  /// Takes lines from the heads in order, to about `most_bytes`; what is left has a next line.
  [[nodiscard]] static std::vector<OutputLine> merge(std::vector<Head>& heads,
                                                     std::size_t most_bytes);
  [[nodiscard]] static Piece read_rank(const AskLogs& asked, const OfRank& rank,
                                       std::size_t most_bytes);
  [[nodiscard]] Piece read_all(const AskLogs& asked, std::size_t most_bytes) const;

  const std::size_t most_bytes_;
  int attempt_ = -1;
  std::uint64_t count_ = 0;  ///< of lines so far
  std::map<int, OfRank> ranks_;
};

}  // namespace strata::launcher
