// Devices of every kind for tests of the store.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "offload/nvme/nvme_store.h"

namespace strata::offload {

/// A kind of device that the whole store is tested over.
struct DeviceKind {
  enum class Io { memory, threads, uring };
  std::string name;
  Io io = Io::memory;
  int devices = 1;
};
inline std::ostream& operator<<(std::ostream& out, const DeviceKind& kind) {
  return out << kind.name;
}
/// Returns memory, threads and io_uring, each with one and three devices.
std::vector<DeviceKind> all_device_kinds();

/// Returns why this machine has no such device; "" if it has.
std::string why_not(const DeviceKind& kind);

using Wrap = std::function<std::unique_ptr<BlockIo>(std::unique_ptr<BlockIo>)>;
/// Makes a store; its files, if any, are in `directory`. `wrap` may put something around each
/// device. Throws HostError if why_not returns a reason.
std::unique_ptr<NvmeStore> make_store(const DeviceKind& kind, const std::string& directory,
                                      std::int64_t bytes, const StoreOptions& options = {},
                                      const Wrap& wrap = nullptr);

/// Returns `bytes` that differ from place to place and from seed to seed.
std::vector<std::byte> pattern(std::int64_t bytes, std::uint64_t seed);

}  // namespace strata::offload
