// Which GPUs of this host the ranks see: --include, --exclude and --num_gpus as DeepSpeed's
// launcher means them. mlaunch only sets CUDA_VISIBLE_DEVICES, which it never widens.
#pragma once

#include <string>
#include <vector>

namespace strata::launcher {

/// What the command line asks for.
struct DeviceRequest {
  std::string typed;                  ///< "--include localhost:2,3"; empty: nothing is asked for
  std::vector<std::string> included;  ///< numbers; of --include localhost: none
  std::vector<std::string> excluded;
  int first_devices = 0;  ///< --num_gpus N
};

struct HostDevices {
  std::string visible;  ///< CUDA_VISIBLE_DEVICES that mlaunch itself was given; empty: not set
  int count = 0;        ///< GPUs of the machine; 0: none, or not known
};
HostDevices devices_of_host();

/// "2,3" of DeepSpeed's "localhost:2,3"; `typed` is what messages name. Throws InvalidArgument.
std::vector<std::string> parse_device_list(const std::string& typed, const std::string& list);

/// Devices that the ranks shall see; none: CUDA_VISIBLE_DEVICES stays as it is. Throws
/// InvalidArgument when they are not among those that `host` lets mlaunch see, or none are left.
std::vector<std::string> choose_devices(const DeviceRequest& request, const HostDevices& host);

/// Joins devices as CUDA_VISIBLE_DEVICES has them: "2,3".
std::string device_list(const std::vector<std::string>& devices);

}  // namespace strata::launcher
