#include "launcher/supervisor.h"

#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/own_files.h"
#include "core/system_call.h"
#include "launcher/attempt.h"
#include "launcher/command/command_text.h"
#include "launcher/control/reach.h"
#include "launcher/group/descendants.h"
#include "launcher/group/signals.h"
#include "launcher/output/log_folder.h"
#include "launcher/output/recent_output.h"
#include "launcher/output/screen.h"
#include "launcher/report/report_json.h"
#include "launcher/report/run_report.h"
#include "launcher/run_views.h"
#include "launcher/several_hosts.h"
#include "launcher/start/starters.h"
#include "launcher/views/run_status.h"
#include "launcher/wire/listening_address.h"

namespace strata::launcher {
namespace {

constexpr std::chrono::milliseconds kLastWords{500};
/// Of lines that an agent sends at a time: heartbeats wait behind it.
constexpr std::size_t kPieceBytes = std::size_t{256} << 10;
/// Somebody looks at an agent's ranks if their lines were asked for within this time.
constexpr std::chrono::seconds kWatched{3};
/// Other hosts get the run's last words in this time, or learn of its end by their leases.
constexpr std::chrono::milliseconds kLastWordsToHosts{2000};
/// An agent that has ended is started again after this time.
constexpr std::chrono::seconds kBetweenStarts{5};

class Supervisor {
 public:
  explicit Supervisor(const Run& run);
  int run();

 private:
  void note_beginning();
  void tell_end();
  void wait_for_something();
  void read_signals();
  void take_signal(int number);
  void watch_attempt();
  void send_output(std::uint64_t from);
  void send_last_output();
  void read_wire();
  void watch_starters();
  void start_agents_again();
  void wait_for_starters();
  void watch_coordinator();
  void leave(int exit_code, const std::string& why);
  void leave_by_signal();
  void keep_logs();
  void write_outputs();
  void write_last_words();
  void open_views();
  [[nodiscard]] RunStatus status() const;
  /// Looks at the ranks of this host.
  [[nodiscard]] std::vector<RankState> look() const;
  std::string stop(bool at_once);
  void tell_report(const AttemptReport& report);
  void keep_evidence(const std::string& why);
  template <typename Event>
  void tell(const Event& event);
  void act(const ControlAction& action);
  void act_on_group(const ControlAction& action);
  void hear(const AgentSaid& event) { tell(CoordinatorEvent(event)); }
  void hear(const ConnectionBroke& event) { tell(CoordinatorEvent(event)); }
  void hear(const ViewAsked& event) { views_->hear(event); }
  void hear(const ViewLeft& event) { views_->hear(event); }
  void hear(const HostPrinted& event) { views_->hear(now(), event); }
  void hear(const OutputWanted& event) { send_output(event.number); }
  void hear(const CoordinatorSaid& event) { tell(AgentEvent(event)); }
  void hear(const Connected&);
  void hear(const Welcomed& event);
  void hear(const NotWelcome& event);
  void hear(const CoordinatorOutOfReach& event) { reach_.lost(now(), event.reason); }
  void say(const std::string& text) { screen_.say("mlaunch: " + text); }
  [[nodiscard]] int poll_timeout_ms() const;

  Run run_;
  const std::chrono::system_clock::time_point started_at_ = std::chrono::system_clock::now();
  const TimePoint began_ = now();
  std::optional<LogFolder> logs_;
  std::string reports_;  ///< of all attempts, if logs are kept
  std::string hang_;     ///< what was said of the last hang
  RecentOutput recent_;
  struct Sent {
    TimePoint when;
    std::uint64_t next = 0;
  };
  std::optional<Sent> sent_;  ///< of recent_, to a coordinator that asked for it
  SignalQueue signals_;
  Screen screen_;
  Starters starters_{screen_};
  struct Again {
    TimePoint when;
    AgentStart start;
  };
  std::deque<Again> again_;  ///< agents to start again, soonest first
  RunParts parts_;
  RunControl& control_;
  Reach reach_{now()};                ///< of an agent to its coordinator
  std::optional<int> leaving_;        ///< exit code of an agent that ends once its ranks have
  int signal_to_end_ = 0;             ///< to this agent; 0: none
  std::unique_ptr<Attempt> attempt_;  ///< null between attempts
  std::optional<RunViews> views_;     ///< of the run's coordinator
  int user_signal_ = 0;               ///< with which the user ended the run; 0: none
  bool output_error_told_[2] = {false, false};
  std::optional<int> exit_code_;
};

std::string waiting_text(const Run& run) {
  const Options::Hosts& hosts = run.options.hosts;
  const int others = hosts.node < 0 ? hosts.count : hosts.count - 1;
  const int needed = hosts.least - (hosts.count - others);
  const std::string range = needed == others ? "" : fmt::format("{} to ", std::max(needed, 0));
  return fmt::format("run {} waits at {} for {}{} {}host{}", run.run_id,
                     host_and_port(run.host_address, hosts.port), range, others,
                     hosts.node < 0 ? "" : "more ", others == 1 ? "" : "s");
}

/// Of all ranks together 64 MiB are kept, and never more than 1 MiB of one. An agent keeps what the
/// ranks of its host print, the coordinator gets that of all hosts where somebody looks.
std::size_t bytes_kept_of_a_rank(const Options& options) {
  constexpr std::size_t kOfAll = std::size_t{64} << 20, kOfOne = std::size_t{1} << 20;
  std::size_t ranks = 0;
  for (const ListedHost& host : options.hosts.listed) ranks += static_cast<std::size_t>(host.slots);
  if (ranks == 0) ranks = static_cast<std::size_t>(options.ranks);
  if (options.hosts.listed.empty() && options.hosts.coordinates)
    ranks *= static_cast<std::size_t>(options.hosts.count);
  return std::min(kOfOne, kOfAll / ranks);
}

Supervisor::Supervisor(const Run& run)
    : run_(run),
      recent_(bytes_kept_of_a_rank(run.options)),
      screen_(run.options.ranks, run.options.prefix, STDOUT_FILENO, STDERR_FILENO,
              !run.options.hosts.are_several()),
      parts_(make_run_parts(now(), run_)),
      control_(*parts_.control) {
  run_.open_files = raise_open_files();
  run_.recent = &recent_;
  screen_.listen([this](std::string_view line) {
    if (logs_) logs_->note(line);
    recent_.say(line);
  });
  become_subreaper();
  if (is_agent(run_)) return;  // it learns which run this is when it is let in
  keep_logs();
  open_views();
}

void Supervisor::keep_logs() {
  if (run_.options.log_directory.empty() || logs_) return;
  logs_.emplace(run_.options.log_directory, run_.run_id,
                is_agent(run_) ? std::optional(run_.options.hosts.node) : std::nullopt);
  run_.logs = &*logs_;
  note_beginning();
  say("logs of ranks are kept in " + logs_->path());
}

/// Writes to the log what is on no screen: the command, and where it runs.
void Supervisor::note_beginning() {
  std::error_code error;
  logs_->note(command_text(run_.typed));
  logs_->note(fmt::format("run {} begins on host {}, process {}, in {}", run_.run_id, run_.host,
                          ::getpid(), std::filesystem::current_path(error).string()));
  for (const std::string& note : run_.options.notes) logs_->note("note: " + note);
}

/// A run goes on without a socket: only those who look at it need it.
void Supervisor::open_views() {
  views_.emplace(run_, *control_.coordinator(), recent_, parts_.wire.get(),
                 RunViews::Answers{[this] { return status(); },
                                   [this](bool at_once) { return stop(at_once); }});
  if (run_.options.web_port) {
    views_->open_page(*run_.options.web_port);
    say(fmt::format("the run is shown at http://127.0.0.1:{}", views_->page_port()));
  }
  try {
    views_->open_socket();
  } catch (const HostError& error) {
    say(std::string("note: mlaunch status, mlaunch stop and mlaunch logs do not reach this run: ") +
        error.what());
  }
}

int Supervisor::run() {
  if (parts_.wire && !is_agent(run_)) say(waiting_text(run_));
  for (const AgentStart& start : parts_.starts) starters_.start(start, parts_.agents_secret);
  for (const ControlAction& action : control_.begin(now())) act(action);
  while (!exit_code_) {
    wait_for_something();
    read_signals();
    if (parts_.wire) read_wire();
    watch_starters();
    if (attempt_) watch_attempt();
    if (is_agent(run_)) watch_coordinator();
    if (views_) views_->work(now());
    if (const auto deadline = control_.next_deadline();
        !exit_code_ && deadline && *deadline <= now()) {
      tell(AgentEvent(AgentTick{look()}));
      if (!exit_code_) tell(CoordinatorEvent(CoordinatorTick{}));
    }
    if (logs_)
      if (const auto complaint = logs_->take_complaint()) say(*complaint);
    write_outputs();
  }
  tell_end();
  if (parts_.wire) parts_.wire->close(kLastWordsToHosts);
  wait_for_starters();
  if (logs_) logs_->note(fmt::format("the run ends with exit code {}", *exit_code_));
  write_last_words();
  return *exit_code_;
}

void Supervisor::wait_for_something() {
  std::vector<pollfd> entries{{signals_.fd(), POLLIN, 0}};
  if (attempt_) attempt_->add_polls(entries);
  starters_.add_polls(entries);
  if (views_) views_->add_polls(entries);
  if (parts_.wire) entries.push_back({parts_.wire->poll_fd(), POLLIN, 0});
  for (const OutputKind kind : kOutputKinds)
    if (OutputQueue& queue = screen_.queue(kind); queue.pending())
      entries.push_back({queue.fd(), POLLOUT, 0});
  if (::poll(entries.data(), entries.size(), poll_timeout_ms()) < 0 && errno != EINTR)
    throw_system_error("waiting for the ranks");
}

int Supervisor::poll_timeout_ms() const {
  std::optional<TimePoint> next = control_.next_deadline();
  if (attempt_) next = sooner(next, attempt_->next_deadline());
  if (views_) next = sooner(next, views_->next_deadline());
  if (!again_.empty()) next = sooner(next, again_.front().when);
  if (is_agent(run_) && !leaving_) next = sooner(next, reach_.next_deadline());
  if (!next) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*next - now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
}

void Supervisor::read_signals() {
  while (const int number = signals_.next())
    if (number != SIGCHLD) take_signal(number);
}

void Supervisor::take_signal(int number) {
  run_.ended_by = {};
  tell(CoordinatorEvent(RunSignal{number}));
  const bool ends = number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGPIPE;
  if (!ends || !is_agent(run_)) return;
  signal_to_end_ = number;
  // Nobody hears of it now, and who sent it may wait for the end of this process.
  if (reach_.is_lost()) leave_by_signal();
}

void Supervisor::leave_by_signal() {
  if (leaving_) return;
  leave(signal_to_end_ == SIGINT ? static_cast<int>(ExitCode::signal_base) + signal_to_end_
                                 : static_cast<int>(ExitCode::try_again),
        "ended by " + signal_name(signal_to_end_) + " without a coordinator");
}

RunStatus Supervisor::status() const {
  const Coordinator& coordinator = *control_.coordinator();
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
  status.committed = coordinator.committed();
  status.checkpoint = coordinator.checkpoint();
  // A look at the own ranks is newer than their last heartbeat.
  const std::vector<RankState> own = look();
  for (const Coordinator::RankOfHost& one : coordinator.ranks()) {
    const auto newer = std::ranges::find(own, one.state.rank, &RankState::rank);
    const RankState& state = newer != own.end() ? *newer : one.state;
    if (state.committed > status.committed) {
      status.committed = state.committed;
      status.checkpoint = state.checkpoint;
    }
    status.ranks.push_back({run_.options.hosts.are_several() ? one.host : run_.host, state});
  }
  return status;
}

std::vector<RankState> Supervisor::look() const {
  return attempt_ ? attempt_->look() : std::vector<RankState>{};
}

/// Obeys `mlaunch stop`. Asking twice is no haste, other than with signals.
std::string Supervisor::stop(bool at_once) {
  const bool was_asked = control_.coordinator()->is_asked_to_end();
  if (at_once || !was_asked) {
    run_.ended_by = {at_once ? SIGINT : SIGTERM, at_once ? "mlaunch stop --now" : "mlaunch stop"};
    say(run_.ended_by.words + (at_once ? " ends the ranks" : " asks the ranks to save and end"));
    tell(CoordinatorEvent(RunSignal{run_.ended_by.signal}));
  }
  const bool watches = run_.options.hang_timeout != std::chrono::seconds(0);
  return stop_json({run_.run_id, was_asked, run_.options.grace,
                    watches ? HangWatch::kHeld : run_.options.grace, look()});
}

/// Tells those who wait for the end, and who asks later.
void Supervisor::tell_end() {
  if (!views_) return;
  const Coordinator& coordinator = *control_.coordinator();
  views_->end(ended_json(status(), {*exit_code_, std::chrono::system_clock::now(),
                                    coordinator.committed(), coordinator.checkpoint()}));
}

/// Tells how the ranks are.
void Supervisor::watch_attempt() {
  attempt_->work();
  user_signal_ = attempt_->user_signal();
  for (const ValueRequest& request : attempt_->take_requests()) tell(AgentEvent(RankAsks{request}));
  if (attempt_->take_suspend()) {
    write_outputs();
    checked(::raise(SIGSTOP), "stopping");
  }
  if (const auto failure = attempt_->take_failure()) tell(AgentEvent(FirstFailure{*failure}));
  if (!attempt_ || !attempt_->is_over()) return;
  if (is_agent(run_)) send_last_output();
  const AttemptFacts facts = attempt_->facts();
  attempt_.reset();
  if (logs_) {
    logs_->end_attempt();
    logs_->note("the attempt has ended on this host");
  }
  tell(AgentEvent(GroupEnded{facts}));
}

/// Sends the coordinator a piece of what was printed here, from a line on.
void Supervisor::send_output(std::uint64_t from) {
  const RecentOutput::Piece piece = recent_.read({.number = from}, kPieceBytes);
  sent_ = {now(), piece.next};
  parts_.wire->send(piece);
}

/// Who looks at the ranks sees their last lines, too: the run may end before they are asked for.
void Supervisor::send_last_output() {
  if (sent_ && now() < sent_->when + kWatched) send_output(sent_->next);
}

void Supervisor::write_outputs() {
  for (const OutputKind kind : kOutputKinds) {
    OutputQueue& queue = screen_.queue(kind);
    queue.write_some();
    bool& told = output_error_told_[static_cast<int>(kind)];
    if (queue.error() == 0 || std::exchange(told, true)) continue;
    if (queue.error() == EPIPE)
      take_signal(SIGPIPE);
    else
      say(std::string("standard ") + (kind == OutputKind::standard_output ? "output" : "error") +
          " is lost, the ranks go on: " + std::strerror(queue.error()));
  }
}

template <typename Event>
void Supervisor::tell(const Event& event) {
  if (exit_code_) return;
  for (const ControlAction& action : control_.handle(now(), event)) act(action);
}

void Supervisor::act(const ControlAction& action) {
  if (const auto* start = std::get_if<StartGroup>(&action)) {
    recent_.begin_attempt(start->start.placement.attempt);
    if (logs_)
      logs_->note(fmt::format("attempt {} starts with {} ranks", start->start.placement.attempt,
                              start->start.placement.world()));
    attempt_ = std::make_unique<Attempt>(run_, *start, screen_);
  } else if (const auto* to_agent = std::get_if<SendToAgent>(&action)) {
    if (parts_.wire) parts_.wire->send(*to_agent);
  } else if (const auto* to_coordinator = std::get_if<SendToCoordinator>(&action)) {
    parts_.wire->send(*to_coordinator);
  } else if (const auto* told = std::get_if<TellReport>(&action)) {
    tell_report(told->report);
  } else if (const auto* evidence = std::get_if<TellEvidence>(&action)) {
    screen_.say(evidence->text);
    if (logs_) logs_->keep_of_attempt("hang.txt", evidence->text + "\n");
    hang_ = evidence->text;
  } else if (const auto* words = std::get_if<Announce>(&action)) {
    say(words->text);
  } else if (const auto* gave_up = std::get_if<KeepEvidence>(&action)) {
    keep_evidence(gave_up->why);
  } else if (const auto* over = std::get_if<EndRun>(&action)) {
    exit_code_ = over->exit_code;
  } else if (attempt_) {
    act_on_group(action);
  }
}

void Supervisor::act_on_group(const ControlAction& action) {
  if (const auto* end = std::get_if<EndGroup>(&action)) {
    attempt_->end(end->reason);
  } else if (const auto* signal = std::get_if<SignalGroup>(&action)) {
    attempt_->signal(signal->number);
  } else if (const auto* kill = std::get_if<KillGroup>(&action)) {
    say(kill->reason + ": its ranks here are killed");
    attempt_->kill();
  } else if (const auto* answered = std::get_if<AnswerRank>(&action)) {
    attempt_->answer(answered->answer);
  } else if (const auto* lease = std::get_if<SetLease>(&action)) {
    attempt_->set_lease(lease->until);
  } else if (const auto* hangs = std::get_if<DescribeHang>(&action)) {
    const std::string text = attempt_->describe_hang(hangs->hang);
    attempt_->kill_held(hangs->hang);
    tell(AgentEvent(HangDescribed{text}));
  }
}

void Supervisor::read_wire() {
  for (const WireEvent& event : parts_.wire->take())
    std::visit([this](const auto& one) { hear(one); }, event);
}

void Supervisor::watch_starters() {
  starters_.work();
  for (const Starters::Ended& ended : starters_.take_ended()) {
    const auto start = std::ranges::find(parts_.starts, ended.host, &AgentStart::host);
    const std::string why =
        ended.last_words.empty()
            ? fmt::format("{} for {} has ended without a word; is {} there?",
                          start->command.front(), start->name, own_directory() + "/mlaunch")
            : ended.last_words;
    tell(CoordinatorEvent(HostCannotCome{ended.host, why}));
    again_.push_back({now() + kBetweenStarts, *start});
  }
  start_agents_again();
}

/// An agent that has ended may be of use in the next attempt.
void Supervisor::start_agents_again() {
  if (again_.empty()) return;
  if (exit_code_ || control_.coordinator()->is_asked_to_end()) return again_.clear();
  while (!again_.empty() && again_.front().when <= now()) {
    const AgentStart start = again_.front().start;
    again_.pop_front();
    try {
      starters_.start(start, parts_.agents_secret);
    } catch (const HostError& error) {
      say(fmt::format("host {} cannot be started again: {}", start.name, error.what()));
    }
  }
}

/// Agents have been told to end: what they print comes until they have.
void Supervisor::wait_for_starters() {
  for (const TimePoint limit = now() + kLastWordsToHosts; starters_.any_left() && now() < limit;) {
    std::vector<pollfd> entries;
    starters_.add_polls(entries);
    if (::poll(entries.data(), entries.size(), 100) < 0 && errno != EINTR) return;
    starters_.work();
    (void)starters_.take_ended();
    write_outputs();
  }
}

void Supervisor::hear(const Connected&) {
  for (const ControlAction& action : control_.connect(now())) act(action);
}

void Supervisor::hear(const Welcomed& event) {
  reach_.found();
  run_.run_id = event.run_id;
  const Options::Hosts& hosts = run_.options.hosts;
  run_.host_address = address_towards(numeric_address(hosts.address), hosts.port);
  run_.master_address = event.master_address;
  run_.master_port = event.master_port;
  keep_logs();
}

void Supervisor::hear(const NotWelcome& event) {
  leave(event.exit_code, "host 0 does not let this one in: " + event.reason);
}

/// Without a coordinator the lease ends the ranks; the agent hopes for longer.
void Supervisor::watch_coordinator() {
  if (const auto complaint = reach_.complaint(now())) say(*complaint);
  // The coordinator may have gone before it heard of the signal.
  if (signal_to_end_ != 0 && !attempt_ && reach_.is_quiet(now())) leave_by_signal();
  if (!leaving_ && reach_.has_given_up(now()))
    leave(static_cast<int>(ExitCode::try_again),
          "the coordinator of the run has not come back: this host ends");
  if (leaving_ && !attempt_) exit_code_ = leaving_;
}

/// Ends an agent, its ranks first.
void Supervisor::leave(int exit_code, const std::string& why) {
  say(why);
  leaving_ = exit_code;
  if (attempt_) attempt_->kill();
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
