#include "launcher/group/rank_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "core/error.h"
#include "core/system_call.h"

namespace strata::launcher {
namespace {

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  checked(::pipe2(ends.data(), O_CLOEXEC), "creating a pipe for a rank's output");
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

/// Everything that the child needs, prepared before fork: after fork only system calls are allowed.
struct ChildPlan {
  const RankCommand& command;
  std::vector<char*> arguments;
  std::vector<char*> environment;
  pid_t parent;
  int output;
  int error;
  int failure;  // receives errno when exec fails
};

/// Lets signals that mlaunch handles have their usual effect, and SIGINT, too, which shells ignore
/// in the background: ranks get it from mlaunch alone, and then it is meant.
bool prepare_signals() {
  sigset_t none;
  ::sigemptyset(&none);
  return ::sigprocmask(SIG_SETMASK, &none, nullptr) == 0 && ::signal(SIGPIPE, SIG_DFL) != SIG_ERR &&
         ::signal(SIGXFSZ, SIG_DFL) != SIG_ERR && ::signal(SIGINT, SIG_DFL) != SIG_ERR;
}

bool prepare_input(const RankCommand& command) {
  if (command.input_fd >= 0) return ::dup2(command.input_fd, STDIN_FILENO) >= 0;
  if (command.reads_input) return true;
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  return nothing >= 0 && ::dup2(nothing, STDIN_FILENO) >= 0;
}

bool keep_open(const std::vector<int>& fds) {
  for (const int fd : fds)
    if (::fcntl(fd, F_SETFD, 0) < 0) return false;
  return true;
}

[[noreturn]] void run_child(const ChildPlan& plan) {
  const bool ready = ::setpgid(0, 0) == 0 && ::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 &&
                     prepare_signals() && prepare_input(plan.command) &&
                     ::dup2(plan.output, STDOUT_FILENO) >= 0 &&
                     ::dup2(plan.error, STDERR_FILENO) >= 0 && keep_open(plan.command.kept_fds) &&
                     ::setrlimit(RLIMIT_NOFILE, &plan.command.open_files) == 0;
  if (::getppid() != plan.parent) ::_exit(127);  // mlaunch died before PDEATHSIG was set
  if (ready) ::execve(plan.command.path.c_str(), plan.arguments.data(), plan.environment.data());
  const int number = errno;
  if (::write(plan.failure, &number, sizeof(number)) < 0) ::_exit(126);
  ::_exit(127);
}

/// Returns 0 when exec succeeded (the pipe closed empty), else errno.
int read_exec_error(int fd) {
  int number = 0;
  ssize_t count = 0;
  while ((count = ::read(fd, &number, sizeof(number))) < 0 && errno == EINTR) {
  }
  return count == static_cast<ssize_t>(sizeof(number)) ? number : 0;
}

void set_nonblocking(const UniqueFd& fd) {
  const int flags = checked(::fcntl(fd.get(), F_GETFL), "reading pipe flags");
  checked(::fcntl(fd.get(), F_SETFL, flags | O_NONBLOCK), "setting pipe flags");
}

}  // namespace

RankProcess start_rank(const RankCommand& command) {
  Pipe output = make_pipe();
  Pipe error = make_pipe();
  Pipe failure = make_pipe();
  const ChildPlan plan{command,
                       pointers_to(command.arguments),
                       pointers_to(command.environment),
                       ::getpid(),
                       output.write.get(),
                       error.write.get(),
                       failure.write.get()};
  const pid_t pid = checked(::fork(), "starting one more process (see ulimit -u)");
  if (pid == 0) run_child(plan);
  failure.write.close();
  if (const int number = read_exec_error(failure.read.get()); number != 0) {
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    errno = number;
    throw_system_error("executing " + command.path);
  }
  set_nonblocking(output.read);
  set_nonblocking(error.read);
  return {pid, std::move(output.read), std::move(error.read)};
}

rlimit raise_open_files() {
  rlimit before{};
  checked(::getrlimit(RLIMIT_NOFILE, &before), "reading the limit of open files");
  rlimit raised = before;
  raised.rlim_cur = raised.rlim_max;
  checked(::setrlimit(RLIMIT_NOFILE, &raised), "raising the limit of open files");
  return before;
}

void signal_rank(pid_t pid, int number) {
  // A program that made itself a new session or group is still reached by its own number. One that
  // is not is dead and about to be reported.
  if (::kill(-pid, number) != 0) (void)::kill(pid, number);
}

}  // namespace strata::launcher
