// The CUDA backend under test, simulated.
#include <cstring>
#include <memory>
#include <stdexcept>

#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/host/simulated_stream.h"
#include "kernels/layer_test_support.h"

namespace strata::kernels {
namespace {

Runner simulated_runner(cuda::ThreadOrder order) {
  return [=](const Operation& operation, std::span<const Tensor> inputs,
             std::span<const Tensor> outputs, const Attributes& attributes) {
    const Kernel kernel = cuda::cuda_kernels().find(operation.name);
    if (kernel == nullptr)
      throw std::runtime_error("no CUDA kernel for " + std::string(operation.name));
    DeviceCapabilities device;
    device.backend = DeviceCapabilities::Backend::cuda;
    Types from, to;
    for (const Tensor& input : inputs) from.push_back(input.type);
    for (const Tensor& output : outputs) to.push_back(output.type);
    const auto bytes =
        static_cast<std::size_t>(workspace_bytes(operation, from, to, attributes, device));
    // Aligned as arenas align, exactly as large as asked for, and poisoned.
    const auto free = [](std::byte* memory) { ::operator delete[](memory, std::align_val_t{64}); };
    const std::unique_ptr<std::byte[], decltype(free)> workspace(
        static_cast<std::byte*>(::operator new[](bytes, std::align_val_t{64})), free);
    std::memset(workspace.get(), 0xFF, bytes);
    cuda::SimulatedStream stream(order);
    kernel(stream, {inputs, outputs, {workspace.get(), bytes}, attributes});
  };
}

}  // namespace

std::vector<TestOperand> run(const OperationCase& test, int threads, std::int64_t gap) {
  return run_once(
      test,
      simulated_runner(threads == 1 ? cuda::ThreadOrder::forward : cuda::ThreadOrder::backward),
      {gap, false});
}

void verify(const OperationCase& test, const std::string& label) {
  const auto outputs = [&](cuda::ThreadOrder order, const RunForm& form) {
    return run_once(test, simulated_runner(order), form);
  };
  const std::vector<TestOperand> first = outputs(cuda::ThreadOrder::forward, {});
  expect_close(test, first, label);
  expect_same_bits(first, outputs(cuda::ThreadOrder::backward, {}), label + ", threads backward");
  expect_same_bits(first, outputs(cuda::ThreadOrder::shuffled, {test.gap, false}),
                   label + ", threads shuffled and strides");
  if (!test.operation.aliases.empty()) {
    expect_same_bits(first, outputs(cuda::ThreadOrder::backward, {0, true}), label + ", in place");
    expect_same_bits(first, outputs(cuda::ThreadOrder::forward, {5, true}),
                     label + ", in place with strides");
  }
}

}  // namespace strata::kernels
