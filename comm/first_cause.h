// Errors travel from rank to rank, and each adds what it was doing. Who reads them wants the first.
#pragma once

#include <string>
#include <string_view>

namespace strata::comm {

/// The part of a PeerError's message that tells what went wrong first:
/// "instruction 'a' failed: rank 1: instruction 'b' failed: disk full" gives
/// "rank 1: instruction 'b' failed: disk full". A message that names no other rank stays whole.
std::string first_cause(std::string_view message);

/// The first cause in `message` of `rank`, as other ranks shall read it: it begins with the number
/// of the rank it is about.
std::string attributed(int rank, std::string_view message);

}  // namespace strata::comm
