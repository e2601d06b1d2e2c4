// How ranks of different hosts find, connect and check one another.
#include <arpa/inet.h>
#include <fmt/core.h>
#include <gloo/common/error.h>
#include <gloo/transport/tcp/device.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>

#include "comm/gloo/gloo_link.h"
#include "comm/gloo/signal_block.h"
#include "core/error.h"
#include "core/unique_fd.h"

namespace strata::comm {
namespace {

// For a connection with a rank that has come, a minute: Gloo waits five times as long as it is
// told.
constexpr std::chrono::milliseconds kGlooTimeout{12'000};
constexpr std::uint64_t kHelloTag = 4;  // unlike those of a communicator: below 4, or very large

std::string addresses_key(int rank) { return fmt::format("hosts/gloo/{}", rank); }

std::string hex_of(const std::vector<char>& bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

std::vector<char> bytes_of(std::string_view hex) {
  std::vector<char> bytes;
  for (std::size_t at = 0; at + 1 < hex.size(); at += 2)
    bytes.push_back(static_cast<char>(std::stoi(std::string(hex.substr(at, 2)), nullptr, 16)));
  return bytes;
}

/// Returns the address that `text` (as connect() below puts it: "peer=hex peer=hex ") has for
/// `rank`.
std::vector<char> address_for(int rank, int of, const std::string& text) {
  const std::string name = fmt::format(" {}=", rank);
  const std::size_t found = text.find(name);
  if (found == std::string::npos)
    throw PeerError(fmt::format(
        "rank {} put no address for rank {} into the rendezvous; do both run the same Strata, "
        "and count the same ranks on each host?",
        of, rank));
  const std::size_t begin = found + name.size();
  return bytes_of(std::string_view(text).substr(begin, text.find(' ', begin) - begin));
}

/// Returns the errno with which a socket cannot be bound to an IP address; 0: it can.
int error_of_binding(const std::string& address) {
  sockaddr_in four{};
  four.sin_family = AF_INET;
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  const bool is_four = ::inet_pton(AF_INET, address.c_str(), &four.sin_addr) == 1;
  if (!is_four && ::inet_pton(AF_INET6, address.c_str(), &six.sin6_addr) != 1) return EINVAL;
  const UniqueFd socket(::socket(is_four ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return errno;
  const int result = is_four ? ::bind(socket.get(), reinterpret_cast<sockaddr*>(&four), sizeof four)
                             : ::bind(socket.get(), reinterpret_cast<sockaddr*>(&six), sizeof six);
  return result == 0 ? 0 : errno;
}

}  // namespace

void GlooLink::open_device(const std::string& address) {
  const auto refuse = [&](const std::string& why) {
    throw ConfigError(
        fmt::format("rank {} cannot listen on {}, the address of this host for other hosts: {}; "
                    "set STRATA_HOST_ADDRESS to an IP address of this host that the others reach, "
                    "or STRATA_INTERFACE to the interface that has one",
                    rank_, address, why));
  };
  // Before Gloo does, which leaks when it fails.
  if (const int error = error_of_binding(address); error != 0) refuse(std::strerror(error));
  const gloo::transport::tcp::attr attributes(address.c_str());
  // Gloo's thread takes over the mask of this one.
  const AllSignalsBlock no_signals;
  try {
    device_ = gloo::transport::tcp::CreateDevice(attributes);
  } catch (const std::exception& error) {
    refuse(reason_of(error));
  }
}

void GlooLink::connect(const GlooPlace& place) {
  const PipeSignalBlock no_signal;
  context_ = device_->createContext(rank_, place.layout.world);
  context_->setTimeout(kGlooTimeout);
  std::string addresses = " ";
  for (const auto& peer : peers_)
    addresses += fmt::format("{}={} ", peer->rank,
                             hex_of(context_->createPair(peer->rank)->address().bytes()));
  place.store->put(addresses_key(rank_), addresses);
  for (const auto& peer : peers_) {
    const std::string theirs = place.store->get(addresses_key(peer->rank), place.start_limit);
    try {
      context_->getPair(peer->rank)->connect(address_for(rank_, peer->rank, theirs));
    } catch (const gloo::Exception& error) {
      throw PeerError(
          fmt::format("rank {} on {} ({}) cannot connect with rank {} of another host: {}; is that "
                      "rank alive, and does a firewall let the hosts connect on any port?",
                      rank_, place.host, place.address, peer->rank, reason_of(error)));
    }
  }
}

void GlooLink::greet(const GlooPlace& place) {
  const PipeSignalBlock no_signal;
  const ProofOfRun run{place.secret, place.run_id, place.attempt};
  std::vector<Hello> mine(peers_.size());
  std::vector<std::unique_ptr<Buffer>> sent, received;
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    Peer& peer = *peers_[i];
    mine[i] = {proof_of(run, rank_, peer.rank), ::getpid(), {}};
    place.host.copy(mine[i].host, sizeof mine[i].host - 1);
    received.push_back(buffer_over(&peer.hello, sizeof peer.hello));
    sent.push_back(buffer_over(&mine[i], sizeof mine[i]));
    received[i]->recv(peer.rank, kHelloTag);
    sent[i]->send(peer.rank, kHelloTag);
  }
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    Peer& peer = *peers_[i];
    try {
      received[i]->waitRecv(place.start_limit);
      sent[i]->waitSend(place.start_limit);
    } catch (const gloo::Exception& error) {
      throw PeerError(
          fmt::format("rank {} lost rank {} of another host before they had met: {}; that rank "
                      "says why, if it lives",
                      rank_, peer.rank, reason_of(error)));
    }
    peer.hello.host[sizeof peer.hello.host - 1] = '\0';
    if (!same_proof(peer.hello.proof, proof_of(run, peer.rank, rank_)))
      throw PeerError(
          fmt::format("whoever connected as rank {} has not proved that it belongs to run {}, "
                      "attempt {}: its key is another one; do all ranks have this run's "
                      "rendezvous, and does no other run use these addresses?",
                      peer.rank, place.run_id, place.attempt));
  }
}

}  // namespace strata::comm
