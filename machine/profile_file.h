// Measured times of instructions as a file, kept for later runs (docs/formats/profile.md).
#pragma once

#include <string>
#include <string_view>

#include "machine/operation_times.h"

namespace strata::machine {

/// Times with what they depend on: processor, device, threads, ranks, transport, build. Where that
/// differs they are measured again.
struct Profile {
  std::string of;
  OperationTimes times;
  bool operator==(const Profile&) const = default;
};

/// Returns pretty-printed JSON with every field.
std::string to_json(const Profile& profile);

/// Inverse of to_json. Strict: an unknown or missing key, or a value of a wrong type or out of
/// range throws DataError that names `file`, line, JSON path, what was found and what is expected.
Profile read_profile(std::string_view text, const std::string& file);

}  // namespace strata::machine
