// Sets what becomes of memory that the process frees.
#pragma once

namespace strata {

/// Keeps all freed memory for the next allocation, in place of giving it back to the system and
/// taking it again. Made for a process that plans and then ends: planning builds and drops large
/// Graphs in turn. Does nothing where the C library has no such setting.
void keep_freed_memory();

}  // namespace strata
