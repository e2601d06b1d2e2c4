// What holds a process, seen from outside: the states of its threads, the system calls that they
// are in, and stacks.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace strata::launcher {

struct ThreadFacts {
  pid_t id = 0;
  std::string name;
  char state = '?';    ///< as /proc/PID/stat: R runs, S sleeps, D waits for a device, T stopped
  std::string in;      ///< function of the kernel that it waits in; empty: none, or not known
  std::string call;    ///< "fsync of /data/x"; empty: none of those that tell something
  bool pages = false;  ///< it waits for memory that is read back
};

/// Reads all threads of a process, the first one first; none of a process that is gone.
std::vector<ThreadFacts> threads_of(pid_t pid, const std::filesystem::path& processes = "/proc");

/// Says what holds the process in a few words: "stopped by a signal", "in fsync of /data/x".
std::string what_holds(const std::vector<ThreadFacts>& threads);

/// Describes the threads, a line for equal ones: "3 of 'train' sleep in futex_do_wait". `frozen`:
/// their process is, which the states of threads do not tell.
std::string describe_threads(const std::vector<ThreadFacts>& threads, bool frozen = false);

/// Returns the innermost functions of each thread as `eu-stack` (elfutils) finds them, at most
/// `limit` waited for, and half a second more for its end; "" where that program is missing or may
/// not look.
std::string stacks_of(pid_t pid, std::chrono::milliseconds limit = std::chrono::seconds(3));

}  // namespace strata::launcher
