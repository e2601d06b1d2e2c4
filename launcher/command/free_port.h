// A TCP port for MASTER_PORT, at which ranks that use torch meet. Strata's own ranks need none.
#pragma once

namespace strata::launcher {

/// Returns a port that nobody has bound. It is below those that the kernel assigns by itself, since
/// it may take minutes until a rank binds it. Throws HostError when none is found.
int find_free_port();

}  // namespace strata::launcher
