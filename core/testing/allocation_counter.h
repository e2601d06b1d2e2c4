// Counts what a test's process asks of the allocator and of mmap, on all threads. Link
// allocation_counter.cpp into the test; under AddressSanitizer and ThreadSanitizer, which bring
// their own allocator, nothing is counted.
//
// Ours is what this repository and the C and C++ runtimes ask for. What a library that they call
// (oneDNN, Open MPI and its plugins) asks for inside itself is counted apart.
#pragma once

#include <string>

namespace strata::tests {

/// Whether this build can count.
bool can_count_allocations();

/// Resets the count, and counts from now on. Libraries loaded later count as ours.
void start_counting_allocations();

struct AllocationCount {
  long allocations = 0;   ///< malloc and its relatives, operator new, mmap
  long in_libraries = 0;  ///< those made inside libraries that are not ours
  std::string first;      ///< frames of the first of ours, "" when none
};
AllocationCount stop_counting_allocations();

}  // namespace strata::tests
