// Measured times of instructions as a file, kept for later runs (docs/formats/profile.md).
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "machine/operation_times.h"

namespace strata::machine {

/// Times with what they depend on: processor, instruction set, device, threads, ranks, transport,
/// build. Where that differs they are measured again.
struct Profile {
  std::string of;
  OperationTimes times;
  /// Signatures of the kinds whose times come from steps; the others come from rehearsals.
  std::set<std::uint64_t> observed = {};
  bool operator==(const Profile&) const = default;

  /// Adds times of a rehearsal. A time that comes from steps stays, unless all is measured `anew`:
  /// in steps instructions take what they cost beside others.
  void add_rehearsed(const OperationTimes& rehearsed, bool anew);
  /// Adds times that come from steps. They replace all others of the same kinds.
  void add_observed(const OperationTimes& seen);
};

/// Returns pretty-printed JSON with every field.
std::string to_json(const Profile& profile);

/// True for what an earlier version of this program has kept, which cannot be used. Throws
/// DataError if the text is no profile of any version.
bool is_of_earlier_version(std::string_view text, const std::string& file);

/// Inverse of to_json. Strict: an unknown or missing key, or a value of a wrong type or out of
/// range throws DataError that names `file`, line, JSON path, what was found and what is expected.
Profile read_profile(std::string_view text, const std::string& file);

}  // namespace strata::machine
