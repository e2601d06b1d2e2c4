// The disk that all hosts of a simulated run share: which checkpoint is the newest, and who may
// write.
#pragma once

#include <cstdint>

#include "launcher/control/testing/virtual_time.h"

namespace strata::launcher::simulation {

struct SharedDisk {
  std::int64_t newest = -1;  ///< step of the newest checkpoint; -1: none
  Time full_until{};         ///< commits fail before
  /// Nobody gets the lock of the output folder before: that of a process that was killed lasts
  /// until its memory is freed, that of a host that is down as long as the file server keeps it.
  Time locked_until{};
};

}  // namespace strata::launcher::simulation
