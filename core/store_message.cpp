#include "core/store_message.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <vector>

#include "core/check.h"
#include "core/error.h"
#include "core/system_call.h"

namespace strata {
namespace {

constexpr std::uint32_t kMessageMagic = 0x5354'4b56;  // "STKV"

struct Header {
  std::uint32_t magic;
  std::uint32_t kind;
  std::uint64_t id;
  std::int64_t timeout_ms;
  std::uint32_t key_bytes;
  std::uint32_t value_bytes;
};
constexpr std::size_t kMaxBytes =
    sizeof(Header) + StoreMessage::kMaxKeyBytes + StoreMessage::kMaxValueBytes;

union ControlBuffer {
  cmsghdr alignment;
  char bytes[CMSG_SPACE(sizeof(int))];
};

void attach_fd(msghdr& packet, ControlBuffer& control, int fd) {
  packet.msg_control = control.bytes;
  packet.msg_controllen = sizeof(control.bytes);
  cmsghdr* entry = CMSG_FIRSTHDR(&packet);
  entry->cmsg_level = SOL_SOCKET;
  entry->cmsg_type = SCM_RIGHTS;
  entry->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(entry), &fd, sizeof(int));
}

UniqueFd attached_fd(msghdr& packet) {
  const cmsghdr* entry = CMSG_FIRSTHDR(&packet);
  if (entry == nullptr || entry->cmsg_level != SOL_SOCKET || entry->cmsg_type != SCM_RIGHTS ||
      entry->cmsg_len != CMSG_LEN(sizeof(int)))
    return UniqueFd();
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(entry), sizeof(int));
  return UniqueFd(fd);
}

bool known_kind(std::uint32_t kind) {
  using Kind = StoreMessage::Kind;
  return (kind >= static_cast<std::uint32_t>(Kind::put) &&
          kind <= static_cast<std::uint32_t>(Kind::drop_fd)) ||
         (kind >= static_cast<std::uint32_t>(Kind::answer) &&
          kind <= static_cast<std::uint32_t>(Kind::failed));
}

void decode(std::string_view bytes, StoreMessage& message) {
  Header header{};
  if (bytes.size() < sizeof(header)) throw DataError("store message: shorter than its header");
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.magic != kMessageMagic || !known_kind(header.kind))
    throw DataError("store message: unknown magic number or kind");
  if (header.key_bytes > StoreMessage::kMaxKeyBytes ||
      header.value_bytes > StoreMessage::kMaxValueBytes ||
      bytes.size() != sizeof(header) + header.key_bytes + header.value_bytes)
    throw DataError("store message: its lengths do not add up");
  message.kind = static_cast<StoreMessage::Kind>(header.kind);
  message.id = header.id;
  message.timeout_ms = header.timeout_ms;
  message.key = bytes.substr(sizeof(header), header.key_bytes);
  message.value = bytes.substr(sizeof(header) + header.key_bytes);
}

}  // namespace

bool send_message(int socket, const StoreMessage& message) {
  STRATA_CHECK(message.key.size() <= StoreMessage::kMaxKeyBytes);
  STRATA_CHECK(message.value.size() <= StoreMessage::kMaxValueBytes);
  Header header{kMessageMagic,
                static_cast<std::uint32_t>(message.kind),
                message.id,
                message.timeout_ms,
                static_cast<std::uint32_t>(message.key.size()),
                static_cast<std::uint32_t>(message.value.size())};
  iovec parts[3] = {{&header, sizeof(header)},
                    {const_cast<char*>(message.key.data()), message.key.size()},
                    {const_cast<char*>(message.value.data()), message.value.size()}};
  msghdr packet{};
  packet.msg_iov = parts;
  packet.msg_iovlen = 3;
  ControlBuffer control{};
  if (message.fd.valid()) attach_fd(packet, control, message.fd.get());
  while (::sendmsg(socket, &packet, MSG_NOSIGNAL) < 0) {
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EPIPE || errno == ECONNRESET) return false;
    throw_system_error("sending to the rendezvous");
  }
  return true;
}

ReceiveStatus receive_message(int socket, StoreMessage& message) {
  std::vector<char> bytes(kMaxBytes);
  iovec part{bytes.data(), bytes.size()};
  msghdr packet{};
  packet.msg_iov = &part;
  packet.msg_iovlen = 1;
  ControlBuffer control{};
  packet.msg_control = control.bytes;
  packet.msg_controllen = sizeof(control.bytes);
  ssize_t count = 0;
  while ((count = ::recvmsg(socket, &packet, MSG_CMSG_CLOEXEC)) < 0) {
    if (errno == EINTR) continue;
    if (errno == EAGAIN) return ReceiveStatus::would_block;
    if (errno == ECONNRESET) return ReceiveStatus::closed;
    throw_system_error("receiving from the rendezvous");
  }
  message.fd = attached_fd(packet);
  if (count == 0) return ReceiveStatus::closed;
  if ((packet.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0)
    throw DataError("store message: too long, or more than one descriptor");
  decode(std::string_view(bytes.data(), static_cast<std::size_t>(count)), message);
  return ReceiveStatus::received;
}

}  // namespace strata
