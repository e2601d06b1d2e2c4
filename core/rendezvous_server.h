// The run's key-value store, inside mlaunch or rank 0 (host_meeting.h). Each rank has a connected
// socket of its own, so nobody else can reach the store and nothing is left in the file system.
// Single-threaded; a get of a missing key is parked until the key is put.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

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

  void read_from(Client& client, TimePoint now);
  void handle(Client& client, StoreMessage message, TimePoint now);
  void put(Client& client, StoreMessage message);
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
  std::map<std::string, std::string> values_;
  std::map<std::string, UniqueFd> fds_;
  std::size_t stored_bytes_ = 0;
  std::optional<std::string> failure_;
};

}  // namespace strata
