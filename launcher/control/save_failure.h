// A checkpoint that a rank could not write, with none that it could write since.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <string>

#include "core/json_writer.h"

namespace strata::launcher {

struct SaveFailure {
  std::int64_t step = 0;
  double seconds = 0;  ///< since the first failure in a row
  std::string why = {};

  bool operator==(const SaveFailure&) const = default;
  /// Says so in a line.
  [[nodiscard]] std::string describe() const {
    return fmt::format("the checkpoint of step {} could not be written: {}", step, why);
  }
  /// Writes it as an object.
  void write(JsonWriter& json) const {
    json.begin_object().member("step", step).member("seconds", seconds).member("why", why);
    json.end_object();
  }
};

}  // namespace strata::launcher
