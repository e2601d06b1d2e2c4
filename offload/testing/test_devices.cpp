#include "offload/testing/test_devices.h"

#include <sys/mman.h>

#include <cstring>
#include <utility>

#include "core/error.h"
#include "core/system_call.h"
#include "offload/nvme/space_file.h"
#include "offload/nvme/thread_io.h"
#include "offload/nvme/uring_io.h"
#include "offload/testing/memory_io.h"

namespace strata::offload {
namespace {

constexpr int kCapacity = 32;

std::unique_ptr<BlockIo> make_io(DeviceKind::Io kind, const std::string& directory,
                                 std::int64_t bytes) {
  if (kind == DeviceKind::Io::memory) return make_memory_io(bytes, kCapacity);
  std::vector<std::string> notes;
  UniqueFd file = open_space_file(directory, notes);
  reserve_space(file.get(), directory, bytes);
  if (kind == DeviceKind::Io::threads) return make_thread_io(std::move(file), kCapacity, 4);
  std::string reason;
  auto io = make_uring_io(file, kCapacity, reason);
  if (!io) throw HostError(reason);
  return io;
}

}  // namespace

std::vector<DeviceKind> all_device_kinds() {
  using Io = DeviceKind::Io;
  return {{"memory", Io::memory, 1},   {"three_memories", Io::memory, 3},
          {"threads", Io::threads, 1}, {"three_files_threads", Io::threads, 3},
          {"io_uring", Io::uring, 1},  {"three_files_io_uring", Io::uring, 3}};
}

std::string why_not(const DeviceKind& kind) {
  std::string reason;
  if (kind.io != DeviceKind::Io::uring) return reason;
  UniqueFd file(checked(::memfd_create("strata", MFD_CLOEXEC), "memfd_create"));
  static_cast<void>(make_uring_io(file, kCapacity, reason));
  return reason;
}

std::unique_ptr<NvmeStore> make_store(const DeviceKind& kind, const std::string& directory,
                                      std::int64_t bytes, const StoreOptions& options,
                                      const Wrap& wrap) {
  const Stripes stripes{options.stripe_bytes, kind.devices};
  std::vector<StoreDevice> devices;
  for (int i = 0; i < kind.devices; ++i) {
    auto io = make_io(kind.io, directory, stripes.device_bytes(i, bytes));
    if (wrap) io = wrap(std::move(io));
    devices.push_back({directory, std::move(io)});
  }
  return std::make_unique<NvmeStore>(std::move(devices), bytes, options);
}

std::vector<std::byte> pattern(std::int64_t bytes, std::uint64_t seed) {
  std::vector<std::byte> values(static_cast<std::size_t>(bytes));
  std::uint64_t state = seed * 0x9e3779b97f4a7c15ULL + 1;
  for (std::size_t i = 0; i < values.size(); i += sizeof(state)) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    std::memcpy(values.data() + i, &state, std::min(sizeof(state), values.size() - i));
  }
  return values;
}

}  // namespace strata::offload
