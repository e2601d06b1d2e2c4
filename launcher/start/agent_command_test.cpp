#include "launcher/start/agent_command.h"

#include <gtest/gtest.h>

namespace strata::launcher {
namespace {

using Words = std::vector<std::string>;

TEST(AgentCommand, ItSaysWhichHostOfTheRunThatIs) {
  Options options;
  options.hosts = {.count = 3, .node = 0, .address = "10.0.0.1", .port = 29500, .secret = "s"};
  options.grace = std::chrono::seconds(7);
  options.prefix = false;
  options.log_directory = "logs";
  options.command = {"train", "--zero", "3"};
  EXPECT_EQ(agent_arguments(options, {"b", 2, 4}), (Words{"--agent",   "--nnodes",
                                                          "3",         "--node-rank",
                                                          "2",         "--master-addr",
                                                          "10.0.0.1",  "--master-port",
                                                          "29500",     "--run-secret",
                                                          "-",         "-np",
                                                          "4",         "--grace",
                                                          "7",         "--no-prefix",
                                                          "--log-dir", "logs",
                                                          "--",        "train",
                                                          "--zero",    "3"}));
}

TEST(AgentCommand, NoWordIsMoreThanAWordToTheShellThere) {
  EXPECT_EQ(ssh_command("user@b", "/home/a b", "/opt/mlaunch", {"it's", "$(reboot)", ""}),
            (Words{"ssh", "-o", "BatchMode=yes", "--", "user@b",
                   "cd '/home/a b' && exec '/opt/mlaunch' 'it'\\''s' '$(reboot)' ''"}));
}

}  // namespace
}  // namespace strata::launcher
