#include "comm/hosts/listen_address.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace strata::comm {
namespace {

std::string refusal(const RankContext& context) {
  try {
    return "accepted " + listen_address(context);
  } catch (const ConfigError& error) {
    return error.what();
  }
}

TEST(ListenAddress, TakesWhatTheLauncherSays) {
  EXPECT_EQ(listen_address({.host_address = "10.1.2.3", .network_interface = "none"}), "10.1.2.3");
  EXPECT_EQ(listen_address({.host_address = "fd00::7"}), "fd00::7");
}

TEST(ListenAddress, TakesTheAddressOfAnInterface) {
  EXPECT_EQ(listen_address({.network_interface = "lo"}), "127.0.0.1");
}

TEST(ListenAddress, SaysWhatToSet) {
  const std::string advice =
      "; set STRATA_HOST_ADDRESS to an IP address of this host that the others reach, or "
      "STRATA_INTERFACE to the interface that has one (`ip address` lists them)";
  EXPECT_EQ(refusal({.rank = 3, .host = "b"}),
            "rank 3 does not know at which address other hosts reach host b" + advice);
  EXPECT_EQ(refusal({.host_address = "b.cluster"}),
            "STRATA_HOST_ADDRESS=b.cluster is not an IP address" + advice);
  EXPECT_EQ(refusal({.host_address = "0.0.0.0"}),
            "STRATA_HOST_ADDRESS=0.0.0.0 names no host" + advice);
  const std::string text = refusal({.network_interface = "none0"});
  EXPECT_NE(text.find("STRATA_INTERFACE=none0 names no interface with an address; there are "),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("lo (127.0.0.1)"), std::string::npos) << text;
}

}  // namespace
}  // namespace strata::comm
