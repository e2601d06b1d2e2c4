// Asynchronous reads and writes of one file: the interface of the store to io_uring, to threads, to
// memory and to a test that makes requests fail.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "offload/nvme/memory_slices.h"

namespace strata::offload {

enum class Direction { read, write };

/// A request. `offset`, `memory` and `bytes` are multiples of runtime::kDiskAlignment. A write only
/// reads from `memory`. The memory must stay until the completion has been reaped.
struct BlockRequest {
  Direction direction = Direction::read;
  std::int64_t offset = 0;
  std::byte* memory = nullptr;
  std::int64_t bytes = 0;
  std::uint64_t id = 0;  ///< repeated in the completion
};

struct BlockCompletion {
  std::uint64_t id = 0;
  std::int64_t result = 0;  ///< bytes transferred (maybe fewer than requested), or -errno
};

/// One thread calls submit, begin and reap. Destroy it only when no request is under way.
class BlockIo {
 public:
  virtual ~BlockIo() = default;
  BlockIo() = default;
  BlockIo(const BlockIo&) = delete;
  BlockIo& operator=(const BlockIo&) = delete;

  /// The most requests that may be under way at once.
  [[nodiscard]] virtual int capacity() const = 0;
  /// Takes a request; it may begin only when begin or reap is called.
  virtual void submit(const BlockRequest& request) = 0;
  /// Begins submitted requests, as far as the system accepts them now.
  virtual void begin() = 0;
  /// Waits for at least one completion, or for wake (then it may return 0). Returns how many
  /// completions it put into `out`, in any order.
  virtual std::size_t reap(std::span<BlockCompletion> out) = 0;
  /// Makes the waiting reap return, or else the next one. Any thread may call.
  virtual void wake() noexcept = 0;
  /// Registers the memory that requests will use, instead of earlier memory; requests with other
  /// memory stay legal. No request may be under way. Returns 0, or the errno with which the system
  /// refused; then no memory is registered.
  virtual int register_memory(const MemorySlices& slices) = 0;
  /// Descriptor of the open file; -1: none.
  [[nodiscard]] virtual int file() const = 0;
};

}  // namespace strata::offload
