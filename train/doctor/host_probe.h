// How well one host reaches another over TCP: a rank of each listens at a random port, as ranks do
// for their collectives, and connects to those of the others.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "core/unique_fd.h"

namespace strata::train {

/// Answers probes of other hosts, in threads of its own, until it is destroyed.
class ProbeServer {
 public:
  /// Listens at a random port of this host's `address`. Throws HostError if it cannot.
  explicit ProbeServer(const std::string& address);
  ~ProbeServer();
  ProbeServer(const ProbeServer&) = delete;
  ProbeServer& operator=(const ProbeServer&) = delete;

  [[nodiscard]] int port() const { return port_; }
  /// Begins to answer those who know the word. Call it once; who connects earlier waits.
  void serve(const std::string& word);

 private:
  void accept_all(const std::string& word);

  UniqueFd listener_;
  int port_ = 0;
  std::vector<std::jthread> connections_;  ///< of the accepting thread
  std::jthread accepting_;
};

/// A connection to another host's ProbeServer. All calls throw HostError with the reason if the
/// other host does not answer within 2 s.
class Probe {
 public:
  Probe(const std::string& address, int port, const std::string& word);

  struct Answer {
    std::chrono::nanoseconds round_trip;
    std::chrono::nanoseconds clock_ahead;  ///< of the other host's wall clock, to half a round trip
  };
  /// Returns the fastest of some questions.
  Answer ask();
  /// Sends for so long, and returns how many bytes arrived each second. Ends the connection.
  double send_for(std::chrono::milliseconds time);

 private:
  std::int64_t question();

  UniqueFd socket_;
};

}  // namespace strata::train
