// The ranks' side of the rendezvous (rendezvous_server.h).
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "core/rank_context.h"
#include "core/store_message.h"
#include "core/unique_fd.h"

namespace strata {

/// KeyValueStore over one connected SOCK_SEQPACKET socket. Any number of threads may call at once;
/// a thread that waits in a get delays no other. Keys of more than 1,024 bytes with the prefix, and
/// values of more than 64 KiB, throw InvalidArgument. Throws PeerError when a rank failed or the
/// server is gone.
class SocketStore : public KeyValueStore {
 public:
  /// `prefix` (run id and attempt) is put before every key.
  SocketStore(UniqueFd socket, std::string prefix);

  void put(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key, std::chrono::milliseconds timeout) override;
  void put_fd(const std::string& key, int fd) override;
  UniqueFd get_fd(const std::string& key, std::chrono::milliseconds timeout) override;
  void drop_fd(const std::string& key) override;

 private:
  StoreMessage request(StoreMessage::Kind kind, const std::string& key) const;
  StoreMessage ask(StoreMessage message);
  StoreMessage wait_for_reply(std::uint64_t id);
  void receive_one(std::unique_lock<std::mutex>& lock);

  const UniqueFd socket_;
  const std::string prefix_;
  std::mutex mutex_;
  std::condition_variable reply_came_;
  std::uint64_t next_id_ = 1;  // guarded by mutex_, as is everything below
  bool receiving_ = false;     // true: one waiting thread reads replies for all
  bool closed_ = false;
  std::map<std::uint64_t, StoreMessage> replies_;
};

}  // namespace strata
