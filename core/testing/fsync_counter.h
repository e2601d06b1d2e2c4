// Counts successful fsyncs. Link it into a test as an object library: its fsync comes before the C
// library's and makes the system call itself.
#pragma once

#include <string>

namespace strata::tests {

/// Number of syncs since the last forget_fsyncs() of what `path` names now, under any name.
int fsyncs_of(const std::string& path);

void forget_fsyncs();

}  // namespace strata::tests
