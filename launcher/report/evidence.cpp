#include "launcher/report/evidence.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <sstream>
#include <system_error>

#include "core/child_end.h"
#include "core/error.h"
#include "core/integer.h"
#include "core/process_stat.h"
#include "core/spawn_settings.h"
#include "core/unique_fd.h"

namespace strata::launcher {
namespace {

constexpr std::size_t kMostStackBytes = 16 * 1024;
constexpr std::chrono::milliseconds kForToolsEnd{500};  ///< of a tool that was killed

std::string line_of(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

/// Returns the name of a system call whose first argument is a descriptor; "" for others.
std::string_view call_on_file(long number) {
  constexpr std::array<std::pair<long, std::string_view>, 12> kCalls{{{SYS_read, "read"},
                                                                      {SYS_write, "write"},
                                                                      {SYS_pread64, "read"},
                                                                      {SYS_pwrite64, "write"},
                                                                      {SYS_readv, "read"},
                                                                      {SYS_writev, "write"},
                                                                      {SYS_fsync, "fsync"},
                                                                      {SYS_fdatasync, "fdatasync"},
                                                                      {SYS_fallocate, "fallocate"},
                                                                      {SYS_flock, "flock"},
                                                                      {SYS_fcntl, "fcntl"},
                                                                      {SYS_recvmsg, "receive"}}};
  const auto found = std::ranges::find(kCalls, number, &std::pair<long, std::string_view>::first);
  return found == kCalls.end() ? "" : found->second;
}

/// True if a thread in `state` waits for a page of its memory. `in`: the function of the kernel.
/// `syscall`: as call_of reads it; -1 where the thread waits outside of system calls, as after a
/// page fault. Reads of files wait in some of these functions, too.
bool waits_for_page(char state, std::string_view in, std::string_view syscall) {
  constexpr std::array kAlways{"do_swap_page", "swap", "filemap_fault"};
  constexpr std::array kAfterFaults{"folio_wait", "folio_lock",   "__folio_lock",   "__lock_page",
                                    "lock_page",  "wait_on_page", "__wait_on_page", "io_schedule"};
  const auto begins = [in](std::string_view name) { return in.starts_with(name); };
  if (state != 'D') return false;
  return std::ranges::any_of(kAlways, begins) ||
         (syscall.starts_with("-1") && std::ranges::any_of(kAfterFaults, begins));
}

/// Describes the system call that a thread is in, from /proc/PID/task/ID/syscall: its number and
/// arguments in hexadecimal, "running", or -1.
std::string call_of(const std::filesystem::path& process, const std::string& syscall) {
  std::istringstream fields(syscall);
  long number = -1;
  std::string argument;
  if (!(fields >> number >> argument) || number < 0) return "";
  if (number == SYS_io_uring_enter) return "waiting for a disk (io_uring)";
  const std::string_view name = call_on_file(number);
  if (name.empty()) return "";
  const unsigned long descriptor = std::strtoul(argument.c_str(), nullptr, 16);
  std::error_code error;
  const auto file =
      std::filesystem::read_symlink(process / "fd" / std::to_string(descriptor), error);
  return fmt::format("{} of {}", name, error ? "a file" : file.string());
}

/// Says what one thread does, or several do.
std::string_view state_name(char state, bool frozen, bool several) {
  if (frozen && state != 'Z') return several ? "are frozen" : "is frozen";
  switch (state) {
    case 'R':
      return several ? "run" : "runs";
    case 'S':
      return several ? "sleep" : "sleeps";
    case 'D':
      return several ? "wait for a device" : "waits for a device";
    case 'T':
      return several ? "are stopped" : "is stopped";
    case 't':
      return several ? "are traced" : "is traced";
    case 'Z':
      return several ? "have ended" : "has ended";
    default:
      return several ? "are in an unknown state" : "is in an unknown state";
  }
}

/// Reads what a program writes to `output` until it ends, `limit` passes or it is too much.
std::string read_for(int output, std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  std::string text;
  while (text.size() < kMostStackBytes) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    pollfd entry{output, POLLIN, 0};
    if (left.count() <= 0 || ::poll(&entry, 1, static_cast<int>(left.count())) <= 0) break;
    std::array<char, 4096> bytes;
    const ssize_t count = ::read(output, bytes.data(), bytes.size());
    if (count <= 0) break;
    text.append(bytes.data(), static_cast<std::size_t>(count));
  }
  return text;
}

}  // namespace

std::vector<ThreadFacts> threads_of(pid_t pid, const std::filesystem::path& processes) {
  const std::filesystem::path process = processes / std::to_string(pid);
  std::vector<ThreadFacts> threads;
  std::error_code error;
  std::filesystem::directory_iterator it(process / "task", error);
  for (const std::filesystem::directory_iterator end; !error && it != end; it.increment(error)) {
    const auto id = parse_integer(it->path().filename().string());
    if (!id) continue;
    ThreadFacts facts{static_cast<pid_t>(*id), line_of(it->path() / "comm"), '?', "", ""};
    const std::string syscall = line_of(it->path() / "syscall");
    if (const auto stat = read_process_stat(it->path())) facts.state = stat->state;
    facts.in = line_of(it->path() / "wchan");
    if (facts.in == "0") facts.in.clear();
    facts.pages = waits_for_page(facts.state, facts.in, syscall);
    if (!facts.pages) facts.call = call_of(process, syscall);
    threads.push_back(std::move(facts));
  }
  std::ranges::sort(threads, {}, &ThreadFacts::id);
  return threads;
}

std::string what_holds(const std::vector<ThreadFacts>& threads) {
  if (threads.empty()) return "its process is gone";
  const auto any = [&](char state) {
    return std::ranges::find(threads, state, &ThreadFacts::state);
  };
  if (threads.front().state == 'T') return "stopped by a signal (SIGSTOP, or its terminal)";
  // One that pages tells more than others that wait, and is what the advice is about.
  if (std::ranges::any_of(threads, &ThreadFacts::pages))
    return "paging (memory is read back from a disk or swap)";
  if (const auto waits = any('D'); waits != threads.end())
    return waits->call.empty() ? fmt::format("waiting for a device in {}", waits->in)
                               : "in " + waits->call;
  if (any('R') != threads.end()) return "computing";
  for (const ThreadFacts& thread : threads)
    if (!thread.call.empty() && thread.call.find(" of /") != std::string::npos)
      return "in " + thread.call;
  return "asleep: its threads wait for one another, for a peer or for a device";
}

std::string describe_threads(const std::vector<ThreadFacts>& threads, bool frozen) {
  struct Kind {
    std::string name, place;
    char state;
    auto operator<=>(const Kind&) const = default;
  };
  std::map<Kind, int> alike;
  for (const ThreadFacts& thread : threads) {
    std::string place;
    if (!thread.call.empty())
      place = ", " + thread.call;
    else if (!thread.in.empty())
      place = " in " + thread.in + (thread.pages ? " (paging)" : "");
    ++alike[{thread.name, place, thread.state}];
  }
  std::string text;
  for (const auto& [kind, count] : alike)
    text += fmt::format("{}{}'{}' {}{}", text.empty() ? "" : "\n",
                        count > 1 ? fmt::format("{} of ", count) : "", kind.name,
                        state_name(kind.state, frozen, count > 1), kind.place);
  return text;
}

std::string stacks_of(pid_t pid, std::chrono::milliseconds limit) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return "";
  const UniqueFd output(ends[0]);
  UniqueFd input(ends[1]);
  pid_t tool = -1;
  try {
    SpawnSettings settings;
    settings.connect(input.get(), STDOUT_FILENO);
    settings.open("/dev/null", O_WRONLY, STDERR_FILENO);
    if (settings.start({"eu-stack", "-n", "24", "-p", std::to_string(pid)}, tool) != 0) return "";
  } catch (const HostError&) {
    return "";  // a report without stacks is still one
  }
  input.close();
  std::string text = read_for(output.get(), limit);
  (void)::kill(tool, SIGKILL);  // it has ended, or has had its time
  try {
    // One that waits inside the kernel counts as left behind by the ranks: it is reaped with what
    // they leave once it ends, or given up with that.
    (void)wait_for_child(tool, std::chrono::steady_clock::now() + kForToolsEnd);
  } catch (const HostError&) {
    // The text is whole all the same.
  }
  return text;
}

}  // namespace strata::launcher
