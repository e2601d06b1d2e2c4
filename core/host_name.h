// The name of this host.
#pragma once

#include <string>

namespace strata {

/// Throws HostError if the system does not tell it.
std::string host_name();

}  // namespace strata
