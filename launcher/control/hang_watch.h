// Notices that the ranks of a run get nowhere, and which of them is to blame (docs/faults.md, 7 and
// 8). A function of what looks at them tell, once a second and when a hang is due, and of the times
// of the looks.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/control/pauses.h"
#include "launcher/control/rank_state.h"

namespace strata::launcher {

struct Hang {
  enum class Kind : std::uint8_t {
    held,       ///< the rank's process is stopped or frozen
    behind,     ///< others wait in a collective that the rank has not begun
    different,  ///< ranks are in collectives of one number and different names
    in_it,      ///< all are in one collective: the network, or the device
    alone,      ///< no other rank waits for it
    ending,     ///< its work is over, done or failed, and its process does not end
    silent      ///< it has told nothing since its start, unlike others
  };
  Kind kind = Kind::alone;
  int rank = 0;                          ///< the first that is behind
  std::string host = {};                 ///< of that rank, for people; empty: the only one
  std::chrono::seconds for_how_long{0};  ///< since anything got done
  std::string where = {};                ///< where that rank is
  std::int64_t collective = 0;           ///< in which others wait; 0: none
  std::string collective_name = {};
  std::string other_name = {};    ///< different: the name that other ranks are in
  std::vector<int> waiting = {};  ///< ranks in the collective; different: in the other one
  std::vector<int> held = {};     ///< held: all ranks that are at this moment, in order

  bool operator==(const Hang&) const = default;
  /// Describes it in a line: "rank 1 on host 0 (a) has been stopped or frozen for 5 s".
  [[nodiscard]] std::string describe() const;
  /// Says what is wrong with subject(): "has been stopped or frozen".
  [[nodiscard]] std::string cause() const;
  /// The same with the time: "has been stopped or frozen for 5 s".
  [[nodiscard]] std::string timed_cause() const;
  /// Says who hangs: "rank 1 on host 0 (a)", "ranks 0, 1", "all ranks".
  [[nodiscard]] std::string subject() const;
  /// Equal for hangs with one cause, in whichever rank, and after whichever start.
  [[nodiscard]] std::string signature() const;
};

/// Returns the kind's word in reports: that of the code.
std::string_view name_of(Hang::Kind kind);

/// A run hangs if none of its ranks has got anything done for a time that depends on the phase and
/// on how long pauses in that phase usually are or are foreseen, or if a rank's process may not
/// run. A process that runs between its stops (cpulimit) is slow and not taken for a stopped one,
/// even if it does not beat meanwhile: it is in a long instruction, or waits. If no rank gets
/// anything done it is blamed as any other would be. A rank that does not beat
/// because it waits for another one is no sign of a hang while that one beats. Ranks that are done
/// count until their processes have ended. Programs that never beat may take as long as they like,
/// but may not be stopped.
class HangWatch {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Seconds = std::chrono::seconds;

  /// Time after which a rank that is stopped is one that hangs.
  static constexpr Seconds kHeld{5};
  /// Limits are at least this many times the pause that 99 of 100 do not exceed (Pauses).
  static constexpr int kLearned = 5;
  /// Looks that come later than this tell that mlaunch itself, or the host, stood still.
  static constexpr Seconds kLateLook{3};

  /// `limit`: of steps; other phases have at least as much. 0: nothing is ever a hang.
  explicit HangWatch(Seconds limit = Seconds(30)) : limit_(limit) {}

  /// Notes what ranks of one host got done when it comes, which may be long before the next look.
  void hear(TimePoint now, std::span<const RankState> of_a_host) {
    if (take_progress(of_a_host)) heard_ = now;
  }
  /// Takes a look at all ranks of the attempt; call it about once a second, and when
  /// is_due() says so. Times must not decrease. `known`: the time up to which it is known that
  /// ranks got nothing else done.
  std::optional<Hang> look(TimePoint now, std::span<const RankState> ranks, TimePoint known);
  std::optional<Hang> look(TimePoint now, std::span<const RankState> ranks) {
    return look(now, ranks, now);
  }
  /// True if a look would find a hang, as far as was heard, once so much is known.
  [[nodiscard]] bool is_due(TimePoint known) const {
    return limit_seen_ && known - std::max(heard_, last_progress_) >= *limit_seen_;
  }
  /// Forgets all that was seen: call it when ranks start again.
  void start_again();

  /// The time without progress that the ranks have in their phases.
  [[nodiscard]] Seconds limit_of(std::span<const RankState> ranks) const;

 private:
  /// Phases with limits of their own.
  enum class Stage : std::uint8_t { start, load, first_step, step, evaluate, save, end };
  static constexpr std::size_t kStages = 7;
  using Stages = std::array<bool, kStages>;  ///< which of them ranks are in
  struct Seen {
    int rank = 0;
    std::uint64_t beats = 0;
    std::uint64_t switches = 0;
    bool held = false;
    bool is_slowed = false;                    ///< it ran between two times at which it was held
    std::optional<TimePoint> held_since = {};  ///< and has not run since
  };

  [[nodiscard]] Stage stage_of(const RankState& rank) const;
  [[nodiscard]] Seconds limit_of(Stage stage) const;
  [[nodiscard]] bool take_progress(std::span<const RankState> ranks);
  [[nodiscard]] Stages stages_of(std::span<const RankState> ranks) const;
  [[nodiscard]] std::optional<Hang> stuck(TimePoint known, std::span<const RankState> ranks) const;
  [[nodiscard]] std::optional<Hang> held(TimePoint now, std::span<const RankState> ranks,
                                         Seconds limit);
  Seen& seen(int rank);

  Seconds limit_;
  std::optional<TimePoint> last_look_;
  TimePoint heard_{};                  ///< when progress was heard of last
  TimePoint last_progress_{};          ///< that a look counts from
  std::optional<Seconds> limit_seen_;  ///< at the last look; nullopt: nothing was a hang
  std::int64_t first_step_ = -1;       ///< of this attempt; -1: none has been seen
  std::vector<Seen> seen_;
  Stages stages_{};  ///< at the last look
  std::array<Pauses, kStages> pauses_;
};

}  // namespace strata::launcher
