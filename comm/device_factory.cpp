#include "comm/device_factory.h"

#include <fmt/core.h>
#include <set>

#include "comm/gather_texts.h"
#include "comm/staged/lone_device.h"
#include "comm/staged/staged_communicator.h"

namespace strata::comm {
namespace {

/// Returns why NCCL cannot be used, agreed among all ranks; "" if it can.
std::string obstacle(Communicator& host, const kernels::Device& device) {
  const std::vector<std::string> devices = gather_texts(host, device.identity());
  if (std::set<std::string>(devices.begin(), devices.end()).size() < devices.size())
    return "ranks share a GPU, which NCCL refuses";
  const std::vector<std::string> reasons =
      gather_texts(host, device.backend() == "cuda" ? why_no_nccl() : "the device is no GPU");
  for (std::size_t rank = 0; rank < reasons.size(); ++rank)
    if (!reasons[rank].empty()) return fmt::format("rank {}: {}", rank, reasons[rank]);
  return "";
}

DeviceCommunicator make(Communicator& host, kernels::Device& device, const NcclOptions& options) {
  if (host.size() == 1) return {std::make_unique<LoneDeviceCommunicator>(device), ""};
  const std::string why = obstacle(host, device);
  if (why.empty()) return {make_nccl_communicator(host, device, options), ""};
  return {std::make_unique<StagedCommunicator>(host, device),
          "collectives pass through host memory, which is slow: " + why};
}

}  // namespace

DeviceCommunicator make_device_communicator(Communicator& host, kernels::Device& device,
                                            const NcclOptions& options) {
  DeviceCommunicator made = make(host, device, options);
  made.communicator->set_watch(host.watch());
  return made;
}

}  // namespace strata::comm
