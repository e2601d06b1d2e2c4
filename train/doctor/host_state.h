// What the kernel of this host offers and what is left of its memory now, as far as a run cares;
// what does not change stands in the Machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "machine/memory_cgroup.h"

namespace strata::train {

/// Disk windows are pinned host memory that transfers use over and over; registered with io_uring
/// they are not looked up each time.
struct TransferFacts {
  std::string why_no_uring;      ///< empty: io_uring works
  bool registered = false;       ///< memory of `tried_bytes` could be registered
  std::int64_t tried_bytes = 0;  ///< 0: not tried
};

struct HostState {
  std::string instructions;  ///< sets that work: "avx2 avx512"
  int online_cores = 0;
  double cpu_quota = 0;  ///< cores' worth of time that a control group grants; 0: no limit
  std::int64_t available_bytes = 0;             ///< to new allocations; 0: unknown
  std::optional<machine::MemoryCgroup> cgroup;  ///< the tightest limit, where there is one
  std::string huge_pages;  ///< transparent ones: "always", "madvise", "never"; empty: unknown
  TransferFacts transfers;
};

/// Tries what can be tried: instructions in a child process, io_uring on memory. About 0.1 s.
HostState look_at_host_state();

}  // namespace strata::train
