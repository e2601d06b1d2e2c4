// Brings what ranks of other hosts print to the coordinator while somebody wants to see it. It is
// fetched in pieces, one at a time from each host, so that whoever prints much delays nobody.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launcher/control/coordinator.h"
#include "launcher/output/recent_output.h"

namespace strata::launcher {

class OutputOfHosts {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Host = Coordinator::AgentOfHost;

  /// A host that has sent all is asked again after this time.
  static constexpr std::chrono::milliseconds kBetweenFetches{250};
  /// An answer that has not come within this time was lost with its connection.
  static constexpr std::chrono::seconds kLost{3};
  /// What is older may lack lines.
  static constexpr std::chrono::seconds kFresh{1};

  /// `output` gets the lines.
  explicit OutputOfHosts(RecentOutput& output) : output_(output) {}

  struct Fetch {
    std::string host;
    std::string agent;
    std::uint64_t number = 0;  ///< of the first line, as the agent counts
  };
  struct Wanted {
    std::vector<Fetch> fetches = {};            ///< to be done now
    std::vector<std::string> waiting_for = {};  ///< hosts, for people, that have not sent all
  };
  /// Somebody wants lines of a rank, or of all; `hosts` are those of the run but the own one.
  Wanted want(TimePoint now, std::optional<int> rank, const std::vector<Host>& hosts);
  /// A host has answered, or told more. What does not follow what was told before is left out.
  void take(TimePoint now, const std::string& host, const std::string& agent,
            RecentOutput::Piece piece);

 private:
  void tell_of_gap(const RecentOutput::Piece& piece);

  struct State {
    std::string agent;  ///< whose lines `next` counts
    std::uint64_t next = 0;
    std::optional<TimePoint> asked = {};     ///< when, if its answer has not come
    std::optional<TimePoint> whole = {};     ///< when it had sent all that there was
    std::optional<std::uint64_t> goal = {};  ///< there it has; nullopt: not known yet
    bool more = true;                        ///< it has more
    bool began = false;                      ///< an answer has come
  };

  RecentOutput& output_;
  std::map<std::string, State> hosts_;
};

}  // namespace strata::launcher
