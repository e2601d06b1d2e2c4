// Small things that ranks tell one another outside of Programs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.h"

namespace strata::comm {

/// Collective over all ranks: what each says, by rank. Any bytes, of any length. `communicator`
/// works on memory of the host; no arena of the caller is needed.
std::vector<std::string> gather_texts(Communicator& communicator, std::string_view mine);

/// The same for one number of each rank.
std::vector<std::int64_t> gather_numbers(Communicator& communicator, std::int64_t mine);

}  // namespace strata::comm
