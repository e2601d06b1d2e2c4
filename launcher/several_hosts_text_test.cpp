#include "launcher/several_hosts_text.h"

#include <gtest/gtest.h>

namespace strata::launcher {
namespace {

/// Returns what follows the address.
std::string waits(int least, int count, int least_ranks = 1,
                  std::chrono::seconds join = Reach::kJoin) {
  Run run;
  run.options.hosts.join = join;
  run.run_id = "abc";
  run.host_address = "10.0.0.1";
  run.options.ranks = 2;
  run.options.hosts.node = 0;
  run.options.hosts.least = least;
  run.options.hosts.count = count;
  run.options.hosts.worlds.least = least_ranks;
  run.options.hosts.port = 7;
  const std::string text = waiting_text(run), before = "run abc waits at 10.0.0.1:7 ";
  EXPECT_TRUE(text.starts_with(before)) << text;
  return text.substr(before.size());
}

TEST(SeveralHostsText, SaysForHowManyHostsARunWaitsAndHowLong) {
  EXPECT_EQ(waits(2, 2), "for 1 more host, up to 300 s");
  EXPECT_EQ(waits(2, 2, 1, std::chrono::seconds(40)), "for 1 more host, up to 40 s");
  EXPECT_EQ(waits(2, 4), "for 1 to 3 more hosts, up to 300 s, and 15 s once there are enough");
  EXPECT_EQ(waits(1, 2), "for 15 s for 1 more host") << "this host suffices";
  EXPECT_EQ(waits(1, 3), "for 15 s for up to 2 more hosts");
  EXPECT_EQ(waits(1, 2, 3), "for 0 to 1 more host, up to 300 s, and 15 s once there are enough")
      << "its ranks do not suffice";
}

}  // namespace
}  // namespace strata::launcher
