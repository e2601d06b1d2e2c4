// The entry of libstrata_web.so.
#include "launcher/web/http_server.h"

extern "C" [[gnu::visibility("default")]] strata::launcher::WebServer* strata_make_web_server(
    int port, const strata::launcher::WebTexts& texts) {
  return new strata::launcher::HttpServer(port, texts);
}
