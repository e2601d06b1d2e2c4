#include "launcher/supervisor.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "core/system_call.h"
#include "launcher/descendants.h"
#include "launcher/rank_group.h"
#include "launcher/run_report.h"
#include "launcher/screen.h"
#include "launcher/signals.h"
#include "launcher/state_machine.h"

namespace strata::launcher {
namespace {

constexpr std::chrono::milliseconds kLeftoverPoll{20};
constexpr std::chrono::milliseconds kLastWords{500};

TimePoint now() { return std::chrono::steady_clock::now(); }

class Supervisor {
 public:
  explicit Supervisor(const Run& run);
  int run();

 private:
  void wait_for_something();
  void read_signals();
  void write_outputs();
  void write_last_words();
  void watch_leftovers();
  void tell(const Event& event);
  void tell_all(const std::vector<Event>& events);
  void act(const Action& action);
  void say(const std::string& text) { screen_.say("mlaunch: " + text); }
  [[nodiscard]] int poll_timeout_ms() const;

  const Run& run_;
  const std::int64_t kills_before_ = out_of_memory_kills();
  SignalQueue signals_;
  Screen screen_;
  StateMachine machine_;
  RankGroup ranks_;
  bool output_error_told_[2] = {false, false};
  bool ending_leftovers_ = false;
  bool leftovers_gone_ = false;
  std::optional<int> exit_code_;
};

Supervisor::Supervisor(const Run& run)
    : run_(run),
      screen_(run.options.ranks, run.options.prefix, STDOUT_FILENO, STDERR_FILENO),
      machine_(run.options.ranks, run.options.grace),
      ranks_(run, screen_) {
  become_subreaper();
}

int Supervisor::run() {
  tell_all(ranks_.start());
  while (!exit_code_) {
    wait_for_something();
    read_signals();
    for (const std::string& complaint : ranks_.serve_rendezvous(now())) say(complaint);
    tell_all(ranks_.read_outputs());
    tell_all(ranks_.reap());
    watch_leftovers();
    if (const auto deadline = machine_.next_deadline(); deadline && *deadline <= now())
      tell(Tick{});
    write_outputs();
  }
  report_run(run_, machine_, ranks_, out_of_memory_kills() - kills_before_, screen_);
  write_last_words();
  return *exit_code_;
}

void Supervisor::wait_for_something() {
  std::vector<pollfd> entries{{signals_.fd(), POLLIN, 0}};
  ranks_.add_polls(entries);
  for (const OutputKind kind : kOutputKinds)
    if (OutputQueue& queue = screen_.queue(kind); queue.pending())
      entries.push_back({queue.fd(), POLLOUT, 0});
  if (::poll(entries.data(), entries.size(), poll_timeout_ms()) < 0 && errno != EINTR)
    throw_system_error("waiting for the ranks");
}

int Supervisor::poll_timeout_ms() const {
  std::optional<TimePoint> next = sooner(machine_.next_deadline(), ranks_.next_deadline());
  if (ending_leftovers_ && !leftovers_gone_) next = sooner(next, now() + kLeftoverPoll);
  if (!next) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*next - now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
}

void Supervisor::read_signals() {
  while (const int number = signals_.next())
    if (number != SIGCHLD) tell(SignalReceived{number});
}

void Supervisor::write_outputs() {
  for (const OutputKind kind : kOutputKinds) {
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

/// Checks, once the ranks are gone, whether their descendants are gone, too.
void Supervisor::watch_leftovers() {
  const auto& endings = machine_.endings();
  const bool ranks_gone = std::all_of(endings.begin(), endings.end(),
                                      [](const auto& ending) { return ending.has_value(); });
  if (exit_code_ || !ranks_gone || leftovers_gone_) return;
  if (!ranks_.has_children()) {
    leftovers_gone_ = true;
    return tell(NoProcessLeft{});
  }
  if (ending_leftovers_) ranks_.kill_children();
}

void Supervisor::tell_all(const std::vector<Event>& events) {
  for (const Event& event : events) tell(event);
}

void Supervisor::tell(const Event& event) {
  if (exit_code_) return;
  for (const Action& action : machine_.handle(now(), event)) act(action);
}

void Supervisor::act(const Action& action) {
  if (const auto* signal = std::get_if<SignalRank>(&action)) {
    ranks_.signal(signal->rank, signal->number);
  } else if (const auto* fail = std::get_if<FailWaitingPeers>(&action)) {
    ranks_.fail_waiting_peers(fail->reason);
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

/// Writes all output: without a limit of time, unless the user ended the run.
void Supervisor::write_last_words() {
  const TimePoint limit = now() + kLastWords;
  for (const OutputKind kind : kOutputKinds) {
    OutputQueue& queue = screen_.queue(kind);
    for (queue.write_some(); queue.pending(); queue.write_some()) {
      if (machine_.user_signal() != 0 && now() > limit) break;
      pollfd entry{queue.fd(), POLLOUT, 0};
      if (::poll(&entry, 1, 100) < 0 && errno != EINTR) break;
    }
  }
}

}  // namespace

int supervise(const Run& run) { return Supervisor(run).run(); }

}  // namespace strata::launcher
