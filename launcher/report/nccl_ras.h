// What NCCL itself says of a run that hangs: its RAS service (NCCL 2.24 and later) knows of each
// communicator how many operations each rank has begun.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace strata::launcher {

/// At most so many bytes of an answer are kept.
inline constexpr std::size_t kMostRasBytes = std::size_t{64} << 10;

/// Returns where processes of this host serve it: NCCL_RAS_ADDR, else "localhost:28028".
std::string ras_address();

/// Asks the service at `address` ("localhost", or a numeric one) and `port`, and returns its lines
/// as they came; "" if nothing answers in its protocol, or the address is none. Takes `limit` at
/// most, which must exceed the second for which the service itself waits for other processes; what
/// came until then, or the first kMostRasBytes, end with a line that says so.
std::string nccl_status(const std::string& address, int port, std::chrono::milliseconds limit);

}  // namespace strata::launcher
