#include "core/tcp_sockets.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <pwd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>
#include <vector>

#include "core/integer.h"

namespace strata {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t kListening = 0x0A;  ///< the kernel's TCP_LISTEN

struct Place {
  std::array<unsigned char, 16> address{};  ///< of IPv4 as IPv6 has it: ::ffff:127.0.0.1
  int port = 0;
  bool operator==(const Place&) const = default;
};

struct TcpSocket {
  Place own, peer;
  std::uint32_t state = 0;
  uid_t user = 0;
  std::string number;  ///< of its inode
};

void map_to_v6(Place& place, const void* v4) {
  place.address[10] = place.address[11] = 0xff;
  std::memcpy(place.address.data() + 12, v4, 4);
}

std::uint32_t hexadecimal(std::string_view digits) {
  std::uint32_t value = 0;
  (void)std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  return value;
}

/// Reads "0100007F:1F90": words of the address as the kernel has them in memory, and the port.
Place parse_place(std::string_view text) {
  Place place;
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return place;
  std::array<std::uint32_t, 4> words{};
  const std::size_t count = std::min<std::size_t>(colon / 8, words.size());
  for (std::size_t i = 0; i < count; ++i) words[i] = hexadecimal(text.substr(8 * i, 8));
  if (count == 1)
    map_to_v6(place, words.data());
  else
    std::memcpy(place.address.data(), words.data(), sizeof words);
  place.port = static_cast<int>(hexadecimal(text.substr(colon + 1)));
  return place;
}

/// Reads net/tcp or net/tcp6 of proc; a kernel without IPv6 lacks the latter.
void read_table(const fs::path& file, std::vector<TcpSocket>& sockets) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);  // names of the columns
  while (std::getline(stream, line)) {
    std::istringstream fields(line);
    std::string slot, own, peer, state, queues, timer, retries, timeout, number;
    uid_t user = 0;
    if (fields >> slot >> own >> peer >> state >> queues >> timer >> retries >> user >> timeout >>
        number)
      sockets.push_back({parse_place(own), parse_place(peer), hexadecimal(state), user, number});
  }
}

std::vector<TcpSocket> tcp_sockets(const fs::path& proc) {
  std::vector<TcpSocket> sockets;
  read_table(proc / "net/tcp", sockets);
  read_table(proc / "net/tcp6", sockets);
  return sockets;
}

using NameOf = int (*)(int, sockaddr*, socklen_t*);

/// Returns the place that getsockname or getpeername tells of a socket; nullopt: none.
std::optional<Place> place_of(int socket, NameOf name_of) {
  sockaddr_storage name{};
  socklen_t length = sizeof name;
  if (name_of(socket, reinterpret_cast<sockaddr*>(&name), &length) != 0) return std::nullopt;
  Place place;
  if (name.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(name);
    map_to_v6(place, &v4.sin_addr);
    place.port = ntohs(v4.sin_port);
  } else {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(name);
    std::memcpy(place.address.data(), &v6.sin6_addr, place.address.size());
    place.port = ntohs(v6.sin6_port);
  }
  return place;
}

bool has_socket(const fs::path& process, const std::string& link) {
  std::error_code error;
  fs::directory_iterator it(process / "fd", error);
  for (const fs::directory_iterator end; !error && it != end; it.increment(error)) {
    std::error_code gone;
    if (fs::read_symlink(it->path(), gone).string() == link) return true;
  }
  return false;
}

std::string link_to(const TcpSocket& socket) { return fmt::format("socket:[{}]", socket.number); }

/// Returns "process 1234 (python3)" for the first that has the socket; "": none that may be seen.
std::string process_with(const fs::path& proc, const TcpSocket& socket) {
  const std::string link = link_to(socket);
  std::error_code error;
  fs::directory_iterator it(proc, error);
  for (const fs::directory_iterator end; !error && it != end; it.increment(error)) {
    const std::string pid = it->path().filename().string();
    if (!parse_integer(pid) || !has_socket(it->path(), link)) continue;
    std::string name;
    std::ifstream stream(it->path() / "comm");
    std::getline(stream, name);
    return fmt::format("process {} ({})", pid, name);
  }
  return "";
}

std::string name_of_user(uid_t user) {
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> texts(16384);
  if (::getpwuid_r(user, &entry, texts.data(), texts.size(), &found) != 0 || found == nullptr)
    return std::to_string(user);
  return found->pw_name;
}

}  // namespace

std::optional<uid_t> user_of_peer(int accepted, const fs::path& proc) {
  const auto own = place_of(accepted, &::getsockname);
  const auto peer = place_of(accepted, &::getpeername);
  if (!own || !peer) return std::nullopt;
  for (const TcpSocket& socket : tcp_sockets(proc))
    if (socket.own == *peer && socket.peer == *own) return socket.user;
  return std::nullopt;
}

std::string holder_of_port(int port, const fs::path& proc) {
  const TcpSocket* holder = nullptr;
  const std::vector<TcpSocket> sockets = tcp_sockets(proc);
  for (const TcpSocket& socket : sockets)
    if (socket.own.port == port && (holder == nullptr || socket.state == kListening))
      holder = &socket;
  if (holder == nullptr) return "another program";
  const std::string process = process_with(proc, *holder);
  return process.empty() ? "a process of user " + name_of_user(holder->user) : process;
}

bool any_listens(std::span<const pid_t> processes, int port, const fs::path& proc) {
  for (const TcpSocket& socket : tcp_sockets(proc)) {
    if (socket.own.port != port || socket.state != kListening) continue;
    const std::string link = link_to(socket);
    for (const pid_t process : processes)
      if (has_socket(proc / std::to_string(process), link)) return true;
  }
  return false;
}

}  // namespace strata
