#include "comm/testing/simulated_nccl.h"

#include "comm/testing/fake_nccl.h"

namespace strata::comm {

SimulatedNccl::SimulatedNccl(Communicator& host, const std::string& gpu, Reduction reduction,
                             kernels::Device* device)
    : device_(device),
      nccl_(fake_nccl(), host,
            {.gpu = gpu,
             .word = reinterpret_cast<std::byte*>(&word_),
             .stream_of = [](kernels::Stream&) -> cudaStream_t { return nullptr; },
             .reduction = reduction}) {}

void SimulatedNccl::execute(kernels::Stream& stream, const Collective& collective,
                            const std::byte* input, std::byte* output,
                            std::span<std::byte> workspace) {
  if (device_ != nullptr) device_->synchronize(stream);
  nccl_.run(stream_, collective, input, output, workspace);
}

}  // namespace strata::comm
