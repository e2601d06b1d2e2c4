#include "tests/launcher/mlaunch_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <thread>

#include "core/integer.h"
#include "core/run_id.h"
#include "core/system_call.h"

namespace strata::testing {
namespace {

using Clock = std::chrono::steady_clock;

/// Returns what a file of /proc holds; nothing of a process that ends meanwhile.
std::string contents(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();  // an iterator would throw
  return text.str();
}

int occurrences(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

bool read_into(UniqueFd& fd, std::string& text) {
  std::array<char, 65536> bytes;
  const ssize_t count = ::read(fd.get(), bytes.data(), bytes.size());
  if (count > 0) text.append(bytes.data(), static_cast<std::size_t>(count));
  if (count == 0) fd.close();
  return count > 0;
}

[[noreturn]] void execute(const char* program, const std::vector<std::string>& arguments,
                          const std::string& mark, int output, int error) {
  std::vector<char*> pointers{const_cast<char*>(program)};
  for (const std::string& argument : arguments)
    pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  ::setpgid(0, 0);
  ::setenv("MLAUNCH_TEST_MARK", mark.c_str(), 1);
  // Runs of tests must not be among the last ones of whoever starts them.
  const std::string runs = "/tmp/strata-tests-" + std::to_string(::geteuid());
  ::setenv("STRATA_RUNS_DIR", runs.c_str(), 0);
  if (::dup2(output, STDOUT_FILENO) >= 0 && ::dup2(error, STDERR_FILENO) >= 0)
    ::execv(program, pointers.data());
  ::_exit(127);
}

/// A shell is in state D, not T, if it waits for a child of vfork that was stopped before exec.
bool is_suspended(const std::string& process) {
  const std::string stat = contents("/proc/" + std::to_string(std::stoi(process)) + "/stat");
  const std::size_t name_end = stat.rfind(')');
  return name_end != std::string::npos && stat.size() > name_end + 2 &&
         (stat[name_end + 2] == 'T' || stat[name_end + 2] == 'D');
}

}  // namespace

MlaunchProcess::MlaunchProcess(const std::vector<std::string>& arguments)
    : MlaunchProcess(MLAUNCH_PATH, arguments) {}

MlaunchProcess MlaunchProcess::in_shell(const std::string& script) {
  return MlaunchProcess("/bin/sh", {"-c", script, MLAUNCH_PATH});
}

MlaunchProcess::MlaunchProcess(const char* program, const std::vector<std::string>& arguments)
    : mark_(make_run_id()) {
  std::array<int, 2> output{};
  std::array<int, 2> error{};
  checked(::pipe2(output.data(), O_CLOEXEC), "pipe");
  checked(::pipe2(error.data(), O_CLOEXEC), "pipe");
  output_pipe_ = UniqueFd(output[0]);
  error_pipe_ = UniqueFd(error[0]);
  const UniqueFd output_end(output[1]);
  const UniqueFd error_end(error[1]);
  pid_ = checked(::fork(), "fork");
  if (pid_ == 0) execute(program, arguments, mark_, output_end.get(), error_end.get());
}

MlaunchProcess::~MlaunchProcess() {
  if (!reaped_) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  for (const std::string& process : living()) ::kill(std::stoi(process), SIGKILL);
}

void MlaunchProcess::send(int signal) const { checked(::kill(pid_, signal), "kill"); }

bool MlaunchProcess::read_some(int timeout_ms) {
  std::array<pollfd, 2> entries{{{output_pipe_.get(), POLLIN, 0}, {error_pipe_.get(), POLLIN, 0}}};
  if (::poll(entries.data(), entries.size(), timeout_ms) <= 0) return false;
  bool any = false;
  if (entries[0].revents != 0) any |= read_into(output_pipe_, output_);
  if (entries[1].revents != 0) any |= read_into(error_pipe_, error_);
  return any;
}

bool MlaunchProcess::wait_for_output(const std::string& text, int count,
                                     std::chrono::milliseconds limit) {
  return wait_for(output_, text, count, limit);
}

bool MlaunchProcess::wait_for_error(const std::string& text, std::chrono::milliseconds limit) {
  return wait_for(error_, text, 1, limit);
}

bool MlaunchProcess::wait_for(const std::string& stream, const std::string& text, int count,
                              std::chrono::milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  while (occurrences(stream, text) < count) {
    if (Clock::now() > deadline) return false;
    read_some(50);
  }
  return true;
}

int MlaunchProcess::wait(std::chrono::milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  while (output_pipe_.valid() || error_pipe_.valid()) {
    read_some(50);
    if (Clock::now() > deadline) return -1;
  }
  for (int status = 0; Clock::now() < deadline;) {
    if (::waitpid(pid_, &status, WNOHANG) == pid_) {
      reaped_ = true;
      return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return -1;
}

std::vector<std::string> MlaunchProcess::error_lines() const {
  std::vector<std::string> lines;
  std::istringstream stream(error_);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> MlaunchProcess::living() const {
  std::vector<std::string> found;
  std::error_code error;
  std::filesystem::directory_iterator it("/proc", error);
  for (const std::filesystem::directory_iterator end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename();
    if (!parse_integer(name)) continue;
    if (contents(it->path() / "environ").find("MLAUNCH_TEST_MARK=" + mark_) != std::string::npos)
      found.push_back(name + " " + contents(it->path() / "comm"));
  }
  return found;
}

bool MlaunchProcess::all_suspended() {
  const auto deadline = Clock::now() + kHangs;
  for (;;) {
    const std::vector<std::string> processes = living();
    if (!processes.empty() && std::ranges::all_of(processes, is_suspended)) break;
    if (Clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  while (read_some(0)) {
  }
  return true;
}

bool MlaunchProcess::all_gone(std::chrono::milliseconds limit) const {
  const auto deadline = Clock::now() + limit;
  while (!living().empty()) {
    if (Clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

}  // namespace strata::testing
