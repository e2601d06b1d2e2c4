// Memory for transfers of a function that an error may end before the transfers do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <span>
#include <string>
#include <string_view>

#include "offload/nvme/disk_alignment.h"

namespace strata::offload {

class NvmeStore;

/// Holds what a transfer uses until its requests have ended.
struct HeldMemory {
  AlignedMemory memory;
  std::string what;  ///< name for errors
};
/// A list, since handing a node over neither allocates nor moves what requests use.
using HeldMemoryList = std::list<HeldMemory>;

/// Use it instead of AlignedMemory where nobody else may wait for the transfers.
class TransferMemory {
 public:
  /// Allocates zeros, as AlignedMemory does, and copies the transfers' name.
  TransferMemory(NvmeStore& store, std::int64_t bytes, std::string_view what);
  /// Waits for transfers with this memory that were not waited for, and drops their errors. Frees
  /// the memory, unless one of them is stuck or the memory is registered: then the store keeps it.
  ~TransferMemory();
  TransferMemory(const TransferMemory&) = delete;
  TransferMemory& operator=(const TransferMemory&) = delete;

  [[nodiscard]] std::span<std::byte> bytes() const { return held_.front().memory.bytes(); }
  [[nodiscard]] std::string_view what() const { return held_.front().what; }

 private:
  NvmeStore& store_;
  HeldMemoryList held_;  // one; none once the store keeps it
};

}  // namespace strata::offload
