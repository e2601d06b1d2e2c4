// Those who look at a run from outside while it goes on: over its Unix socket and, with its secret,
// from other hosts. Nothing here waits for them.
#pragma once

#include <poll.h>

#include <optional>
#include <string>
#include <vector>

#include "launcher/command/run.h"
#include "launcher/output/recent_output.h"
#include "launcher/views/control_socket.h"
#include "launcher/wire/control_wire.h"

namespace strata::launcher {

class RunViews {
 public:
  /// What the run does for them; each returns one line of JSON.
  struct Answers {
    std::function<std::string()> status;
    std::function<std::string(bool now)> stop;
  };
  /// Borrows run, output and wire (null: the run has one host).
  RunViews(const Run& run, const RecentOutput& output, ControlWire* wire, Answers answers);

  /// Listens on the Unix socket. Throws HostError; the run may go on without.
  void open_socket();

  void add_polls(std::vector<pollfd>& entries) const;
  [[nodiscard]] std::optional<TimePoint> next_deadline() const;
  /// Does what is due.
  void work(TimePoint now);

  void hear(const ViewAsked& event) { questions_.push_back(event); }
  void hear(const ViewLeft& event);

  /// Answers all that wait for the end; `line` (ended_json) tells of it. Nothing works afterwards.
  void end(const std::string& line);

 private:
  [[nodiscard]] std::optional<std::string> logs(const AskLogs& asked, bool ended) const;

  const Run& run_;
  const RecentOutput& output_;
  ControlWire* const wire_;
  const ViewAnswers answers_;
  std::optional<ControlSocket> socket_;
  std::vector<ViewAsked> questions_;  ///< from other hosts, that are not answered yet
};

}  // namespace strata::launcher
