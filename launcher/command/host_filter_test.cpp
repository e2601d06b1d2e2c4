#include "launcher/command/host_filter.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace strata::launcher {
namespace {

using Hosts = std::vector<ListedHost>;

const Hosts kHosts{{"a", 4}, {"user@b", 2}, {"c", 0}};

Hosts filtered(std::string_view text, bool excludes) {
  return filter_hosts(parse_host_filter("--it", text, excludes), kHosts, 3);
}

std::string refusal(std::string_view text, bool excludes = false) {
  try {
    filtered(text, excludes);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

TEST(HostFilter, IncludesWholeHostsAndSlotsInTheOrderOfTheList) {
  EXPECT_EQ(filtered("b", false), (Hosts{{"user@b", 2}}));
  EXPECT_EQ(filtered("c:2@a:3,1", false), (Hosts{{"a", 2, {"3", "1"}}, {"c", 1, {"2"}}}));
}

TEST(HostFilter, ExcludesWholeHostsAndSlots) {
  EXPECT_EQ(filtered("a", true), (Hosts{{"user@b", 2}, {"c", 0}}));
  EXPECT_EQ(filtered("a:0,2@b:0,1@c:1", true), (Hosts{{"a", 2, {"1", "3"}}, {"c", 2, {"0", "2"}}}));
}

TEST(HostFilter, RefusesWhatIsNotThere) {
  EXPECT_EQ(refusal("d"), "--it: d is none of the listed hosts");
  EXPECT_EQ(refusal("a:4"), "--it: a has 4 slots, numbered from 0");
  EXPECT_EQ(refusal("c:3"), "") << "its slots are not listed";
  EXPECT_EQ(refusal("c:3", true), "--it: c has 3 slots, numbered from 0");
  EXPECT_EQ(refusal("a@b@c", true), "--it leaves no host");
  EXPECT_EQ(refusal("a@a:1"), "--it: a is named twice");
  for (const char* text : {"", "@", "a@", ":0", "a:", "a:x", "a:-1", "a:1,1", "a:0@"})
    EXPECT_NE(refusal(text), "") << text;
}

}  // namespace
}  // namespace strata::launcher
