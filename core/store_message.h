// Messages between a rank's store (core/socket_store.h) and the rendezvous server: each is one
// packet on a SOCK_SEQPACKET Unix socket, with at most one file descriptor. They never leave the
// host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "core/unique_fd.h"

namespace strata {

struct StoreMessage {
  enum class Kind : std::uint32_t {
    put = 1,  // requests from here
    get,
    put_fd,
    get_fd,
    drop_fd,
    answer = 16,  // replies from here; in the last two, `value` is the reason
    timed_out,
    refused,  ///< the request breaks a limit
    failed,   ///< a rank of the run failed
  };

  static constexpr std::size_t kMaxKeyBytes = 1024;
  static constexpr std::size_t kMaxValueBytes = 64 * 1024;

  Kind kind = Kind::answer;
  std::uint64_t id = 0;  ///< chosen by the sender of the request, repeated in the reply
  std::int64_t timeout_ms = 0;
  std::string key;
  std::string value;
  UniqueFd fd;
};

/// Sends one packet. Returns false when a non-blocking socket is full or the other side is gone
/// (the next receive tells which); other failures throw HostError.
bool send_message(int socket, const StoreMessage& message);

enum class ReceiveStatus { received, would_block, closed };

/// Receives one packet into `message`. A packet that is not a well-formed message throws DataError.
ReceiveStatus receive_message(int socket, StoreMessage& message);

}  // namespace strata
