#include "core/host_meeting.h"

#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <set>
#include <span>
#include <thread>
#include <utility>

#include "core/error.h"
#include "core/hash.h"
#include "core/rendezvous_server.h"
#include "core/socket_store.h"
#include "core/system_call.h"

namespace strata {
namespace {

using Clock = std::chrono::steady_clock;
using Kind = StoreMessage::Kind;
using std::chrono::milliseconds;

constexpr const char* kJoin = "join";
constexpr milliseconds kJoinTime{2000};   // limit from accept to introduction
constexpr milliseconds kRetryTime{20};    // pause between attempts to connect
constexpr milliseconds kServerTurn{500};  // longest sleep of the server's thread
constexpr int kMostWaiting = 1024;

struct Address {
  sockaddr_un name{};
  socklen_t bytes = 0;
};

/// Abstract socket address: it begins with a zero byte. `place` is hashed to fit.
Address address_of(const std::string& place) {
  const std::string text =
      fmt::format("strata/{}/{}", ::geteuid(), hash_64(std::as_bytes(std::span(place))));
  Address address;
  address.name.sun_family = AF_UNIX;
  std::memcpy(address.name.sun_path + 1, text.data(), text.size());
  address.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  return address;
}

const sockaddr* pointer_to(const Address& address) {
  return reinterpret_cast<const sockaddr*>(&address.name);
}

UniqueFd make_socket() {
  return UniqueFd(checked(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0),
                          "creating a socket for the ranks of this host"));
}

bool is_of_this_user(int socket) {
  ucred peer{};
  socklen_t bytes = sizeof peer;
  checked(::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes), "asking who connects");
  return peer.uid == ::geteuid();
}

bool is_readable(int socket, milliseconds limit) {
  pollfd entry{socket, POLLIN, 0};
  return ::poll(&entry, 1, static_cast<int>(limit.count())) == 1;
}

StoreMessage message_of(Kind kind, std::string value) {
  StoreMessage message;
  message.kind = kind;
  message.key = kJoin;
  message.value = std::move(value);
  return message;
}

std::string introduction(int rank, int world) { return fmt::format("rank {} of {}", rank, world); }

/// The store of rank 0, and the thread that serves it to the others.
class ServingStore : public KeyValueStore {
 public:
  explicit ServingStore(const HostMeeting& meeting)
      : world_(meeting.world),
        listening_(listen_at(meeting.place)),
        end_(checked(::eventfd(0, EFD_CLOEXEC), "creating an eventfd")),
        own_(server_.add_client(0), meeting.prefix) {
    sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);  // signals go to the run's other threads
    thread_ = std::thread([this] { serve(); });
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  ~ServingStore() override {
    const std::uint64_t one = 1;
    // Only EINTR can fail: this object alone writes to the eventfd, so it is never full.
    while (::write(end_.get(), &one, sizeof one) < 0 && errno == EINTR) {
    }
    thread_.join();
  }
  ServingStore(const ServingStore&) = delete;
  ServingStore& operator=(const ServingStore&) = delete;

  void put(const std::string& key, const std::string& value) override { own_.put(key, value); }
  std::string get(const std::string& key, milliseconds timeout) override {
    return own_.get(key, timeout);
  }
  void put_fd(const std::string& key, int fd) override { own_.put_fd(key, fd); }
  UniqueFd get_fd(const std::string& key, milliseconds timeout) override {
    return own_.get_fd(key, timeout);
  }
  void drop_fd(const std::string& key) override { own_.drop_fd(key); }

 private:
  static UniqueFd listen_at(const std::string& place) {
    UniqueFd socket = make_socket();
    const Address address = address_of(place);
    if (::bind(socket.get(), pointer_to(address), address.bytes) != 0) {
      if (errno == EADDRINUSE)
        throw ConfigError("another run meets at " + place +
                          "; give each run of this host its own MASTER_PORT");
      throw_system_error("naming the socket for the ranks of this host");
    }
    checked(::listen(socket.get(), kMostWaiting), "listening for the ranks of this host");
    return socket;
  }

  void serve() {
    for (;;) {
      std::array<pollfd, 3> entries{
          {{end_.get(), POLLIN, 0}, {listening_.get(), POLLIN, 0}, {server_.poll_fd(), POLLIN, 0}}};
      // A poll that fails (interrupted, no memory) is repeated in the next turn.
      (void)::poll(entries.data(), entries.size(), static_cast<int>(kServerTurn.count()));
      if (entries[0].revents != 0) return;
      try {
        if (entries[1].revents != 0) welcome();
        (void)server_.process(Clock::now());
      } catch (const Error& error) {
        server_.fail(std::string("rank 0 cannot serve the rendezvous: ") + error.what());
      }
    }
  }

  void welcome() {
    UniqueFd connection(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!connection.valid() || !is_of_this_user(connection.get()) ||
        !is_readable(connection.get(), kJoinTime))
      return;
    StoreMessage said;
    try {
      if (receive_message(connection.get(), said) != ReceiveStatus::received) return;
    } catch (const DataError&) {
      return;  // the peer is no rank
    }
    for (int rank = 1; rank < world_; ++rank) {
      if (said.key != kJoin || said.value != introduction(rank, world_)) continue;
      if (!present_.insert(rank).second) break;
      if (send_message(connection.get(), message_of(Kind::answer, "")))
        server_.add_client(rank, std::move(connection));
      return;
    }
    (void)send_message(
        connection.get(),
        message_of(Kind::refused, fmt::format("rank 0 of {} does not expect {}, or has it already",
                                              world_, said.value)));
  }

  const int world_;
  UniqueFd listening_;
  UniqueFd end_;
  RendezvousServer server_;  // used by the thread alone, once it runs
  std::set<int> present_;    // used by the thread alone
  SocketStore own_;
  std::thread thread_;
};

/// The store of a rank other than 0.
class JoiningStore : public KeyValueStore {
 public:
  explicit JoiningStore(HostMeeting meeting) : meeting_(std::move(meeting)) {}

  void put(const std::string& key, const std::string& value) override { store().put(key, value); }
  std::string get(const std::string& key, milliseconds timeout) override {
    return store().get(key, timeout);
  }
  void put_fd(const std::string& key, int fd) override { store().put_fd(key, fd); }
  UniqueFd get_fd(const std::string& key, milliseconds timeout) override {
    return store().get_fd(key, timeout);
  }
  void drop_fd(const std::string& key) override { store().drop_fd(key); }

 private:
  SocketStore& store() {
    const std::lock_guard lock(mutex_);
    if (!store_) store_ = std::make_unique<SocketStore>(join(), meeting_.prefix);
    return *store_;
  }

  UniqueFd join() const {
    const Clock::time_point limit = Clock::now() + meeting_.patience;
    UniqueFd socket = make_socket();
    const Address address = address_of(meeting_.place);
    while (::connect(socket.get(), pointer_to(address), address.bytes) != 0) {
      if (errno != ECONNREFUSED && errno != EINTR && errno != EAGAIN)
        throw_system_error("connecting to rank 0 of this host");
      if (Clock::now() >= limit) throw_absent();
      std::this_thread::sleep_for(kRetryTime);
    }
    if (!is_of_this_user(socket.get()))
      throw ConfigError("another user of this host waits at " + meeting_.place +
                        "; choose another MASTER_PORT");
    StoreMessage reply;
    const auto left = std::chrono::duration_cast<milliseconds>(limit - Clock::now());
    if (!send_message(socket.get(),
                      message_of(Kind::put, introduction(meeting_.rank, meeting_.world))) ||
        !is_readable(socket.get(), std::max(left, kJoinTime)) ||
        receive_message(socket.get(), reply) != ReceiveStatus::received)
      throw_absent();
    if (reply.kind != Kind::answer)
      throw ConfigError("at " + meeting_.place + ": " + reply.value +
                        "; give each run of this host its own MASTER_PORT");
    return socket;
  }

  [[noreturn]] void throw_absent() const {
    throw PeerError(fmt::format(
        "rank {} of {} waited for rank 0 at {} on this host, which did not come or has ended",
        meeting_.rank, meeting_.world, meeting_.place));
  }

  const HostMeeting meeting_;
  std::mutex mutex_;
  std::unique_ptr<SocketStore> store_;  // created under mutex_, then constant
};

}  // namespace

std::shared_ptr<KeyValueStore> meet_on_host(const HostMeeting& meeting) {
  if (meeting.rank == 0) return std::make_shared<ServingStore>(meeting);
  return std::make_shared<JoiningStore>(meeting);
}

}  // namespace strata
