#include "offload/nvme/open_store.h"

#include <utility>

#include "core/error.h"
#include "offload/nvme/disk_alignment.h"
#include "offload/nvme/space_file.h"
#include "offload/nvme/thread_io.h"
#include "offload/nvme/uring_io.h"

namespace strata::offload {
namespace {

/// The most requests under way on one device, whatever the settings.
constexpr int kCapacity = 64;
constexpr int kThreads = 8;

}  // namespace

std::unique_ptr<NvmeStore> open_store(const StoreRequest& request) {
  if (request.directories.empty())
    throw InvalidArgument("offload to NVMe needs a directory (--nvme-path)");
  const std::int64_t bytes = round_up(request.bytes);
  const Stripes stripes{request.options.stripe_bytes, static_cast<int>(request.directories.size())};
  std::vector<std::string> notes;
  std::vector<StoreDevice> devices;
  for (const std::string& directory : request.directories) {
    UniqueFd file = open_space_file(directory, notes);
    if (lies_in_memory(file.get()))
      notes.push_back(directory +
                      ": this file system keeps its files in memory: what is offloaded there takes "
                      "host memory, beside what --host-memory limits");
    const auto share = stripes.device_bytes(static_cast<int>(devices.size()), bytes);
    reserve_space(file.get(), directory, share);
    std::unique_ptr<BlockIo> io;
    if (request.engine == BlockEngine::automatic) {
      std::string reason;
      io = make_uring_io(file, kCapacity, reason);
      if (!io) notes.push_back(reason + ": disk transfers use threads that read and write instead");
    }
    if (!io) io = make_thread_io(std::move(file), kCapacity, kThreads);
    devices.push_back({directory, std::move(io)});
  }
  auto store = std::make_unique<NvmeStore>(std::move(devices), bytes, request.options);
  for (const std::string& note : notes) store->add_note(note);
  return store;
}

}  // namespace strata::offload
