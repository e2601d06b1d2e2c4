#include "comm/peer_memory/wake_word.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

#include "core/check.h"

namespace strata::comm {

void WakeWord::advance() {
  std::uint32_t old = value_.load(std::memory_order_relaxed);
  // Masks the sum: a plain increment's carry after 2^31 events would look like poison.
  while (!value_.compare_exchange_weak(old, (old & kPoison) | ((old + 1) & ~kPoison),
                                       std::memory_order_acq_rel, std::memory_order_relaxed)) {
  }
  wake_all();
}

void WakeWord::poison() {
  value_.fetch_or(kPoison, std::memory_order_seq_cst);
  wake_all();
}

bool WakeWord::sleep(std::uint32_t seen, std::chrono::milliseconds limit) {
  const timespec timeout{.tv_sec = limit.count() / 1000,
                         .tv_nsec = limit.count() % 1000 * 1'000'000};
  // FUTEX_PRIVATE_FLAG would be wrong here: peers may be other processes.
  if (::syscall(SYS_futex, &value_, FUTEX_WAIT, seen, &timeout, nullptr, 0) == 0) return false;
  if (errno == ETIMEDOUT) return true;
  STRATA_CHECK(errno == EAGAIN || errno == EINTR, "futex wait, errno", errno);
  return false;
}

void WakeWord::wake_all() {
  const long woken = ::syscall(SYS_futex, &value_, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  STRATA_CHECK(woken >= 0, "futex wake, errno", errno);
}

}  // namespace strata::comm
