#include "train/run/run_device.h"

#include "comm/factory.h"
#include "core/error.h"
#include "kernels/cuda/open_device.h"
#include "train/engine/memory_report.h"

namespace strata::train {

RunDevice::RunDevice(DeviceChoice choice, int local_rank, comm::Communicator& host) : host_(host) {
  description_ = "CPU";
  if (choice == DeviceChoice::cpu) return;
  const cuda::DeviceCount count = cuda::count_devices();
  if (count.devices == 0) {
    if (choice == DeviceChoice::cuda)
      throw HostError("--device cuda: " + count.why_none + "; or use --device cpu");
    description_ = "CPU (" + count.why_none + ")";
    return;
  }
  device_ = cuda::open_device(local_rank % count.devices);
  communicator_ = comm::make_device_communicator(host_, *device_);
  description_ = device_->description();
}

kernels::DeviceCapabilities RunDevice::capabilities(int threads) const {
  return device_ ? device_->capabilities() : kernels::CpuDevice(threads).capabilities();
}

void RunDevice::give_to(EngineParts& parts) const {
  parts.communicator = &host_;
  parts.device = device_.get();
  parts.device_communicator = communicator_.get();
}

void RunDevice::require_memory(std::int64_t arena_bytes) const {
  if (!device_) return;
  const kernels::DeviceMemoryFacts memory = device_->memory();
  if (arena_bytes <= memory.free_bytes) return;
  throw OutOfMemory("out of device memory: this rank plans " +
                    format_bytes(static_cast<double>(arena_bytes)) + ", " + device_->name() +
                    " has " + format_bytes(static_cast<double>(memory.free_bytes)) + " free of " +
                    format_bytes(static_cast<double>(memory.total_bytes)));
}

void RunDevice::close() {
  if (communicator_) communicator_->close();
}

}  // namespace strata::train
