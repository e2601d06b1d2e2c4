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

/// Gives back now what the process has freed and the C library kept, small blocks between others
/// included, by whole pages. Made for the border between planning, which leaves such blocks in all
/// heaps, and a run. Takes milliseconds. Does nothing where the C library has no such call.
void return_memory_freed_so_far();

}  // namespace strata
