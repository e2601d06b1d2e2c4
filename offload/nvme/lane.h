// The requests of one device: which wait, which are under way, what happens when one fails.
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

/// A thread submits and reaps; it sleeps while nothing is to be done. Reads and writes take turns,
/// so that neither waits for all of the other. Interrupted requests and the rest of short ones go
/// out again, a failed read once. Any thread may call anything.
class Lane {
 public:
  /// Called on the lane's thread; does not throw. `error_number` 0: all bytes went over; a negative
  /// one: the device keeps transferring fewer bytes than asked for.
  using Finished = std::function<void(Piece& piece, int error_number)>;
  static constexpr int kShort = -1;

  Lane(std::unique_ptr<BlockIo> io, int depth, Finished finished);
  /// Stops the lane as stop() does; a lane that was stopped or abandoned just goes.
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  /// The piece must live until `finished` was called for it or the lane stopped.
  void push(Piece& piece);
  /// Limits requests under way; at most the device's capacity.
  void set_depth(int depth);
  /// Tells the device which memory requests will use (BlockIo::register_memory). InternalError
  /// while requests wait or are under way.
  int register_memory(const MemorySlices& slices);
  /// The oldest request under way of `transfer`, or of any when it is null.
  [[nodiscard]] std::optional<Underway> oldest(const Transfer* transfer) const;
  /// Drops what waits and returns when nothing is under way any more.
  void stop() noexcept;
  /// Drops what waits and returns when nothing is under way, or when a request has been under way
  /// for `longest`: then the lane keeps itself until its requests have ended, and touches neither
  /// pieces nor `finished` again.
  static void stop_or_abandon(std::unique_ptr<Lane> lane,
                              std::chrono::milliseconds longest) noexcept;

  [[nodiscard]] int file() const { return io_->file(); }

 private:
  struct Slot {
    Piece* piece = nullptr;  // null: free
    std::int64_t done_bytes = 0;
    int attempts = 0;  // without progress
    bool failed_before = false;
    std::chrono::steady_clock::time_point since;
  };
  struct Ended {
    Piece* piece = nullptr;
    int error_number = 0;
  };
  using Queue = RingQueue<Piece*>;

  void run() noexcept;
  /// Drops what waits; the thread ends when nothing is under way.
  void begin_to_stop() noexcept;
  /// Waits for the device. False: the lane was abandoned meanwhile, and what was under way is over.
  bool reap_and_complete();
  /// Moves what may begin into slots and says which.
  void take_pieces(std::vector<std::size_t>& begun);
  Piece* next_piece();
  void submit(std::size_t slot);
  void complete(std::size_t slot, std::int64_t result);
  void finish(std::size_t slot, int error_number);

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
  bool over_ = false;                // the lane's thread
  std::condition_variable changed_;  // of these two
  std::unique_ptr<Lane> self_;       // of an abandoned lane
  std::vector<Ended> ended_;         // of the lane's thread: finished_ is still to be called
  std::vector<Slot> slots_;          // only the lane's thread changes a slot's progress
  std::thread thread_;
};

}  // namespace strata::offload
