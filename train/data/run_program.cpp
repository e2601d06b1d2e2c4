#include "train/data/run_program.h"

#include <fcntl.h>
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
#include "core/memory_file.h"
#include "core/spawn_settings.h"
#include "core/unique_fd.h"

namespace strata::train {
namespace {

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
  const UniqueFd in = memory_file("input", input);
  const UniqueFd out = memory_file("output");
  const UniqueFd errors = memory_file("errors");
  SpawnSettings settings;
  settings.connect(in.get(), 0);
  settings.connect(out.get(), 1);
  settings.connect(errors.get(), 2);
  pid_t child = -1;
  if (const int error = settings.start(arguments, child); error != 0)
    throw HostError("cannot start " + arguments[0] + ": " + std::strerror(error));
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
