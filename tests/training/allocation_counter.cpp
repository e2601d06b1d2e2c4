#include "tests/training/allocation_counter.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STRATA_OWN_ALLOCATOR 0
#else
#define STRATA_OWN_ALLOCATOR 1
#endif

namespace {

constexpr int kFrames = 24;
constexpr int kKept = 4;

std::atomic<bool> counting{false};
std::atomic<long> ours{0};
std::atomic<long> onednns{0};
std::array<std::array<void*, kFrames>, kKept> frames;
std::array<int, kKept> depths;
std::uintptr_t onednn_begin = 0, onednn_end = 0;
thread_local bool inside = false;  // backtrace() may allocate

[[maybe_unused]] void note() {
  if (!counting.load(std::memory_order_relaxed) || inside) return;
  inside = true;
  std::array<void*, kFrames> stack;
  const int depth = backtrace(stack.data(), kFrames);
  inside = false;
  for (int i = 0; i < depth; ++i) {
    const auto address = reinterpret_cast<std::uintptr_t>(stack[static_cast<std::size_t>(i)]);
    if (address < onednn_begin || address >= onednn_end) continue;
    ++onednns;
    return;
  }
  const long number = ours.fetch_add(1);
  if (number >= kKept) return;
  frames[static_cast<std::size_t>(number)] = stack;
  depths[static_cast<std::size_t>(number)] = depth;
}

/// Remembers where oneDNN's code lies.
int find_onednn(dl_phdr_info* library, std::size_t, void*) {
  if (std::strstr(library->dlpi_name, "libdnnl") == nullptr) return 0;
  for (int i = 0; i < library->dlpi_phnum; ++i) {
    const auto& header = library->dlpi_phdr[i];
    if (header.p_type != PT_LOAD || (header.p_flags & PF_X) == 0) continue;
    onednn_begin = library->dlpi_addr + header.p_vaddr;
    onednn_end = onednn_begin + header.p_memsz;
  }
  return 1;
}

}  // namespace

#if STRATA_OWN_ALLOCATOR
// glibc's own entry points behind the names that are replaced here; operator new calls malloc.
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t bytes) {
  note();
  return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) {
  note();
  return __libc_calloc(count, bytes);
}
void* realloc(void* memory, std::size_t bytes) {
  note();
  return __libc_realloc(memory, bytes);
}
void* memalign(std::size_t alignment, std::size_t bytes) {
  note();
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  note();
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) {
  note();
  *memory = __libc_memalign(alignment, bytes);
  return *memory == nullptr ? ENOMEM : 0;
}
void* mmap(void* address, std::size_t bytes, int protection, int flags, int file, off_t offset) {
  note();
  return reinterpret_cast<void*>(
      syscall(SYS_mmap, address, bytes, protection, flags, file, offset));
}
}
#endif

namespace strata::tests {

bool can_count_allocations() { return STRATA_OWN_ALLOCATOR != 0; }

void start_counting_allocations() {
  void* warm[1];
  backtrace(warm, 1);  // loads its library now
  dl_iterate_phdr(find_onednn, nullptr);
  ours = onednns = 0;
  counting = true;
}

AllocationCount stop_counting_allocations() {
  counting = false;
  AllocationCount result;
  result.allocations = ours;
  result.in_onednn = onednns;
  for (long i = 0; i < std::min<long>(result.allocations, kKept); ++i) {
    result.first += "--\n";
    const auto at = static_cast<std::size_t>(i);
    for (int frame = 1; frame < depths[at]; ++frame) {
      Dl_info info{};
      char line[256];
      dladdr(frames[at][static_cast<std::size_t>(frame)], &info);
      std::snprintf(line, sizeof line, "  %s+0x%zx %s\n",
                    info.dli_fname == nullptr ? "?" : info.dli_fname,
                    static_cast<std::size_t>(
                        static_cast<std::byte*>(frames[at][static_cast<std::size_t>(frame)]) -
                        static_cast<std::byte*>(info.dli_fbase)),
                    info.dli_sname == nullptr ? "" : info.dli_sname);
      result.first += line;
    }
  }
  return result;
}

}  // namespace strata::tests
