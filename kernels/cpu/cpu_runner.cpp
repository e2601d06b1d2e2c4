#include "kernels/cpu/cpu_runner.h"

#include <cstddef>
#include <memory>
#include <stdexcept>

#include "kernels/cpu/cpu_stream.h"
#include "kernels/cpu/target_scope.h"

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
    std::vector<std::byte> workspace(static_cast<std::size_t>(workspace_bytes(
                                         operation, from, to, attributes, device->capabilities())),
                                     std::byte{0xA5});
    CpuStream stream(*device);
    runs(stream, {inputs, outputs, workspace, attributes});
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

Runner any_runner() { return cpu_runner(2); }

}  // namespace strata::kernels
