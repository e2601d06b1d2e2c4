#include "core/host_name.h"

#include <limits.h>
#include <unistd.h>

#include <array>

#include "core/system_call.h"

namespace strata {

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  checked(::gethostname(name.data(), name.size() - 1), "reading this host's name");
  return name.data();
}

}  // namespace strata
