#include "offload/nvme/probe.h"

#include <algorithm>
#include <array>
#include <optional>

#include "offload/nvme/disk_alignment.h"
#include "offload/nvme/space_file.h"
#include "runtime/program/arena_alignment.h"

namespace strata::offload {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
/// Settings to try, the cheapest first: of equally fast ones, the first is taken.
constexpr std::array<TransferSettings, 6> kCandidates{
    {{kMiB, 8}, {kMiB, 16}, {2 * kMiB, 8}, {2 * kMiB, 16}, {4 * kMiB, 4}, {4 * kMiB, 8}}};
/// A smaller gain than this is noise.
constexpr double kClearlyFaster = 1.03;

enum class Mode { read, write, mixed };

class Prober {
 public:
  Prober(NvmeStore& store, std::int64_t most_bytes)
      : store_(store),
        chunk_bytes_(
            round_down(std::min({8 * kMiB * store.devices(), store.bytes() / (2 * kUnderWay),
                                 most_bytes / kUnderWay}))),
        chunks_(
            std::min<std::int64_t>(32, store.bytes() / std::max(chunk_bytes_, std::int64_t{1}))),
        window_(store, std::max(chunk_bytes_, runtime::kDiskAlignment) * kUnderWay, "the probe") {}

  [[nodiscard]] bool possible() const { return chunk_bytes_ > 0; }
  [[nodiscard]] std::span<std::byte> window() const { return window_.bytes(); }

  /// Writes all chunks that are measured later.
  void fill() {
    for (std::int64_t chunk = 0; chunk < chunks_; ++chunk)
      store_.wait(store_.start_write(chunk * chunk_bytes_, memory(0), window_.what()));
  }

  /// Returns bytes per second over at least `duration`, with several transfers under way.
  double rate(Mode mode, Seconds duration) {
    std::array<std::optional<runtime::Disk::Ticket>, kUnderWay> tickets;
    const Clock::time_point begin = Clock::now();
    std::int64_t started = 0;
    do {
      for (int slot = 0; slot < kUnderWay; ++slot) {
        auto& ticket = tickets[static_cast<std::size_t>(slot)];
        if (ticket) store_.wait(*ticket);
        ticket = start(mode, started++);
      }
    } while (Clock::now() - begin < duration);
    for (const auto& ticket : tickets) store_.wait(*ticket);
    const Seconds took = Clock::now() - begin;
    return static_cast<double>(started * chunk_bytes_) / took.count();
  }

 private:
  static constexpr int kUnderWay = 4;

  /// Transfers under way at once share no chunk, as there are twice as many chunks.
  runtime::Disk::Ticket start(Mode mode, std::int64_t number) {
    const std::int64_t offset = number % chunks_ * chunk_bytes_;
    const bool read = mode == Mode::read || (mode == Mode::mixed && number % 2 == 0);
    const auto piece = memory(static_cast<int>(number % kUnderWay));
    return read ? store_.start_read(offset, piece, window_.what())
                : store_.start_write(offset, piece, window_.what());
  }
  [[nodiscard]] std::span<std::byte> memory(int slot) const {
    const auto bytes = static_cast<std::size_t>(chunk_bytes_);
    return window_.bytes().subspan(static_cast<std::size_t>(slot) * bytes, bytes);
  }

  NvmeStore& store_;
  std::int64_t chunk_bytes_;
  std::int64_t chunks_;
  TransferMemory window_;  // waits for what is under way when an error is thrown
};

}  // namespace

std::int64_t probe_bytes(const std::vector<std::string>& directories) {
  constexpr std::int64_t kEnough = 256 * kMiB;
  std::int64_t share = kEnough;  // all hold the same share
  for (const std::string& directory : directories)
    share = std::min(share, free_bytes(directory) / 2);
  return round_down(std::min(kEnough, share * static_cast<std::int64_t>(directories.size())));
}

machine::Disk probe(NvmeStore& store, std::chrono::milliseconds budget, std::int64_t most_bytes) {
  machine::Disk result;
  TransferSettings settings = store.settings();
  const auto finish = [&] {
    result.request_bytes = settings.request_bytes;
    result.depth = settings.depth;
    return result;
  };
  Prober prober(store, most_bytes);
  if (!prober.possible()) return finish();
  const std::vector<std::span<std::byte>> window{prober.window()};
  store.register_memory(window);
  prober.fill();
  const Seconds each = Seconds(budget) / (kCandidates.size() + 3);
  for (const TransferSettings& candidate : kCandidates) {
    store.use(candidate);
    const double rate = prober.rate(Mode::mixed, each);
    if (rate < result.mixed_rate * kClearlyFaster) continue;
    result.mixed_rate = machine::measured(rate);
    settings = candidate;
  }
  store.use(settings);
  result.read_rate = machine::measured(prober.rate(Mode::read, each));
  result.write_rate = machine::measured(prober.rate(Mode::write, each));
  store.register_memory({});
  store.forget();
  return finish();
}

}  // namespace strata::offload
