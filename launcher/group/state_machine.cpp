#include "launcher/group/state_machine.h"

#include <fmt/core.h>
#include <signal.h>

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "core/error.h"

namespace strata::launcher {
namespace {

/// True if the rank blames a peer or stopped on request: both end with 75.
bool wants_another_try(const Ending& ending) {
  return ending.kind == Ending::Kind::exited &&
         ending.number == static_cast<int>(ExitCode::try_again);
}

/// True for the ending of a program, or of a shell around it, that does not handle SIGTERM.
bool died_of_term(const Ending& ending) {
  return ending.exit_code() == static_cast<int>(ExitCode::signal_base) + SIGTERM;
}

/// Stands for a signal in escalations: SIGKILL did not help.
constexpr int kGiveUp = 0;

/// Returns the signal that ranks get for a signal to mlaunch. A closed terminal becomes SIGTERM.
int forwarded(int number) { return number == SIGINT ? SIGINT : SIGTERM; }

/// True for a scheduler's signal and a closed terminal: computed state is worth saving. A user who
/// presses Ctrl-C waits for the prompt.
bool leaves_time_to_save(int number) { return number == SIGTERM || number == SIGHUP; }

}  // namespace

StateMachine::StateMachine(int ranks, std::chrono::milliseconds grace)
    : grace_(grace),
      end_grace_(std::min(grace, kEndGrace)),
      endings_(static_cast<std::size_t>(ranks)),
      output_open_(static_cast<std::size_t>(ranks), true) {}

std::vector<Action> StateMachine::handle(TimePoint now, const Event& event) {
  STRATA_CHECK(state_ != State::finished);
  STRATA_CHECK(now >= now_);
  now_ = now;
  std::visit([this](const auto& e) { on(e); }, event);
  settle();
  return std::exchange(actions_, {});
}

std::optional<TimePoint> StateMachine::next_deadline() const {
  const auto next = sooner(sooner(orphan_deadline_, leftovers_deadline_), drain_deadline_);
  return escalations_.empty() ? next : sooner(next, escalations_.back().time);
}

void StateMachine::on(const RankEnded& event) {
  std::optional<Ending>& ending = endings_.at(static_cast<std::size_t>(event.rank));
  STRATA_CHECK(!ending, "rank ended twice:", event.rank);
  ending = event.ending;
  if (event.ending.success() || asked_to_end_) return;
  if (asked_to_stop_ && wants_another_try(event.ending)) {
    if (state_ == State::stopping) return;
    if (state_ == State::running) {  // happens after SIGUSR1
      failure_ = {event.rank, event.ending, ""};
      return wait_for_stop();
    }
  }
  // A rank that SIGTERM killed does not save, so there is nothing to wait for.
  if (state_ == State::stopping && died_of_term(event.ending)) return hasten(user_signal_);
  note_failure({event.rank, event.ending, ""},
               fmt::format("rank {} {}", event.rank, event.ending.describe()));
}

void StateMachine::on(const RankOutputEnded& event) {
  output_open_.at(static_cast<std::size_t>(event.rank)) = false;
}

void StateMachine::on(const SpawnFailed& event) {
  const auto index = static_cast<std::size_t>(event.rank);
  const Ending ending{Ending::Kind::exited, static_cast<int>(ExitCode::host)};
  endings_.at(index) = ending;
  output_open_.at(index) = false;
  if (!asked_to_end_)
    note_failure({event.rank, ending, event.reason},
                 fmt::format("rank {} could not be started", event.rank));
}

void StateMachine::on(const SignalReceived& event) {
  switch (event.number) {
    case SIGUSR1:  // Schedulers warn with it, and ranks may treat it as SIGTERM.
      asked_to_stop_ = true;
      return signal_living(event.number);
    case SIGUSR2:
      return signal_living(event.number);
    case SIGTSTP:
      signal_living(SIGSTOP);
      actions_.emplace_back(Suspend{});
      return;
    case SIGCONT:
      return signal_living(SIGCONT);
    default:
      break;
  }
  const bool first = user_signal_ == 0;
  const bool lively = state_ == State::running || state_ == State::stopping;
  if (lively || (first && !failure_)) user_signal_ = event.number;
  if (!lively || event.number == SIGQUIT)
    kill_now();
  else if (first && leaves_time_to_save(event.number))
    stop_ranks(event.number);
  else
    end_ranks(event.number);
}

void StateMachine::on(const PeerFailed& event) { end_peers(event.reason); }

/// Does not count as asked for: that ranks end so is no doing of theirs or of the user.
void StateMachine::on(const KillAll&) {
  if (state_ == State::draining)
    end_leftovers();
  else
    kill_ranks();
}

void StateMachine::on(const NoProcessLeft&) {
  no_process_left_ = true;
  leftovers_deadline_.reset();
}

void StateMachine::on(const Tick&) {
  while (!escalations_.empty() && escalations_.back().time <= now_) {
    const int signal = escalations_.back().signal;
    escalations_.pop_back();
    if (state_ == State::stopping) {
      is_grace_over_ = true;
      actions_.emplace_back(Say{"the ranks have not stopped in time; killing them"});
    }
    state_ = State::ending;
    asked_to_end_ = true;
    if (signal == kGiveUp)
      give_up();
    else
      signal_living(signal);
  }
  if (orphan_deadline_ && *orphan_deadline_ <= now_) end_leftovers();
  if (leftovers_deadline_ && *leftovers_deadline_ <= now_) {
    actions_.emplace_back(TellLeftovers{});
    give_up();
  }
}

/// Keeps the first failure; but a rank that only blames a peer (75) gives way to one that fails by
/// itself while ranks still end on their own.
void StateMachine::note_failure(Failure failure, const std::string& reason) {
  if (!failure_ || (wants_another_try(failure_->ending) && !wants_another_try(failure.ending)))
    failure_ = std::move(failure);
  end_peers(reason);
}

/// Lets ranks end by themselves, then ends them.
void StateMachine::end_peers(const std::string& reason) {
  if (state_ != State::running && state_ != State::stopping) return;
  state_ = State::ending;
  failing_ = true;
  actions_.emplace_back(FailWaitingPeers{reason});
  plan_escalation(kPeerGrace, SIGTERM, kPeerGrace + end_grace_);
}

void StateMachine::stop_ranks(int user_signal) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(grace_).count();
  actions_.emplace_back(Say{fmt::format(
      "{}: the ranks have up to {} s to stop by themselves; a second one, or Ctrl-C, ends them",
      signal_name(user_signal), seconds)});
  asked_to_stop_ = true;
  signal_living(forwarded(user_signal));
  wait_for_stop();
}

void StateMachine::wait_for_stop() {
  state_ = State::stopping;
  escalations_ = {{now_ + grace_ + kKillLimit, kGiveUp}, {now_ + grace_, SIGKILL}};
}

void StateMachine::end_ranks(int user_signal) {
  actions_.emplace_back(Say{signal_name(user_signal) + ": ending the ranks" +
                            (user_signal == SIGINT ? "; Ctrl-C again kills them at once" : "")});
  signal_living(forwarded(user_signal));
  hasten(user_signal);
}

void StateMachine::hasten(int user_signal) {
  state_ = State::ending;
  asked_to_end_ = true;
  actions_.emplace_back(FailWaitingPeers{"mlaunch was ended by " + signal_name(user_signal)});
  plan_escalation(end_grace_ / 2, SIGTERM, end_grace_);
}

void StateMachine::plan_escalation(std::chrono::milliseconds signal_after, int signal,
                                   std::chrono::milliseconds kill_after) {
  escalations_ = {{now_ + kill_after + kKillLimit, kGiveUp},
                  {now_ + kill_after, SIGKILL},
                  {now_ + signal_after, signal}};
}

void StateMachine::give_up() {
  gave_up_ = true;
  finish();
}

void StateMachine::kill_now() {
  if (state_ == State::draining) {
    end_leftovers();
    drain_deadline_ = now_;  // the reader of our output no longer wants it
    return;
  }
  asked_to_end_ = true;
  // Once SIGKILL was sent because the time was over, giving up alone is left.
  kill_asked_ = kill_asked_ || escalations_.size() != 1;
  kill_ranks();
}

void StateMachine::kill_ranks() {
  state_ = State::ending;
  signal_living(SIGKILL);
  escalations_ = {{now_ + kKillLimit, kGiveUp}};
}

/// Kills what the ranks have left behind, and waits for its end as for that of ranks.
void StateMachine::end_leftovers() {
  orphan_deadline_.reset();
  actions_.emplace_back(EndLeftovers{});
  if (!no_process_left_ && !leftovers_deadline_) leftovers_deadline_ = now_ + kKillLimit;
}

void StateMachine::signal_living(int number) {
  for (std::size_t rank = 0; rank < endings_.size(); ++rank)
    if (!endings_[rank]) actions_.emplace_back(SignalRank{static_cast<int>(rank), number});
}

bool StateMachine::all_stopped() const {
  return std::all_of(endings_.begin(), endings_.end(),
                     [](const auto& ending) { return ending && wants_another_try(*ending); });
}

/// Makes the transitions that follow from the state alone; called after every event.
void StateMachine::settle() {
  if (state_ == State::finished) return;
  const bool all_ended =
      std::all_of(endings_.begin(), endings_.end(), [](const auto& e) { return e.has_value(); });
  if (all_ended && state_ != State::draining) start_draining();
  if (drained()) finish();
}

void StateMachine::start_draining() {
  const bool abnormal = state_ == State::ending;
  state_ = State::draining;
  escalations_.clear();
  if (abnormal)
    end_leftovers();
  else
    orphan_deadline_ = now_ + kOrphanGrace;
  // All output is wanted after success and after a failure, however slow its reader; a user who
  // pressed Ctrl-C wants the prompt.
  if (user_signal_ != 0) drain_deadline_ = now_ + kDrainLimit;
}

bool StateMachine::drained() const {
  if (state_ != State::draining) return false;
  if (drain_deadline_ && *drain_deadline_ <= now_) return true;
  return no_process_left_ &&
         std::none_of(output_open_.begin(), output_open_.end(), [](bool open) { return open; });
}

void StateMachine::finish() {
  state_ = State::finished;
  escalations_.clear();
  orphan_deadline_.reset();
  leftovers_deadline_.reset();
  drain_deadline_.reset();
  int code = 0;
  if (failure_)
    code = failure_->ending.exit_code();
  else if (all_stopped() || (is_grace_over_ && user_signal_ != 0))
    code = static_cast<int>(ExitCode::try_again);
  else if (user_signal_ != 0)
    code = static_cast<int>(ExitCode::signal_base) + user_signal_;
  actions_.emplace_back(Finish{code});
}

}  // namespace strata::launcher
