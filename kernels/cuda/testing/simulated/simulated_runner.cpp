#include "kernels/cuda/testing/simulated/simulated_runner.h"

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>

#include "kernels/cuda/cuda_kernels.h"

namespace strata::cuda {

kernels::Runner simulated_runner(ThreadOrder order) {
  return [=](const kernels::Operation& operation, std::span<const kernels::Tensor> inputs,
             std::span<const kernels::Tensor> outputs, const kernels::Attributes& attributes) {
    const kernels::Kernel kernel = cuda_kernels().find(operation.name);
    if (kernel == nullptr)
      throw std::runtime_error("no CUDA kernel for " + std::string(operation.name));
    kernels::DeviceCapabilities device;
    device.backend = kernels::DeviceCapabilities::Backend::cuda;
    kernels::Types from, to;
    for (const kernels::Tensor& input : inputs) from.push_back(input.type);
    for (const kernels::Tensor& output : outputs) to.push_back(output.type);
    const auto bytes =
        static_cast<std::size_t>(kernels::workspace_bytes(operation, from, to, attributes, device));
    const auto free = [](std::byte* memory) { ::operator delete[](memory, std::align_val_t{64}); };
    const std::unique_ptr<std::byte[], decltype(free)> workspace(
        static_cast<std::byte*>(::operator new[](bytes, std::align_val_t{64})), free);
    std::memset(workspace.get(), 0xFF, bytes);
    SimulatedStream stream(order);
    kernel(stream, {inputs, outputs, {workspace.get(), bytes}, attributes});
  };
}

}  // namespace strata::cuda

namespace strata::kernels {

std::vector<NamedRunner> all_runners() {
  return {{"threads forward", cuda::simulated_runner(cuda::ThreadOrder::forward)},
          {"threads backward", cuda::simulated_runner(cuda::ThreadOrder::backward)},
          {"threads shuffled", cuda::simulated_runner(cuda::ThreadOrder::shuffled)}};
}

bool runs_on_gpu() { return false; }

Runner any_runner() { return cuda::simulated_runner(cuda::ThreadOrder::backward); }

}  // namespace strata::kernels
