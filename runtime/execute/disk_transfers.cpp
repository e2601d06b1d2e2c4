#include "runtime/execute/disk_transfers.h"

#include <algorithm>

namespace strata::runtime {
namespace {

using Clock = std::chrono::steady_clock;

class TransferRun {
 public:
  TransferRun(Disk& disk, TransferQueue& queue) : disk_(disk), queue_(queue) {}
  ~TransferRun() { reap(); }
  TransferRun(const TransferRun&) = delete;
  TransferRun& operator=(const TransferRun&) = delete;

  void run(const std::vector<std::int32_t>& instructions) {
    std::int32_t at = -1;  // names the instruction in an error
    try {
      for (const std::int32_t instruction : instructions) {
        at = instruction;
        while (count_ > 0 &&
               (count_ == kMost || !queue_.is_met(instruction) || meets_another(instruction))) {
          finish_first(at);
          at = instruction;
        }
        queue_.wait_until_met(instruction);
        if (queue_.is_stopped()) return;
        start(instruction);
      }
      while (count_ > 0) finish_first(at);
    } catch (const std::exception& error) {
      queue_.failed(at, error);
    }
  }

 private:
  static constexpr std::size_t kMost = 4;
  static constexpr Disk::Ticket kNone = -1;
  struct UnderWay {
    std::int32_t instruction = -1;
    Disk::Ticket ticket = kNone;
    Clock::time_point begin;
  };

  /// True if a transfer under way shares bytes with this one. Nothing else keeps two of one queue
  /// apart: they may use one place of the disk or of memory for different values in turn.
  [[nodiscard]] bool meets_another(std::int32_t instruction) const {
    const DiskTransfer& mine = queue_.transfer(instruction);
    for (std::size_t k = 0; k < count_; ++k) {
      const DiskTransfer& other = queue_.transfer(under_way_[(first_ + k) % kMost].instruction);
      const auto size = static_cast<std::int64_t>(mine.memory.size());
      const auto other_size = static_cast<std::int64_t>(other.memory.size());
      const bool on_disk = (mine.write || other.write) && mine.offset < other.offset + other_size &&
                           other.offset < mine.offset + size;
      const bool in_memory = (!mine.write || !other.write) &&
                             mine.memory.data() < other.memory.data() + other_size &&
                             other.memory.data() < mine.memory.data() + size;
      if (on_disk || in_memory) return true;
    }
    return false;
  }

  /// Starts a transfer. An unwanted one has nothing to do, but keeps its place in the order.
  void start(std::int32_t instruction) {
    queue_.started(instruction);
    UnderWay transfer{instruction, kNone, Clock::now()};
    if (queue_.is_wanted(instruction)) {
      const DiskTransfer& t = queue_.transfer(instruction);
      const std::string_view what = queue_.label(instruction);
      if (t.write && t.transient)
        disk_.discard(t.offset, static_cast<std::int64_t>(t.memory.size()));
      transfer.ticket = t.write ? disk_.start_write(t.offset, t.memory, what)
                                : disk_.start_read(t.offset, t.memory, what);
    }
    under_way_[(first_ + count_++) % kMost] = transfer;
  }

  void finish_first(std::int32_t& at) {
    const UnderWay transfer = under_way_[first_];
    at = transfer.instruction;
    // The transfer stays in under_way_ until it has ended: until then its memory must stay.
    if (transfer.ticket != kNone) disk_.wait(transfer.ticket);
    first_ = (first_ + 1) % kMost;
    --count_;
    const Clock::time_point begin = std::max(transfer.begin, last_end_);
    last_end_ = std::max(begin, Clock::now());
    queue_.finished(transfer.instruction, {begin, last_end_});
  }

  /// Waits for all transfers, whatever their result: their memory may be freed afterwards.
  void reap() noexcept {
    for (; count_ > 0; --count_, first_ = (first_ + 1) % kMost) try {
        if (under_way_[first_].ticket != kNone) disk_.wait(under_way_[first_].ticket);
      } catch (const std::exception&) {
        // An earlier error is already reported.
      }
  }

  Disk& disk_;
  TransferQueue& queue_;
  std::array<UnderWay, kMost> under_way_;
  std::size_t first_ = 0, count_ = 0;
  Clock::time_point last_end_;
};

}  // namespace

void run_transfers(Disk& disk, const std::vector<std::int32_t>& instructions,
                   TransferQueue& queue) {
  TransferRun(disk, queue).run(instructions);
}

}  // namespace strata::runtime
