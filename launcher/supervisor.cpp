#include "launcher/supervisor.h"

#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/rendezvous_server.h"
#include "core/status_page.h"
#include "core/system_call.h"
#include "launcher/descendants.h"
#include "launcher/failure_report.h"
#include "launcher/rank_environment.h"
#include "launcher/rank_process.h"
#include "launcher/screen.h"
#include "launcher/signals.h"
#include "launcher/state_machine.h"

namespace strata::launcher {
namespace {

constexpr std::chrono::milliseconds kLeftoverPoll{20};
constexpr std::chrono::milliseconds kLastWords{500};
constexpr std::array<OutputKind, 2> kKinds{OutputKind::standard_output, OutputKind::standard_error};

TimePoint now() { return std::chrono::steady_clock::now(); }

class Supervisor {
 public:
  explicit Supervisor(const Run& run);
  int run();

 private:
  struct Rank {
    StatusPage page;
    RankProcess process;
    std::int64_t peak_rss_bytes = 0;
  };

  void start_ranks();
  RankProcess start(int rank, const StatusPage& page);
  void wait_for_something();
  void read_signals();
  void read_outputs();
  void read_output(int rank, OutputKind kind);
  void write_outputs();
  void reap();
  void watch_leftovers();
  void tell(const Event& event);
  void act(const Action& action);
  void say(const std::string& text) { screen_.say("mlaunch: " + text); }
  void report();
  void say_why_it_ended();
  [[nodiscard]] std::optional<Failure> failure_to_report() const;
  [[nodiscard]] bool ended_as_it_meant(int rank) const;
  [[nodiscard]] std::string where(int rank) const;
  [[nodiscard]] std::string error_of(int rank) const;
  [[nodiscard]] UniqueFd& pipe(int rank, OutputKind kind);
  [[nodiscard]] int rank_of(pid_t pid) const;
  [[nodiscard]] int poll_timeout_ms() const;

  const Run& run_;
  const std::set<pid_t> foreign_children_ = children();  // children of the shell that exec'ed us
  const std::int64_t kills_before_ = out_of_memory_kills();
  SignalQueue signals_;
  rlimit open_files_{};  // limit that ranks shall have
  Screen screen_;
  RendezvousServer server_;
  StateMachine machine_;
  std::vector<Rank> ranks_;
  bool output_error_told_[2] = {false, false};
  bool ending_leftovers_ = false;
  bool leftovers_gone_ = false;
  std::optional<int> exit_code_;
};

Supervisor::Supervisor(const Run& run)
    : run_(run),
      screen_(run.options.ranks, run.options.prefix, STDOUT_FILENO, STDERR_FILENO),
      machine_(run.options.ranks, run.options.grace) {
  become_subreaper();
  checked(::getrlimit(RLIMIT_NOFILE, &open_files_), "reading the limit of open files");
  rlimit raised = open_files_;
  raised.rlim_cur = raised.rlim_max;
  checked(::setrlimit(RLIMIT_NOFILE, &raised), "raising the limit of open files");
}

int Supervisor::run() {
  start_ranks();
  while (!exit_code_) {
    wait_for_something();
    read_signals();
    for (const std::string& complaint : server_.process(now())) say(complaint);
    read_outputs();
    reap();
    watch_leftovers();
    if (const auto deadline = machine_.next_deadline(); deadline && *deadline <= now())
      tell(Tick{});
    write_outputs();
  }
  report();
  return *exit_code_;
}

void Supervisor::start_ranks() {
  bool failed = false;
  for (int rank = 0; rank < run_.options.ranks; ++rank) {
    ranks_.push_back({StatusPage::create(rank), {}});
    if (failed) {
      tell(SpawnFailed{rank, "an earlier rank could not be started"});
      continue;
    }
    try {
      ranks_.back().process = start(rank, ranks_.back().page);
    } catch (const Error& error) {
      failed = true;
      tell(SpawnFailed{rank, error.what()});
    }
  }
}

RankProcess Supervisor::start(int rank, const StatusPage& page) {
  const UniqueFd store = server_.add_client(rank);
  RankIdentity identity;
  identity.rank = rank;
  identity.world = run_.options.ranks;
  identity.run_id = run_.run_id;
  identity.host = run_.host;
  identity.grace = std::chrono::floor<std::chrono::seconds>(run_.options.grace);
  identity.store_fd = store.get();
  identity.status_fd = page.fd();
  identity.master_port = run_.master_port;
  identity.visible_devices = run_.visible_devices;
  if (rank == 0) {
    identity.output_on_terminal = screen_.queue(OutputKind::standard_output).is_terminal();
    identity.error_on_terminal = screen_.queue(OutputKind::standard_error).is_terminal();
  }
  std::vector<std::string> inherited;
  for (char** entry = environ; *entry != nullptr; ++entry) inherited.emplace_back(*entry);
  RankCommand command;
  command.path = run_.program_path;
  command.arguments = run_.options.command;
  command.environment = rank_environment(inherited, identity);
  command.kept_fds = {store.get(), page.fd()};
  // A rank is a background process of the terminal, so reading from it would stop the rank.
  command.reads_input = rank == 0 && ::isatty(STDIN_FILENO) != 1;
  command.open_files = open_files_;
  return start_rank(command);
}

void Supervisor::wait_for_something() {
  std::vector<pollfd> entries{{signals_.fd(), POLLIN, 0}, {server_.poll_fd(), POLLIN, 0}};
  for (const OutputKind kind : kKinds) {
    OutputQueue& queue = screen_.queue(kind);
    if (queue.pending()) entries.push_back({queue.fd(), POLLOUT, 0});
    if (queue.full()) continue;  // its writers shall wait
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
      if (const UniqueFd& fd = pipe(static_cast<int>(rank), kind); fd.valid())
        entries.push_back({fd.get(), POLLIN, 0});
  }
  if (::poll(entries.data(), entries.size(), poll_timeout_ms()) < 0 && errno != EINTR)
    throw_system_error("waiting for the ranks");
}

int Supervisor::poll_timeout_ms() const {
  std::optional<TimePoint> next = sooner(machine_.next_deadline(), server_.next_deadline());
  if (ending_leftovers_ && !leftovers_gone_) next = sooner(next, now() + kLeftoverPoll);
  if (!next) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*next - now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
}

void Supervisor::read_signals() {
  while (const int number = signals_.next())
    if (number != SIGCHLD) tell(SignalReceived{number});
}

void Supervisor::read_outputs() {
  for (const OutputKind kind : kKinds)
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
      if (!screen_.queue(kind).full()) read_output(static_cast<int>(rank), kind);
}

void Supervisor::read_output(int rank, OutputKind kind) {
  UniqueFd& fd = pipe(rank, kind);
  if (!fd.valid()) return;
  std::array<char, 64 * 1024> bytes;
  const ssize_t count = ::read(fd.get(), bytes.data(), bytes.size());
  if (count > 0) return screen_.feed(rank, kind, {bytes.data(), static_cast<std::size_t>(count)});
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  screen_.finish_line(rank, kind);
  fd.close();
  const RankProcess& process = ranks_[static_cast<std::size_t>(rank)].process;
  if (!process.output.valid() && !process.error.valid()) tell(RankOutputEnded{rank});
}

void Supervisor::write_outputs() {
  for (const OutputKind kind : kKinds) {
    OutputQueue& queue = screen_.queue(kind);
    queue.write_some();
    bool& told = output_error_told_[static_cast<int>(kind)];
    if (queue.error() == 0 || std::exchange(told, true)) continue;
    if (queue.error() == EPIPE)
      tell(SignalReceived{SIGPIPE});
    else
      say(std::string("standard ") + (kind == OutputKind::standard_output ? "output" : "error") +
          " is lost, the ranks go on: " + std::strerror(queue.error()));
  }
}

void Supervisor::reap() {
  for (;;) {
    int status = 0;
    rusage usage{};
    const pid_t pid = ::wait4(-1, &status, WNOHANG, &usage);
    if (pid < 0 && errno == EINTR) continue;
    if (pid <= 0) return;  // nothing ended, or there is no child
    const int rank = rank_of(pid);
    if (rank < 0) continue;  // pid is of an orphan
    Rank& ended = ranks_[static_cast<std::size_t>(rank)];
    ended.process.pid = -1;
    ended.peak_rss_bytes = std::int64_t{usage.ru_maxrss} * 1024;
    tell(RankEnded{rank, Ending::from_wait_status(status)});
  }
}

/// Checks, once the ranks are gone, whether their descendants are gone, too.
void Supervisor::watch_leftovers() {
  const auto& endings = machine_.endings();
  const bool ranks_gone = std::all_of(endings.begin(), endings.end(),
                                      [](const auto& ending) { return ending.has_value(); });
  if (exit_code_ || !ranks_gone || leftovers_gone_) return;
  std::set<pid_t> leftovers = children();
  for (const pid_t foreign : foreign_children_) leftovers.erase(foreign);
  if (leftovers.empty()) {
    leftovers_gone_ = true;
    return tell(NoProcessLeft{});
  }
  if (ending_leftovers_)  // children not waited for: their numbers cannot be reused
    for (const pid_t pid : leftovers) (void)::kill(pid, SIGKILL);
}

void Supervisor::tell(const Event& event) {
  if (exit_code_) return;
  for (const Action& action : machine_.handle(now(), event)) act(action);
}

void Supervisor::act(const Action& action) {
  if (const auto* signal = std::get_if<SignalRank>(&action)) {
    const std::size_t rank = static_cast<std::size_t>(signal->rank);
    if (rank < ranks_.size() && ranks_[rank].process.pid > 0)
      signal_rank(ranks_[rank].process.pid, signal->number);
  } else if (const auto* fail = std::get_if<FailWaitingPeers>(&action)) {
    server_.fail(fail->reason);
  } else if (std::holds_alternative<EndLeftovers>(action)) {
    ending_leftovers_ = true;
  } else if (std::holds_alternative<Suspend>(action)) {
    write_outputs();
    checked(::raise(SIGSTOP), "stopping");
  } else if (const auto* words = std::get_if<Say>(&action)) {
    say(words->text);
  } else {
    exit_code_ = std::get<Finish>(action).exit_code;
  }
}

/// Says the last words, then writes all output: without a limit of time, unless the user ended the
/// run.
void Supervisor::report() {
  if (const auto failure = failure_to_report()) {
    const Rank& rank = ranks_[static_cast<std::size_t>(failure->rank)];
    FailureFacts facts;
    facts.rank = failure->rank;
    facts.ranks = run_.options.ranks;
    facts.program = run_.options.command.front();
    facts.ending = failure->ending;
    facts.spawn_error = failure->spawn_error;
    facts.where = where(failure->rank);
    facts.error = error_of(failure->rank);
    facts.error_tail = screen_.error_tail(failure->rank);
    facts.peak_rss_bytes = rank.peak_rss_bytes;
    facts.out_of_memory_kills = out_of_memory_kills() - kills_before_;
    for (int other = 0; other < static_cast<int>(ranks_.size()); ++other)
      facts.others.push_back(
          {where(other), error_of(other), machine_.endings()[static_cast<std::size_t>(other)]});
    std::string text = failure_report(facts);
    text.pop_back();
    screen_.say(text);
  } else {
    say_why_it_ended();
  }
  const TimePoint limit = now() + kLastWords;
  for (const OutputKind kind : kKinds) {
    OutputQueue& queue = screen_.queue(kind);
    for (queue.write_some(); queue.pending(); queue.write_some()) {
      if (machine_.user_signal() != 0 && now() > limit) break;
      pollfd entry{queue.fd(), POLLOUT, 0};
      if (::poll(&entry, 1, 100) < 0 && errno != EINTR) break;
    }
  }
}

/// Returns nothing when all went well, or when the run ended on request.
std::optional<Failure> Supervisor::failure_to_report() const {
  const auto& failure = machine_.failure();
  if (failure && ended_as_it_meant(failure->rank)) return std::nullopt;
  if (!machine_.all_stopped()) return failure;
  // Ranks that stop on request have no error on their status pages.
  if (failure && !error_of(failure->rank).empty()) return failure;
  for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank)
    if (!error_of(rank).empty())
      return Failure{rank, *machine_.endings()[static_cast<std::size_t>(rank)], ""};
  return std::nullopt;
}

/// True for a single program that is done: its code may have a meaning, as that of diff does.
bool Supervisor::ended_as_it_meant(int rank) const {
  const auto& ending = machine_.endings()[static_cast<std::size_t>(rank)];
  const StatusPageData& page = ranks_[static_cast<std::size_t>(rank)].page.data();
  return ranks_.size() == 1 && ending && ending->kind == Ending::Kind::exited &&
         page.phase.load() == static_cast<std::uint32_t>(Phase::done) && error_of(rank).empty();
}

void Supervisor::say_why_it_ended() {
  const int number = machine_.user_signal();
  const std::string who = number == SIGINT ? "Ctrl-C" : signal_name(number);
  if (machine_.all_stopped())
    say("stopped on request" + (number != 0 ? " (" + who + ")" : ""));
  else if (number != 0)
    say("ended by " + who + (where(0).empty() ? "" : "; rank 0 was at " + where(0)));
}

/// Returns "" for programs that do not write their status page.
std::string Supervisor::where(int rank) const {
  const StatusPage& page = ranks_[static_cast<std::size_t>(rank)].page;
  const std::string text = page.describe();
  return text == name_of(Phase::starting) ? "" : text;
}

/// Returns the error on the rank's status page; "": none.
std::string Supervisor::error_of(int rank) const {
  const auto& error = ranks_[static_cast<std::size_t>(rank)].page.data().error;
  return {error, ::strnlen(error, sizeof error)};
}

UniqueFd& Supervisor::pipe(int rank, OutputKind kind) {
  RankProcess& process = ranks_[static_cast<std::size_t>(rank)].process;
  return kind == OutputKind::standard_output ? process.output : process.error;
}

int Supervisor::rank_of(pid_t pid) const {
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
    if (ranks_[rank].process.pid == pid) return static_cast<int>(rank);
  return -1;
}

}  // namespace

int supervise(const Run& run) { return Supervisor(run).run(); }

}  // namespace strata::launcher
