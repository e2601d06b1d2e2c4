#include "kernels/cuda/testing/gpu/device_runner.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/error.h"
#include "kernels/cuda/testing/gpu/staged_call.h"

namespace strata::cuda {
namespace {

using kernels::Attributes;
using kernels::Device;
using kernels::Operation;
using kernels::Tensor;

std::string list(std::span<const Tensor> tensors) {
  std::string text;
  for (const Tensor& tensor : tensors) text += (text.empty() ? "" : ", ") + tensor.type.to_string();
  return text;
}

void run(Device& device, const Operation& operation, std::span<const Tensor> inputs,
         std::span<const Tensor> outputs, const Attributes& attributes) {
  device.bind_thread();
  const kernels::Kernel kernel = device.kernels().find(operation.name);
  if (kernel == nullptr) throw InternalError("the device has no kernel for it");
  kernels::Types from, to;
  for (const Tensor& input : inputs) from.push_back(input.type);
  for (const Tensor& output : outputs) to.push_back(output.type);
  StagedCall call(inputs, outputs,
                  static_cast<std::size_t>(kernels::workspace_bytes(operation, from, to, attributes,
                                                                    device.capabilities())));
  const auto bytes = static_cast<std::int64_t>(call.image().size());
  const auto memory = device.allocate(kernels::MemoryKind::device, bytes);
  device.copy_now(memory->base(), call.image().data(), bytes);
  const auto stream = device.make_stream();
  const std::vector<Tensor> device_inputs = call.inputs(memory->base());
  const std::vector<Tensor> device_outputs = call.outputs(memory->base());
  kernel(*stream, {device_inputs, device_outputs, call.workspace(memory->base()), attributes});
  device.synchronize(*stream);
  std::vector<std::byte> after(call.image().size());
  device.copy_now(after.data(), memory->base(), bytes);
  call.finish(after);
}

}  // namespace

kernels::Runner device_runner(Device& device) {
  return [&device](const Operation& operation, std::span<const Tensor> inputs,
                   std::span<const Tensor> outputs, const Attributes& attributes) {
    const std::string call =
        std::string(operation.name) + "(" + list(inputs) + ") -> " + list(outputs);
    // The property goes to the file of --gtest_output, so that a failed test shows what ran last.
    testing::Test::RecordProperty("last_call", call);
    try {
      run(device, operation, inputs, outputs, attributes);
    } catch (const std::exception& error) {
      throw InternalError(call + ": " + error.what());
    }
  };
}

}  // namespace strata::cuda
