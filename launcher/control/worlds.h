// How many ranks a run may have, and which of its hosts get them.
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace strata::launcher {

class Worlds {
 public:
  struct Range {
    int least = 1;
    int most = std::numeric_limits<int>::max();
  };
  /// `least_hosts`: so many hosts have ranks, whatever the number of ranks.
  explicit Worlds(Range range, int least_hosts = 1) : range_(range), least_hosts_(least_hosts) {}

  /// What rank 0 says.
  struct Said {
    std::vector<int> numbers;  ///< of ranks that its configuration admits
    /// Ranks save and stop when they are sent SIGUSR1, so that they can start again as more.
    bool may_grow = true;
    bool operator==(const Said&) const = default;
  };

  /// Until rank 0 has said which are, all numbers are admitted, and the run does not grow.
  void admit(Said said);
  [[nodiscard]] bool are_said() const { return are_said_; }
  [[nodiscard]] bool may_grow() const { return are_said_ && said_.may_grow; }
  [[nodiscard]] bool admits(int world) const;
  /// Returns the ranks of each host, 0 for one that gets none: as many as its slots, in order,
  /// until the largest world is reached that is admitted and that the hosts hold; fewer where else
  /// not enough hosts would have a rank. Nullopt: they hold no world, or are too few.
  [[nodiscard]] std::optional<std::vector<int>> place(std::span<const int> slots) const;
  /// Lists what is admitted, for people: "1, 2 or 4 ranks".
  [[nodiscard]] std::string describe() const;

 private:
  /// The smallest world that the options allow.
  [[nodiscard]] int least() const;

  const Range range_;
  const int least_hosts_;
  bool are_said_ = false;
  Said said_;  ///< numbers ascending
};

/// Reads what rank 0 says: numbers above 0 with a space between, after "keep " if it may not grow.
/// Nullopt for anything else.
std::optional<Worlds::Said> parse_worlds(std::string_view text);

}  // namespace strata::launcher
