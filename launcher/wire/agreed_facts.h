// What all hosts of a run must have been given alike, and how two of them are told what differs.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace strata::launcher {

struct AgreedFacts {
  struct Option {
    std::string name;
    std::string value;  ///< empty: it is not given
    bool operator==(const Option&) const = default;
  };
  std::string build;                 ///< as own_build() has it
  std::vector<Option> options = {};  ///< of mlaunch
  std::vector<std::string> command;  ///< of the ranks
};

/// Why a host may not take part: one line for it, and one for the run's coordinator.
struct Refusal {
  std::string to_agent;
  std::string to_coordinator;
  int exit_code = 78;     ///< that the agent ends with
  bool may_wait = false;  ///< the agent is of another run, whose coordinator may still come
};

/// Says the same to both. `say` gets the words of one side: an object with `them` (the agent's host
/// as subject), `us` (the coordinator's), `on_them` and `on_us`.
template <typename Say>
Refusal refusal_of(const Say& say) {
  struct Words {
    const char *them, *us, *on_them, *on_us;
  };
  return {say(Words{"this host", "the coordinator", "on this host", "there"}),
          say(Words{"it", "this host", "there", "on this host"})};
}

/// Returns what differs first between an agent's facts and the coordinator's; nullopt: nothing.
std::optional<Refusal> difference(const AgreedFacts& theirs, const AgreedFacts& own);

}  // namespace strata::launcher
