// How many ranks a host gets, as users and schedulers write it.
#pragma once

#include <string>

#include "launcher/command/device_choice.h"

namespace strata::launcher {

inline constexpr int kMaxRanks = 1024;  ///< of a host

/// Parses a number of ranks, or torchrun's words: "gpu" is one for each GPU that mlaunch sees,
/// "auto" the same where there are any, else one. `typed` begins messages. Throws InvalidArgument
/// for other words, and for "gpu" without a GPU.
int parse_rank_count(const std::string& typed, const std::string& value,
                     const HostDevices& devices);

}  // namespace strata::launcher
