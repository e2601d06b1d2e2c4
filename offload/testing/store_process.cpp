// A program for tests of the store that change a whole process: they drop rights, forbid system
// calls, mount file systems, or kill it.
//   store_process SCENARIO DIRECTORY
// Prints what the test checks. Exit code 3: this machine does not allow the scenario.
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <iostream>
#include <string>

#include "core/error.h"
#include "core/system_call.h"
#include "offload/nvme/disk_alignment.h"
#include "offload/nvme/open_store.h"

namespace strata::offload {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr int kNotAllowed = 3;

void allowed(int result, const char* what) {
  if (result == 0) return;
  std::cout << what << ": " << std::strerror(errno) << std::endl;
  std::exit(kNotAllowed);
}

void become_nobody(rlim_t locked_bytes) {
  constexpr id_t kNobody = 65534;
  const rlimit limit{locked_bytes, locked_bytes};
  allowed(::setrlimit(RLIMIT_MEMLOCK, &limit), "setrlimit");
  allowed(::setgroups(0, nullptr), "setgroups");
  allowed(::setresgid(kNobody, kNobody, kNobody), "setresgid");
  allowed(::setresuid(kNobody, kNobody, kNobody), "setresuid");
}

/// Makes io_uring_setup fail with EPERM from now on, as a container's policy does.
void forbid_io_uring() {
  constexpr int kSystemCallNumber = offsetof(seccomp_data, nr);
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kSystemCallNumber),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{std::size(program), program};
  allowed(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl");
  allowed(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), "seccomp");
}

/// Mounts a file system that only this process sees, so that it ends with the process.
void mount_private(const char* type, const std::string& directory, const char* options) {
  allowed(::unshare(CLONE_NEWNS), "unshare");
  allowed(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), "mount");
  allowed(::mount("none", directory.c_str(), type, 0, options), "mount");
}

void print_notes(const NvmeStore& store) {
  for (const std::string& note : store.notes()) std::cout << "note: " << note << std::endl;
}

/// Writes, reads and compares; prints how the file is open.
void use_store(const std::string& directory) {
  const auto store = open_store({.directories = {directory}, .bytes = 32 * kMiB});
  const AlignedMemory window(24 * kMiB);
  const std::vector<std::span<std::byte>> ranges{window.bytes()};
  const bool registered = store->register_memory(ranges);
  for (int twice = 0; twice < 2; ++twice) static_cast<void>(store->register_memory(ranges));
  std::fill(window.bytes().begin(), window.bytes().end(), std::byte{42});
  store->wait(store->start_write(0, window.bytes(), "window"));
  std::fill(window.bytes().begin(), window.bytes().end(), std::byte{0});
  store->wait(store->start_read(0, window.bytes(), "window"));
  const bool same = std::all_of(window.bytes().begin(), window.bytes().end(),
                                [](std::byte value) { return value == std::byte{42}; });
  const int flags = checked(::fcntl(store->file(0), F_GETFL), "F_GETFL");
  print_notes(*store);
  std::cout << "same: " << same << "\nregistered: " << registered
            << "\ndirect: " << ((flags & O_DIRECT) != 0) << std::endl;
}

/// Prints when the first write is under way, then writes until it is killed.
void write_forever(const std::string& directory) {
  const auto store = open_store({.directories = {directory}, .bytes = 32 * kMiB});
  const AlignedMemory window(32 * kMiB);
  for (;;) {
    const auto ticket = store->start_write(0, window.bytes(), "window");
    std::cout << "writing" << std::endl;
    store->wait(ticket);
  }
}

int run(const std::string& scenario, const std::string& directory) {
  if (scenario == "unprivileged") {
    become_nobody(8 * kMiB);  // the usual limit
    use_store(directory);
  } else if (scenario == "no_locked_memory") {
    become_nobody(0);
    use_store(directory);
  } else if (scenario == "forbidden") {
    forbid_io_uring();
    use_store(directory);
  } else if (scenario == "tmpfs") {
    mount_private("tmpfs", directory, "size=40m");
    use_store(directory);
  } else if (scenario == "ramfs") {
    mount_private("ramfs", directory, nullptr);
    use_store(directory);
  } else if (scenario == "small") {
    mount_private("tmpfs", directory, "size=8m");
    use_store(directory);
  } else if (scenario == "forever") {
    write_forever(directory);
  } else {
    return static_cast<int>(ExitCode::usage);
  }
  return 0;
}

}  // namespace
}  // namespace strata::offload

int main(int count, char** arguments) {
  if (count != 3) return static_cast<int>(strata::ExitCode::usage);
  try {
    return strata::offload::run(arguments[1], arguments[2]);
  } catch (const strata::Error& error) {
    std::cout << "error: " << error.what() << std::endl;
    return static_cast<int>(error.exit_code());
  }
}
