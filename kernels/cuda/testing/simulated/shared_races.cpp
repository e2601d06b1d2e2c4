#include "kernels/cuda/testing/simulated/shared_races.h"

#include <fmt/core.h>
#include <algorithm>
#include <string>

#include "kernels/cuda/testing/simulated/simulation.h"

namespace strata::cuda::host {
namespace {

constexpr std::size_t kWordBytes = 4;

// Each host thread simulates threads of its own, so each has its own watcher.
thread_local SharedRaces* watched = nullptr;

}  // namespace

SharedRaces::SharedRaces(const Block& block, int threads)
    : block_(block), warp_rounds_(static_cast<std::size_t>(threads / kWarp)) {}

void SharedRaces::begin_block(const std::byte* memory, std::size_t bytes) {
  memory_ = memory;
  bytes_ = bytes;
  words_.resize((bytes + kWordBytes - 1) / kWordBytes);
  ++round_;
}

void SharedRaces::watch(int thread) {
  watched = this;
  now_.round = round_;
  now_.warp_round = warp_rounds_[static_cast<std::size_t>(thread / kWarp)];
  now_.thread = static_cast<std::uint16_t>(thread);
}

void SharedRaces::watch_none() { watched = nullptr; }

template <typename Visit>
inline void SharedRaces::each_word(const void* address, std::size_t bytes, const Visit& visit) {
  const auto begin = static_cast<std::size_t>(static_cast<const std::byte*>(address) - memory_);
  if (begin >= bytes_) return;
  const std::size_t end = std::min(begin + bytes, bytes_);
  for (std::size_t at = begin; at < end;) {
    const std::size_t word = at / kWordBytes, first = at % kWordBytes;
    const std::size_t last = std::min(end - word * kWordBytes, kWordBytes);
    visit(word, static_cast<std::uint8_t>((1u << last) - (1u << first)));
    at = word * kWordBytes + last;
  }
}

inline bool SharedRaces::is_ordered(const Access& before, const Access& now) const {
  if (before.round != now.round || (before.bytes & now.bytes) == 0) return true;
  if (before.who == Access::Who::one && before.thread == now.thread) return true;
  return before.who != Access::Who::warps && before.thread / kWarp == now.thread / kWarp &&
         before.warp_round < now.warp_round;
}

void SharedRaces::read(const void* address, std::size_t bytes) {
  each_word(address, bytes, [&](std::size_t word, std::uint8_t touched) {
    Access now = now_;
    now.bytes = touched;
    check(words_[word].written, "wrote", now, "reads", word);
    Access& read = words_[word].read;
    if (read.round != now.round) {
      read = now;
    } else if (read.bytes != touched) {
      if ((read.bytes & touched) != touched) read = now;
    } else if (read.who == Access::Who::warps || read.thread / kWarp != now.thread / kWarp) {
      read.who = Access::Who::warps;
    } else if (read.warp_round != now.warp_round) {
      read = now;  // an access ordered after this read comes after the warp's earlier reads, too
    } else if (read.thread != now.thread) {
      read.who = Access::Who::lanes;
    }
  });
}

void SharedRaces::write(const void* address, std::size_t bytes) {
  each_word(address, bytes, [&](std::size_t word, std::uint8_t touched) {
    Access now = now_;
    now.bytes = touched;
    check(words_[word].written, "wrote", now, "writes", word);
    check(words_[word].read, "read", now, "writes", word);
    words_[word].written = now;
  });
}

void SharedRaces::report(const Access& before, const char* verb_before, const Access& now,
                         const char* verb, std::size_t word) const {
  const bool same_warp =
      before.who != Access::Who::warps && before.thread / kWarp == now.thread / kWarp;
  block_.fail(
      fmt::format("{} in bytes {} to {} of shared memory, which thread {} {}, without {} between "
                  "them",
                  verb, word * kWordBytes, word * kWordBytes + kWordBytes - 1, before.thread,
                  verb_before, same_warp ? "sync_warp or sync_block" : "sync_block"));
}

}  // namespace strata::cuda::host

// The functions that code compiled with -fsanitize=thread calls.
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
namespace {

using strata::cuda::host::watched;

void marked_read(const void* address, std::size_t bytes) {
  if (watched != nullptr) watched->read(address, bytes);
}
void marked_write(const void* address, std::size_t bytes) {
  if (watched != nullptr) watched->write(address, bytes);
}

}  // namespace

// NOLINTBEGIN(bugprone-reserved-identifier): these are the compiler's names.
extern "C" {
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_read(void**) {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_read1(void* at) { marked_read(at, 1); }
void __tsan_read2(void* at) { marked_read(at, 2); }
void __tsan_read4(void* at) { marked_read(at, 4); }
void __tsan_read8(void* at) { marked_read(at, 8); }
void __tsan_read16(void* at) { marked_read(at, 16); }
void __tsan_write1(void* at) { marked_write(at, 1); }
void __tsan_write2(void* at) { marked_write(at, 2); }
void __tsan_write4(void* at) { marked_write(at, 4); }
void __tsan_write8(void* at) { marked_write(at, 8); }
void __tsan_write16(void* at) { marked_write(at, 16); }
void __tsan_unaligned_read2(void* at) { marked_read(at, 2); }
void __tsan_unaligned_read4(void* at) { marked_read(at, 4); }
void __tsan_unaligned_read8(void* at) { marked_read(at, 8); }
void __tsan_unaligned_read16(void* at) { marked_read(at, 16); }
void __tsan_unaligned_write2(void* at) { marked_write(at, 2); }
void __tsan_unaligned_write4(void* at) { marked_write(at, 4); }
void __tsan_unaligned_write8(void* at) { marked_write(at, 8); }
void __tsan_unaligned_write16(void* at) { marked_write(at, 16); }
void __tsan_read_range(void* at, std::size_t bytes) { marked_read(at, bytes); }
void __tsan_write_range(void* at, std::size_t bytes) { marked_write(at, bytes); }
// The atomic functions serve host code between kernels, which does not touch shared memory.
unsigned char __tsan_atomic8_load(const volatile void* at, int) {
  return __atomic_load_n(static_cast<const volatile unsigned char*>(at), __ATOMIC_SEQ_CST);
}
unsigned int __tsan_atomic32_fetch_add(volatile void* at, unsigned int value, int) {
  return __atomic_fetch_add(static_cast<volatile unsigned int*>(at), value, __ATOMIC_SEQ_CST);
}
unsigned int __tsan_atomic32_fetch_sub(volatile void* at, unsigned int value, int) {
  return __atomic_fetch_sub(static_cast<volatile unsigned int*>(at), value, __ATOMIC_SEQ_CST);
}
}
// NOLINTEND(bugprone-reserved-identifier)
#endif
