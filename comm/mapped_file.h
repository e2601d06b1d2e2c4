// A memfd mapped into this process.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "core/unique_fd.h"

namespace strata::comm {

/// Makes zero-filled memory behind a file descriptor that other processes can map. `name` shows in
/// /proc/PID/maps. Throws HostError.
UniqueFd make_memfd(const char* name, std::size_t bytes);

enum class Access { read, read_write };

/// A shared mapping of the first `bytes` of `fd`. The constructor throws HostError when the file is
/// shorter (touching the rest would be SIGBUS) or cannot be mapped; `what` names it in the message.
class MappedFile {
 public:
  MappedFile() = default;
  MappedFile(int fd, std::size_t bytes, Access access, const char* what);
  MappedFile(MappedFile&& other) noexcept : memory_(std::exchange(other.memory_, {})) {}
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile() { unmap(); }

  [[nodiscard]] std::span<std::byte> memory() const { return memory_; }

 private:
  void unmap() noexcept;
  std::span<std::byte> memory_;
};

}  // namespace strata::comm
