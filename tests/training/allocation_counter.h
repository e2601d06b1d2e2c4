// Counts what a test's process asks of the allocator and of mmap, on all threads. Link
// allocation_counter.cpp into the test; under AddressSanitizer and ThreadSanitizer, which bring
// their own allocator, nothing is counted.
#pragma once

#include <string>

namespace strata::tests {

/// Whether this build can count.
bool can_count_allocations();

/// From now on; resets the count.
void start_counting_allocations();

struct AllocationCount {
  long allocations = 0;  ///< malloc and its relatives, operator new, mmap
  long in_onednn = 0;    ///< those made inside oneDNN: every execution of a primitive makes some
  std::string first;     ///< frames of the first of ours, "" when none
};
AllocationCount stop_counting_allocations();

}  // namespace strata::tests
