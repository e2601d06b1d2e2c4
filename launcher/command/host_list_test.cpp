#include "launcher/command/host_list.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace strata::launcher {
namespace {

using Hosts = std::vector<ListedHost>;

template <typename Parse>
std::string refusal(const Parse& parse) {
  try {
    parse();
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "accepted";
}

TEST(HostList, NamesHaveSlotsOrNot) {
  EXPECT_EQ(parse_host_list("-H", "a:2,user@b-1.net,c_3:16"),
            (Hosts{{"a", 2}, {"user@b-1.net", 0}, {"c_3", 16}}));
}

// Fault 28.
TEST(HostList, AWrongWordIsNamed) {
  const auto of = [](const char* text) {
    return refusal([text] { (void)parse_host_list("-H", text); });
  };
  EXPECT_EQ(of("a:0"), "-H: slots of a are '0', expected a number from 1 to 1024");
  for (const char* slots :
       {"a:", "a:x", "a:-1", "a:1.5", "a:03", "a:99999999999999999999", "a:2:3"})
    EXPECT_NE(of(slots).find("slots of a"), std::string::npos) << slots;
  for (const char* names : {"", ",", "a,,b", "a,", "-oProxyCommand=x", "a b", "a;b", "@a", "u@@a",
                            "$(x)", "a/b", "\xc3\xa4"})
    EXPECT_NE(of(names).find("is no name of a host"), std::string::npos) << names;
  EXPECT_EQ(of("a:1,b,a:2"), "-H: a is named twice; name it once, with all of its slots");
}

TEST(Hostfile, HasAHostInEachLine) {
  EXPECT_EQ(
      parse_hostfile("# mine\nworker-1 slots=4\n\n\tworker-2\tslots=2 # old\r\nworker-3", "f"),
      (Hosts{{"worker-1", 4}, {"worker-2", 2}, {"worker-3", 0}}));
}

// Fault 28.
TEST(Hostfile, AWrongLineIsNamed) {
  const auto of = [](const char* text) {
    return refusal([text] { (void)parse_hostfile(text, "hosts"); });
  };
  EXPECT_EQ(of("a slots=1\nb slots=0\n"),
            "hosts, line 2: slots of b are '0', expected a number from 1 to 1024");
  EXPECT_EQ(of("b slots=03"),
            "hosts, line 1: slots of b are '03', expected a number from 1 to 1024");
  EXPECT_EQ(of("a\n\na slots=2\n"),
            "hosts, line 3: a is named twice; name it once, with all of its slots");
  EXPECT_EQ(of("a gpus=2"), "hosts, line 1: expected NAME slots=N");
  EXPECT_EQ(of("a slots=2 b"), "hosts, line 1: expected NAME slots=N");
  EXPECT_EQ(of("a\nb slots=2 max_slots=4"),
            "hosts, line 2: max_slots=4 is a limit that Open MPI knows; mlaunch starts as many "
            "ranks as slots=N says, so leave it out");
  EXPECT_EQ(of("\xEF\xBB\xBF"
               "a slots=2"),
            "hosts, line 1: the file begins with a byte order mark, which is not part of a name; "
            "save it as UTF-8 without one (BOM)");
  EXPECT_NE(of("-oProxyCommand=sh slots=2").find("line 1: '-oProxyCommand=sh' is no name"),
            std::string::npos);
  EXPECT_EQ(of("# nothing\n"), "hosts: there is no host in it");
  EXPECT_NE(refusal([] { (void)read_hostfile("/no/such/file"); }).find("/no/such/file"),
            std::string::npos);
}

}  // namespace
}  // namespace strata::launcher
