#include "train/session/trace_file.h"

#include <algorithm>
#include <fstream>
#include <numeric>
#include <optional>
#include <string_view>
#include <vector>

#include "comm/gather_texts.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/replaced_file.h"

namespace strata::train {
namespace {

constexpr int kRounds = 9;
/// Text that is passed on at once: of all ranks together, and the least of one.
constexpr std::size_t kPiecesBytes = std::size_t{2} << 20, kLeastPieceBytes = std::size_t{64} << 10;

/// Names one boot of one machine: all its processes read the same steady clock.
std::string boot_id() {
  std::string id;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), id);
  return id;
}

/// The time by which this rank's clock is ahead of rank 0's.
std::int64_t offset_from_first(comm::Communicator& ranks) {
  std::vector<std::int64_t> offsets;
  for (int round = 0; round < kRounds; ++round) {
    (void)comm::gather_numbers(ranks, 0);  // no rank leaves before all have come
    const std::int64_t mine = monotonic_ns();
    offsets.push_back(mine - comm::gather_numbers(ranks, mine).front());
  }
  std::ranges::nth_element(offsets, offsets.begin() + kRounds / 2);
  return offsets[kRounds / 2];
}

/// Keeps the first error until close(), so that other ranks can go on sending their parts.
class TraceFile {
 public:
  explicit TraceFile(const std::string& path) {
    guard([&] { file_.emplace(path); });
  }
  void append(std::string_view text) {
    guard([&] { file_->append(text); });
  }
  /// Lets the trace take its place, or throws Error: then nothing is left of it.
  void close() {
    guard([&] {
      file_->sync();
      file_->commit();
    });
    if (!failure_.empty())
      throw Error(ExitCode::io, "cannot write the trace, and no piece of it stays: " + failure_);
  }

 private:
  template <typename Body>
  void guard(const Body& body) {
    if (!failure_.empty()) return;
    try {
      body();
    } catch (const IoError& error) {
      failure_ = error.what();
      file_.reset();
    }
  }
  std::optional<ReplacedFile> file_;
  std::string failure_;
};

}  // namespace

std::int64_t common_zero_ns(comm::Communicator& ranks) {
  const std::vector<std::string> boots = comm::gather_texts(ranks, boot_id());
  const bool one_clock = std::ranges::all_of(
      boots, [&](const std::string& boot) { return !boot.empty() && boot == boots.front(); });
  const std::int64_t zero =
      comm::gather_numbers(ranks, monotonic_ns()).front();  // by rank 0's clock
  return one_clock ? zero : zero + offset_from_first(ranks);
}

std::int64_t write_trace(const std::string& path, const runtime::TraceRecorder& recorder,
                         comm::Communicator& ranks) {
  std::optional<TraceFile> file;
  if (ranks.rank() == 0) {
    file.emplace(path);
    file->append("{\"traceEvents\": [\n");
  }
  const std::vector<std::int64_t> all_dropped = comm::gather_numbers(ranks, recorder.dropped());
  const std::int64_t sum = std::accumulate(all_dropped.begin(), all_dropped.end(), std::int64_t{0});
  /// True while some rank had text.
  const auto pass_on = [&](std::string_view mine) {
    bool any = false;
    for (const std::string& text : comm::gather_texts(ranks, mine)) {
      if (file) file->append(text);
      any = any || !text.empty();
    }
    return any;
  };
  recorder.for_each_piece(
      std::max(kLeastPieceBytes, kPiecesBytes / static_cast<std::size_t>(ranks.size())), pass_on);
  while (pass_on({})) {  // ranks that have more to say
  }
  if (!file) return sum;
  file->append(
      "{\"ph\": \"M\", \"name\": \"process_sort_index\", \"pid\": 0, \"args\": {\"sort_index\": "
      "0}}\n], \"displayTimeUnit\": \"ms\", \"otherData\": {\"dropped\": " +
      std::to_string(sum) + "}}\n");
  file->close();
  return sum;
}

}  // namespace strata::train
