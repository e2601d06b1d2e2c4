#include "launcher/views/view_options.h"

#include <gtest/gtest.h>

#include <sstream>

#include "core/error.h"
#include "core/testing/test_directory.h"

namespace strata::launcher {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string refusal(const std::string& command, const std::vector<std::string>& arguments) {
  return message_of<InvalidArgument>([&] { (void)parse_view_options(command, arguments); });
}

TEST(ViewOptions, AreRunAndFlags) {
  const ViewOptions status = parse_view_options("status", {"--json", "0123", "--watch"});
  EXPECT_EQ(status.run, "0123");
  EXPECT_TRUE(status.json && status.watch);
  EXPECT_FALSE(status.show_help);
  const ViewOptions stop = parse_view_options("stop", {"--now", "--wait", "7"});
  EXPECT_TRUE(stop.now);
  EXPECT_EQ(stop.run, "");
  EXPECT_EQ(stop.wait, std::chrono::seconds(7));
  EXPECT_EQ(parse_view_options("stop", {"--wait=0"}).wait, std::chrono::seconds(0));
  EXPECT_EQ(parse_view_options("stop", {}).wait, std::nullopt);
  EXPECT_TRUE(parse_view_options("stop", {"-h"}).show_help);
}

TEST(ViewOptions, ASingleWordOfAFewDigitsIsARank) {
  const auto logs = [](const std::vector<std::string>& words) {
    const ViewOptions options = parse_view_options("logs", words);
    return options.run + "/" + (options.rank ? std::to_string(*options.rank) : "all");
  };
  EXPECT_EQ(logs({}), "/all");
  EXPECT_EQ(logs({"3"}), "/3");
  EXPECT_EQ(logs({"999999"}), "/999999");
  EXPECT_EQ(logs({"1234567"}), "1234567/all");
  EXPECT_EQ(logs({"3f"}), "3f/all");
  EXPECT_EQ(logs({"3", "12"}), "3/12");
  EXPECT_TRUE(contains(refusal("logs", {"3f", "3f"}), "the number of a rank is expected, not 3f"));
  EXPECT_TRUE(contains(refusal("logs", {"a", "1", "2"}), "one run at a time: a or 1"));
}

TEST(ViewOptions, LogsFollowAndBeginLate) {
  const ViewOptions logs = parse_view_options("logs", {"-f", "--tail=20", "--stderr", "--json"});
  EXPECT_TRUE(logs.follow && logs.only_error && logs.json);
  EXPECT_FALSE(logs.only_output);
  EXPECT_EQ(logs.tail, 20U);
  EXPECT_EQ(parse_view_options("logs", {"-n", "0"}).tail, 0U);
  EXPECT_TRUE(contains(refusal("logs", {"--stdout", "--stderr"}), "give one of them"));
  EXPECT_TRUE(contains(refusal("logs", {"-n", "-1"}), "expected an integer"));
}

TEST(ViewOptions, ARunElsewhereNeedsItsSecret) {
  const ViewOptions at = parse_view_options("stop", {"--at", "[::1]:9", "--run-secret", "s"});
  EXPECT_TRUE(at.is_elsewhere());
  EXPECT_EQ(at.at.address, "::1");
  EXPECT_EQ(at.at.port, 9);
  EXPECT_EQ(at.at.secret, "s");
  EXPECT_TRUE(contains(refusal("logs", {"--at", "a:1"}), "--at also needs --run-secret FILE"));
  EXPECT_TRUE(contains(refusal("logs", {"--run-secret", "s"}), "goes with --at HOST:PORT"));
  EXPECT_TRUE(contains(refusal("status", {"--at", "a"}), "--at a: expected HOST:PORT"));
  EXPECT_TRUE(contains(refusal("status", {"--at=a:1", "--run-secret="}), "name of a file"));
}

TEST(ViewOptions, SayWhatIsWrong) {
  EXPECT_TRUE(contains(refusal("status", {"--jsn"}), "no option --jsn, did you mean '--json'?"));
  EXPECT_TRUE(contains(refusal("status", {"--now"}), "mlaunch status has no option --now"));
  EXPECT_TRUE(contains(refusal("status", {"--steps", "3"}), "mlaunch -- status"));
  EXPECT_TRUE(contains(refusal("stop", {"--json"}), "mlaunch stop has no option --json"));
  EXPECT_TRUE(contains(refusal("stop", {"a", "b"}), "one run at a time: a or b"));
  EXPECT_TRUE(contains(refusal("stop", {""}), "id is empty"));
  EXPECT_TRUE(contains(refusal("stop", {"--wait"}), "--wait needs a value"));
  EXPECT_TRUE(contains(refusal("stop", {"--now=1"}), "--now takes no value"));
  for (const char* text : {"-1", "x", "", "1.5", "86401"})
    EXPECT_TRUE(contains(refusal("stop", {"--wait", text}), "expected an integer")) << text;
}

TEST(ViewOptions, HaveHelpThatFitsTheScreen) {
  for (const char* command : {"status", "stop", "logs"}) {
    std::istringstream help(view_help(command));
    EXPECT_TRUE(contains(help.str(), std::string("mlaunch ") + command + " [RUN] ["));
    for (std::string line; std::getline(help, line);) EXPECT_LE(line.size(), 100U) << line;
  }
}

}  // namespace
}  // namespace strata::launcher
