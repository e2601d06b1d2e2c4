// The disk that all hosts of a simulated run share: which checkpoint is the newest.
#pragma once

#include <cstdint>

#include "launcher/control/testing/virtual_time.h"

namespace strata::launcher::simulation {

struct SharedDisk {
  std::int64_t newest = -1;  ///< step of the newest checkpoint; -1: none
  Time full_until{};         ///< commits fail before
};

}  // namespace strata::launcher::simulation
