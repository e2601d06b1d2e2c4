#include "train/run/planning_site.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "machine/hardware_file.h"

namespace strata::train {
namespace {

comm::Seat seat_for(DeviceChoice device, std::vector<int> first_ranks, int local_world) {
  RunRequest request;
  request.config.options.device = device;
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

}  // namespace
}  // namespace strata::train
