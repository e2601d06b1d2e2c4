// Runs that mlaunch status, mlaunch stop and mlaunch logs are asked about, in a folder of their
// own.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/json.h"
#include "core/testing/test_directory.h"
#include "core/unique_fd.h"
#include "tests/launcher/actors.h"

namespace strata::testing {

class Views : public ::testing::Test {
 protected:
  Views() { ::setenv("STRATA_RUNS_DIR", folder().c_str(), 1); }  // no run of anybody else

  /// Starts two ranks and waits until they are at work.
  static std::unique_ptr<MlaunchProcess> start(const std::string& mode) {
    auto run = std::make_unique<MlaunchProcess>(
        std::vector<std::string>{"-np", "2", "--grace", "200", ACTOR_PATH, mode});
    EXPECT_TRUE(run->wait_for_output("ready", 2)) << run->error();
    return run;
  }
  struct Result {
    int code;
    std::string output, error;
  };
  static Result mlaunch(const std::vector<std::string>& arguments) {
    MlaunchProcess process(arguments);
    const int code = process.wait();
    return {code, process.output(), process.error()};
  }
  static JsonValue status(std::vector<std::string> arguments = {}) {
    arguments.insert(arguments.begin(), {"status", "--json"});
    const Result result = mlaunch(arguments);
    EXPECT_EQ(result.code, 0) << result.error;
    return parse_json(result.output, "mlaunch status --json", {});
  }
  static std::string only_run() {
    const auto runs = status().at("runs").elements();
    EXPECT_EQ(runs.size(), 1U);
    return runs.empty() ? "" : runs.front().at("run").as_string();
  }
  [[nodiscard]] std::string folder() const { return home_ / "strata"; }
  [[nodiscard]] std::vector<std::string> sockets() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder()))
      if (entry.path().extension() == ".sock") found.push_back(entry.path());
    return found;
  }
  [[nodiscard]] UniqueFd connect() const {
    UniqueFd peer(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    sockets().front().copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(::connect(peer.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
              0);
    return peer;
  }

  const TestDirectory home_;
};

}  // namespace strata::testing
