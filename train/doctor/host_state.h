// Facts about this host's kernel that matter to a run, and its free memory. The Machine holds what
// does not change.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "machine/memory_cgroup.h"

namespace strata::train {

/// Disk windows are pinned host memory that transfers use again and again. If they are registered
/// with io_uring, the kernel need not look them up each time.
struct TransferFacts {
  std::string why_no_uring;      ///< empty: io_uring works
  bool registered = false;       ///< memory of `tried_bytes` could be registered
  std::int64_t tried_bytes = 0;  ///< 0: not tried
};

struct HostState {
  std::string instructions;  ///< instruction sets that work: "avx2 avx512"
  int online_cores = 0;
  double cpu_quota = 0;              ///< cores' worth of time in the control group; 0: no limit
  std::int64_t available_bytes = 0;  ///< bytes for new allocations; 0: unknown
  std::optional<machine::MemoryCgroup> cgroup;  ///< the tightest limit, if there is one
  std::string huge_pages;  ///< transparent ones: "always", "madvise", "never"; empty: unknown
  TransferFacts transfers;
};

/// Tests instructions in a child process, and io_uring on memory. Takes about 0.1 s.
HostState look_at_host_state();

}  // namespace strata::train
