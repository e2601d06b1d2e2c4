// The ranks of one attempt on this host: their processes, pipes, status pages and rendezvous. What
// happens to them becomes events of the state machine.
#pragma once

#include <poll.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/rendezvous_server.h"
#include "core/status_page.h"
#include "launcher/command/run.h"
#include "launcher/control/messages.h"
#include "launcher/group/rank_process.h"
#include "launcher/group/state_machine.h"
#include "launcher/output/screen.h"

namespace strata::launcher {

class RankGroup {
 public:
  /// Borrows run and screen. Children that the process has already are not the group's, nor are
  /// those that it is told to leave alone.
  RankGroup(const Run& run, StartAttempt attempt, Screen& screen);

  /// Starts all ranks, which may write until `lease` (nullopt: for ever). A rank that cannot be
  /// started, and those after it, are SpawnFailed.
  std::vector<Event> start(const std::optional<TimePoint>& lease);

  /// Adds what to poll for: the rendezvous, and outputs that the screen has room for.
  void add_polls(std::vector<pollfd>& entries);
  /// Serves the rendezvous; returns a line for each rank that broke its protocol.
  std::vector<std::string> serve_rendezvous(TimePoint now) { return server_.process(now); }
  [[nodiscard]] std::optional<TimePoint> next_deadline() const { return server_.next_deadline(); }
  /// Returns what ranks ask of the values that all hosts share.
  std::vector<ValueRequest> take_requests() { return server_.take_requests(); }
  void answer(const ValueAnswer& answer) { server_.answer(answer); }
  /// Hands what ranks printed to the screen.
  std::vector<Event> read_outputs();
  /// Waits for processes that have ended, without blocking.
  std::vector<Event> reap();

  /// Returns the processes of this group that are alive, and those that ranks left behind.
  [[nodiscard]] std::set<pid_t> children_left() const;
  [[nodiscard]] bool has_children() const { return !children_left().empty(); }
  /// Kills ranks, and what they left behind. Call it until has_children() is false.
  void kill_children();

  void leave_alone(pid_t child) { foreign_children_.insert(child); }

  void signal(int rank, int number);
  /// Ends waiting at the rendezvous, for ever.
  void fail_waiting_peers(const std::string& reason) { server_.fail(reason); }

  [[nodiscard]] int size() const { return static_cast<int>(ranks_.size()); }
  /// Says where a rank is; "" for programs that do not write their status page.
  [[nodiscard]] std::string where(int rank) const;
  /// Returns the rank's phase, and the names of the instruction begun last and of the collective
  /// under way; "": none.
  [[nodiscard]] Phase phase(int rank) const;
  [[nodiscard]] std::string instruction_name(int rank) const {
    return at(rank).page.instruction_name();
  }
  [[nodiscard]] std::string collective_name(int rank) const {
    return at(rank).page.collective_name();
  }
  /// Ends the collectives of ranks, which wait for one that will not come.
  void order_stop(const std::string& reason);
  /// Sets the time (boot_time_ns) until which ranks may write.
  void set_lease(TimePoint until);
  [[nodiscard]] pid_t pid_of(int rank) const { return at(rank).process.pid; }  ///< -1: ended
  /// Looks at all ranks and their processes.
  [[nodiscard]] std::vector<RankState> look() const;
  /// What a rank wrote to its status page.
  [[nodiscard]] const StatusPageData& page(int rank) const { return at(rank).page.data(); }
  /// Returns the error on the rank's status page; "": none.
  [[nodiscard]] std::string error_of(int rank) const;
  /// Returns the folder of the checkpoint that its status page names; "": none.
  [[nodiscard]] std::string checkpoint_of(int rank) const;
  /// Returns the checkpoint that its status page says could not be written; nullopt: none.
  [[nodiscard]] std::optional<SaveFailure> save_failure(int rank) const;
  /// True if its status page says that the rank has done its work.
  [[nodiscard]] bool is_done(int rank) const;
  /// Returns the most memory that the rank's process used; 0: it has not ended.
  [[nodiscard]] std::int64_t peak_rss_bytes(int rank) const { return at(rank).peak_rss_bytes; }

 private:
  struct Rank {
    StatusPage page;
    RankProcess process;
    std::int64_t peak_rss_bytes = 0;
  };

  /// Number in the run of the first rank of this host.
  [[nodiscard]] int first_rank() const { return attempt_.placement.first_rank(attempt_.node); }
  [[nodiscard]] RankProcess start(int rank, const StatusPage& page);
  [[nodiscard]] RankView view(int rank) const;
  void read_output(int rank, OutputKind kind, std::vector<Event>& events);
  [[nodiscard]] int rank_of(pid_t pid) const;
  [[nodiscard]] UniqueFd& pipe(int rank, OutputKind kind);
  [[nodiscard]] bool is_unread(int rank) const;
  [[nodiscard]] const Rank& at(int rank) const { return ranks_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] Rank& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }

  const Run& run_;
  const StartAttempt attempt_;
  Screen& screen_;
  std::set<pid_t> foreign_children_;  ///< of the shell that exec'ed us, starters of other hosts
  RendezvousServer server_;
  std::vector<Rank> ranks_;
};

}  // namespace strata::launcher
