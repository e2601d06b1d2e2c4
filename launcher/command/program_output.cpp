#include "launcher/command/program_output.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "core/error.h"
#include "core/system_call.h"
#include "core/unique_fd.h"

namespace strata::launcher {
namespace {

/// Starts the program with its outputs in `output`. Returns 0 or an error number.
int spawn(const std::vector<std::string>& command, int output, pid_t& pid) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  if (const int error = ::posix_spawn_file_actions_init(&actions); error != 0) return error;
  int error = ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  for (const int target : {1, 2})
    if (error == 0) error = ::posix_spawn_file_actions_adddup2(&actions, output, target);
  if (error == 0)
    error = ::posix_spawnp(&pid, arguments[0], &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  return error;
}

}  // namespace

std::string output_of(const std::vector<std::string>& command) {
  std::array<int, 2> ends{};
  checked(::pipe2(ends.data(), O_CLOEXEC), "creating a pipe for a program's output");
  const UniqueFd output(ends[0]);
  UniqueFd input(ends[1]);
  pid_t pid = -1;
  if (const int error = spawn(command, input.get(), pid); error != 0)
    throw HostError(fmt::format("cannot start {}: {}", command.front(), std::strerror(error)));
  input.close();
  std::string text;
  std::array<char, 4096> bytes{};
  for (ssize_t count = 1; count != 0;) {
    count = ::read(output.get(), bytes.data(), bytes.size());
    if (count < 0 && errno != EINTR) throw_system_error("reading from " + command.front());
    if (count > 0) text.append(bytes.data(), static_cast<std::size_t>(count));
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0)
    if (errno != EINTR) throw_system_error("waiting for " + command.front());
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw HostError(fmt::format("{} has failed: {}", fmt::join(command, " "), text));
  return text;
}

}  // namespace strata::launcher
