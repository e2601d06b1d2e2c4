// Counts the steps of which a log has no record, for the words about it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace strata::train {

class MissingSteps {
 public:
  /// Takes whether the record of `step` was written; steps come in their order. Returns the first
  /// time that a record is written after some that were not: "written again from step 17 on; 12
  /// steps are missing: 5 to 16"; else "".
  std::string take(std::int64_t step, bool is_written);
  /// "14 steps are missing: 5 to 16, 20, 25"; "" if none is.
  [[nodiscard]] std::string text() const;

 private:
  struct Stretch {
    std::int64_t first = 0, last = 0;
  };
  std::vector<Stretch> stretches_;
  std::int64_t count_ = 0;
  bool is_writing_ = true;
};

}  // namespace strata::train
