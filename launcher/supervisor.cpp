#include "launcher/supervisor.h"

#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/system_call.h"
#include "launcher/attempt.h"
#include "launcher/command/command_text.h"
#include "launcher/control/local_control.h"
#include "launcher/group/descendants.h"
#include "launcher/group/signals.h"
#include "launcher/output/log_folder.h"
#include "launcher/output/screen.h"
#include "launcher/report/report_json.h"
#include "launcher/report/run_report.h"
#include "launcher/views/control_socket.h"
#include "launcher/views/run_status.h"

namespace strata::launcher {
namespace {

constexpr std::chrono::milliseconds kLastWords{500};

class Supervisor {
 public:
  explicit Supervisor(const Run& run);
  int run();

 private:
  void note_beginning();
  void tell_end();
  void wait_for_something();
  void read_signals();
  void watch_attempt();
  void write_outputs();
  void write_last_words();
  void open_control_socket();
  [[nodiscard]] RunStatus status() const;
  std::string stop(bool at_once);
  void tell_report(const AttemptReport& report);
  void keep_evidence(const std::string& why);
  template <typename Event>
  void tell(const Event& event);
  void act(const LocalAction& action);
  void say(const std::string& text) { screen_.say("mlaunch: " + text); }
  [[nodiscard]] int poll_timeout_ms() const;

  Run run_;
  const std::chrono::system_clock::time_point started_at_ = std::chrono::system_clock::now();
  const TimePoint began_ = now();
  std::optional<LogFolder> logs_;
  std::string reports_;  ///< of all attempts, if logs are kept
  std::string hang_;     ///< what was said of the last hang
  SignalQueue signals_;
  Screen screen_;
  LocalControl control_;
  std::unique_ptr<Attempt> attempt_;  ///< null between attempts
  std::optional<ControlSocket> control_socket_;
  int user_signal_ = 0;  ///< with which the user ended the run; 0: none
  bool output_error_told_[2] = {false, false};
  std::optional<int> exit_code_;
};

Supervisor::Supervisor(const Run& run)
    : run_(run),
      screen_(run.options.ranks, run.options.prefix, STDOUT_FILENO, STDERR_FILENO),
      control_(now(), run.host, run.options.ranks, run.options.restarts, run.options.hang_timeout) {
  if (!run_.options.log_directory.empty()) {
    logs_.emplace(run_.options.log_directory, run_.run_id);
    run_.logs = &*logs_;
    note_beginning();
    screen_.listen([this](std::string_view line) { logs_->note(line); });
    say("logs of ranks are kept in " + logs_->path());
  }
  run_.open_files = raise_open_files();
  become_subreaper();
  open_control_socket();
}

/// Writes to the log what is on no screen: the command, and where it runs.
void Supervisor::note_beginning() {
  std::error_code error;
  logs_->note(command_text(run_.typed));
  logs_->note(fmt::format("run {} begins on host {}, process {}, in {}", run_.run_id, run_.host,
                          ::getpid(), std::filesystem::current_path(error).string()));
  for (const std::string& note : run_.options.notes) logs_->note("note: " + note);
}

/// A run goes on without a socket: only `mlaunch status` and `mlaunch stop` need it.
void Supervisor::open_control_socket() {
  const auto open_folder = [] { return ControlFolder::make(ControlFolder::places().front()); };
  try {
    control_socket_.emplace(open_folder, run_.run_id,
                            ControlSocket::Answers{[this] { return status_json(status()); },
                                                   [this](bool at_once) { return stop(at_once); }});
  } catch (const HostError& error) {
    say(std::string("note: mlaunch status and mlaunch stop do not reach this run: ") +
        error.what());
  }
}

int Supervisor::run() {
  for (const LocalAction& action : control_.begin(now())) act(action);
  while (!exit_code_) {
    wait_for_something();
    read_signals();
    if (attempt_) watch_attempt();
    if (control_socket_) control_socket_->work(now());
    if (const auto deadline = control_.next_deadline();
        !exit_code_ && deadline && *deadline <= now()) {
      tell(AgentEvent(AgentTick{attempt_ ? attempt_->look() : std::vector<RankState>{}}));
      if (!exit_code_) tell(CoordinatorEvent(CoordinatorTick{}));
    }
    if (logs_)
      if (const auto complaint = logs_->take_complaint()) say(*complaint);
    write_outputs();
  }
  tell_end();
  if (logs_) logs_->note(fmt::format("the run ends with exit code {}", *exit_code_));
  write_last_words();
  return *exit_code_;
}

void Supervisor::wait_for_something() {
  std::vector<pollfd> entries{{signals_.fd(), POLLIN, 0}};
  if (attempt_) attempt_->add_polls(entries);
  if (control_socket_) control_socket_->add_polls(entries);
  for (const OutputKind kind : kOutputKinds)
    if (OutputQueue& queue = screen_.queue(kind); queue.pending())
      entries.push_back({queue.fd(), POLLOUT, 0});
  if (::poll(entries.data(), entries.size(), poll_timeout_ms()) < 0 && errno != EINTR)
    throw_system_error("waiting for the ranks");
}

int Supervisor::poll_timeout_ms() const {
  std::optional<TimePoint> next = control_.next_deadline();
  if (attempt_) next = sooner(next, attempt_->next_deadline());
  if (control_socket_) next = sooner(next, control_socket_->next_deadline());
  if (!next) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*next - now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
}

void Supervisor::read_signals() {
  while (const int number = signals_.next())
    if (number != SIGCHLD) tell(CoordinatorEvent(RunSignal{number}));
}

RunStatus Supervisor::status() const {
  const Coordinator& coordinator = control_.coordinator();
  RunStatus status;
  status.run_id = run_.run_id;
  status.program = run_.options.command.front();
  status.host = run_.host;
  status.process = ::getpid();
  status.started_at = started_at_;
  status.seconds = std::chrono::duration<double>(now() - began_).count();
  status.attempt = coordinator.attempt();
  status.restarts = coordinator.restarts_within(now());
  status.most_restarts = run_.options.restarts.most_restarts;
  status.grace_seconds = std::chrono::floor<std::chrono::seconds>(run_.options.grace).count();
  status.stopping = coordinator.is_asked_to_end();
  if (logs_) status.log_folder = logs_->path();
  if (attempt_) status.ranks = attempt_->view();
  return status;
}

/// Obeys `mlaunch stop`. Asking twice is no haste, other than with signals.
std::string Supervisor::stop(bool at_once) {
  const bool was_asked = control_.coordinator().is_asked_to_end();
  if (at_once || !was_asked) {
    say(at_once ? "mlaunch stop --now ends the ranks"
                : "mlaunch stop asks the ranks to save and end");
    tell(CoordinatorEvent(RunSignal{at_once ? SIGINT : SIGTERM}));
  }
  const bool watches = run_.options.hang_timeout != std::chrono::seconds(0);
  return stop_json({run_.run_id, was_asked, run_.options.grace,
                    watches ? HangWatch::kHeld : run_.options.grace,
                    attempt_ ? attempt_->view() : std::vector<RankView>{}});
}

/// Tells those who wait for the end, and who asks later.
void Supervisor::tell_end() {
  const Coordinator& coordinator = control_.coordinator();
  if (control_socket_)
    control_socket_->end(ended_json(status(), {*exit_code_, std::chrono::system_clock::now(),
                                               coordinator.committed(), coordinator.checkpoint()}));
}

/// Tells how the ranks are.
void Supervisor::watch_attempt() {
  attempt_->work();
  user_signal_ = attempt_->user_signal();
  if (attempt_->take_suspend()) {
    write_outputs();
    checked(::raise(SIGSTOP), "stopping");
  }
  if (const auto failure = attempt_->take_failure()) tell(AgentEvent(FirstFailure{*failure}));
  if (!attempt_ || !attempt_->is_over()) return;
  const AttemptFacts facts = attempt_->facts();
  attempt_.reset();
  if (logs_) {
    logs_->end_attempt();
    logs_->note(fmt::format("attempt {} has ended", control_.coordinator().attempt()));
  }
  tell(AgentEvent(GroupEnded{facts}));
}

void Supervisor::write_outputs() {
  for (const OutputKind kind : kOutputKinds) {
    OutputQueue& queue = screen_.queue(kind);
    queue.write_some();
    bool& told = output_error_told_[static_cast<int>(kind)];
    if (queue.error() == 0 || std::exchange(told, true)) continue;
    if (queue.error() == EPIPE)
      tell(CoordinatorEvent(RunSignal{SIGPIPE}));
    else
      say(std::string("standard ") + (kind == OutputKind::standard_output ? "output" : "error") +
          " is lost, the ranks go on: " + std::strerror(queue.error()));
  }
}

template <typename Event>
void Supervisor::tell(const Event& event) {
  if (exit_code_) return;
  for (const LocalAction& action : control_.handle(now(), event)) act(action);
}

void Supervisor::act(const LocalAction& action) {
  if (const auto* start = std::get_if<StartGroup>(&action)) {
    if (logs_)
      logs_->note(fmt::format("attempt {} starts with {} ranks", start->start.placement.attempt,
                              start->start.placement.world()));
    attempt_ = std::make_unique<Attempt>(run_, start->start, screen_);
  } else if (const auto* end = std::get_if<EndGroup>(&action)) {
    if (attempt_) attempt_->end(end->reason);
  } else if (const auto* signal = std::get_if<SignalGroup>(&action)) {
    if (attempt_) attempt_->signal(signal->number);
  } else if (std::holds_alternative<KillGroup>(action)) {
    if (attempt_) attempt_->kill();
  } else if (const auto* hangs = std::get_if<TellHang>(&action)) {
    if (!attempt_) return;
    const std::string text = attempt_->describe_hang(hangs->hang);
    screen_.say(text);
    if (logs_) logs_->keep_of_attempt("hang.txt", text + "\n");
    hang_ = text;
    attempt_->kill_held(hangs->hang);
  } else if (const auto* told = std::get_if<TellReport>(&action)) {
    tell_report(told->report);
  } else if (const auto* words = std::get_if<Announce>(&action)) {
    say(words->text);
  } else if (const auto* gave_up = std::get_if<KeepEvidence>(&action)) {
    keep_evidence(gave_up->why);
  } else if (const auto* over = std::get_if<EndRun>(&action)) {
    exit_code_ = over->exit_code;
  }
}

void Supervisor::tell_report(const AttemptReport& report) {
  const std::string text = attempt_text(run_, report);
  if (text.empty()) return;
  screen_.say(text);
  if (!logs_) return;
  const auto ended_at = std::chrono::system_clock::now();
  const std::string file = report_file(run_, report, text, hang_, ended_at);
  reports_ += file + "\n";
  logs_->keep_of_attempt("report.txt", file);
  logs_->keep_of_attempt("report.json", report_json(run_, report, ended_at));
}

void Supervisor::keep_evidence(const std::string& why) {
  if (!logs_)
    return say("mlaunch --log-dir DIR keeps what ranks print and the reports of attempts");
  logs_->keep_of_run("gave_up.txt", why + "\n\n" + reports_);
  say("see " + logs_->path());
}

/// Writes all output: without a limit of time, unless the user ended the run.
void Supervisor::write_last_words() {
  const TimePoint limit = now() + kLastWords;
  for (const OutputKind kind : kOutputKinds) {
    OutputQueue& queue = screen_.queue(kind);
    for (queue.write_some(); queue.pending(); queue.write_some()) {
      if (user_signal_ != 0 && now() > limit) break;
      pollfd entry{queue.fd(), POLLOUT, 0};
      if (::poll(&entry, 1, 100) < 0 && errno != EINTR) break;
    }
  }
}

}  // namespace

int supervise(const Run& run) { return Supervisor(run).run(); }

}  // namespace strata::launcher
