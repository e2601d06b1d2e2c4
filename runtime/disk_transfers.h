// The transfers of one disk queue that are under way: started and finished in the queue's order,
// several at once, so that the disk does not idle between two instructions.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <string_view>

#include "runtime/disk.h"

namespace strata::runtime {

/// A disk instruction with its addresses.
struct DiskTransfer {
  std::int64_t offset = 0;
  std::span<std::byte> memory;
  bool write = false;
};

/// One thread's.
class DiskTransfers {
 public:
  struct Finished {
    std::int32_t instruction;
    std::chrono::steady_clock::time_point begin, end;
  };

  explicit DiskTransfers(Disk* disk) : disk_(disk) {}
  ~DiskTransfers() { reap(); }
  DiskTransfers(const DiskTransfers&) = delete;
  DiskTransfers& operator=(const DiskTransfers&) = delete;

  /// `what` must stay until the transfer is finished. Needs room: not full().
  void start(std::int32_t instruction, const DiskTransfer& transfer, std::string_view what);
  /// One that has nothing to do (its predicate is 0) keeps its place in the order.
  void skip(std::int32_t instruction);
  [[nodiscard]] bool empty() const { return under_way_.empty(); }
  [[nodiscard]] bool full() const { return under_way_.size() >= kMost; }
  /// The instruction that was started first. Needs one.
  [[nodiscard]] std::int32_t first() const { return under_way_.front().instruction; }
  /// Waits for the one that was started first. Throws its error.
  Finished finish_first();
  /// Waits for all, whatever becomes of them: their memory may go afterwards.
  void reap() noexcept;

 private:
  static constexpr std::size_t kMost = 4;
  static constexpr Disk::Ticket kNone = -1;
  struct UnderWay {
    std::int32_t instruction;
    Disk::Ticket ticket;
    std::chrono::steady_clock::time_point begin;
  };
  Disk* disk_;  ///< null where no Program uses one
  std::deque<UnderWay> under_way_;
  std::chrono::steady_clock::time_point last_end_;
};

}  // namespace strata::runtime
