#include "launcher/views/kept_logs.h"

#include <fmt/core.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "core/integer.h"
#include "core/json_writer.h"
#include "launcher/output/recent_output.h"
#include "launcher/output/terminal_text.h"
#include "launcher/views/view_answers.h"

namespace strata::launcher {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPrintedBytes = std::size_t{64} << 10;  ///< at a time

/// Returns the folders "PREFIX_N" of a folder by their numbers.
std::map<int, fs::path> numbered_folders(const fs::path& folder, std::string_view prefix) {
  std::map<int, fs::path> found;
  std::error_code error;
  fs::directory_iterator it(folder, error);
  for (const fs::directory_iterator end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (!name.starts_with(prefix)) continue;
    if (const auto number = parse_integer(name.substr(prefix.size())); number && *number >= 0)
      found[static_cast<int>(*number)] = it->path();
  }
  return found;
}

/// Prints lines, or keeps the last of them until the end.
class KeptLines {
 public:
  KeptLines(const ViewOptions& options, StandardOutput& output)
      : options_(options), output_(output) {}

  void read(const fs::path& file, OutputLine line) {
    std::ifstream stream(file);
    for (std::string text; output_.takes_text() && std::getline(stream, text);) {
      line.text = visible_part(text);
      add(shown(line));
    }
  }
  void finish() {
    for (const std::string& line : last_) text_ += line;
    output_.print(text_);
  }

 private:
  [[nodiscard]] std::string shown(const OutputLine& line) const {
    if (options_.json) {
      JsonWriter json(0);
      write_line(json, line);
      return json.finish() + "\n";
    }
    return (options_.rank ? "" : fmt::format("[{}] ", line.rank)) + line.text + "\n";
  }
  void add(std::string line) {
    if (options_.tail) {
      last_.push_back(std::move(line));
      if (last_.size() > *options_.tail) last_.pop_front();
      return;
    }
    text_ += line;
    if (text_.size() >= kPrintedBytes) output_.print(std::exchange(text_, {}));
  }

  const ViewOptions& options_;
  StandardOutput& output_;
  std::deque<std::string> last_;
  std::string text_;
};

}  // namespace

bool print_kept_logs(const std::string& folder, int world, const ViewOptions& options,
                     StandardOutput& output) {
  KeptLines lines(options, output);
  std::set<int> ranks;
  for (const auto& [attempt, of_attempt] : numbered_folders(folder, "attempt_"))
    for (const auto& [rank, of_rank] : numbered_folders(of_attempt, "rank_")) {
      ranks.insert(rank);
      if (options.rank && *options.rank != rank) continue;
      if (!options.only_error)
        lines.read(of_rank / "stdout.log", {rank, attempt, OutputKind::standard_output});
      if (!options.only_output)
        lines.read(of_rank / "stderr.log", {rank, attempt, OutputKind::standard_error});
    }
  if (ranks.empty()) throw InvalidArgument(folder + " has no logs of ranks any more");
  if (options.rank && !ranks.contains(*options.rank)) {
    const int most = std::max(*ranks.rbegin(), world - 1);
    throw InvalidArgument(
        *options.rank <= most
            ? fmt::format("rank {} ran on another host; its logs are in that host's --log-dir",
                          *options.rank)
            : fmt::format("the run had ranks 0 to {}, and no rank {}", most, *options.rank));
  }
  lines.finish();
  return std::cmp_greater_equal(ranks.size(), world);
}

}  // namespace strata::launcher
