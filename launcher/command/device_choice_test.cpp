#include "launcher/command/device_choice.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace strata::launcher {
namespace {

using Words = std::vector<std::string>;

std::string refusal(const DeviceRequest& request, const HostDevices& host) {
  try {
    choose_devices(request, host);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

TEST(DeviceChoice, IncludedDevicesAreTheOnesToSee) {
  const DeviceRequest request{.typed = "--include localhost:2,3", .included = {"2", "3"}};
  EXPECT_EQ(choose_devices(request, {"", 8}), (Words{"2", "3"}));
  EXPECT_EQ(choose_devices(request, {"", 0}), (Words{"2", "3"})) << "no device files to look at";
  EXPECT_EQ(choose_devices(request, {"3,2,1", 8}), (Words{"2", "3"}));
}

TEST(DeviceChoice, NothingBeyondWhatMlaunchItselfMaySee) {
  const DeviceRequest request{.typed = "--include localhost:2,3", .included = {"2", "3"}};
  EXPECT_EQ(refusal(request, {"0,2", 8}),
            "--include localhost:2,3: device 3 is not there; CUDA_VISIBLE_DEVICES=0,2 leaves only "
            "those");
  EXPECT_EQ(refusal(request, {"", 2}),
            "--include localhost:2,3: device 2 is not there; this machine has 2 GPUs");
}

TEST(DeviceChoice, ExcludedDevicesLeaveTheOthers) {
  const DeviceRequest request{.typed = "--exclude localhost:0", .excluded = {"0"}};
  EXPECT_EQ(choose_devices(request, {"", 3}), (Words{"1", "2"}));
  EXPECT_EQ(choose_devices(request, {"0,5", 8}), (Words{"5"}));
  EXPECT_NE(refusal(request, {"0", 8}).find("leaves no device"), std::string::npos);
  EXPECT_NE(refusal(request, {"", 0}).find("--include localhost:0,1"), std::string::npos);
}

TEST(DeviceChoice, ACountMeansTheFirstOnesUnlessSomebodyHasChosen) {
  EXPECT_EQ(choose_devices({.first_devices = 2}, {"", 8}), (Words{"0", "1"}));
  EXPECT_EQ(choose_devices({.first_devices = 2}, {"4,5", 8}), Words{});
  EXPECT_EQ(choose_devices({}, {"", 8}), Words{}) << "-np says nothing about devices";
}

}  // namespace
}  // namespace strata::launcher
