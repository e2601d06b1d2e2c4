#include "launcher/command/device_choice.h"

#include <fmt/format.h>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "core/error.h"
#include "core/integer.h"

namespace strata::launcher {
namespace {

constexpr std::string_view kDeviceFile = "nvidia";  // /dev/nvidia0, ...

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts;
  std::istringstream in(list);
  for (std::string part; std::getline(in, part, ',');) parts.push_back(part);
  return parts;
}

std::vector<std::string> first(int count) {
  std::vector<std::string> numbers;
  for (int i = 0; i < count; ++i) numbers.push_back(std::to_string(i));
  return numbers;
}

bool contains(const std::vector<std::string>& devices, const std::string& device) {
  return std::ranges::find(devices, device) != devices.end();
}

std::string pool_text(const HostDevices& host) {
  return host.visible.empty() ? fmt::format("this machine has {} GPUs", host.count)
                              : "CUDA_VISIBLE_DEVICES=" + host.visible + " leaves only those";
}

}  // namespace

HostDevices devices_of_host() {
  HostDevices host;
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES")) host.visible = visible;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/dev", error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kDeviceFile) && parse_integer(name.substr(kDeviceFile.size())))
      ++host.count;
  }
  return host;
}

std::vector<std::string> parse_device_list(const std::string& typed, const std::string& list) {
  std::vector<std::string> devices;
  for (const std::string& device : split(list)) {
    const auto number = parse_integer(device);
    if (!number || *number < 0) throw InvalidArgument(typed + ": expected as in localhost:0,1,2");
    if (contains(devices, device))
      throw InvalidArgument(typed + ": device " + device + " is named twice");
    devices.push_back(device);
  }
  if (devices.empty()) throw InvalidArgument(typed + ": expected as in localhost:0,1,2");
  return devices;
}

std::vector<std::string> choose_devices(const DeviceRequest& request, const HostDevices& host) {
  if (request.typed.empty())
    return host.visible.empty() ? first(request.first_devices) : std::vector<std::string>();
  const std::vector<std::string> pool =
      host.visible.empty() ? first(host.count) : split(host.visible);
  const bool is_known = !pool.empty();
  for (const auto* named : {&request.included, &request.excluded})
    for (const std::string& device : *named)
      if (is_known && !contains(pool, device))
        throw InvalidArgument(request.typed + ": device " + device + " is not there; " +
                              pool_text(host));
  if (!request.included.empty()) return request.included;
  if (!is_known && !request.excluded.empty())
    throw InvalidArgument(request.typed +
                          ": this machine shows no GPU of which some could be left out; list those "
                          "to use with --include localhost:0,1");
  std::vector<std::string> left;
  for (const std::string& device : pool)
    if (!contains(request.excluded, device)) left.push_back(device);
  if (is_known && left.empty())
    throw InvalidArgument(request.typed + " leaves no device; " + pool_text(host));
  return left;
}

std::string device_list(const std::vector<std::string>& devices) {
  return fmt::format("{}", fmt::join(devices, ","));
}

}  // namespace strata::launcher
