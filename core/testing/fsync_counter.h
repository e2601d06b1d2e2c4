// Counts the fsyncs that reach the system. An object library to link into a test: its fsync comes
// before the C library's and calls the system itself.
#pragma once

#include <string>

namespace strata::tests {

/// How often the file or directory that `path` names now was synced since the last
/// forget_fsyncs(), under whatever name.
int fsyncs_of(const std::string& path);

void forget_fsyncs();

}  // namespace strata::tests
