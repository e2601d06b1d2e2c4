// Tests the runner itself, on the simulated device.
#include "kernels/cuda/testing/gpu/device_runner.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/testing/test_directory.h"
#include "kernels/cuda/testing/simulated/simulated_device.h"
#include "kernels/ops/add.h"

namespace strata::cuda {
namespace {

using kernels::Operation;
using kernels::Tensor;
using kernels::TensorType;

TEST(DeviceRunner, OperandsGoToTheDeviceAndResultsComeBack) {
  SimulatedDevice device(ThreadOrder::forward);
  float a[] = {1, 2, 3}, b[] = {10, 20, 30}, sum[] = {0, 0, 0};
  const TensorType type(DType::f32, {3});
  const Tensor inputs[] = {{type, reinterpret_cast<std::byte*>(a)},
                           {type, reinterpret_cast<std::byte*>(b)}};
  const Tensor output{type, reinterpret_cast<std::byte*>(sum)};
  device_runner(device)(kernels::find_operation("add"), inputs, {&output, 1}, {});
  EXPECT_EQ(sum[0], 11);
  EXPECT_EQ(sum[2], 33);
}

TEST(DeviceRunner, ErrorsNameTheCall) {
  SimulatedDevice device(ThreadOrder::forward);
  float x[4] = {};
  const Tensor operand{TensorType(DType::f32, {2, 2}), reinterpret_cast<std::byte*>(x)};
  Operation unknown = kernels::find_operation("copy");
  unknown.name = "nosuch";
  const std::string message = message_of<InternalError>([&] {
    device_runner(device)(unknown, {&operand, 1}, {&operand, 1}, {});
  });
  EXPECT_EQ(message, "nosuch(fp32[2, 2]) -> fp32[2, 2]: the device has no kernel for it");
}

}  // namespace
}  // namespace strata::cuda
