#include "core/unique_fd.h"

#include <unistd.h>

namespace strata {

void UniqueFd::close() noexcept {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

}  // namespace strata
