#include "kernels/cuda/gpu/device_runner.h"

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/error.h"
#include "kernels/cuda/cuda_error.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/cuda_stream.h"
#include "kernels/cuda/gpu/staged_call.h"

namespace strata::cuda {
namespace {

using kernels::Attributes;
using kernels::Operation;
using kernels::Tensor;

class DeviceBlock {
 public:
  explicit DeviceBlock(std::size_t bytes) { STRATA_CUDA(cudaMalloc(&base_, bytes)); }
  // An error here was caused by earlier work and has been reported where that was waited for.
  ~DeviceBlock() { (void)cudaFree(base_); }
  DeviceBlock(const DeviceBlock&) = delete;
  DeviceBlock& operator=(const DeviceBlock&) = delete;
  [[nodiscard]] std::byte* base() const { return static_cast<std::byte*>(base_); }

 private:
  void* base_ = nullptr;
};

std::string list(std::span<const Tensor> tensors) {
  std::string text;
  for (const Tensor& tensor : tensors) text += (text.empty() ? "" : ", ") + tensor.type.to_string();
  return text;
}

void run(const Operation& operation, std::span<const Tensor> inputs,
         std::span<const Tensor> outputs, const Attributes& attributes) {
  const kernels::Kernel kernel = cuda_kernels().find(operation.name);
  if (kernel == nullptr) throw InternalError("there is no CUDA kernel for it");
  kernels::DeviceCapabilities device;
  device.backend = kernels::DeviceCapabilities::Backend::cuda;
  kernels::Types from, to;
  for (const Tensor& input : inputs) from.push_back(input.type);
  for (const Tensor& output : outputs) to.push_back(output.type);
  StagedCall call(
      inputs, outputs,
      static_cast<std::size_t>(kernels::workspace_bytes(operation, from, to, attributes, device)));
  const std::size_t bytes = call.image().size();
  const DeviceBlock block(bytes);
  STRATA_CUDA(cudaMemcpy(block.base(), call.image().data(), bytes, cudaMemcpyHostToDevice));
  CudaStream stream;
  const std::vector<Tensor> device_inputs = call.inputs(block.base());
  const std::vector<Tensor> device_outputs = call.outputs(block.base());
  kernel(stream, {device_inputs, device_outputs, call.workspace(block.base()), attributes});
  STRATA_CUDA(cudaDeviceSynchronize());
  std::vector<std::byte> after(bytes);
  STRATA_CUDA(cudaMemcpy(after.data(), block.base(), bytes, cudaMemcpyDeviceToHost));
  call.finish(after);
}

}  // namespace

kernels::Runner device_runner() {
  return [](const Operation& operation, std::span<const Tensor> inputs,
            std::span<const Tensor> outputs, const Attributes& attributes) {
    const std::string call =
        std::string(operation.name) + "(" + list(inputs) + ") -> " + list(outputs);
    // In the file of --gtest_output, so that a failed test shows what ran last.
    testing::Test::RecordProperty("last_call", call);
    try {
      run(operation, inputs, outputs, attributes);
    } catch (const std::exception& error) {
      throw InternalError(call + ": " + error.what());
    }
  };
}

}  // namespace strata::cuda

namespace strata::kernels {

// Twice, so that tests which compare runners see whether bits differ from run to run.
std::vector<NamedRunner> all_runners() {
  return {{"GPU", cuda::device_runner()}, {"GPU again", cuda::device_runner()}};
}

Runner any_runner() { return cuda::device_runner(); }

}  // namespace strata::kernels
