#include "launcher/supervisor.h"

#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/system_call.h"
#include "launcher/attempt.h"
#include "launcher/attempt_reports.h"
#include "launcher/control/reach.h"
#include "launcher/group/descendants.h"
#include "launcher/group/signals.h"
#include "launcher/report/failure_report.h"
#include "launcher/report/run_report.h"
#include "launcher/run_output.h"
#include "launcher/run_views.h"
#include "launcher/several_hosts.h"
#include "launcher/several_hosts_text.h"
#include "launcher/start/starters.h"
#include "launcher/views/run_status.h"
#include "launcher/wire/listening_address.h"

namespace strata::launcher {
namespace {

/// Other hosts get the run's last words in this time, or learn of its end by their leases.
constexpr std::chrono::milliseconds kLastWordsToHosts{2000};

class Supervisor {
 public:
  explicit Supervisor(const Run& run);
  int run();

 private:
  void wait_for_something();
  void read_signals();
  void take_signal(int number);
  void watch_attempt();
  void read_wire();
  void watch_starters();
  void wait_for_starters();
  void watch_coordinator();
  void leave(int exit_code, const std::string& why);
  void note_lost_output();
  void leave_by_signal();
  void keep_logs();
  void open_views();
  void open_socket();
  void settle_run(const ControlAction& action);
  /// Looks at the ranks of this host.
  [[nodiscard]] std::vector<RankState> look() const;
  std::string stop(bool at_once);
  template <typename Event>
  void tell(const Event& event);
  void act(const ControlAction& action);
  void act_on_group(const ControlAction& action);
  void hear(const AgentSaid& event) { tell(CoordinatorEvent(event)); }
  void hear(const ConnectionBroke& event) { tell(CoordinatorEvent(event)); }
  void hear(const HostRefused& event) { tell(CoordinatorEvent(event)); }
  void hear(const StrangerRefused& event) { tell(CoordinatorEvent(event)); }
  void hear(const RunTakenUp& event);
  void hear(const ViewAsked& event) { views_->hear(event); }
  void hear(const ViewLeft& event) { views_->hear(event); }
  void hear(const HostPrinted& event) { views_->hear(now(), event); }
  void hear(const OutputWanted& event) {
    parts_.wire->send(output_.piece_for_coordinator(event.number));
  }
  void hear(const CoordinatorSaid& event) { tell(AgentEvent(event)); }
  void hear(const Connected&);
  void hear(const Welcomed& event);
  void hear(const NotWelcome& event);
  void hear(const CoordinatorOutOfReach& event) { reach_.lost(now(), event.reason); }
  void say(const std::string& text) { output_.say(text); }
  [[nodiscard]] int poll_timeout_ms() const;

  Run run_;
  RunOutput output_;
  AttemptReports reports_{run_, output_};
  SignalQueue signals_;
  Starters starters_{output_.screen()};
  RunParts parts_;
  RunControl& control_;
  Reach reach_;                       ///< of an agent to its coordinator
  std::optional<int> leaving_;        ///< exit code of an agent that ends once its ranks have
  int signal_to_end_ = 0;             ///< to this agent; 0: none
  std::unique_ptr<Attempt> attempt_;  ///< null between attempts
  std::string resume_;  ///< what their newest checkpoint is for; empty: they have made none
  std::optional<RunViews> views_;  ///< of the run's coordinator
  KilledRanks killed_;
  int user_signal_ = 0;  ///< with which the user ended the run; 0: none
  std::optional<int> exit_code_;
};

Supervisor::Supervisor(const Run& run)
    : run_(run),
      output_(run.options),
      parts_(make_run_parts(now(), run_)),
      control_(*parts_.control),
      reach_(now(), host_and_port(run_.options.hosts.address, run_.options.hosts.port),
             run_.options.hosts.join) {
  run_.open_files = raise_open_files();
  run_.recent = &output_.recent();
  become_subreaper();
  if (is_agent(run_)) return;  // it learns which run this is when it is let in
  keep_logs();
  open_views();
}

void Supervisor::keep_logs() {
  output_.keep_logs(run_);
  run_.logs = output_.logs();
}

void Supervisor::open_views() {
  views_.emplace(
      run_, *control_.coordinator(), output_.recent(), parts_.wire.get(),
      RunViews::Answers{[this] { return look(); }, [this](bool at_once) { return stop(at_once); }});
  if (run_.options.web_port) {
    views_->open_page(*run_.options.web_port);
    say(fmt::format("the run is shown at http://127.0.0.1:{}", views_->page_port()));
  }
  open_socket();
}

/// A run goes on without a socket: only those who look at it need it.
void Supervisor::open_socket() {
  try {
    views_->open_socket();
  } catch (const HostError& error) {
    say(std::string("note: mlaunch status, mlaunch stop and mlaunch logs do not reach this run: ") +
        error.what());
  }
}

int Supervisor::run() {
  if (parts_.wire && !is_agent(run_)) say(waiting_text(run_));
  starters_.start(now(), parts_.starts, parts_.agents_secret);
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
    reports_.work();
    output_.write();
  }
  const int code_of_ranks = *exit_code_;
  output_.write();
  note_lost_output();
  if (views_) views_->end(*exit_code_, killed_);
  if (views_ && parts_.wire) parts_.wire->end_run(code_of_ranks);
  if (parts_.wire) parts_.wire->close(kLastWordsToHosts);
  wait_for_starters();
  output_.note(fmt::format("the run ends with exit code {}", *exit_code_));
  const bool was_told_to_end = user_signal_ != 0 || (leaving_ && signal_to_end_ != 0);
  const bool is_short = output_.write_last_words(was_told_to_end, signals_);
  reports_.finish();
  note_lost_output();  // of what was printed last
  (void)output_.write_last_words(is_short, signals_);
  return *exit_code_;
}

/// Lets the exit code say that standard output is not whole. What starts an agent of its own reads
/// that one's output, and says what became of it.
void Supervisor::note_lost_output() {
  if (!is_agent(run_) || is_joining(run_)) exit_code_ = output_.exit_code_after(*exit_code_);
}

void Supervisor::wait_for_something() {
  std::vector<pollfd> entries{{signals_.fd(), POLLIN, 0}};
  if (attempt_) attempt_->add_polls(entries);
  starters_.add_polls(entries);
  reports_.add_polls(entries);
  if (views_) views_->add_polls(entries);
  if (parts_.wire) entries.push_back({parts_.wire->poll_fd(), POLLIN, 0});
  output_.add_polls(entries);
  if (::poll(entries.data(), entries.size(), poll_timeout_ms()) < 0 && errno != EINTR)
    throw_system_error("waiting for the ranks");
}

int Supervisor::poll_timeout_ms() const {
  std::optional<TimePoint> next = control_.next_deadline();
  if (attempt_) next = sooner(next, attempt_->next_deadline());
  if (views_) next = sooner(next, views_->next_deadline());
  next = sooner(next, starters_.next_deadline());
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
  const bool ends = number == SIGINT || number == SIGTERM || number == SIGHUP;
  if (!ends || !is_agent(run_)) return;
  signal_to_end_ = number;
  if (leaving_ && attempt_) return attempt_->signal(number);  // the reader of its output may wait
  // Nobody hears of it now, and who sent it may wait for the end of this process.
  if (reach_.is_lost()) leave_by_signal();
}

void Supervisor::leave_by_signal() {
  leave(signal_to_end_ == SIGINT ? static_cast<int>(ExitCode::signal_base) + signal_to_end_
                                 : static_cast<int>(ExitCode::try_again),
        "ended by " + signal_name(signal_to_end_) + " without a coordinator");
}

std::vector<RankState> Supervisor::look() const {
  return attempt_ ? attempt_->look() : std::vector<RankState>{};
}

/// Obeys `mlaunch stop`. Asking twice is no haste, other than with signals.
std::string Supervisor::stop(bool at_once) {
  const bool was_asked = control_.coordinator()->is_asked_to_end();
  if (at_once || !was_asked) {
    run_.ended_by = {at_once ? SIGINT : SIGTERM, at_once ? "mlaunch stop --now" : "mlaunch stop"};
    const bool has_ranks = !control_.coordinator()->waiting(now());
    say(run_.ended_by.words + (!has_ranks ? " ends the run"
                               : at_once  ? " ends the ranks"
                                          : " asks the ranks to save and end"));
    tell(CoordinatorEvent(RunSignal{run_.ended_by.signal}));
  }
  const std::chrono::milliseconds grace = run_.options.grace;
  const bool watches = run_.options.hang_timeout != std::chrono::seconds(0);
  return stop_json({run_.run_id, was_asked, grace,
                    watches ? std::min<std::chrono::milliseconds>(HangWatch::kHeld, grace) : grace,
                    look()});
}

/// Tells how the ranks are.
void Supervisor::watch_attempt() {
  attempt_->work();
  user_signal_ = attempt_->user_signal();
  for (const ValueRequest& request : attempt_->take_requests()) tell(AgentEvent(RankAsks{request}));
  if (attempt_->take_suspend()) {
    output_.write();
    checked(::raise(SIGSTOP), "stopping");
  }
  if (const auto failure = attempt_->take_failure()) tell(AgentEvent(FirstFailure{*failure}));
  if (!attempt_ || !attempt_->is_over()) return;
  if (const auto last = output_.last_piece_for_coordinator(); last && is_agent(run_))
    parts_.wire->send(*last);
  const AttemptFacts facts = attempt_->facts();
  if (facts.committed >= 0) resume_ = resume_text(facts.committed, facts.checkpoint);
  attempt_.reset();
  output_.end_attempt();
  tell(AgentEvent(GroupEnded{facts}));
}

template <typename Event>
void Supervisor::tell(const Event& event) {
  if (exit_code_) return;
  for (const ControlAction& action : control_.handle(now(), event)) act(action);
}

/// Ranks that are about to start get the id of the run, which must stay the same from then on.
void Supervisor::settle_run(const ControlAction& action) {
  const auto* send = std::get_if<SendToAgent>(&action);
  const bool starts = std::holds_alternative<StartGroup>(action) ||
                      (send != nullptr && std::holds_alternative<StartAttempt>(send->message));
  if (starts && parts_.wire && !is_agent(run_)) hear(RunTakenUp{parts_.wire->settle_run()});
}

void Supervisor::act(const ControlAction& action) {
  settle_run(action);
  if (const auto* start = std::get_if<StartGroup>(&action)) {
    output_.begin_attempt(start->start.placement);
    attempt_ = std::make_unique<Attempt>(run_, *start, output_.screen());
    if (is_joining(run_)) say(ranks_text(start->start));
  } else if (const auto* to_agent = std::get_if<SendToAgent>(&action)) {
    if (parts_.wire) parts_.wire->send(*to_agent);
  } else if (const auto* to_coordinator = std::get_if<SendToCoordinator>(&action)) {
    parts_.wire->send(*to_coordinator);
  } else if (const auto* told = std::get_if<TellReport>(&action)) {
    reports_.tell(told->report);
    killed_ = {killed_ranks(told->report), was_kill_asked(told->report)};
  } else if (const auto* words = std::get_if<Announce>(&action)) {
    say(words->text);
  } else if (const auto* gave_up = std::get_if<KeepEvidence>(&action)) {
    reports_.keep_all(gave_up->why);
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
    const HangDescribed described = attempt_->describe_hang(hangs->hang);
    attempt_->kill_held(hangs->hang);
    tell(AgentEvent(described));
  }
}

void Supervisor::read_wire() {
  for (const WireEvent& event : parts_.wire->take())
    std::visit([this](const auto& one) { hear(one); }, event);
}

void Supervisor::watch_starters() {
  starters_.work(now());
  for (const Starters::Ended& ended : starters_.take_ended(now()))
    tell(CoordinatorEvent(HostCannotCome{ended.host, ended.why}));
  const Coordinator* coordinator = control_.coordinator();
  if (exit_code_ || (coordinator != nullptr && coordinator->is_asked_to_end()))
    starters_.start_none_again();
  for (const pid_t starter : starters_.start_again(now()))
    if (attempt_) attempt_->leave_alone(starter);
}

/// Agents have been told to end: what they print comes until they have.
void Supervisor::wait_for_starters() {
  for (const TimePoint limit = now() + kLastWordsToHosts; starters_.any_left() && now() < limit;) {
    std::vector<pollfd> entries;
    starters_.add_polls(entries);
    if (::poll(entries.data(), entries.size(), 100) < 0 && errno != EINTR) return;
    starters_.work(now());
    (void)starters_.take_ended(now());
    output_.write();
  }
}

void Supervisor::hear(const Connected&) {
  for (const ControlAction& action : control_.connect(now())) act(action);
}

void Supervisor::hear(const Welcomed& event) {
  if (const auto words = reach_.found()) say(*words);
  const bool is_new = run_.run_id != event.run_id;
  run_.run_id = event.run_id;
  if (is_new) output_.take_up(run_.run_id);
  if (is_new && is_joining(run_)) say(joined_text(run_));
  const Options::Hosts& hosts = run_.options.hosts;
  // Once: a name server that is slow or gone must not hold up heartbeats, nor end ranks.
  if (run_.host_address.empty())
    run_.host_address = address_towards(numeric_address(hosts.address), hosts.port);
  run_.master_address = event.master_address;
  run_.master_port = event.master_port;
  keep_logs();
}

/// An mlaunch of this host watched over the run before, and has died.
void Supervisor::hear(const RunTakenUp& event) {
  if (event.run_id == run_.run_id) return;
  say(fmt::format("run {}, in which other hosts have taken part, goes on here instead of run {}",
                  event.run_id, run_.run_id));
  run_.run_id = event.run_id;
  output_.take_up(run_.run_id);
  open_socket();
}

void Supervisor::hear(const NotWelcome& event) {
  if (!event.may_wait || !control_.has_had_ranks())
    return leave(event.exit_code, "host 0 does not let this one in: " + event.reason);
  if (const auto words = reach_.found_another(now(), event.reason)) say(*words);
}

/// Without a coordinator the lease ends the ranks; the agent hopes for longer.
void Supervisor::watch_coordinator() {
  if (const auto complaint = reach_.complaint(now())) say(*complaint);
  // The coordinator may have gone before it heard of the signal.
  if (signal_to_end_ != 0 && !attempt_ && reach_.is_quiet(now())) leave_by_signal();
  if (!leaving_ && reach_.has_given_up(now()))
    leave(static_cast<int>(reach_.exit_code()), reach_.farewell());
  if (!leaving_ || attempt_) return;
  if (leaving_ == static_cast<int>(ExitCode::try_again) && !resume_.empty()) say(resume_);
  exit_code_ = leaving_;
}

/// Ends an agent, its ranks first.
void Supervisor::leave(int exit_code, const std::string& why) {
  if (leaving_) return;
  say(why);
  leaving_ = exit_code;
  if (attempt_) attempt_->kill();
}

}  // namespace

int supervise(const Run& run) {
  // A host that had joined would be lost to the others, who do not learn why.
  const std::string& logs = run.options.log_directory;
  if (is_agent(run) && !logs.empty()) LogFolder::make_parent(logs);
  return Supervisor(run).run();
}

}  // namespace strata::launcher
