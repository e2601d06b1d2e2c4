#include "core/testing/allocation_counter.h"

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
#include <string_view>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STRATA_OWN_ALLOCATOR 0
#else
#define STRATA_OWN_ALLOCATOR 1
#endif

namespace {

constexpr int kFrames = 24;
constexpr int kKept = 4;

struct Code {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
};

std::atomic<bool> counting{false};
std::atomic<long> ours{0};
std::atomic<long> libraries{0};
std::array<std::array<void*, kFrames>, kKept> frames;
std::array<int, kKept> depths;
std::array<Code, 512> foreign;
std::size_t foreign_count = 0;
thread_local bool inside = false;  // true inside backtrace(), which may allocate

[[maybe_unused]] bool is_foreign(const void* address) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  return std::any_of(foreign.begin(), foreign.begin() + static_cast<std::ptrdiff_t>(foreign_count),
                     [at](const Code& code) { return at >= code.begin && at < code.end; });
}

[[maybe_unused]] void note() {
  if (!counting.load(std::memory_order_relaxed) || inside) return;
  inside = true;
  std::array<void*, kFrames> stack;
  const int depth = backtrace(stack.data(), kFrames);
  inside = false;
  if (std::any_of(stack.begin(), stack.begin() + depth, is_foreign)) {
    ++libraries;
    return;
  }
  const long number = ours.fetch_add(1);
  if (number >= kKept) return;
  frames[static_cast<std::size_t>(number)] = stack;
  depths[static_cast<std::size_t>(number)] = depth;
}

/// True for libraries that count as ours, and for the program itself, whose path is empty.
bool is_ours(std::string_view path) {
  const std::string_view file = path.substr(path.rfind('/') + 1);
  constexpr std::array<std::string_view, 7> kOurs{"libstrata", "libc.so",  "libm.so",   "libstdc++",
                                                  "libgcc_s",  "ld-linux", "linux-vdso"};
  return file.empty() || std::any_of(kOurs.begin(), kOurs.end(), [file](std::string_view name) {
           return file.starts_with(name);
         });
}

/// Records where the code of a library lies that is not ours.
int note_library(dl_phdr_info* library, std::size_t, void*) {
  if (is_ours(library->dlpi_name)) return 0;
  for (int i = 0; i < library->dlpi_phnum && foreign_count < foreign.size(); ++i) {
    const auto& header = library->dlpi_phdr[i];
    if (header.p_type != PT_LOAD || (header.p_flags & PF_X) == 0) continue;
    const std::uintptr_t begin = library->dlpi_addr + header.p_vaddr;
    foreign[foreign_count++] = {begin, begin + header.p_memsz};
  }
  return 0;
}

}  // namespace

#if STRATA_OWN_ALLOCATOR
// glibc's own entry points, which the replacements below call; operator new calls malloc.
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
  backtrace(warm, 1);  // loads libgcc before counting begins
  foreign_count = 0;
  dl_iterate_phdr(note_library, nullptr);
  ours = libraries = 0;
  counting = true;
}

AllocationCount stop_counting_allocations() {
  counting = false;
  AllocationCount result;
  result.allocations = ours;
  result.in_libraries = libraries;
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
