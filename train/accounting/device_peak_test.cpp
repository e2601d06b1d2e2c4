#include "train/accounting/device_peak.h"

#include <gtest/gtest.h>

namespace strata::train {
namespace {

TEST(DevicePeak, TheH200MultipliesAsTheH100) {
  const auto h200 = find_device_peak("NVIDIA H200");
  ASSERT_TRUE(h200.has_value());
  EXPECT_EQ(h200->device, "NVIDIA H200");
  EXPECT_DOUBLE_EQ(peak_rate(*h200, DType::bf16), 989.4e12);
  EXPECT_DOUBLE_EQ(peak_rate(*h200, DType::f16), 989.4e12);
  EXPECT_DOUBLE_EQ(peak_rate(*h200, DType::f32), 66.9e12);
  EXPECT_DOUBLE_EQ(h200->memory_bytes, 4.8e12);
}

TEST(DevicePeak, UnknownDevicesAndTypesHaveNone) {
  EXPECT_FALSE(find_device_peak("NVIDIA H2").has_value());
  EXPECT_FALSE(find_device_peak("").has_value());
  EXPECT_EQ(peak_rate(*find_device_peak("NVIDIA H200"), DType::i32), 0);
  EXPECT_EQ(find_device_peak("NVIDIA A100-SXM4-80GB")->fp8, 0);
}

}  // namespace
}  // namespace strata::train
