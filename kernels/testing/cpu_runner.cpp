#include "kernels/testing/cpu_runner.h"

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>

#include "kernels/cpu/cpu_stream.h"
#include "kernels/testing/target_scope.h"

namespace strata::kernels {

Runner cpu_runner(int threads, Kernel kernel) {
  const auto device = std::make_shared<CpuDevice>(threads);
  return [=](const Operation& operation, std::span<const Tensor> inputs,
             std::span<const Tensor> outputs, const Attributes& attributes) {
    const Kernel runs = kernel != nullptr ? kernel : cpu_kernels().find(operation.name);
    if (runs == nullptr)
      throw std::runtime_error("no CPU kernel for " + std::string(operation.name));
    Types from, to;
    for (const Tensor& input : inputs) from.push_back(input.type);
    for (const Tensor& output : outputs) to.push_back(output.type);
    const auto bytes = static_cast<std::size_t>(
        workspace_bytes(operation, from, to, attributes, device->capabilities()));
    const auto free = [](std::byte* memory) { ::operator delete[](memory, std::align_val_t{64}); };
    const std::unique_ptr<std::byte[], decltype(free)> workspace(
        static_cast<std::byte*>(::operator new[](bytes, std::align_val_t{64})), free);
    // The pattern is 12.08 as fp32, a plausible number: reading it gives a wrong result, not a NaN.
    std::memset(workspace.get(), 0x41, bytes);
    CpuStream stream(*device);
    runs(stream, {inputs, outputs, {workspace.get(), bytes}, attributes});
  };
}

std::vector<NamedRunner> all_runners() {
  std::vector<NamedRunner> runners;
  for (const int threads : {1, 2, 3}) {
    const Runner run = cpu_runner(threads);
    for (const TestTarget& target : test_targets())
      runners.push_back({std::string(target.name) + ", " + std::to_string(threads) + " threads",
                         [=](const auto&... call) {
                           const TargetScope scope(target.number);
                           run(call...);
                         }});
  }
  return runners;
}

bool runs_on_gpu() { return false; }

Runner any_runner() { return cpu_runner(2); }

}  // namespace strata::kernels
