// What gRPC itself would print.
#pragma once

#include <grpc/support/log.h>

namespace strata::launcher {

/// Drops gRPC's lines, for the whole process: broken connections are told as events, and its lines
/// would stand among those of ranks.
inline void silence_grpc() {
  gpr_set_log_function([](gpr_log_func_args*) {});
}

}  // namespace strata::launcher
