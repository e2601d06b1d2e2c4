#include "core/socket_store.h"

#include <fcntl.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/check.h"
#include "core/error.h"
#include "core/shared_values.h"
#include "core/system_call.h"

namespace strata {
namespace {

using Kind = StoreMessage::Kind;

constexpr const char* kServerGone =
    "who serves the rendezvous (mlaunch, else rank 0) is gone or closed the connection";

/// Returns `reply` if it is an answer; otherwise throws the exception that it stands for.
StoreMessage checked_reply(StoreMessage reply, const std::string& key,
                           std::chrono::milliseconds timeout) {
  switch (reply.kind) {
    case Kind::answer:
      return reply;
    case Kind::timed_out:
      throw PeerError(fmt::format("no rank provided '{}' to the rendezvous within {} ms", key,
                                  timeout.count()));
    case Kind::failed:
      throw PeerError("waiting for '" + key + "': " + reply.value);
    case Kind::refused:
      throw HostError("the rendezvous refused '" + key + "': " + reply.value);
    default:
      throw InternalError("the rendezvous answered '" + key + "' with a request");
  }
}

}  // namespace

SocketStore::SocketStore(UniqueFd socket, std::string prefix)
    : socket_(std::move(socket)), prefix_(std::move(prefix)) {}

void SocketStore::put(const std::string& key, const std::string& value) {
  if (value.size() > StoreMessage::kMaxValueBytes)
    throw InvalidArgument(fmt::format(
        "the value of '{}' has {} bytes, the rendezvous takes {}; use a collective for more", key,
        value.size(), StoreMessage::kMaxValueBytes));
  StoreMessage message = request(Kind::put, key);
  message.value = value;
  checked_reply(ask(std::move(message)), key, {});
}

std::string SocketStore::get(const std::string& key, std::chrono::milliseconds timeout) {
  StoreMessage message = request(Kind::get, key);
  message.timeout_ms = std::max<std::int64_t>(0, timeout.count());
  return checked_reply(ask(std::move(message)), key, timeout).value;
}

void SocketStore::put_fd(const std::string& key, int fd) {
  StoreMessage message = request(Kind::put_fd, key);
  message.fd = UniqueFd(
      checked(::fcntl(fd, F_DUPFD_CLOEXEC, 0), "duplicating a descriptor for the rendezvous"));
  checked_reply(ask(std::move(message)), key, {});
}

UniqueFd SocketStore::get_fd(const std::string& key, std::chrono::milliseconds timeout) {
  StoreMessage message = request(Kind::get_fd, key);
  message.timeout_ms = std::max<std::int64_t>(0, timeout.count());
  StoreMessage reply = checked_reply(ask(std::move(message)), key, timeout);
  if (!reply.fd.valid())
    throw HostError("the descriptor of '" + key +
                    "' did not arrive; this process may have too many open files (ulimit -n)");
  return std::move(reply.fd);
}

void SocketStore::drop_fd(const std::string& key) {
  checked_reply(ask(request(Kind::drop_fd, key)), key, {});
}

StoreMessage SocketStore::request(Kind kind, const std::string& key) const {
  StoreMessage message;
  message.kind = kind;
  // The server looks at the beginning alone.
  message.key = key.starts_with(kKeyOfHost)
                    ? kKeyOfHost + prefix_ + key.substr(std::strlen(kKeyOfHost))
                    : prefix_ + key;
  if (message.key.size() > StoreMessage::kMaxKeyBytes)
    throw InvalidArgument(fmt::format("the rendezvous takes keys up to {} bytes, '{}...' has {}",
                                      StoreMessage::kMaxKeyBytes - prefix_.size(),
                                      key.substr(0, 64), key.size()));
  return message;
}

StoreMessage SocketStore::ask(StoreMessage message) {
  {
    const std::lock_guard lock(mutex_);
    message.id = next_id_++;
    if (closed_ || !send_message(socket_.get(), message)) throw PeerError(kServerGone);
  }
  return wait_for_reply(message.id);
}

StoreMessage SocketStore::wait_for_reply(std::uint64_t id) {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (const auto found = replies_.find(id); found != replies_.end()) {
      StoreMessage reply = std::move(found->second);
      replies_.erase(found);
      return reply;
    }
    if (closed_) throw PeerError(kServerGone);
    if (receiving_)
      reply_came_.wait(lock);
    else
      receive_one(lock);
  }
}

/// Reads one reply, for whichever thread waits for it, and does not hold the lock while it sleeps.
void SocketStore::receive_one(std::unique_lock<std::mutex>& lock) {
  receiving_ = true;
  lock.unlock();
  StoreMessage reply;
  ReceiveStatus status = ReceiveStatus::closed;
  try {
    status = receive_message(socket_.get(), reply);
  } catch (const Error&) {
    // A server whose messages are malformed is as good as gone; all waiting threads must learn it.
  }
  lock.lock();
  receiving_ = false;
  if (status == ReceiveStatus::received)
    replies_.emplace(reply.id, std::move(reply));
  else
    closed_ = true;
  reply_came_.notify_all();
}

}  // namespace strata
