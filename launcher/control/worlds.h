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
  explicit Worlds(Range range) : range_(range) {}

  /// Rank 0 says which numbers of ranks its configuration admits; until then all are.
  void admit(std::vector<int> numbers);
  [[nodiscard]] bool are_said() const { return are_said_; }
  [[nodiscard]] bool admits(int world) const;
  /// Returns the ranks of each host, 0 for one that gets none: as many as its slots, in order,
  /// until the largest world is reached that is admitted and that the hosts hold. Nullopt: they
  /// hold none.
  [[nodiscard]] std::optional<std::vector<int>> place(std::span<const int> slots) const;
  /// Lists what is admitted, for people: "1, 2 or 4 ranks".
  [[nodiscard]] std::string describe() const;

 private:
  const Range range_;
  bool are_said_ = false;
  std::vector<int> admitted_;  ///< ascending
};

/// Reads what rank 0 says: numbers above 0 with a space between. Nullopt for anything else.
std::optional<std::vector<int>> parse_worlds(std::string_view text);

}  // namespace strata::launcher
