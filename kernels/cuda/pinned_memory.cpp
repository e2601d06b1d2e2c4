#include "kernels/cuda/pinned_memory.h"

#include <sys/mman.h>

#include "core/populate_pages.h"

namespace strata::cuda {
namespace {

constexpr std::int64_t kWorthRegistering = std::int64_t{64} << 20;

bool device_uses_addresses_of_the_host() {
  int device = 0, same = 0;
  const bool known = cudaGetDevice(&device) == cudaSuccess &&
                     cudaDeviceGetAttribute(&same, cudaDevAttrCanUseHostPointerForRegisteredMem,
                                            device) == cudaSuccess;
  (void)cudaGetLastError();  // later calls must not see a refusal
  return known && same != 0;
}

}  // namespace

bool PinnedMemory::take_registered(std::size_t bytes) {
  void* base = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return false;
  if (populate_pages({static_cast<std::byte*>(base), bytes}) != 0 ||
      cudaHostRegister(base, bytes, cudaHostRegisterPortable | cudaHostRegisterMapped) !=
          cudaSuccess) {
    (void)cudaGetLastError();
    ::munmap(base, bytes);
    return false;
  }
  base_ = static_cast<std::byte*>(base);
  mapped_bytes_ = bytes;
  return true;
}

cudaError_t PinnedMemory::take(std::int64_t bytes) {
  const auto size = static_cast<std::size_t>(bytes);
  if (bytes >= kWorthRegistering && device_uses_addresses_of_the_host() && take_registered(size))
    return cudaSuccess;
  void* base = nullptr;
  const cudaError_t result =
      cudaHostAlloc(&base, size, cudaHostAllocPortable | cudaHostAllocMapped);
  base_ = static_cast<std::byte*>(base);
  return result;
}

PinnedMemory::~PinnedMemory() {
  if (base_ == nullptr) return;
  // An error here comes from earlier work, and whoever waited for that work got it.
  if (mapped_bytes_ == 0) {
    (void)cudaFreeHost(base_);
  } else {
    (void)cudaHostUnregister(base_);
    ::munmap(base_, mapped_bytes_);
  }
}

}  // namespace strata::cuda
