// Those who look at a run from outside while it goes on: over its Unix socket, with its secret from
// other hosts, and in a browser. Nothing here waits for them while the run goes on.
#pragma once

#include <poll.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/attempt.h"
#include "launcher/command/run.h"
#include "launcher/control/coordinator.h"
#include "launcher/output/recent_output.h"
#include "launcher/views/control_socket.h"
#include "launcher/views/output_of_hosts.h"
#include "launcher/views/run_progress.h"
#include "launcher/views/run_status.h"
#include "launcher/web/web_server.h"
#include "launcher/wire/control_wire.h"

namespace strata::launcher {

class RunViews {
 public:
  /// What the run does for them.
  struct Answers {
    std::function<std::vector<RankState>()> look;  ///< at the ranks of this host
    std::function<std::string(bool now)> stop;     ///< returns one line of JSON
  };
  /// Borrows all but answers; wire: null if the run has one host.
  RunViews(const Run& run, const Coordinator& coordinator, RecentOutput& output, ControlWire* wire,
           Answers answers);

  /// Listens on the Unix socket. Throws HostError; the run may go on without.
  void open_socket();

  /// Serves a page at this port of 127.0.0.1; 0: any. Throws HostError.
  void open_page(int port);
  [[nodiscard]] int page_port() const { return page_->port(); }

  void add_polls(std::vector<pollfd>& entries) const;
  [[nodiscard]] std::optional<TimePoint> next_deadline() const;
  /// Does what is due.
  void work(TimePoint now);

  void hear(const ViewAsked& event) { questions_.push_back(event); }
  void hear(const ViewLeft& event);
  void hear(TimePoint now, const HostPrinted& event) {
    hosts_.take(now, event.host, event.agent, event.piece);
  }

  /// Answers all that wait for the end, which has come with this exit code. Waits a moment for
  /// those who follow the run's output and are between two questions. Nothing works afterwards.
  void end(int exit_code, const KilledRanks& killed);

 private:
  [[nodiscard]] RunStatus status() const;
  [[nodiscard]] RunStatus current() const;
  void add_ranks(RunStatus& status) const;
  void keep_record(const RunStatus& status);
  std::optional<std::string> logs(const AskLogs& asked, bool ended);
  void await_followers(const std::string& line);
  std::vector<std::string> fetch_output(const std::optional<int>& rank);

  const Run& run_;
  const Coordinator& coordinator_;
  RecentOutput& output_;
  OutputOfHosts hosts_{output_};
  ControlWire* const wire_;
  const std::function<std::vector<RankState>()> look_;
  const std::optional<std::int64_t> process_start_;
  const std::chrono::system_clock::time_point started_at_ = std::chrono::system_clock::now();
  const TimePoint began_ = launcher::now();
  const ViewAnswers answers_;
  RunProgress progress_;
  std::unique_ptr<WebServer> page_;  ///< null: nobody asked for it
  std::optional<ControlSocket> socket_;
  /// What a record says that changes seldom, and when it was kept.
  struct Recorded {
    int attempt = -1;
    std::int64_t committed = -1;
    TimePoint when{};
  };
  std::optional<Recorded> recorded_;   ///< nullopt: nothing is kept of the run yet
  std::vector<ViewAsked> questions_;   ///< from other hosts, that are not answered yet
  TimePoint now_{};                    ///< of the last work()
  std::optional<TimePoint> fetch_;     ///< when lines of other hosts are fetched again
  bool fetches_ = true;                ///< in this work(): its time has come
  std::optional<TimePoint> followed_;  ///< when somebody who follows was answered last
  bool ended_ = false;
};

}  // namespace strata::launcher
