#include "train/checkpoint/testing/no_locks.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>

namespace {

std::atomic<int> error_of_locks = 0;  // 0: they work

}  // namespace

/// Takes the place of the C library's. All commands have one argument of a register's size, or
/// none.
extern "C" int fcntl(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  const int error = error_of_locks;
  if (command != F_OFD_SETLK || error == 0)
    return static_cast<int>(::syscall(SYS_fcntl, fd, command, argument));
  errno = error;
  return -1;
}

namespace strata::train {

NoLocks::NoLocks(int error) { error_of_locks = error; }
NoLocks::~NoLocks() { error_of_locks = 0; }

}  // namespace strata::train
