// Counts how often a test's process calls the allocator and mmap, on all threads. Link
// allocation_counter.cpp into the test. Under AddressSanitizer and ThreadSanitizer, which bring
// their own allocators, nothing is counted.
//
// "Ours" are the allocations of this repository and of the C and C++ runtimes. Those inside other
// libraries (oneDNN, Open MPI and its plugins) are counted separately.
#pragma once

#include <string>

namespace strata::tests {

/// True if this build can count.
bool can_count_allocations();

/// Resets the count and starts counting. Libraries loaded later count as ours.
void start_counting_allocations();

struct AllocationCount {
  long allocations = 0;   ///< calls of malloc and its relatives, operator new, mmap by our code
  long in_libraries = 0;  ///< calls inside libraries that are not ours
  std::string first;      ///< stack frames of our first one, "" when there is none
};
AllocationCount stop_counting_allocations();

}  // namespace strata::tests
