#include "core/rendezvous_server.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <utility>

#include "core/error.h"
#include "core/system_call.h"

namespace strata {
namespace {

using Kind = StoreMessage::Kind;

constexpr int kMessagesPerTurn = 16;  // other clients, output and signals get their turn then

StoreMessage reply_of(Kind kind, std::string value = {}) {
  StoreMessage message;
  message.kind = kind;
  message.value = std::move(value);
  return message;
}

std::chrono::milliseconds bounded_timeout(std::int64_t timeout_ms) {
  constexpr std::int64_t kYear = std::int64_t{365} * 24 * 3600 * 1000;
  return std::chrono::milliseconds(std::clamp<std::int64_t>(timeout_ms, 0, kYear));
}

}  // namespace

RendezvousServer::RendezvousServer()
    : epoll_(checked(::epoll_create1(EPOLL_CLOEXEC), "creating the rendezvous' epoll")) {}

UniqueFd RendezvousServer::add_client(int rank) {
  std::array<int, 2> ends{};
  checked(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()),
          "connecting a rank to the rendezvous");
  UniqueFd own(ends[0]);
  UniqueFd theirs(ends[1]);
  add_client(rank, std::move(own));
  return theirs;
}

void RendezvousServer::add_client(int rank, UniqueFd connection) {
  const int socket = connection.get();
  const int flags = checked(::fcntl(socket, F_GETFL), "reading socket flags");
  checked(::fcntl(socket, F_SETFL, flags | O_NONBLOCK), "setting socket flags");
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = socket;
  checked(::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket, &event), "watching a rank");
  clients_.emplace(socket, Client{rank, std::move(connection), {}, {}});
}

std::vector<std::string> RendezvousServer::process(TimePoint now) {
  std::array<epoll_event, 64> events{};
  const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  if (count < 0 && errno != EINTR) throw_system_error("waiting at the rendezvous");
  for (int i = 0; i < count; ++i) {
    const auto found = clients_.find(events[i].data.fd);
    if (found == clients_.end()) continue;
    if ((events[i].events & EPOLLOUT) != 0) flush(found->second);
    if ((events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) == 0) continue;
    try {
      read_from(found->second, now);
    } catch (const Error& error) {
      found->second.broken = error.what();
    }
  }
  expire(now);
  return disconnect_broken();
}

std::optional<RendezvousServer::TimePoint> RendezvousServer::next_deadline() const {
  const auto soonest =
      std::min_element(parked_.begin(), parked_.end(),
                       [](const Parked& a, const Parked& b) { return a.deadline < b.deadline; });
  if (soonest == parked_.end()) return std::nullopt;
  return soonest->deadline;
}

void RendezvousServer::fail(const std::string& reason) {
  if (failure_) return;
  failure_ = reason;
  for (const Parked& waiting : std::exchange(parked_, {}))
    if (const auto found = clients_.find(waiting.socket); found != clients_.end())
      reply(found->second, waiting.id, reply_of(Kind::failed, reason));
  for (const auto& [id, asking] : std::exchange(asking_, {}))
    if (const auto found = clients_.find(asking.socket); found != clients_.end())
      reply(found->second, asking.id, reply_of(Kind::failed, reason));
}

void RendezvousServer::read_from(Client& client, TimePoint now) {
  for (int i = 0; i < kMessagesPerTurn; ++i) {
    StoreMessage message;
    switch (receive_message(client.socket.get(), message)) {
      case ReceiveStatus::received:
        handle(client, std::move(message), now);
        break;
      case ReceiveStatus::would_block:
        return;
      case ReceiveStatus::closed:
        return disconnect(client.socket.get());
    }
  }
}

void RendezvousServer::handle(Client& client, StoreMessage message, TimePoint now) {
  if ((message.kind == Kind::put_fd) != message.fd.valid())
    throw DataError("store message: a descriptor is missing or not expected");
  if (is_shared(message)) return ask(client, std::move(message));
  switch (message.kind) {
    case Kind::put:
    case Kind::put_fd:
      return put(client, std::move(message));
    case Kind::get:
    case Kind::get_fd:
      return park_or_answer(client, message, now);
    case Kind::drop_fd:
      fds_.erase(message.key);
      return reply(client, message.id, reply_of(Kind::answer));
    default:
      throw DataError("store message: a reply where a request was expected");
  }
}

bool RendezvousServer::is_shared(const StoreMessage& message) const {
  const bool is_value = message.kind == Kind::put || message.kind == Kind::get;
  return shares_ && is_value && !message.key.starts_with(kKeyOfHost);
}

void RendezvousServer::ask(Client& client, StoreMessage message) {
  if (failure_) return reply(client, message.id, reply_of(Kind::failed, *failure_));
  const auto open = std::ranges::count_if(
      asking_, [&](const auto& one) { return one.second.socket == client.socket.get(); });
  if (static_cast<std::size_t>(open) >= kMaxOpenRequests)
    throw DataError(fmt::format("more than {} requests wait at once", kMaxOpenRequests));
  asking_[++asked_] = {client.socket.get(), message.id};
  requests_.push_back({asked_, message.kind == Kind::put, std::move(message.key),
                       std::move(message.value), message.timeout_ms});
}

void RendezvousServer::answer(const ValueAnswer& answer) {
  const auto asking = asking_.extract(answer.id);
  if (asking.empty()) return;
  const auto client = clients_.find(asking.mapped().socket);
  if (client == clients_.end()) return;
  constexpr std::array kKinds{Kind::answer, Kind::timed_out, Kind::refused, Kind::failed};
  reply(client->second, asking.mapped().id,
        reply_of(kKinds.at(static_cast<std::size_t>(answer.kind)), answer.value));
}

void RendezvousServer::put(Client& client, StoreMessage message) {
  const bool is_fd = message.kind == Kind::put_fd;
  const std::uint64_t id = message.id;
  const std::string key = message.key;
  if (is_fd) {
    if (fds_.size() >= kMaxStoredFds && fds_.count(key) == 0)
      return reply(client, id, reply_of(Kind::refused, "too many descriptors are stored"));
    fds_[key] = std::move(message.fd);
  } else {
    const auto old = values_.find(key);
    const std::size_t freed = old == values_.end() ? 0 : key.size() + old->second.size();
    const std::size_t bytes = stored_bytes_ - freed + key.size() + message.value.size();
    if (bytes > kMaxStoredBytes)
      return reply(client, id, reply_of(Kind::refused, "the rendezvous is full (64 MiB)"));
    stored_bytes_ = bytes;
    values_[key] = std::move(message.value);
  }
  reply(client, id, reply_of(Kind::answer));
  answer_parked(key, is_fd);
}

void RendezvousServer::park_or_answer(Client& client, const StoreMessage& message, TimePoint now) {
  const bool wants_fd = message.kind == Kind::get_fd;
  if (auto found = stored(message.key, wants_fd))
    return reply(client, message.id, std::move(*found));
  if (failure_) return reply(client, message.id, reply_of(Kind::failed, *failure_));
  const auto open = std::count_if(parked_.begin(), parked_.end(), [&client](const Parked& p) {
    return p.socket == client.socket.get();
  });
  if (static_cast<std::size_t>(open) >= kMaxOpenRequests)
    throw DataError(fmt::format("more than {} requests wait at once", kMaxOpenRequests));
  parked_.push_back({client.socket.get(), message.id, wants_fd, message.key,
                     now + bounded_timeout(message.timeout_ms)});
}

std::optional<StoreMessage> RendezvousServer::stored(const std::string& key, bool wants_fd) const {
  if (wants_fd) {
    const auto found = fds_.find(key);
    if (found == fds_.end()) return std::nullopt;
    const int copy = ::fcntl(found->second.get(), F_DUPFD_CLOEXEC, 0);
    if (copy < 0) return reply_of(Kind::refused, "its process has too many open files (ulimit -n)");
    StoreMessage message = reply_of(Kind::answer);
    message.fd = UniqueFd(copy);
    return message;
  }
  const auto found = values_.find(key);
  if (found == values_.end()) return std::nullopt;
  return reply_of(Kind::answer, found->second);
}

void RendezvousServer::answer_parked(const std::string& key, bool is_fd) {
  const auto waits_for_it = [&](const Parked& p) { return p.wants_fd == is_fd && p.key == key; };
  std::vector<Parked> ready;
  std::copy_if(parked_.begin(), parked_.end(), std::back_inserter(ready), waits_for_it);
  std::erase_if(parked_, waits_for_it);
  for (const Parked& waiting : ready)
    if (const auto found = clients_.find(waiting.socket); found != clients_.end())
      reply(found->second, waiting.id, *stored(key, is_fd));
}

void RendezvousServer::expire(TimePoint now) {
  const auto is_late = [now](const Parked& p) { return p.deadline <= now; };
  std::vector<Parked> late;
  std::copy_if(parked_.begin(), parked_.end(), std::back_inserter(late), is_late);
  std::erase_if(parked_, is_late);
  for (const Parked& waiting : late)
    if (const auto found = clients_.find(waiting.socket); found != clients_.end())
      reply(found->second, waiting.id, reply_of(Kind::timed_out));
}

void RendezvousServer::reply(Client& client, std::uint64_t id, StoreMessage message) {
  message.id = id;
  if (client.replies.size() >= kMaxOpenRequests) {
    client.broken = "it asks but does not read its replies";
    return;
  }
  client.replies.push_back(std::move(message));
  flush(client);
}

/// Sends what the socket takes; epoll tells when it takes more. Does not throw: the client at fault
/// may be another one than the client being served.
void RendezvousServer::flush(Client& client) {
  try {
    while (!client.replies.empty() && send_message(client.socket.get(), client.replies.front()))
      client.replies.pop_front();
    epoll_event event{};
    event.events = EPOLLIN | (client.replies.empty() ? 0u : static_cast<unsigned>(EPOLLOUT));
    event.data.fd = client.socket.get();
    checked(::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, client.socket.get(), &event),
            "watching a rank");
  } catch (const Error& error) {
    client.broken = error.what();
  }
}

std::vector<std::string> RendezvousServer::disconnect_broken() {
  std::vector<std::string> complaints;
  std::vector<int> sockets;
  for (const auto& [socket, client] : clients_) {
    if (client.broken.empty()) continue;
    sockets.push_back(socket);
    complaints.push_back(
        fmt::format("disconnected rank {} from the rendezvous: {}", client.rank, client.broken));
  }
  for (const int socket : sockets) disconnect(socket);
  return complaints;
}

void RendezvousServer::disconnect(int socket) {
  std::erase_if(parked_, [socket](const Parked& p) { return p.socket == socket; });
  std::erase_if(asking_, [socket](const auto& one) { return one.second.socket == socket; });
  clients_.erase(socket);  // closing also removes it from the epoll set
}

}  // namespace strata
