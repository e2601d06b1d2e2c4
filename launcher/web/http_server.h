// The server of the page, by libmicrohttpd.
#pragma once

#include <microhttpd.h>

#include <memory>
#include <string>

#include "core/unique_fd.h"
#include "launcher/web/web_server.h"

namespace strata::launcher {

class HttpServer final : public WebServer {
 public:
  /// More wait until one of these has gone.
  static constexpr unsigned kMostConnections = 64;
  /// Who is silent, or does not read, so long is disconnected.
  static constexpr unsigned kPatienceSeconds = 10;

  HttpServer(int port, WebTexts texts);

  [[nodiscard]] int port() const override { return port_; }
  [[nodiscard]] int poll_fd() const override;
  [[nodiscard]] std::optional<std::chrono::milliseconds> timeout() const override;
  void work() override;

 private:
  struct Answer {
    unsigned code = MHD_HTTP_OK;
    const char* type = "text/plain; charset=utf-8";
    std::string text;
  };

  static MHD_Result handle(void* server, MHD_Connection* connection, const char* path,
                           const char* method, const char* version, const char* upload,
                           std::size_t* upload_bytes, void** state);
  [[nodiscard]] Answer answer(MHD_Connection* connection, const std::string& path,
                              const std::string& method) const;
  [[nodiscard]] Answer metrics() const;
  [[nodiscard]] Answer page(const std::string& path) const;

  const WebTexts texts_;
  int port_;
  std::unique_ptr<MHD_Daemon, decltype(&MHD_stop_daemon)> daemon_;
};

/// True for values of the header Host that lead to this host from its own browser, or through a
/// tunnel: other names were made to lead here by somebody else (DNS rebinding).
bool is_own_name(const std::string& host);

}  // namespace strata::launcher
