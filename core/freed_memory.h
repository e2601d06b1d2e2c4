// Sets what becomes of memory that the process frees.
#pragma once

namespace strata {

/// Keeps all freed memory for the next allocation, in place of giving it back to the system and
/// taking it again. Made for a process that plans and then ends: planning builds and drops large
/// Graphs in turn. Does nothing where the C library has no such setting.
void keep_freed_memory();

/// Gives large blocks back to the system as soon as they are freed, in place of keeping them for
/// others: memory that nobody uses would count as the process's. Made for a process that promises
/// how much memory it takes. Does nothing where the C library has no such setting.
void return_freed_memory();

}  // namespace strata
