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

/// What the whole store is tested over.
struct DeviceKind {
  enum class Io { memory, threads, uring };
  std::string name;
  Io io = Io::memory;
  int devices = 1;
};
inline std::ostream& operator<<(std::ostream& out, const DeviceKind& kind) {
  return out << kind.name;
}
/// memory, threads, io_uring; one and three devices.
std::vector<DeviceKind> all_device_kinds();

/// Why this machine has no such device; empty when it has.
std::string why_not(const DeviceKind& kind);

using Wrap = std::function<std::unique_ptr<BlockIo>(std::unique_ptr<BlockIo>)>;
/// A store whose files, if any, lie in `directory`. `wrap` may put something around each device.
/// HostError where why_not has something to say.
std::unique_ptr<NvmeStore> make_store(const DeviceKind& kind, const std::string& directory,
                                      std::int64_t bytes, const StoreOptions& options = {},
                                      const Wrap& wrap = nullptr);

/// `bytes` that differ from place to place and from seed to seed.
std::vector<std::byte> pattern(std::int64_t bytes, std::uint64_t seed);

}  // namespace strata::offload
