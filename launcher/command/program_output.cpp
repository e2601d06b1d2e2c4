#include "launcher/command/program_output.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "core/child_end.h"
#include "core/error.h"
#include "core/spawn_settings.h"
#include "core/system_call.h"
#include "core/unique_fd.h"

namespace strata::launcher {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kForEnd{1};  ///< of a program that was killed

/// Reads all until its writers have closed it; nullopt: they have not before `end`.
std::optional<std::string> read_until(const UniqueFd& output, Clock::time_point end) {
  std::string text;
  std::array<char, 4096> bytes{};
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
    pollfd entry{output.get(), POLLIN, 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(std::max<std::int64_t>(left, 0)));
    if (ready == 0) return std::nullopt;
    const ssize_t count = ready < 0 ? ready : ::read(output.get(), bytes.data(), bytes.size());
    if (count < 0 && errno != EINTR) throw_system_error("reading what a program prints");
    if (count == 0) return text;
    if (count > 0) text.append(bytes.data(), static_cast<std::size_t>(count));
  }
}

}  // namespace

ProgramEnd run_to_end(const std::vector<std::string>& command, std::chrono::milliseconds limit) {
  std::array<int, 2> ends{};
  checked(::pipe2(ends.data(), O_CLOEXEC), "creating a pipe for a program's output");
  const UniqueFd output(ends[0]);
  UniqueFd input(ends[1]);
  SpawnSettings settings;
  settings.open("/dev/null", O_RDONLY, STDIN_FILENO);
  settings.connect(input.get(), STDOUT_FILENO);
  settings.connect(input.get(), STDERR_FILENO);
  pid_t pid = -1;
  if (const int error = settings.start(command, pid); error != 0)
    throw HostError(fmt::format("cannot start {}: {}", command.front(), std::strerror(error)));
  input.close();
  const Clock::time_point end = Clock::now() + limit;
  const auto text = read_until(output, end);
  // It may run on after it has closed its output.
  const auto status = text ? wait_for_child(pid, end) : std::nullopt;
  if (!status) {
    (void)::kill(pid, SIGKILL);
    (void)wait_for_child(pid, Clock::now() + kForEnd);
    throw HostError(fmt::format("{} has not ended within {} s; does it work in a shell?",
                                fmt::join(command, " "),
                                std::chrono::duration<double>(limit).count()));
  }
  return {WIFEXITED(*status) ? WEXITSTATUS(*status) : -1, *text};
}

std::string output_of(const std::vector<std::string>& command, std::chrono::milliseconds limit) {
  ProgramEnd end = run_to_end(command, limit);
  if (end.exit_code != 0)
    throw HostError(fmt::format("{} has failed: {}", fmt::join(command, " "), end.text));
  return std::move(end.text);
}

}  // namespace strata::launcher
