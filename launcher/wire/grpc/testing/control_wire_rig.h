// A coordinator and an agent that speak over a real connection on this host.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "launcher/command/free_port.h"
#include "launcher/wire/grpc/agent_client.h"
#include "launcher/wire/grpc/coordinator_server.h"
#include "launcher/wire/grpc/make_secret.h"
#include "launcher/wire/grpc/quiet_log.h"

namespace strata::launcher {

using std::chrono::milliseconds;

/// After this nothing comes any more, on a busy machine, too.
inline constexpr milliseconds kHangs(60'000);

inline constexpr const char* kRun = "0123456789abcdef";
inline constexpr const char* kEarlierRun = "fedcba9876543210";
inline constexpr const char* kStrangeRun = "5555555555555555";

/// Keeps what a wire tells until a test looks for it.
class Ear {
 public:
  explicit Ear(ControlWire& wire) : wire_(wire) {}

  /// Waits for the next event of one of these kinds; those of others stay.
  template <typename... Events>
  std::optional<WireEvent> next_of(milliseconds limit = kHangs) {
    const auto end = std::chrono::steady_clock::now() + limit;
    for (;;) {
      for (auto at = events_.begin(); at != events_.end(); ++at) {
        if (!(std::holds_alternative<Events>(*at) || ...)) continue;
        const WireEvent found = std::move(*at);
        events_.erase(at);
        return found;
      }
      const auto left = std::chrono::ceil<milliseconds>(end - std::chrono::steady_clock::now());
      if (left.count() <= 0) return {};
      pollfd entry{wire_.poll_fd(), POLLIN, 0};
      if (::poll(&entry, 1, static_cast<int>(left.count())) <= 0) continue;
      for (WireEvent& event : wire_.take()) events_.push_back(std::move(event));
    }
  }
  template <typename Event>
  std::optional<Event> next(milliseconds limit = kHangs) {
    const std::optional<WireEvent> found = next_of<Event>(limit);
    return found ? std::optional(std::get<Event>(*found)) : std::nullopt;
  }

 private:
  ControlWire& wire_;
  std::vector<WireEvent> events_;
};

class ControlWireTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { silence_grpc(); }
  static const RunSecret& secret() {
    static const RunSecret kSecret = make_secret();
    return kSecret;
  }
  ListenSettings listen_settings() const {
    return {"127.0.0.1", port_, secret(), facts(), {"a", "b"}, {kRun, "127.0.0.1", 29500}, true};
  }
  AttachSettings attach_settings() const {
    RunSecret for_agents = secret();
    for_agents.key.clear();
    return {"127.0.0.1", port_, for_agents, facts(), "", "keys/copy"};
  }
  static AgreedFacts facts() {
    return {"Strata 0.1", {{"--nnodes", "2"}}, {"train", "--zero", "3"}};
  }
  void listen() {
    server_ = std::make_unique<CoordinatorServer>(listen_settings());
    at_server_ = std::make_unique<Ear>(*server_);
  }
  void attach(const AttachSettings& settings) {
    client_ = std::make_unique<AgentClient>(settings);
    at_agent_ = std::make_unique<Ear>(*client_);
  }
  /// Says Hello once the connection stands.
  void say_hello(const Hello& hello = {.host = "a", .agent = "1", .slots = 2}) {
    ASSERT_TRUE(at_agent_->next<Connected>());
    client_->send(SendToCoordinator{hello});
  }
  /// The reason for which an agent is not let in.
  std::string refusal_of(const AttachSettings& settings,
                         const Hello& hello = {.host = "a", .agent = "1"}) {
    attach(settings);
    auto told = at_agent_->next_of<Connected, NotWelcome>();
    if (told && std::holds_alternative<Connected>(*told)) {
      client_->send(SendToCoordinator{hello});
      told = at_agent_->next_of<Welcomed, NotWelcome>();
    }
    if (!told) return "no answer";
    const auto* refused = std::get_if<NotWelcome>(&*told);
    return refused ? refused->reason : "let in";
  }

  int port_ = find_free_port();
  std::unique_ptr<CoordinatorServer> server_;
  std::unique_ptr<Ear> at_server_;
  std::unique_ptr<AgentClient> client_;
  std::unique_ptr<Ear> at_agent_;
};

}  // namespace strata::launcher
