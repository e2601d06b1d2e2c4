// The name of this machine in names of files and folders.
#pragma once

#include <unistd.h>

#include <string>

namespace strata::train {

/// "host" where the system tells no name.
inline std::string host_label() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 && name[0] != '\0' ? name : "host";
}

}  // namespace strata::train
