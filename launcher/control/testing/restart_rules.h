// When a run may start again, said once more than in RestartPolicy and from what its reports tell:
// the one is checked against the other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launcher/control/coordinator.h"
#include "launcher/control/restart_policy.h"

namespace strata::launcher::simulation {

class RestartRules {
 public:
  explicit RestartRules(RestartPolicy::Limits limits) : limits_(limits) {}

  /// An agent told the coordinator of a checkpoint, and of the step that a rank is in.
  void learn(std::int64_t committed, std::int64_t step) {
    known_ = std::max(known_, committed);
    last_step_ = std::max(last_step_, step);
  }
  /// Call it for the report of each attempt; returns why no further one may begin, if so. All of a
  /// simulated run lies within an hour.
  std::optional<std::string> after(const AttemptReport& report);
  /// True if ranks of the last attempt could not begin, after others had made steps.
  [[nodiscard]] bool was_kept_out() const { return !ends_.empty() && ends_.back().kept_out; }

 private:
  struct End {
    int exit_code = 0;
    bool could_start = true;
    bool out_of_memory = false;
    bool kept_out = false;
    std::int64_t step = -1;
    std::string what = {};
    std::int64_t committed = -1;
  };
  [[nodiscard]] End judge(const AttemptReport& report) const;
  [[nodiscard]] bool are_alike(const End& a, const End& b) const;

  RestartPolicy::Limits limits_;
  std::vector<End> ends_;
  std::int64_t known_ = -1;
  std::int64_t last_step_ = -1;
};

}  // namespace strata::launcher::simulation
