// The parts of a machine that limit instructions.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace strata::machine {

enum class Resource : std::uint8_t {
  device,  ///< its arithmetic or its memory
  peers,   ///< the links between ranks
  upload,  ///< the link from host memory to the device
  download,
  disk_read,
  disk_write,
  host,  ///< host memory, used by an update
};
inline constexpr std::array kAllResources{
    Resource::device,    Resource::peers,      Resource::upload, Resource::download,
    Resource::disk_read, Resource::disk_write, Resource::host};

constexpr std::string_view name_of(Resource resource) {
  constexpr std::array<std::string_view, kAllResources.size()> kNames{
      "device", "peers", "upload", "download", "disk_read", "disk_write", "host"};
  return kNames[static_cast<std::size_t>(resource)];
}

}  // namespace strata::machine
