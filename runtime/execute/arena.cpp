#include "runtime/execute/arena.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "core/populate_pages.h"

namespace strata::runtime {

Arena::Arena(std::string tier, std::int64_t bytes, ArenaKind kind) : bytes_(bytes) {
  if (bytes == 0) return;
  const auto refuse = [&](const char* call) {
    throw OutOfMemory(tier, static_cast<std::uint64_t>(bytes), 0,
                      std::string(call) + " failed: " + std::strerror(errno) +
                          "; use a smaller micro-batch, a higher ZeRO stage, activation "
                          "checkpointing or more ranks");
  };
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  if (kind == ArenaKind::shared_memory) {
    memfd_ = UniqueFd(::memfd_create("strata-arena", MFD_CLOEXEC));
    if (!memfd_.valid()) refuse("memfd_create");
    if (::ftruncate(memfd_.get(), bytes) != 0) refuse("ftruncate");
    flags = MAP_SHARED | MAP_NORESERVE;
  }
  void* base = ::mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE, flags,
                      memfd_.get(), 0);
  if (base == MAP_FAILED) refuse("mmap");
  base_ = static_cast<std::byte*>(base);
  // Pages are made now, not at their first touch in the middle of a step.
  errno = populate_pages({base_, static_cast<std::size_t>(bytes)});
  if (errno != 0) refuse("populating the arena");
}

Arena::Arena(kernels::Device& device, kernels::MemoryKind kind, std::int64_t bytes)
    : bytes_(bytes), device_(&device), on_host_(kind == kernels::MemoryKind::pinned) {
  if (bytes == 0) return;
  memory_ = device.allocate(kind, bytes);
  base_ = memory_->base();
  device.clear_now(base_, bytes);
}

Arena::Arena(Arena&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      memfd_(std::move(other.memfd_)),
      memory_(std::move(other.memory_)),
      device_(std::exchange(other.device_, nullptr)),
      on_host_(other.on_host_) {}

Arena& Arena::operator=(Arena&& other) noexcept {
  std::swap(base_, other.base_);
  std::swap(bytes_, other.bytes_);
  std::swap(memfd_, other.memfd_);
  std::swap(memory_, other.memory_);
  std::swap(device_, other.device_);
  std::swap(on_host_, other.on_host_);
  return *this;
}

Arena::~Arena() {
  if (base_ != nullptr && memory_ == nullptr) ::munmap(base_, static_cast<std::size_t>(bytes_));
}

}  // namespace strata::runtime
