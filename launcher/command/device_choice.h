// The choice of GPUs of this host that ranks see: --include, --exclude and --num_gpus as
// DeepSpeed's launcher has them. mlaunch only sets CUDA_VISIBLE_DEVICES, and never widens it.
#pragma once

#include <string>
#include <vector>

namespace strata::launcher {

/// Devices that the command line requests.
struct DeviceRequest {
  std::string typed;                  ///< "--include localhost:2,3"; empty: no request
  std::vector<std::string> included;  ///< numbers of devices; none for --include localhost
  std::vector<std::string> excluded;
  int first_devices = 0;  ///< N of --num_gpus N
};

struct HostDevices {
  std::string visible;  ///< mlaunch's own CUDA_VISIBLE_DEVICES; empty: not set
  int count = 0;        ///< GPUs of the machine; 0: none, or not known
};
HostDevices devices_of_host();

/// Parses "2,3" of DeepSpeed's "localhost:2,3". Throws InvalidArgument that names `typed`.
std::vector<std::string> parse_device_list(const std::string& typed, const std::string& list);

/// Returns the devices that the ranks shall see; none: CUDA_VISIBLE_DEVICES stays as it is. Throws
/// InvalidArgument when a device is not among those that mlaunch sees, or when none are left.
std::vector<std::string> choose_devices(const DeviceRequest& request, const HostDevices& host);

/// Joins devices for CUDA_VISIBLE_DEVICES: "2,3".
std::string device_list(const std::vector<std::string>& devices);

}  // namespace strata::launcher
