#include "launcher/output/report_writers.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "core/child_end.h"
#include "core/memory_file.h"
#include "core/system_call.h"

namespace strata::launcher {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view kCannotStart = "the process that writes it cannot start: ";

/// Becomes the writer. Between fork and exec only system calls are allowed. A process group of its
/// own keeps Ctrl-C from it, and whoever reads mlaunch's output does not wait for it. Closing what
/// mlaunch has inherited may fail: old kernels lack the call, and policies of containers forbid it.
[[noreturn]] void become(const char* program, char* const* command, int text, int words) {
  sigset_t none;
  ::sigemptyset(&none);
  if (::dup2(text, STDIN_FILENO) >= 0 && ::dup2(words, STDOUT_FILENO) >= 0 &&
      ::dup2(words, STDERR_FILENO) >= 0 && ::setpgid(0, 0) == 0 &&
      ::sigprocmask(SIG_SETMASK, &none, nullptr) == 0) {
    (void)::close_range(STDERR_FILENO + 1, ~0U, 0);
    ::execv(program, command);
  }
  const char* why = ::strerrordesc_np(errno);  // allocates nothing
  (void)!::write(STDERR_FILENO, kCannotStart.data(), kCannotStart.size());
  (void)!::write(STDERR_FILENO, why, std::strlen(why));
  ::_exit(127);
}

/// True once the writer has ended; false if it has not by `end`.
bool has_ended(const UniqueFd& process, Clock::time_point end) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
    pollfd entry{process.get(), POLLIN, 0};
    const int ready = ::poll(&entry, 1, left > 0 ? static_cast<int>(left) : 0);
    if (ready > 0) return true;
    if (ready == 0 && left <= 0) return false;
    if (ready < 0 && errno != EINTR) throw_system_error("waiting for a report");
  }
}

/// Returns the last line that a writer printed. Those before it may be of others: what the dynamic
/// loader, for one, says of LD_PRELOAD.
std::string last_line(const UniqueFd& words) {
  std::string text;
  std::array<char, 4096> bytes;
  for (ssize_t count; (count = ::read(words.get(), bytes.data(), bytes.size())) > 0;)
    text.append(bytes.data(), static_cast<std::size_t>(count));
  if (text.ends_with('\n')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

}  // namespace

void ReportWriters::start(const std::string& path, const std::string& run_id,
                          const std::string& name, const std::string& text) {
  const UniqueFd file = memory_file("strata-report", text);
  std::array<int, 2> ends{};
  checked(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK), "creating a pipe for a report");
  UniqueFd words(ends[0]);
  const UniqueFd its_end(ends[1]);
  std::array<std::string, 4> command{"mlaunch", kWord, run_id, name};
  const std::array<char*, 5> pointers{command[0].data(), command[1].data(), command[2].data(),
                                      command[3].data(), nullptr};
  // posix_spawn would wait until the program's file could be read.
  const pid_t pid = checked(::fork(), "starting one more process (see ulimit -u)");
  if (pid == 0) become(program_.c_str(), pointers.data(), file.get(), its_end.get());
  writers_.push_back({path, pid, watch_child(pid), std::move(words)});
}

std::vector<ReportWriters::Ended> ReportWriters::take_ended() {
  std::vector<Ended> ended;
  std::erase_if(writers_, [&](const Writer& writer) {
    if (!has_ended(writer.process, Clock::now())) return false;
    const std::string words = last_line(writer.words);
    // Fails where others have waited for it: its number may be another's by now.
    (void)::waitid(P_PIDFD, static_cast<id_t>(writer.process.get()), nullptr, WEXITED | WNOHANG);
    ended.push_back({writer.path, words == kWritten ? ""
                                  : words.empty()   ? "the process that writes it was ended"
                                                    : words});
    return true;
  });
  return ended;
}

void ReportWriters::add_polls(std::vector<pollfd>& entries) const {
  for (const Writer& writer : writers_) entries.push_back({writer.process.get(), POLLIN, 0});
}

bool ReportWriters::wait(std::chrono::milliseconds limit) const {
  const Clock::time_point end = Clock::now() + limit;
  for (const Writer& writer : writers_)
    if (!has_ended(writer.process, end)) return false;
  return true;
}

std::string ReportWriters::unfinished() const {
  std::string text;
  for (const Writer& writer : writers_)
    text += fmt::format("{}{} (process {})", text.empty() ? "" : ", ", writer.path, writer.pid);
  return text;
}

}  // namespace strata::launcher
