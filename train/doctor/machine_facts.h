// What the processor, the memory and the kernel of this machine offer, as far as a run cares.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "train/run/memory_cgroup.h"
#include "train/run/numa.h"

namespace strata::train {

struct CoreFacts {
  int online = 0;
  int allowed = 0;   ///< affinity of this process: what a run's threads use
  double quota = 0;  ///< cores' worth of time that a control group grants; 0: no limit
};

struct MemoryFacts {
  std::int64_t total_bytes = 0;
  std::int64_t available_bytes = 0;    ///< to new allocations; 0: unknown
  std::optional<MemoryCgroup> cgroup;  ///< the tightest limit, where there is one
};

/// Disk windows are pinned host memory that transfers use over and over; registered with io_uring
/// they are not looked up each time.
struct TransferFacts {
  std::string why_no_uring;           ///< empty: io_uring works
  std::int64_t locked_limit_bytes{};  ///< RLIMIT_MEMLOCK; kUnlimitedMemory: none
  bool registered = false;            ///< memory of `tried_bytes` could be registered
  std::int64_t tried_bytes = 0;       ///< 0: not tried
};

struct MachineFacts {
  std::string processor;
  std::string instructions;  ///< sets that work: "avx2 avx512"
  CoreFacts cores;
  MemoryFacts memory;
  std::vector<NumaNode> numa_nodes;  ///< with cores that this process may use; empty: unknown
  std::string huge_pages;  ///< transparent ones: "always", "madvise", "never"; empty: unknown
  TransferFacts transfers;
};

/// Tries what can be tried: instructions in a child process, io_uring on memory. About 0.1 s.
MachineFacts find_machine_facts();

}  // namespace strata::train
