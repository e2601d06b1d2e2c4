// A TCP port for MASTER_PORT, at which ranks that use torch meet. Strata's own need none.
#pragma once

namespace strata::launcher {

/// A port of the loopback interface that nobody has bound, below those that the kernel hands out by
/// itself: it may take minutes until a rank binds it. Throws HostError when none is found.
int find_free_port();

}  // namespace strata::launcher
