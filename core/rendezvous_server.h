// The run's key-value store, inside mlaunch or rank 0 (host_meeting.h): one connected socket per
// rank, so nobody else can reach it and nothing is left in the file system. Single-threaded; a get
// of a missing key is parked.
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

  /// Connects a rank: returns its end of the socket pair.
  UniqueFd add_client(int rank);
  /// Serves a rank that has connected by itself.
  void add_client(int rank, UniqueFd connection);

  /// Readable when process() has something to do.
  [[nodiscard]] int poll_fd() const { return epoll_.get(); }

  /// Serves what came and what timed out; never blocks. Returns a line for each client that was
  /// disconnected because it broke the protocol.
  std::vector<std::string> process(TimePoint now);

  /// When process() is due although nothing comes; nullopt: not.
  [[nodiscard]] std::optional<TimePoint> next_deadline() const;

  /// A rank failed: parked and later gets of missing keys throw PeerError(reason) at the clients.
  void fail(const std::string& reason);

 private:
  struct Client {
    int rank = 0;
    UniqueFd socket;
    std::deque<StoreMessage> replies;  // waiting for room in the socket
    std::string broken;                // why it must go; empty: it need not
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
  std::map<int, Client> clients_;  // by socket
  std::vector<Parked> parked_;
  std::map<std::string, std::string> values_;
  std::map<std::string, UniqueFd> fds_;
  std::size_t stored_bytes_ = 0;
  std::optional<std::string> failure_;
};

}  // namespace strata
