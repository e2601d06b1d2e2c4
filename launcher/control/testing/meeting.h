// How the ranks of a simulated host find those of other hosts: through values that all hosts of
// the attempt share, before the first step.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/shared_values.h"

namespace strata::launcher::simulation {

/// What the ranks of one host ask for, and what they are told.
class Meeting {
 public:
  Meeting() = default;
  Meeting(int attempt, int node, int hosts) : attempt_(attempt), node_(node), hosts_(hosts) {}

  /// Returns the requests with which ranks begin: to put where they are, and to get where others
  /// are. Every attempt has the same keys and numbers of requests.
  std::vector<ValueRequest> begin();
  ValueRequest put(const std::string& key, const std::string& value);
  /// Throws CheckFailed for an answer that nobody waits for, and for a value of another attempt.
  void take(const ValueAnswer& answer);

  /// All that was asked has been answered.
  [[nodiscard]] bool is_over() const { return asked_ > 0 && waiting_.empty(); }
  /// A request was answered with the failure of a rank or a host.
  [[nodiscard]] bool has_failed() const { return has_failed_; }

 private:
  ValueRequest ask(ValueRequest request);
  [[nodiscard]] std::string value_of(int node) const;

  int attempt_ = 0;
  int node_ = 0;
  int hosts_ = 1;
  std::uint64_t asked_ = 0;
  std::map<std::uint64_t, std::string> waiting_;  ///< for this value, by the request's number
  bool has_failed_ = false;
};

}  // namespace strata::launcher::simulation
