// The address on which a rank listens for ranks of other hosts.
#pragma once

#include <string>

#include "core/rank_context.h"

namespace strata::comm {

/// Returns an IP address of this host: that which the context names, else that of its interface, an
/// IPv4 one if there is one. Never what the host's name resolves to, since that is often an address
/// that others do not reach. Throws ConfigError that says what to set when neither is given, or
/// neither serves.
std::string listen_address(const RankContext& context);

/// Returns the name of the interface of this host that has an IP address; "": none has.
std::string interface_of(const std::string& address);

}  // namespace strata::comm
