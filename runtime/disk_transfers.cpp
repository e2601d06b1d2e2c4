#include "runtime/disk_transfers.h"

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
    std::int32_t at = -1;  // whose error it is
    try {
      for (const std::int32_t instruction : instructions) {
        while (count_ > 0 && (count_ == kMost || !queue_.is_met(instruction))) finish_first(at);
        queue_.wait_until_met(instruction);
        if (queue_.is_stopped()) return;
        at = instruction;
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

  /// One that has nothing to do keeps its place in the order.
  void start(std::int32_t instruction) {
    queue_.started(instruction);
    UnderWay transfer{instruction, kNone, Clock::now()};
    if (queue_.is_wanted(instruction)) {
      const DiskTransfer& t = queue_.transfer(instruction);
      const std::string_view what = queue_.label(instruction);
      transfer.ticket = t.write ? disk_.start_write(t.offset, t.memory, what)
                                : disk_.start_read(t.offset, t.memory, what);
    }
    under_way_[(first_ + count_++) % kMost] = transfer;
  }

  void finish_first(std::int32_t& at) {
    const UnderWay transfer = under_way_[first_];
    at = transfer.instruction;
    first_ = (first_ + 1) % kMost;
    --count_;
    if (transfer.ticket != kNone) disk_.wait(transfer.ticket);
    const Clock::time_point begin = std::max(transfer.begin, last_end_);
    last_end_ = std::max(begin, Clock::now());
    queue_.finished(transfer.instruction, {begin, last_end_});
  }

  /// Memory of transfers may go afterwards, whatever became of them.
  void reap() noexcept {
    for (; count_ > 0; --count_, first_ = (first_ + 1) % kMost) try {
        if (under_way_[first_].ticket != kNone) disk_.wait(under_way_[first_].ticket);
      } catch (const std::exception&) {
        // There is an earlier error to report.
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
