// Queues: instructions of different queues run side by side.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace strata::runtime {

/// Queues are FIFO. On the CPU each is a thread, on a device a stream (compute, communication,
/// upload, download) or a thread of the host (disk, host), in the simulator a server.
enum class Queue : std::uint8_t {
  compute,
  communication,
  upload,      ///< copies from host memory to the device
  download,    ///< copies from the device to host memory
  disk_read,   ///< from the disk into pinned memory
  disk_write,  ///< from pinned memory onto the disk
  host,        ///< operations of the host on host memory: updates of state that does not live on
               ///< the device
};
inline constexpr std::array kAllQueues{Queue::compute,  Queue::communication, Queue::upload,
                                       Queue::download, Queue::disk_read,     Queue::disk_write,
                                       Queue::host};
inline constexpr int kQueues = static_cast<int>(kAllQueues.size());
std::string_view name_of(Queue queue);

}  // namespace strata::runtime
