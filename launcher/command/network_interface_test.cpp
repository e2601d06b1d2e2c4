#include "launcher/command/network_interface.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace strata::launcher {
namespace {

class NetworkInterface : public testing::Test {
 protected:
  void SetUp() override { options_.hosts.count = 2; }
  template <typename Expected>
  std::string refusal() const {
    try {
      check_network_interface(options_, surroundings_);
    } catch (const Expected& error) {
      return error.what();
    }
    return "accepted";
  }
  Options options_;
  Surroundings surroundings_;
};

TEST_F(NetworkInterface, IsThereIfThisHostHasAnAddressOnIt) {
  EXPECT_NO_THROW(check_network_interface(options_, surroundings_)) << "nobody names one";
  options_.network_interface = "lo";
  surroundings_.variables = {{"STRATA_INTERFACE", "none0"}};
  EXPECT_NO_THROW(check_network_interface(options_, surroundings_)) << "what is typed counts";
}

TEST_F(NetworkInterface, IsRefusedByTheNameOfWhatSaysItAndTheOthersAreListed) {
  surroundings_.variables = {{"STRATA_INTERFACE", "none0"}};
  const std::string wrong =
      ": this host has no interface of that name with an address; it has lo (127.0.0.1)";
  EXPECT_EQ(refusal<ConfigError>().find("STRATA_INTERFACE=none0" + wrong), 0u);
  options_.network_interface = "eth99";
  EXPECT_EQ(refusal<InvalidArgument>().find("--interface eth99" + wrong), 0u);
  options_.hosts.node = -1;
  EXPECT_EQ(refusal<InvalidArgument>(), "accepted") << "it has no ranks";
  options_.hosts = {};
  EXPECT_EQ(refusal<InvalidArgument>(), "accepted") << "ranks of one host need no network";
}

}  // namespace
}  // namespace strata::launcher
