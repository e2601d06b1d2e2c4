#include "core/system_call.h"

#include <cerrno>
#include <cstring>

#include "core/error.h"

namespace strata {

void throw_system_error(const std::string& what) {
  const int number = errno;
  throw HostError(what + ": " + std::strerror(number));
}

}  // namespace strata
