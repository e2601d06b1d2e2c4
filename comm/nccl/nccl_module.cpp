#include <cuda_runtime_api.h>

#include "comm/nccl/make_nccl_communicator.h"
#include "comm/nccl/nccl_communicator.h"
#include "comm/nccl/nccl_environment.h"
#include "kernels/cuda/cuda_error.h"
#include "kernels/cuda/cuda_stream.h"

namespace strata::comm {
namespace {

/// A word in the current device's memory.
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

/// The parts that an NcclCommunicator borrows: the library's functions and a word on the device.
struct NcclParts {
  NcclLibrary library{cuda::library_environment()};
  DeviceWord word;
};

/// An NcclCommunicator with its parts. They are its first base class, so that they outlive it.
class LoadedNccl final : private NcclParts, public NcclCommunicator {
 public:
  LoadedNccl(Communicator& host, const kernels::Device& device, const NcclOptions& options)
      : NcclCommunicator(
            NcclParts::library.functions(), host,
            {.gpu = device.identity(),
             .word = NcclParts::word.get(),
             .stream_of = [](kernels::Stream& stream) { return cuda::cuda(stream).get(); },
             .reduction = options.reduction,
             .host = options.host,
             .library = NcclParts::library.path()}) {}
};

}  // namespace

std::unique_ptr<Communicator> make_nccl_communicator(Communicator& host, kernels::Device& device,
                                                     const NcclOptions& options) {
  prepare_nccl_environment(options.network_interface);
  device.bind_thread();
  return std::make_unique<LoadedNccl>(host, device, options);
}

std::string why_no_nccl() {
  try {
    NcclLibrary{cuda::library_environment()};
    return "";
  } catch (const HostError& error) {
    return error.what();
  }
}

}  // namespace strata::comm
