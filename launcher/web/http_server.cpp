#include "launcher/web/http_server.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "core/system_call.h"
#include "core/tcp_sockets.h"
#include "launcher/web/page_text.h"

namespace strata::launcher {
namespace {

constexpr std::size_t kConnectionBytes = std::size_t{32} << 10;  ///< of headers
constexpr int kMostWaiting = 64;                                 ///< connections not accepted yet
/// Prometheus, which has a user of its own, reads it.
constexpr const char* kMetricsPath = "/metrics";
constexpr const char* kJson = "application/json";
/// The page holds its own style and script, and asks only where it came from.
constexpr const char* kPolicy =
    "default-src 'none'; img-src data:; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "connect-src "
    "'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

UniqueFd listen_at(int port) {
  UniqueFd socket(checked(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0),
                          "making a socket for --web"));
  const int one = 1;
  checked(::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one),
          "setting up a socket for --web");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      ::listen(socket.get(), kMostWaiting) == 0)
    return socket;
  const int error = errno;
  const std::string advice =
      error == EADDRINUSE ? fmt::format("; {} has the port: name another one, or 0 for a free one",
                                        holder_of_port(port))
                          : "";
  throw HostError(fmt::format("--web {}: cannot listen at 127.0.0.1:{}: {}{}", port, port,
                              std::strerror(error), advice));
}

int port_of(const UniqueFd& socket) {
  sockaddr_in address{};
  socklen_t length = sizeof address;
  checked(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &length),
          "reading the port of --web");
  return ntohs(address.sin_port);
}

/// True if the connection is of this process's user, or of root.
bool is_of_this_user(MHD_Connection* connection) {
  const auto* info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  if (info == nullptr) return false;
  const auto user = user_of_peer(info->connect_fd);
  return user && (*user == ::geteuid() || *user == 0);
}

}  // namespace

bool is_own_name(const std::string& host) {
  std::string_view name = host;
  const std::size_t colon = name.rfind(':');
  const bool has_port =
      colon != std::string_view::npos && name.find(']', colon) == std::string_view::npos;
  if (has_port) {
    const std::string_view port = name.substr(colon + 1);
    if (port.find_first_not_of("0123456789") != std::string_view::npos) return false;
    name = name.substr(0, colon);
  }
  return name == "127.0.0.1" || name == "localhost" || name == "[::1]";
}

HttpServer::HttpServer(int port, WebTexts texts)
    : texts_(std::move(texts)), port_(port), daemon_(nullptr, &MHD_stop_daemon) {
  UniqueFd socket = listen_at(port);
  port_ = port_of(socket);
  daemon_.reset(MHD_start_daemon(
      MHD_USE_EPOLL, 0, nullptr, nullptr, &HttpServer::handle, this, MHD_OPTION_LISTEN_SOCKET,
      socket.get(), MHD_OPTION_CONNECTION_LIMIT, kMostConnections, MHD_OPTION_CONNECTION_TIMEOUT,
      kPatienceSeconds, MHD_OPTION_CONNECTION_MEMORY_LIMIT, kConnectionBytes, MHD_OPTION_END));
  if (!daemon_) throw HostError(fmt::format("--web {}: libmicrohttpd does not start", port));
  (void)socket.release();  // the daemon closes it
}

int HttpServer::poll_fd() const {
  return MHD_get_daemon_info(daemon_.get(), MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
}

std::optional<std::chrono::milliseconds> HttpServer::timeout() const {
  MHD_UNSIGNED_LONG_LONG milliseconds = 0;
  if (MHD_get_timeout(daemon_.get(), &milliseconds) != MHD_YES) return {};
  return std::chrono::milliseconds(milliseconds);
}

void HttpServer::work() { (void)MHD_run(daemon_.get()); }

MHD_Result HttpServer::handle(void* server, MHD_Connection* connection, const char* path,
                              const char* method, const char*, const char*, std::size_t*, void**) {
  Answer answer;
  try {
    answer = static_cast<const HttpServer*>(server)->answer(connection, path, method);
  } catch (const std::exception& error) {
    answer = {.code = MHD_HTTP_INTERNAL_SERVER_ERROR, .text = std::string(error.what()) + "\n"};
  }
  MHD_Response* response = MHD_create_response_from_buffer(answer.text.size(), answer.text.data(),
                                                           MHD_RESPMEM_MUST_COPY);
  if (response == nullptr) return MHD_NO;  // no memory: the connection ends
  const auto add = [response](const char* name, const char* value) {
    return MHD_add_response_header(response, name, value) == MHD_YES;
  };
  const bool is_whole = add("Content-Type", answer.type) && add("Cache-Control", "no-store") &&
                        add("Content-Security-Policy", kPolicy) &&
                        add("X-Content-Type-Options", "nosniff") &&
                        add("Referrer-Policy", "no-referrer") &&
                        (answer.code != MHD_HTTP_METHOD_NOT_ALLOWED || add("Allow", "GET"));
  const MHD_Result result =
      is_whole ? MHD_queue_response(connection, answer.code, response) : MHD_NO;
  MHD_destroy_response(response);
  return result;
}

HttpServer::Answer HttpServer::answer(MHD_Connection* connection, const std::string& path,
                                      const std::string& method) const {
  const char* host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host");
  if (host == nullptr || !is_own_name(host))
    return {.code = MHD_HTTP_FORBIDDEN,
            .text = "This page is shown as 127.0.0.1 or localhost alone.\n"};
  if (method != "GET")
    return {.code = MHD_HTTP_METHOD_NOT_ALLOWED, .text = "This page only shows: GET.\n"};
  if (path == kMetricsPath) return metrics();
  if (!is_of_this_user(connection))
    return {.code = MHD_HTTP_FORBIDDEN,
            .text = "This page is for the user who runs this mlaunch, and root.\n"};
  return page(path);
}

HttpServer::Answer HttpServer::metrics() const {
  return {.type = "text/plain; version=0.0.4; charset=utf-8", .text = texts_.metrics()};
}

HttpServer::Answer HttpServer::page(const std::string& path) const {
  if (path == "/") return {.type = "text/html; charset=utf-8", .text = std::string(kPage)};
  if (path == "/status.json") return {.type = kJson, .text = texts_.status()};
  if (path == "/history.json") return {.type = kJson, .text = texts_.history()};
  return {.code = MHD_HTTP_NOT_FOUND,
          .text = "There are /, /status.json, /history.json and /metrics.\n"};
}

}  // namespace strata::launcher
