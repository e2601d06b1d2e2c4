// Exchange of small texts and numbers between ranks, outside of Programs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.h"

namespace strata::comm {

/// Collective over all ranks: returns the texts of all ranks, by rank. A text may hold any bytes.
/// `communicator` works on host memory; the caller needs no arena.
std::vector<std::string> gather_texts(Communicator& communicator, std::string_view mine);

/// Returns the numbers of all ranks, by rank.
std::vector<std::int64_t> gather_numbers(Communicator& communicator, std::int64_t mine);

}  // namespace strata::comm
