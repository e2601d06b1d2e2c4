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

TEST(ViewOptions, SayWhatIsWrong) {
  EXPECT_TRUE(contains(refusal("status", {"--jsn"}), "no option --jsn, did you mean '--json'?"));
  EXPECT_TRUE(contains(refusal("status", {"--now"}), "mlaunch status has no option --now"));
  EXPECT_TRUE(contains(refusal("status", {"--steps", "3"}), "mlaunch -- status"));
  EXPECT_TRUE(contains(refusal("stop", {"--json"}), "mlaunch stop has no option --json"));
  EXPECT_TRUE(contains(refusal("stop", {"a", "b"}), "one run at a time: a or b"));
  EXPECT_TRUE(contains(refusal("stop", {""}), "id is empty"));
  EXPECT_TRUE(contains(refusal("stop", {"--wait"}), "--wait needs a number"));
  EXPECT_TRUE(contains(refusal("stop", {"--now=1"}), "--now takes no value"));
  for (const char* text : {"-1", "x", "", "1.5", "86401"})
    EXPECT_TRUE(contains(refusal("stop", {"--wait", text}), "expected an integer")) << text;
}

TEST(ViewOptions, HaveHelpThatFitsTheScreen) {
  for (const char* command : {"status", "stop"}) {
    std::istringstream help(view_help(command));
    EXPECT_TRUE(contains(help.str(), std::string("mlaunch ") + command + " [RUN] [options]"));
    for (std::string line; std::getline(help, line);) EXPECT_LE(line.size(), 100U) << line;
  }
}

}  // namespace
}  // namespace strata::launcher
