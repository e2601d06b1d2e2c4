#include "train/data/run_program.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <span>
#include <thread>

#include "core/check.h"
#include "core/error.h"
#include "core/unique_fd.h"

extern char** environ;

namespace strata::train {
namespace {

/// Makes a file in memory; unlike a pipe it cannot block when full or cause SIGPIPE.
UniqueFd memory_file(const char* name) {
  UniqueFd fd(::memfd_create(name, MFD_CLOEXEC));
  if (!fd.valid()) throw HostError(std::string("memfd_create failed: ") + std::strerror(errno));
  return fd;
}

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      throw HostError(std::string("write to a memory file failed: ") + std::strerror(errno));
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  if (::lseek(fd, 0, SEEK_SET) != 0)
    throw HostError(std::string("lseek failed: ") + std::strerror(errno));
}

/// The contents of the file from `begin` on.
std::string read_from(int fd, std::size_t begin) {
  struct stat status {};
  if (::fstat(fd, &status) != 0)
    throw HostError(std::string("fstat failed: ") + std::strerror(errno));
  std::string text(static_cast<std::size_t>(status.st_size) - begin, '\0');
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t n =
        ::pread(fd, text.data() + done, text.size() - done, static_cast<off_t>(begin + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      throw HostError(std::string("read of a memory file failed: ") + std::strerror(errno));
    done += static_cast<std::size_t>(n);
  }
  return text;
}

/// Owns posix_spawn's two attribute objects, whose functions return error numbers.
class SpawnSettings {
 public:
  SpawnSettings() {
    check(::posix_spawn_file_actions_init(&actions_));
    check(::posix_spawnattr_init(&attributes_));
    // Resets signals: what this process blocks or ignores must not affect the child.
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    check(::posix_spawnattr_setsigmask(&attributes_, &none));
    check(::posix_spawnattr_setsigdefault(&attributes_, &all));
    check(::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));
  }
  ~SpawnSettings() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  void connect(int fd, int as) { check(::posix_spawn_file_actions_adddup2(&actions_, fd, as)); }
  [[nodiscard]] const posix_spawn_file_actions_t* actions() const { return &actions_; }
  [[nodiscard]] const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  static void check(int error) {
    if (error != 0)
      throw HostError(std::string("posix_spawn settings failed: ") + std::strerror(error));
  }
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

constexpr std::chrono::milliseconds kBetweenLooks{50};

/// Waits for the child, calling `look` (if any) again and again; returns its exit code.
int wait_for(pid_t child, const std::function<void()>& look) {
  int status = 0;
  for (;;) {
    const pid_t ended = ::waitpid(child, &status, look ? WNOHANG : 0);
    if (ended < 0 && errno != EINTR)
      throw HostError(std::string("waitpid failed: ") + std::strerror(errno));
    if (ended > 0) return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (ended < 0) continue;
    look();
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

}  // namespace

ProgramResult run_program(const std::vector<std::string>& arguments, const std::string& input,
                          const std::function<void(std::string_view)>& hear) {
  STRATA_CHECK(!arguments.empty());
  const UniqueFd in = memory_file("input");
  const UniqueFd out = memory_file("output");
  const UniqueFd errors = memory_file("errors");
  write_all(in.get(), input);
  SpawnSettings settings;
  settings.connect(in.get(), 0);
  settings.connect(out.get(), 1);
  settings.connect(errors.get(), 2);
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  pid_t child = -1;
  const int error = ::posix_spawnp(&child, argv[0], settings.actions(), settings.attributes(),
                                   argv.data(), environ);
  if (error != 0) throw HostError("cannot start " + arguments[0] + ": " + std::strerror(error));
  ProgramResult result;
  const auto listen = [&] {
    const std::string more = read_from(out.get(), result.output.size());
    result.output += more;
    if (hear && !more.empty()) hear(more);
  };
  result.exit_code = wait_for(child, hear ? listen : std::function<void()>());
  listen();  // tells the last output
  result.errors = read_from(errors.get(), 0);
  return result;
}

}  // namespace strata::train
