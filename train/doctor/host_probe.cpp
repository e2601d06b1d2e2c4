#include "train/doctor/host_probe.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <optional>
#include <thread>

#include "core/addresses.h"
#include "core/error.h"
#include "core/system_call.h"

namespace strata::train {
namespace {

using std::chrono::nanoseconds;
using Clock = std::chrono::steady_clock;

constexpr int kPatienceMs = 2000;
constexpr int kQuestions = 20;
constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
constexpr char kAsk = 'a', kSend = 's';

void set_option(const UniqueFd& socket, int level, int name, const void* value, socklen_t bytes) {
  checked(::setsockopt(socket.get(), level, name, value, bytes), "setting up a socket");
}

/// Lets calls end after kPatienceMs, and small messages go at once.
void prepare(const UniqueFd& socket) {
  const timeval patience{kPatienceMs / 1000, 0};
  const int one = 1;
  set_option(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  set_option(socket, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

/// Reads exactly so many bytes; returns false at the end of the stream, or without an answer.
bool read_exactly(const UniqueFd& socket, void* bytes, std::size_t count) {
  return ::recv(socket.get(), bytes, count, MSG_WAITALL) == static_cast<ssize_t>(count);
}

bool write_exactly(const UniqueFd& socket, const void* bytes, std::size_t count) {
  return ::send(socket.get(), bytes, count, MSG_NOSIGNAL) == static_cast<ssize_t>(count);
}

std::int64_t wall_clock_ns() {
  return nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
}

[[noreturn]] void give_up(int error) {
  throw HostError(error == EAGAIN || error == 0 ? "no answer within 2 s" : std::strerror(error));
}

/// Counts what arrives until the other side has sent all, and tells it.
void receive_all(const UniqueFd& socket) {
  std::vector<char> piece(kPieceBytes);
  std::int64_t bytes = 0;
  for (ssize_t count = 1; count > 0; bytes += count) {
    count = ::recv(socket.get(), piece.data(), piece.size(), 0);
    if (count < 0) return;  // the other side is gone
  }
  (void)write_exactly(socket, &bytes, sizeof bytes);
}

/// Answers one connection until it ends.
void answer(const UniqueFd& socket, const std::string& word) {
  std::string told(word.size(), '\0');
  if (!read_exactly(socket, told.data(), told.size()) || told != word) return;
  for (char request = 0; read_exactly(socket, &request, 1);) {
    if (request == kSend) return receive_all(socket);
    const std::int64_t clock = wall_clock_ns();
    if (request != kAsk || !write_exactly(socket, &clock, sizeof clock)) return;
  }
}

/// A thread's whole work: nothing may leave it.
void serve_one(const UniqueFd& socket, const std::string& word) noexcept {
  try {
    prepare(socket);
    answer(socket, word);
  } catch (const std::exception&) {  // the connection ends, which its other side tells
  }
}

}  // namespace

ProbeServer::ProbeServer(const std::string& address) {
  const AddressList place = find_addresses(address, 0, AI_NUMERICHOST);
  listener_ = UniqueFd(
      checked(::socket(place->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0), "making a socket"));
  if (::bind(listener_.get(), place->ai_addr, place->ai_addrlen) != 0 ||
      ::listen(listener_.get(), SOMAXCONN) != 0)
    throw HostError(fmt::format("cannot listen at {}: {}", address, std::strerror(errno)));
  sockaddr_storage own{};
  socklen_t length = sizeof own;
  checked(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&own), &length),
          "reading a port");
  port_ = ntohs(own.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(own).sin6_port
                                          : reinterpret_cast<sockaddr_in&>(own).sin_port);
}

ProbeServer::~ProbeServer() {
  (void)::shutdown(listener_.get(), SHUT_RDWR);  // wakes the thread that accepts
  if (accepting_.joinable()) accepting_.join();
}

void ProbeServer::serve(const std::string& word) {
  accepting_ = std::jthread([this, word] { accept_all(word); });
}

void ProbeServer::accept_all(const std::string& word) {
  for (;;) {
    UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket.valid()) {
      if (errno == EINVAL || errno == EBADF) return;      // the destructor has ended it
      constexpr std::chrono::milliseconds kForMeans{10};  // descriptors or memory come back
      if (errno != EINTR && errno != ECONNABORTED) std::this_thread::sleep_for(kForMeans);
      continue;
    }
    // A connection that cannot be served is closed, and who has made it says so.
    try {
      connections_.emplace_back([word, socket = std::move(socket)] { serve_one(socket, word); });
    } catch (const std::exception&) {  // the system has no thread for it, or no memory
    }
  }
}

Probe::Probe(const std::string& address, int port, const std::string& word) {
  const AddressList place = find_addresses(address, port, AI_NUMERICHOST);
  socket_ = UniqueFd(
      checked(::socket(place->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0), "making a socket"));
  prepare(socket_);  // SO_SNDTIMEO ends connect, too
  if (::connect(socket_.get(), place->ai_addr, place->ai_addrlen) != 0)
    give_up(errno == EINPROGRESS ? EAGAIN : errno);
  if (!write_exactly(socket_, word.data(), word.size())) give_up(errno);
}

/// Returns the other host's wall clock.
std::int64_t Probe::question() {
  std::int64_t clock = 0;
  errno = 0;
  if (!write_exactly(socket_, &kAsk, 1) || !read_exactly(socket_, &clock, sizeof clock))
    give_up(errno);
  return clock;
}

Probe::Answer Probe::ask() {
  std::optional<Answer> best;
  for (int i = 0; i < kQuestions; ++i) {
    const auto begin = Clock::now();
    const std::int64_t own = wall_clock_ns();
    const std::int64_t its = question();
    const nanoseconds trip = Clock::now() - begin;
    if (!best || trip < best->round_trip) best = Answer{trip, nanoseconds(its - own) - trip / 2};
  }
  return *best;
}

double Probe::send_for(std::chrono::milliseconds time) {
  const std::vector<char> piece(kPieceBytes);
  const auto begin = Clock::now();
  errno = 0;
  if (!write_exactly(socket_, &kSend, 1)) give_up(errno);
  while (Clock::now() < begin + time)
    if (!write_exactly(socket_, piece.data(), piece.size())) give_up(errno);
  std::int64_t arrived = 0;
  if (::shutdown(socket_.get(), SHUT_WR) != 0 || !read_exactly(socket_, &arrived, sizeof arrived))
    give_up(errno);
  return static_cast<double>(arrived) / std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace strata::train
