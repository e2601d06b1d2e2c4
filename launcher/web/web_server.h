// The page of a run for browsers, and its figures for Prometheus (`mlaunch --web PORT`). mlaunch
// opens the module that has the server (libstrata_web.so: libmicrohttpd) only where it is asked
// for. It listens on 127.0.0.1 alone, and shows; nothing can be changed through it. The figures are
// for all users of the host, the rest for the user of this process and root.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace strata::launcher {

/// What is shown besides the page itself. Called in work(), by the same thread.
struct WebTexts {
  std::function<std::string()> status;   ///< JSON: what `mlaunch status --json` prints
  std::function<std::string()> history;  ///< JSON: curves and events
  std::function<std::string()> metrics;  ///< in Prometheus' text format
};

/// A server without threads: who has it polls, and calls work().
class WebServer {
 public:
  virtual ~WebServer() = default;
  [[nodiscard]] virtual int port() const = 0;
  /// Descriptor that is readable while there is something to do.
  [[nodiscard]] virtual int poll_fd() const = 0;
  /// Time after which there is something to do in any case; nullopt: none.
  [[nodiscard]] virtual std::optional<std::chrono::milliseconds> timeout() const = 0;
  /// Does what is due. Never waits for those who connect.
  virtual void work() = 0;
};

/// Name and type of the module's only entry; the caller owns the result. Throws HostError if the
/// port of 127.0.0.1 (0: any) cannot be listened at.
inline constexpr const char* kWebModuleEntry = "strata_make_web_server";
using WebModuleEntry = WebServer* (*)(int port, const WebTexts& texts);

/// Opens libstrata_web.so beside the program or in ../lib, and a server in it. Throws HostError
/// that says what is missing, or who has the port.
std::unique_ptr<WebServer> open_web_server(int port, const WebTexts& texts);

}  // namespace strata::launcher
