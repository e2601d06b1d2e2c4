// The requests of one device: which wait, which are under way, and what happens when one fails.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "offload/nvme/block_io.h"
#include "offload/nvme/ring_queue.h"
#include "offload/nvme/transfer.h"

namespace strata::offload {

/// A request that is under way, for messages.
struct Underway {
  const Transfer* transfer = nullptr;
  Direction direction = Direction::read;
  std::string what;
  std::int64_t device_offset = 0;
  std::int64_t bytes = 0;
  std::chrono::steady_clock::time_point since = {};
};

/// A thread submits and reaps requests; it sleeps while there is nothing to do. Reads and writes
/// take turns, so that neither waits for all of the other. Interrupted requests and the rest of
/// short ones are repeated, a failed read once. Any thread may call any member.
class Lane {
 public:
  /// Called on the lane's thread; must not throw. `error_number` 0: all bytes were transferred;
  /// kShort: the device keeps transferring fewer bytes than requested.
  using Finished = std::function<void(TransferPiece& piece, int error_number)>;
  static constexpr int kShort = -1;

  Lane(std::unique_ptr<BlockIo> io, int depth, Finished finished);
  /// Stops the lane as stop() does, unless it was stopped or abandoned before.
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  /// Queues a piece; it must live until `finished` was called for it or the lane stopped.
  void push(TransferPiece& piece);
  /// Limits the requests under way; at most the device's capacity.
  void set_depth(int depth);
  /// Tells the device which memory requests will use (BlockIo::register_memory). Throws
  /// InternalError while requests wait or are under way.
  int register_memory(const MemorySlices& slices);
  /// Returns the oldest request under way of `transfer`, or of any transfer when it is null.
  [[nodiscard]] std::optional<Underway> oldest(const Transfer* transfer) const;
  /// Drops waiting requests and returns when none is under way.
  void stop() noexcept;
  /// Drops waiting requests and returns when none is under way, or when one has been under way for
  /// `longest`. Then the lane owns itself, and a share of `memory`, until its requests have ended,
  /// and no longer touches pieces or `finished`.
  static void stop_or_abandon(std::unique_ptr<Lane> lane, std::chrono::milliseconds longest,
                              std::shared_ptr<const void> memory) noexcept;

  [[nodiscard]] int file() const { return io_->file(); }

 private:
  struct Slot {
    TransferPiece* piece = nullptr;  // null: free
    std::int64_t done_bytes = 0;
    int attempts = 0;  // attempts without progress
    bool failed_before = false;
    std::chrono::steady_clock::time_point since;
  };
  struct Ended {
    TransferPiece* piece = nullptr;
    int error_number = 0;
  };
  using Queue = RingQueue<TransferPiece*>;

  void run() noexcept;
  /// Drops waiting requests; the thread ends when none is under way.
  void begin_to_stop() noexcept;
  /// Waits for the device. Returns false if the lane was abandoned and its requests have ended.
  bool reap_and_complete();
  /// Moves pieces that may begin into slots and appends these slots to `begun`.
  void take_pieces(std::vector<std::size_t>& begun);
  TransferPiece* next_piece();
  void submit(std::size_t slot);
  void complete(std::size_t slot, std::int64_t result);
  void finish(std::size_t slot, int error_number);

  std::shared_ptr<const void> memory_;  // of requests; set if the lane is abandoned
  std::unique_ptr<BlockIo> io_;
  Finished finished_;
  mutable std::mutex mutex_;
  Queue reads_;
  Queue writes_;
  bool write_is_next_ = false;
  int depth_;
  int under_way_ = 0;
  bool stopping_ = false;
  bool reaping_ = false;             // the lane's thread waits for the device and touches no piece
  bool over_ = false;                // the lane's thread has no more work
  std::condition_variable changed_;  // notifies about reaping_ and over_
  std::unique_ptr<Lane> self_;       // set if the lane is abandoned
  std::vector<Ended> ended_;         // finished_ is not called yet; for the lane's thread alone
  std::vector<Slot> slots_;          // only the lane's thread changes the progress of a slot
  std::thread thread_;
};

}  // namespace strata::offload
