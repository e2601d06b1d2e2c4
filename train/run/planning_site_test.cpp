#include "train/run/planning_site.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "core/error.h"
#include "machine/hardware_file.h"

namespace strata::train {
namespace {

RunRequest request_for(DeviceChoice device) {
  RunRequest request;
  request.config.options.device = device;
  return request;
}

comm::Seat seat_for(DeviceChoice device, std::vector<int> first_ranks, int local_world) {
  RunRequest request = request_for(device);
  request.context.world = 4;
  request.context.local_world = local_world;
  request.context.first_ranks = std::move(first_ranks);
  return planning_site(request).seat;
}

TEST(PlanningSite, SumsOverHostsAreMadeWithinEachFirst) {
  using comm::Exchange;
  EXPECT_EQ(seat_for(DeviceChoice::cpu, {0}, 4), (comm::Seat{0, 4, Exchange::peer_memory}));
  EXPECT_EQ(seat_for(DeviceChoice::cuda, {0}, 4), (comm::Seat{0, 4, Exchange::messages}));
  EXPECT_EQ(seat_for(DeviceChoice::cpu, {0, 2}, 2), (comm::Seat{0, 4, Exchange::hosts, {0, 2}}));
  EXPECT_EQ(seat_for(DeviceChoice::cuda, {0, 2}, 2),
            (comm::Seat{0, 4, Exchange::host_messages, {0, 2}}));
  EXPECT_EQ(seat_for(DeviceChoice::cuda, {}, 2), (comm::Seat{0, 4, Exchange::messages}))
      << "started by something that does not say which ranks are where";
}

TEST(PlanningSite, RanksOfAMachineLieOnItsHosts) {
  RunRequest request;
  request.hardware = machine::load_hardware("8xh100");
  request.hardware->hosts = 2;
  assume_ranks(16, request);
  EXPECT_EQ(planning_site(request).seat,
            (comm::Seat{0, 16, comm::Exchange::host_messages, {0, 8}}));
  assume_ranks(8, request);
  EXPECT_EQ(planning_site(request).seat, (comm::Seat{0, 8, comm::Exchange::messages}));
}

TEST(PlanningSite, NcclAddsOverAllHostsAtOnceWhereItIsAskedTo) {
  RunRequest request = request_for(DeviceChoice::cuda);
  request.config.options.reduction = comm::Reduction::native;
  assume_ranks(4, request);
  EXPECT_EQ(planning_site(request).seat, (comm::Seat{0, 4, comm::Exchange::native_messages}));
}

TEST(PlanningSite, MoreRanksThanCanAddGradientsTogetherAreRefusedAsInARun) {
  for (const DeviceChoice device : {DeviceChoice::cpu, DeviceChoice::cuda}) {
    RunRequest request = request_for(device);
    EXPECT_NO_THROW(assume_ranks(64, request));
    EXPECT_THROW(assume_ranks(65, request), ConfigError);
  }
  RunRequest native = request_for(DeviceChoice::cuda);
  native.config.options.reduction = comm::Reduction::native;
  EXPECT_NO_THROW(assume_ranks(65, native)) << "NCCL adds";
  RunRequest hosts;
  hosts.hardware = machine::load_hardware("8xh100");
  hosts.hardware->hosts = 16;
  EXPECT_NO_THROW(assume_ranks(128, hosts)) << "hosts add their own first";
  hosts.hardware->devices = 65;
  hosts.hardware->hosts = 2;
  EXPECT_THROW(assume_ranks(130, hosts), ConfigError);
}

}  // namespace
}  // namespace strata::train
