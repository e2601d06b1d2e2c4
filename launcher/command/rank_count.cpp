#include "launcher/command/rank_count.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/error.h"
#include "core/integer.h"

namespace strata::launcher {

int parse_rank_count(const std::string& typed, const std::string& value,
                     const HostDevices& devices) {
  if (value == "cpu")
    throw InvalidArgument(typed +
                          ": a rank of train uses many cores, so nobody wants one for each; "
                          "say how many ranks a host gets");
  if (value == "gpu" || value == "auto") {
    const auto gpus = static_cast<int>(choose_devices({.typed = typed}, devices).size());
    if (gpus == 0 && value == "gpu") throw InvalidArgument(typed + ": this host shows no GPU");
    return std::max(gpus, 1);
  }
  const auto number = parse_integer(value);
  if (!number || *number < 1 || *number > kMaxRanks)
    throw InvalidArgument(fmt::format("{}: expected an integer from 1 to {}", typed, kMaxRanks));
  return static_cast<int>(*number);
}

}  // namespace strata::launcher
