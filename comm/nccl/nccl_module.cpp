#include <cuda_runtime_api.h>

#include <fstream>

#include "comm/nccl/make_nccl_communicator.h"
#include "comm/nccl/nccl_communicator.h"
#include "kernels/cuda/cuda_error.h"
#include "kernels/cuda/cuda_stream.h"

namespace strata::comm {
namespace {

/// Equal for two ranks exactly when they use the same GPU: PCI addresses repeat from host to host.
std::string gpu_of(int device_ordinal) {
  char bus[32] = {};
  STRATA_CUDA(cudaDeviceGetPCIBusId(bus, sizeof bus, device_ordinal));
  std::string machine;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), machine);
  return "GPU " + std::string(bus) + " of the machine " + machine;
}

/// The current device's.
class DeviceWord {
 public:
  DeviceWord() {
    STRATA_CUDA(cudaMalloc(&word_, sizeof(std::uint64_t)));
    STRATA_CUDA(cudaMemset(word_, 0, sizeof(std::uint64_t)));
  }
  ~DeviceWord() { (void)cudaFree(word_); }
  DeviceWord(const DeviceWord&) = delete;
  DeviceWord& operator=(const DeviceWord&) = delete;
  [[nodiscard]] std::byte* get() const { return static_cast<std::byte*>(word_); }

 private:
  void* word_ = nullptr;
};

/// What a communicator borrows.
struct NcclParts {
  NcclLibrary library{cuda::library_environment()};
  DeviceWord word;
};

/// With its parts, which are there before and after it.
class LoadedNccl final : private NcclParts, public NcclCommunicator {
 public:
  LoadedNccl(Communicator& host, int device_ordinal)
      : NcclCommunicator(
            NcclParts::library.functions(), host,
            {.gpu = gpu_of(device_ordinal),
             .word = NcclParts::word.get(),
             .stream_of = [](kernels::Stream& stream) { return cuda::cuda(stream).get(); }}) {}
};

}  // namespace

std::unique_ptr<Communicator> make_nccl_communicator(Communicator& host, int device_ordinal) {
  STRATA_CUDA(cudaSetDevice(device_ordinal));
  return std::make_unique<LoadedNccl>(host, device_ordinal);
}

}  // namespace strata::comm
