// One request of a transfer on one device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "offload/nvme/block_io.h"
#include "offload/nvme/extent_table.h"

namespace strata::offload {

struct Transfer;

struct Piece {
  Transfer* transfer = nullptr;
  std::string_view what;  ///< of the transfer: names it in errors
  Direction direction = Direction::read;
  std::int64_t offset = 0;         ///< in the store's space
  std::int64_t device_offset = 0;  ///< in the device's file
  std::byte* memory = nullptr;
  std::int64_t bytes = 0;
  std::vector<Extent> extents = {};  ///< what of it was, or is, written; empty hashes when writing
  bool reread = false;               ///< it was read again because its bytes were wrong
};

}  // namespace strata::offload
