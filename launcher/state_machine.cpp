#include "launcher/state_machine.h"

#include <signal.h>

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "core/error.h"

namespace strata::launcher {
namespace {

bool blames_a_peer(const Ending& ending) {
  return ending.kind == Ending::Kind::exited &&
         ending.number == static_cast<int>(ExitCode::try_again);
}

/// In place of a signal: SIGKILL did not help.
constexpr int kGiveUp = 0;

/// What ranks get for a signal to mlaunch. A reader of our output that went away (SIGPIPE) or a
/// closed terminal means the same to them as SIGTERM.
int forwarded(int number) { return number == SIGINT ? SIGINT : SIGTERM; }

std::string name_for_users(int number) {
  return (number == SIGINT ? "Ctrl-C (" : "(") + signal_name(number) + ")";
}

}  // namespace

StateMachine::StateMachine(int ranks, std::chrono::milliseconds grace)
    : grace_(grace),
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
  std::optional<TimePoint> next;
  const auto consider = [&next](const std::optional<TimePoint>& time) {
    if (time && (!next || *time < *next)) next = time;
  };
  if (!escalations_.empty()) consider(escalations_.back().time);
  consider(orphan_deadline_);
  consider(drain_deadline_);
  return next;
}

void StateMachine::on(const RankEnded& event) {
  std::optional<Ending>& ending = endings_.at(static_cast<std::size_t>(event.rank));
  STRATA_CHECK(!ending, "rank ended twice:", event.rank);
  ending = event.ending;
  if (event.ending.success() || asked_to_end_) return;
  note_failure({event.rank, event.ending, ""},
               "rank " + std::to_string(event.rank) + " " + event.ending.describe());
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
                 "rank " + std::to_string(event.rank) + " could not be started");
}

void StateMachine::on(const SignalReceived& event) {
  switch (event.number) {
    case SIGUSR1:
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
  const bool again = state_ != State::running || event.number == SIGQUIT;
  if (user_signal_ == 0 && !failure_) user_signal_ = event.number;
  if (again)
    kill_now();
  else
    end_ranks(event.number);
}

void StateMachine::on(const NoProcessLeft&) { no_process_left_ = true; }

void StateMachine::on(const Tick&) {
  while (!escalations_.empty() && escalations_.back().time <= now_) {
    const int signal = escalations_.back().signal;
    escalations_.pop_back();
    asked_to_end_ = true;
    if (signal == kGiveUp)
      give_up();
    else
      signal_living(signal);
  }
  if (orphan_deadline_ && *orphan_deadline_ <= now_) {
    orphan_deadline_.reset();
    actions_.emplace_back(EndLeftovers{});
  }
}

/// The first failure counts; but a rank that merely blames a peer (75) gives way to one that fails
/// by itself while all still end on their own.
void StateMachine::note_failure(Failure failure, const std::string& reason) {
  if (!failure_ || (blames_a_peer(failure_->ending) && !blames_a_peer(failure.ending)))
    failure_ = std::move(failure);
  if (state_ != State::running) return;
  state_ = State::ending;
  actions_.emplace_back(FailWaitingPeers{reason});
  plan_escalation(kPeerGrace, SIGTERM, kPeerGrace + grace_);
}

void StateMachine::end_ranks(int user_signal) {
  state_ = State::ending;
  asked_to_end_ = true;
  actions_.emplace_back(Say{name_for_users(user_signal) + ": ending the ranks" +
                            (user_signal == SIGINT ? "; Ctrl-C again kills them at once" : "")});
  actions_.emplace_back(FailWaitingPeers{"mlaunch was ended by " + name_for_users(user_signal)});
  signal_living(forwarded(user_signal));
  plan_escalation(grace_ / 2, SIGTERM, grace_);
}

void StateMachine::plan_escalation(std::chrono::milliseconds signal_after, int signal,
                                   std::chrono::milliseconds kill_after) {
  escalations_ = {{now_ + kill_after + kKillLimit, kGiveUp},
                  {now_ + kill_after, SIGKILL},
                  {now_ + signal_after, signal}};
}

void StateMachine::give_up() {
  for (std::size_t rank = 0; rank < endings_.size(); ++rank)
    if (!endings_[rank])
      actions_.emplace_back(
          Say{"rank " + std::to_string(rank) +
              " was killed but does not end: it waits inside the kernel (a disk, a "
              "network file system or a driver that does not answer)"});
  finish();
}

void StateMachine::kill_now() {
  if (state_ == State::draining) {
    orphan_deadline_.reset();
    actions_.emplace_back(EndLeftovers{});
    drain_deadline_ = now_;  // whoever reads our output no longer wants it
    return;
  }
  state_ = State::ending;
  asked_to_end_ = true;
  signal_living(SIGKILL);
  escalations_ = {{now_ + kKillLimit, kGiveUp}};
}

void StateMachine::signal_living(int number) {
  for (std::size_t rank = 0; rank < endings_.size(); ++rank)
    if (!endings_[rank]) actions_.emplace_back(SignalRank{static_cast<int>(rank), number});
}

/// What follows from the state alone, after every event.
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
    actions_.emplace_back(EndLeftovers{});
  else
    orphan_deadline_ = now_ + kOrphanGrace;
  // After success and after a failure all output is wanted, however slow its reader; the user who
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
  drain_deadline_.reset();
  int code = 0;
  if (failure_)
    code = failure_->ending.exit_code();
  else if (user_signal_ != 0)
    code = static_cast<int>(ExitCode::signal_base) + user_signal_;
  actions_.emplace_back(Finish{code});
}

}  // namespace strata::launcher
