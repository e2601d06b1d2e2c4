// The run's key-value store, inside mlaunch or rank 0 (host_meeting.h). Each rank has a connected
// socket of its own, so nobody else can reach the store and nothing is left in the file system.
// Single-threaded; a get of a missing key is parked until the key is put.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/shared_values.h"
#include "core/store_message.h"
#include "core/unique_fd.h"

namespace strata {

class RendezvousServer {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  static constexpr std::size_t kMaxStoredBytes = std::size_t{64} << 20;
  static constexpr std::size_t kMaxStoredFds = 4096;
  static constexpr std::size_t kMaxOpenRequests = 1024;  ///< per client

  RendezvousServer();

  /// Connects a rank and returns its end of the socket pair.
  UniqueFd add_client(int rank);
  /// Serves a rank over a connection that it opened itself.
  void add_client(int rank, UniqueFd connection);

  /// Descriptor that is readable when process() has something to do.
  [[nodiscard]] int poll_fd() const { return epoll_.get(); }

  /// Serves messages that arrived and requests that timed out; never blocks. Returns one line for
  /// each client that it disconnected because the client broke the protocol.
  std::vector<std::string> process(TimePoint now);

  /// Time at which process() is due even if nothing arrives; nullopt: no such time.
  [[nodiscard]] std::optional<TimePoint> next_deadline() const;

  /// Call it before any client asks: from now on values, but for those of kKeyOfHost, are those of
  /// all hosts. Requests about them are left to take_requests().
  void share_values() { shares_ = true; }
  /// Returns the requests about shared values that process() has found.
  std::vector<ValueRequest> take_requests() { return std::exchange(requests_, {}); }
  /// Hands an answer to the rank that waits for it, if one does.
  void answer(const ValueAnswer& answer);

  /// Call when a rank failed: gets of missing keys, parked or later, throw PeerError(reason).
  void fail(const std::string& reason);

 private:
  struct Client {
    int rank = 0;
    UniqueFd socket;
    std::deque<StoreMessage> replies;  // wait for room in the socket
    std::string broken;                // reason to disconnect it; empty: none
  };
  struct Parked {
    int socket;
    std::uint64_t id;
    bool wants_fd;
    std::string key;
    TimePoint deadline;
  };

  /// Who waits for the answer to a request about a shared value.
  struct Asking {
    int socket;
    std::uint64_t id;  ///< in the client's request
  };

  void read_from(Client& client, TimePoint now);
  void handle(Client& client, StoreMessage message, TimePoint now);
  void put(Client& client, StoreMessage message);
  void ask(Client& client, StoreMessage message);
  [[nodiscard]] bool is_shared(const StoreMessage& message) const;
  void park_or_answer(Client& client, const StoreMessage& message, TimePoint now);
  std::optional<StoreMessage> stored(const std::string& key, bool wants_fd) const;
  void answer_parked(const std::string& key, bool is_fd);
  void expire(TimePoint now);
  void reply(Client& client, std::uint64_t id, StoreMessage message);
  void flush(Client& client);
  void disconnect(int socket);
  std::vector<std::string> disconnect_broken();

  UniqueFd epoll_;
  std::map<int, Client> clients_;  // key: the socket
  std::vector<Parked> parked_;
  bool shares_ = false;
  std::uint64_t asked_ = 0;                 ///< number of requests about shared values
  std::map<std::uint64_t, Asking> asking_;  ///< key: ValueRequest::id
  std::vector<ValueRequest> requests_;
  std::map<std::string, std::string> values_;
  std::map<std::string, UniqueFd> fds_;
  std::size_t stored_bytes_ = 0;
  std::optional<std::string> failure_;
};

}  // namespace strata
