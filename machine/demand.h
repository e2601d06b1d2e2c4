// What an instruction asks of a machine, and how long that takes: the one place where times are
// computed. Schedules, bounds and foreseen steps read it.
#pragma once

#include <cstdint>

#include "core/dtype.h"
#include "machine/machine.h"

namespace strata::machine {

/// Where an instruction's time goes.
enum class Resource : std::uint8_t {
  device,  ///< its products or its memory
  peers,   ///< what connects ranks
  upload,  ///< host memory to the device
  download,
  disk_read,
  disk_write,
  host,  ///< host memory under an update
};

struct Demand {
  Resource resource = Resource::device;
  DType type = DType::f32;  ///< of the operands that are multiplied
  double flops = 0;
  double bytes = 0;              ///< of all operands, each once
  std::int64_t moved_bytes = 0;  ///< over the link or the disk; to peers: sent by this rank
};

/// Alone on the machine, at the rates that steps reach, what every instruction takes included.
std::int64_t foreseen_ns(const Machine& machine, const Demand& demand);

/// The least time: the larger of arithmetic and bytes at what the machine does at most. What caches
/// still hold can be faster. 0 where nobody has published or measured that of the device.
double least_seconds(const Machine& machine, const Demand& demand);

}  // namespace strata::machine
