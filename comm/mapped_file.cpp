#include "comm/mapped_file.h"

#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "core/error.h"
#include "core/system_call.h"

namespace strata::comm {

UniqueFd make_memfd(const char* name, std::size_t bytes) {
  UniqueFd fd(checked(::memfd_create(name, MFD_CLOEXEC), "memfd_create"));
  checked(::ftruncate(fd.get(), static_cast<off_t>(bytes)), "ftruncate of a memfd");
  return fd;
}

MappedFile::MappedFile(int fd, std::size_t bytes, Access access, const char* what) {
  if (bytes == 0) return;
  struct stat status {};
  checked(::fstat(fd, &status), what);
  if (static_cast<std::size_t>(status.st_size) < bytes)
    throw HostError(
        fmt::format("{}: the file has {} bytes, {} were announced", what, status.st_size, bytes));
  const int protection = access == Access::read ? PROT_READ : PROT_READ | PROT_WRITE;
  void* memory = ::mmap(nullptr, bytes, protection, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (memory == MAP_FAILED) throw_system_error(fmt::format("{}: mmap of {} bytes", what, bytes));
  memory_ = {static_cast<std::byte*>(memory), bytes};
  // Huge pages cause fewer TLB misses. Unchecked, since most systems allow none for shared memory.
  static_cast<void>(::madvise(memory, bytes, MADV_HUGEPAGE));
}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this != &other) {
    unmap();
    memory_ = std::exchange(other.memory_, {});
  }
  return *this;
}

void MappedFile::unmap() noexcept {
  if (!memory_.empty()) ::munmap(memory_.data(), memory_.size());
  memory_ = {};
}

}  // namespace strata::comm
