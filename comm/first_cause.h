// Finds the first cause of an error that went from rank to rank, where each added what it did.
#pragma once

#include <string>
#include <string_view>

namespace strata::comm {

/// Returns the part of a PeerError's message that tells the first cause: "instruction 'a' failed:
/// rank 1: instruction 'b' failed: disk full" gives "rank 1: instruction 'b' failed: disk full".
/// Returns all of a message that names no other rank.
std::string first_cause(std::string_view message);

/// Returns the first cause in `message` of `rank` for other ranks to read: it begins with the
/// number of the rank at fault, or with the launcher's name.
std::string attributed(int rank, std::string_view message);

/// Returns the launcher's reason to end as a first cause, whichever rank hands it on: "mlaunch:
/// ...", or as it is if it names a rank.
std::string told_by_launcher(std::string_view reason);

}  // namespace strata::comm
