#include "launcher/start/starters.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "core/child_end.h"
#include "core/error.h"
#include "core/own_files.h"
#include "core/system_call.h"
#include "launcher/command/program_path.h"

namespace strata::launcher {
namespace {

/// Returns a pipe's end from which `input` can be read; it must fit into a pipe.
UniqueFd pipe_with(const std::string& input) {
  int ends[2];
  checked(::pipe2(ends, O_CLOEXEC), "creating a pipe for a secret");
  const UniqueFd write_end(ends[1]);
  UniqueFd read_end(ends[0]);
  const ssize_t written = ::write(write_end.get(), input.data(), input.size());
  if (written != static_cast<ssize_t>(input.size())) throw_system_error("writing a secret");
  return read_end;
}

/// False for empty lines, and for those that mpirun draws around its messages.
bool has_words(const std::string& line) {
  return std::ranges::any_of(line, [](unsigned char letter) { return std::isalnum(letter) != 0; });
}

}  // namespace

Starters::~Starters() { kill(); }

void Starters::start(TimePoint now, const std::vector<AgentStart>& agents, std::string input) {
  input_ = std::move(input);
  for (const AgentStart& agent : agents) start(now, agent);
}

pid_t Starters::start(TimePoint now, const AgentStart& agent) {
  const UniqueFd secret = pipe_with(input_);
  const char* path = std::getenv("PATH");
  RankCommand starter;
  starter.path = find_program(agent.command.front(), "", path != nullptr ? path : "/usr/bin:/bin");
  starter.arguments = agent.command;
  starter.environment = agent.environment;
  starter.input_fd = secret.get();
  checked(::getrlimit(RLIMIT_NOFILE, &starter.open_files), "reading the limit of open files");
  RankProcess process = start_rank(starter);
  UniqueFd number;
  try {
    number = watch_child(process.pid);
  } catch (const Error&) {
    (void)::kill(process.pid, SIGKILL);  // nobody would know of it
    throw;
  }
  const pid_t pid = process.pid;
  Starter& started = starters_.emplace_back(Starter{agent, std::move(process), now});
  started.number = std::move(number);
  return pid;
}

bool Starters::is_missed(const Starter& starter) const {
  return starter.is_awaited && !starter.told && !named_.contains(starter.start.host);
}

/// Names the hosts that have not come, each once.
void Starters::name_missing(TimePoint now) {
  std::string names;
  for (const Starter& starter : starters_)
    if (is_missed(starter) && starter.since + kArrival <= now) {
      names += (names.empty() ? "" : ", ") + starter.start.name;
      named_.insert(starter.start.host);
    }
  if (!names.empty())
    screen_.say(
        fmt::format("mlaunch: after {} s ssh still waits for {}; is it up, and does ssh {} "
                    "true end at once?",
                    kArrival.count(), names, names.substr(0, names.find(','))));
}

UniqueFd& Starters::pipe(Starter& starter, OutputKind kind) {
  return kind == OutputKind::standard_output ? starter.process.output : starter.process.error;
}

void Starters::add_polls(std::vector<pollfd>& entries) {
  for (const OutputKind kind : kOutputKinds) {
    if (screen_.queue(kind).full()) continue;  // its writers shall wait
    for (Starter& starter : starters_)
      if (const UniqueFd& fd = pipe(starter, kind); fd.valid())
        entries.push_back({fd.get(), POLLIN, 0});
  }
}

void Starters::work(TimePoint now) {
  for (const OutputKind kind : kOutputKinds)
    for (Starter& starter : starters_)
      if (!screen_.queue(kind).full()) read(starter, kind);
  name_missing(now);
}

void Starters::read(Starter& starter, OutputKind kind) {
  UniqueFd& fd = pipe(starter, kind);
  if (!fd.valid()) return;
  std::array<char, 64 * 1024> bytes;
  const ssize_t count = ::read(fd.get(), bytes.data(), bytes.size());
  if (count > 0) return print(starter, kind, {bytes.data(), static_cast<std::size_t>(count)});
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (!starter.partial[static_cast<int>(kind)].empty()) print(starter, kind, "\n");
  fd.close();
}

void Starters::print(Starter& starter, OutputKind kind, std::string_view bytes) {
  std::string& partial = starter.partial[static_cast<int>(kind)];
  for (std::size_t end = 0; (end = bytes.find('\n')) != std::string_view::npos;) {
    partial += bytes.substr(0, end);
    bytes.remove_prefix(end + 1);
    if (starter.is_awaited && kind == OutputKind::standard_output && partial == kSshIsThere) {
      starter.is_awaited = false;
      partial.clear();
      continue;
    }
    if (kind == OutputKind::standard_error && has_words(partial)) starter.last_line = partial;
    screen_.print(kind, std::exchange(partial, {}));
  }
  partial += bytes;
  if (partial.size() > Screen::kMaxLineBytes) screen_.print(kind, std::exchange(partial, {}));
}

std::vector<Starters::Ended> Starters::take_ended(TimePoint now) {
  std::vector<Ended> ended;
  for (Starter& starter : starters_) {
    if (starter.process.output.valid() || starter.process.error.valid() || starter.told) continue;
    starter.told = true;
    const AgentStart& agent = starter.start;
    ended.push_back(
        {agent.host, starter.last_line.empty()
                         ? fmt::format("{} for {} has ended without a word; is {}/mlaunch there?",
                                       agent.command.front(), agent.name, own_directory())
                         : starter.last_line});
    again_.push_back({now + kBetweenStarts, agent, ""});
  }
  return ended;
}

std::vector<pid_t> Starters::start_again(TimePoint now) {
  std::vector<pid_t> started;
  while (!again_.empty() && again_.front().when <= now) {
    Again again = std::move(again_.front());
    again_.pop_front();
    try {
      started.push_back(start(now, again.agent));
    } catch (const Error& error) {
      // A program may lie where nothing can be read now, and a process may be too many now.
      if (std::exchange(again.why_not, error.what()) != error.what())
        screen_.say(fmt::format("mlaunch: host {} cannot be started again: {}", again.agent.name,
                                error.what()));
      again.when = now + kBetweenStarts;
      again_.push_back(std::move(again));
    }
  }
  return started;
}

std::optional<Starters::TimePoint> Starters::next_deadline() const {
  std::optional<TimePoint> next;
  if (!again_.empty()) next = again_.front().when;
  for (const Starter& starter : starters_)
    if (is_missed(starter))
      next = std::min(next.value_or(TimePoint::max()), starter.since + kArrival);
  return next;
}

bool Starters::any_left() const {
  return std::ranges::any_of(starters_, [](const Starter& starter) { return !starter.told; });
}

void Starters::kill() {
  for (const Starter& starter : starters_)
    if (!starter.told)
      // glibc 2.36 declares this call for C alone.
      (void)::syscall(SYS_pidfd_send_signal, starter.number.get(), SIGKILL, nullptr, 0);
}

}  // namespace strata::launcher
