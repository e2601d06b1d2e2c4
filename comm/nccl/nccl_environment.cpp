#include "comm/nccl/nccl_environment.h"

#include <cstdlib>

#include "core/error.h"
#include "core/system_call.h"

namespace strata::comm {

void prepare_nccl_environment(const std::string& network_interface) {
  if (const char* id = std::getenv("NCCL_COMM_ID"); id != nullptr)
    throw ConfigError("NCCL_COMM_ID=" + std::string(id) +
                      " names an address at which ranks would meet, but the ranks of this run find "
                      "one another without it; unset NCCL_COMM_ID");
  if (network_interface.empty() || std::getenv("NCCL_SOCKET_IFNAME") != nullptr) return;
  // "=": the whole name, not the beginning of one.
  checked(::setenv("NCCL_SOCKET_IFNAME", ("=" + network_interface).c_str(), 1), "setenv");
}

}  // namespace strata::comm
