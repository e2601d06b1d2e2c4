#include "core/own_files.h"
#include "launcher/web/web_server.h"

namespace strata::launcher {

std::unique_ptr<WebServer> open_web_server(int port, const WebTexts& texts) {
  const auto entry = reinterpret_cast<WebModuleEntry>(
      module_entry({.file = "libstrata_web.so",
                    .entry = kWebModuleEntry,
                    .purpose = "the page of --web",
                    .if_missing = "build Strata with libmicrohttpd-dev installed, or use mlaunch "
                                  "status --watch",
                    .if_refused = "is libmicrohttpd installed (Debian: libmicrohttpd12)?"}));
  return std::unique_ptr<WebServer>(entry(port, texts));
}

}  // namespace strata::launcher
