// The transfer of one ticket, and the requests that it is cut into.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string_view>
#include <vector>

#include "offload/nvme/block_io.h"
#include "offload/nvme/extent_table.h"
#include "runtime/program/disk.h"

namespace strata::offload {

struct Transfer {
  runtime::Disk::Ticket ticket = -1;
  bool in_use = false;
  Direction direction = Direction::read;
  const std::byte* memory = nullptr;
  std::int64_t bytes = 0;
  std::vector<Extent> extents = {};  ///< extents in its range; no hashes when writing
  std::int64_t remaining = 0;        ///< pieces, plus one while it is being started
  std::exception_ptr error = {};
  std::chrono::steady_clock::time_point progress = {};  ///< time of the last progress
  bool found_stuck = false;  ///< wait has thrown while the transfer went on
  std::condition_variable finished = {};
};

/// The piece of a transfer that one request to one device moves.
struct TransferPiece {
  Transfer* transfer = nullptr;
  std::string_view what;  ///< name for errors, from the transfer
  Direction direction = Direction::read;
  std::int64_t offset = 0;         ///< offset in the store's space
  std::int64_t device_offset = 0;  ///< offset in the device's file
  std::byte* memory = nullptr;
  std::int64_t bytes = 0;
  std::span<const Extent> extents = {};  ///< extents of the transfer in this piece
  int remaining = 0;                     ///< jobs left: transfer, hash
  bool reread = false;                   ///< already read again, since its bytes were wrong
};

}  // namespace strata::offload
