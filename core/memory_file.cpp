#include "core/memory_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "core/system_call.h"

namespace strata {

UniqueFd memory_file(const char* name, std::string_view text) {
  UniqueFd file(checked(::memfd_create(name, MFD_CLOEXEC), "making a file in memory"));
  while (!text.empty()) {
    const ssize_t count = ::write(file.get(), text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    text.remove_prefix(static_cast<std::size_t>(checked(count, "writing a file in memory")));
  }
  checked(::lseek(file.get(), 0, SEEK_SET), "rewinding a file in memory");
  return file;
}

}  // namespace strata
