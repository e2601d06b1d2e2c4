// Reads and writes of one file that are under way together: what the store asks of io_uring, of
// threads, of memory and of a test that makes them fail.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "offload/nvme/memory_slices.h"

namespace strata::offload {

enum class Direction { read, write };

/// `offset`, `memory` and `bytes` are multiples of runtime::kDiskAlignment. `memory` is only read
/// from when writing. It stays until the completion was reaped.
struct BlockRequest {
  Direction direction = Direction::read;
  std::int64_t offset = 0;
  std::byte* memory = nullptr;
  std::int64_t bytes = 0;
  std::uint64_t id = 0;  ///< comes back with the completion
};

struct BlockCompletion {
  std::uint64_t id = 0;
  std::int64_t result = 0;  ///< bytes, which may be fewer than asked for, or -errno
};

/// One thread calls submit, begin and reap; destroyed with nothing under way.
class BlockIo {
 public:
  virtual ~BlockIo() = default;
  BlockIo() = default;
  BlockIo(const BlockIo&) = delete;
  BlockIo& operator=(const BlockIo&) = delete;

  /// Requests that may be under way at a time.
  [[nodiscard]] virtual int capacity() const = 0;
  /// May only note the request; it has begun when begin or reap is called.
  virtual void submit(const BlockRequest& request) = 0;
  /// What was submitted begins, as far as the system takes it now.
  virtual void begin() = 0;
  /// Waits for at least one completion, or for wake (then it may return 0). How many were put into
  /// `out`, in any order.
  virtual std::size_t reap(std::span<BlockCompletion> out) = 0;
  /// Any thread: the reap that is waiting, or else the next one, returns.
  virtual void wake() noexcept = 0;
  /// Memory that requests will use, instead of what was told before; requests elsewhere stay legal.
  /// Nothing may be under way. 0, or the errno with which the system refused; then nothing is
  /// registered.
  virtual int register_memory(const MemorySlices& slices) = 0;
  /// The open file, -1 where there is none.
  [[nodiscard]] virtual int file() const = 0;
};

}  // namespace strata::offload
