// What NCCL reads of the environment and a run decides otherwise.
#pragma once

#include <string>

namespace strata::comm {

/// Lets NCCL's sockets use `network_interface`, unless the user has set NCCL_SOCKET_IFNAME. Where
/// it is "" (the user names none) NCCL chooses, or its own /etc/nccl.conf does: the variable would
/// overrule that file. Call it before the first call of NCCL, while no other thread reads the
/// environment. Throws ConfigError where NCCL_COMM_ID is set: ranks meet by their communicator of
/// the host, and an address of the user's would bring them together with others.
void prepare_nccl_environment(const std::string& network_interface);

}  // namespace strata::comm
