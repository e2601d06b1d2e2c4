#include "core/format_bytes.h"

#include <cstdio>

namespace strata {

std::string format_bytes(double bytes) {
  const char* unit = "bytes";
  int digits = 0;
  for (const char* larger : {"KiB", "MiB", "GiB", "TiB"}) {
    if (bytes < 1024) break;
    bytes /= 1024;
    unit = larger;
    digits = 2;
  }
  char text[48];
  std::snprintf(text, sizeof text, "%.*f %s", digits, bytes, unit);
  return text;
}

}  // namespace strata
