// The resources of one simulated host.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace strata::runtime {

enum class HostResource : std::uint8_t {
  cores,
  host_memory,  ///< its bandwidth; where the CPU plays the device, the device's, too
  nic_out,
  nic_in,
  disk_read,
  disk_write,
  disk,  ///< both directions at once
  // A rank has its own of these.
  device_memory,
  link_up,    ///< host memory to the device
  link_down,  ///< and back
  link,       ///< both directions at once
};
inline constexpr std::array kAllHostResources{
    HostResource::cores,     HostResource::host_memory,   HostResource::nic_out,
    HostResource::nic_in,    HostResource::disk_read,     HostResource::disk_write,
    HostResource::disk,      HostResource::device_memory, HostResource::link_up,
    HostResource::link_down, HostResource::link};
inline constexpr int kHostResources = static_cast<int>(kAllHostResources.size());
/// The first that each rank has for itself; those before it are the host's, and its ranks share
/// them.
inline constexpr int kFirstOfRank = static_cast<int>(HostResource::device_memory);

std::string_view name_of(HostResource resource);

}  // namespace strata::runtime
