// Shows the program into which it is preloaded a time of day that is STRATA_SHIFTED_BY seconds off,
// and hands the kernel the true one where it waits until a time of day. libfaketime leaves out
// waits by syscall(), as gRPC has them: they would end hours late.
#include <dlfcn.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdlib>

namespace {

time_t shift() {
  static const time_t seconds = [] {
    const char* text = ::getenv("STRATA_SHIFTED_BY");
    return text != nullptr ? static_cast<time_t>(std::atol(text)) : 0;
  }();
  return seconds;
}

long call(long number, long a, long b, long c, long d, long e, long f) {
  using Syscall = long (*)(long, ...);
  static const auto real = reinterpret_cast<Syscall>(::dlsym(RTLD_NEXT, "syscall"));
  return real(number, a, b, c, d, e, f);
}

/// Returns the true time for a shown one.
timespec unshifted(const timespec* shown) { return {shown->tv_sec - shift(), shown->tv_nsec}; }

bool is_time_of_day(clockid_t clock) {
  return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* now) noexcept {
  const auto result =
      static_cast<int>(call(SYS_clock_gettime, clock, reinterpret_cast<long>(now), 0, 0, 0, 0));
  if (result == 0 && is_time_of_day(clock)) now->tv_sec += shift();
  return result;
}

int gettimeofday(timeval* now, void* zone) noexcept {
  const auto result = static_cast<int>(call(SYS_gettimeofday, reinterpret_cast<long>(now),
                                            reinterpret_cast<long>(zone), 0, 0, 0, 0));
  if (result == 0) now->tv_sec += shift();
  return result;
}

time_t time(time_t* now) noexcept {
  timespec read{};
  ::clock_gettime(CLOCK_REALTIME, &read);
  if (now != nullptr) *now = read.tv_sec;
  return read.tv_sec;
}

int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                           const timespec* until) {
  // Some conditions have the attribute to wait by the time since the start, which is far smaller.
  using Wait = int (*)(pthread_cond_t*, pthread_mutex_t*, const timespec*);
  static const auto real = reinterpret_cast<Wait>(::dlsym(RTLD_NEXT, "pthread_cond_timedwait"));
  timespec monotonic{};
  ::clock_gettime(CLOCK_MONOTONIC, &monotonic);
  constexpr time_t kYear = 365 * 24 * 3600;
  if (until->tv_sec < monotonic.tv_sec + kYear) return real(condition, mutex, until);
  const timespec true_time = unshifted(until);
  return real(condition, mutex, &true_time);
}

int sem_timedwait(sem_t* semaphore, const timespec* until) {
  using Wait = int (*)(sem_t*, const timespec*);
  static const auto real = reinterpret_cast<Wait>(::dlsym(RTLD_NEXT, "sem_timedwait"));
  const timespec true_time = unshifted(until);
  return real(semaphore, &true_time);
}

long syscall(long number, ...) noexcept {
  va_list list;
  va_start(list, number);
  long words[6];
  for (long& word : words) word = va_arg(list, long);
  va_end(list);
  timespec true_time{};
  if (number == SYS_futex && (words[1] & FUTEX_CLOCK_REALTIME) != 0 && words[3] != 0) {
    true_time = unshifted(reinterpret_cast<const timespec*>(words[3]));
    words[3] = reinterpret_cast<long>(&true_time);
  }
  return call(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}

}  // extern "C"
