#include "tests/launcher/actors.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace strata::testing {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::vector<std::string> actors(int ranks, const std::vector<std::string>& arguments,
                                std::vector<std::string> options) {
  options.insert(options.end(), {"-np", std::to_string(ranks), ACTOR_PATH});
  options.insert(options.end(), arguments.begin(), arguments.end());
  return options;
}

std::string report_of(const MlaunchProcess& mlaunch) {
  const std::size_t begin = mlaunch.error().find("mlaunch: rank ");
  return begin == std::string::npos ? "" : mlaunch.error().substr(begin);
}

std::string without_place(const std::string& report) {
  const std::size_t line = report.rfind("  report  /");
  const std::string end = "/attempt_0/report.json\n";
  const std::size_t line_end = report.find(end, line);
  EXPECT_TRUE(line != std::string::npos && line_end != std::string::npos) << report;
  return report.substr(0, line) + report.substr(std::min(line_end + end.size(), report.size()));
}

void expect_nothing_left(const MlaunchProcess& mlaunch) {
  for (const std::string& process : mlaunch.living()) ADD_FAILURE() << "still alive: " << process;
}

}  // namespace strata::testing
