// The ranks of a simulated run: they make steps while all ranks of their attempt live and run,
// rank 0 commits, and they end by themselves, because of a peer, or because they are told to.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "launcher/control/agent.h"
#include "launcher/control/testing/draws.h"
#include "launcher/control/testing/meeting.h"
#include "launcher/control/testing/run_checks.h"
#include "launcher/control/testing/scenario.h"
#include "launcher/control/testing/shared_disk.h"
#include "launcher/control/testing/simulated_host.h"
#include "launcher/control/testing/start_id.h"
#include "launcher/control/testing/trace.h"

namespace strata::launcher::simulation {

/// Who started ranks, and learns of their ends.
class GroupOwner {
 public:
  virtual ~GroupOwner() = default;
  virtual void rank_failed(const RankFailed& failed) = 0;
  virtual void group_ended(const AttemptFacts& facts) = 0;
  virtual void rank_asks(const ValueRequest& request) = 0;
};

/// The ranks of an attempt that one agent started.
struct Group {
  /// What keeps a rank from getting on; such a one ends only if it is killed.
  enum class Hold : std::uint8_t {
    none,
    stopped,     ///< by a signal
    behind,      ///< it does not come to the collective in which others wait
    in_another,  ///< collective than the others, under the same number
  };
  struct Rank {
    int number = 0;  ///< in the whole run
    bool lives = true;
    Hold hold = Hold::none;
    Phase phase = Phase::starting;
    std::int64_t step = -1;
    std::uint64_t beats = 1;
    std::int64_t collective = 0;
    std::string collective_name = {};  ///< of the one that it waits in; empty: none
    Time stopped_at = Time::max();     ///< for good
    Time slowed_until = {};            ///< whoever looks finds it stopped, though it runs between
    Ending ending = {};
    [[nodiscard]] bool hangs() const { return hold != Hold::none; }
  };
  StartId id;
  int node = 0;
  SimulatedHost* host = nullptr;
  GroupOwner* owner = nullptr;  ///< nullptr: its process has died
  std::vector<Rank> ranks;
  bool needs_lease = true;
  Time lease_end{};        ///< on the clock of the host
  bool is_ending = false;  ///< ranks end because a peer has failed, or because they are told to
  int signal = 0;          ///< of the user; 0: none
  int signals = 0;         ///< that it got
  bool stopped_as_asked = false;
  std::optional<std::size_t> failed;  ///< index of the rank that failed first
  bool blames_a_peer = false;         ///< that rank
  std::string spawn_error = {};
  std::int64_t out_of_memory_kills = 0;
  std::int64_t committed = -1;  ///< as far as its ranks know
  bool is_over = false;
  Meeting meeting = {};  ///< with the ranks of other hosts

  [[nodiscard]] bool lives() const;
};

class SimulatedRanks {
 public:
  /// Borrows all.
  SimulatedRanks(EventQueue& queue, Draws& draws, Trace& trace, const Scenario& scenario,
                 SharedDisk& disk, RunChecks& checks);

  // What an agent does to its ranks.
  /// `coordinator`: number of the one that says it.
  Group& start(GroupOwner& owner, SimulatedHost& host, int coordinator, const StartAttempt& start,
               bool needs_lease);
  void end(Group& group);
  void signal(Group& group, int number);
  void kill(Group& group);
  void answer(Group& group, const ValueAnswer& answer);
  /// Its agent has died, or its host: no more is heard of the group.
  void lose(Group& group, bool peers_notice);

  // Faults of a rank of the newest attempt; false: there is none to do it to.
  bool crash_one(bool out_of_memory);
  bool hang_one();
  void slow_one(Duration lasts);
  /// Nobody reads what ranks on the host print, so that they wait.
  void leave_unread(const SimulatedHost& host, Duration lasts);

  /// What the status pages of the group show.
  [[nodiscard]] std::vector<RankState> look(const Group& group) const;
  [[nodiscard]] bool any_lives() const { return !living_.empty(); }
  /// Attempts that have living ranks on hosts that are not paused.
  [[nodiscard]] std::set<StartId> attempts_alive() const;

 private:
  /// An attempt as its ranks see it.
  struct Training {
    Placement placement;
    std::vector<Group*> groups;  ///< by node; nullptr: its ranks have not been started
    std::int64_t step = -1;
    bool begun = false;
    std::chrono::seconds lock_wait{0};  ///< as rank 0 was told
    Time gives_up{};                    ///< then it does not wait for the lock any more
    bool locked = false;                ///< its ranks have the lock, or had it
    bool asked_to_stop = false;
    std::int64_t collectives = 0;  ///< that all ranks have done
    bool network_hangs = false;    ///< all ranks are in a collective for ever
    bool saving = false;
    bool stopping = false;  ///< no more steps: the last commit is under way, or done
  };

  void meet(Group& group);
  void begin(StartId id);
  void take_lock(StartId id);
  [[nodiscard]] bool is_locked_by_others(StartId id) const;
  void say_worlds(StartId id);
  void make_step(StartId id);
  [[nodiscard]] bool can_step(const Training& training) const;
  void wait_for_others(Training& training);
  void stop(Group::Rank& rank);
  [[nodiscard]] static bool any_hangs(const Training& training);
  [[nodiscard]] bool is_unread(const Group& group) const;
  [[nodiscard]] Group* fail_as_drawn(Training& training);
  void save(StartId id);
  void commit(StartId id, std::int64_t step);
  void exit_well(Training& training);
  void fail(Group& group, std::size_t rank, Ending ending, bool blames_a_peer);
  void tell_of_stop(const Group& group, std::size_t rank, int code) const;
  void fail_in_spawn(Group& group, std::size_t rank);
  void end_by_themselves(Group& group);
  void kill_after(Group& group, Duration delay);
  void tell_peers(const Group& group);
  void end_rank(Group& group, std::size_t rank, Ending ending);
  void settle(Group& group);
  [[nodiscard]] AttemptFacts facts(const Group& group) const;
  [[nodiscard]] Training& training_of(const Group& group) { return trainings_.at(group.id); }
  [[nodiscard]] std::optional<std::pair<Group*, std::size_t>> draw_rank();
  Duration draw(Duration most) { return draws_.between(Duration(0), most); }

  EventQueue& queue_;
  Draws& draws_;
  Trace& trace_;
  const Scenario& scenario_;
  SharedDisk& disk_;
  RunChecks& checks_;
  std::deque<Group> groups_;
  std::vector<Group*> living_;
  std::map<StartId, Training> trainings_;
  std::map<const SimulatedHost*, Time> unread_until_;
};

}  // namespace strata::launcher::simulation
