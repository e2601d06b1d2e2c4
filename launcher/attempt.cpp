#include "launcher/attempt.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <utility>

#include "core/clock.h"
#include "core/error.h"
#include "core/tcp_sockets.h"
#include "launcher/group/descendants.h"
#include "launcher/group/process_state.h"
#include "launcher/report/evidence.h"
#include "launcher/report/nccl_ras.h"
#include "launcher/wire/listening_address.h"

namespace strata::launcher {
namespace {

constexpr std::chrono::milliseconds kLeftoverPoll{20};
/// For the stacks of all ranks and NCCL's answer: the lease of this host must not end meanwhile.
constexpr std::chrono::milliseconds kForEvidence{3000};
constexpr std::chrono::milliseconds kForNccl{2000};
/// So many ranks are looked at that wait for the one to blame.
constexpr int kMostThatWait = 2;
constexpr std::size_t kEventsOfARank = 16;

/// True for the ranks that are stopped or frozen; else for the first that is behind.
bool is_to_blame(const Hang& hang, int rank) {
  return rank == hang.rank || std::ranges::find(hang.held, rank) != hang.held.end();
}

}  // namespace

Attempt::Attempt(const Run& run, const StartGroup& group, Screen& screen)
    : start_(group.start),
      screen_(screen),
      kills_before_(out_of_memory_kills()),
      machine_(start_.placement.ranks_of(start_.node), run.options.grace),
      ranks_(run, start_, screen) {
  screen_.begin(first_rank());
  tell_all(ranks_.start(group.lease));
}

std::optional<TimePoint> Attempt::next_deadline() const {
  std::optional<TimePoint> next = sooner(machine_.next_deadline(), ranks_.next_deadline());
  if (ending_leftovers_ && !leftovers_gone_) next = sooner(next, now() + kLeftoverPoll);
  return next;
}

void Attempt::work() {
  for (const std::string& complaint : ranks_.serve_rendezvous(now())) say(complaint);
  tell_all(ranks_.read_outputs());
  tell_all(ranks_.reap());
  watch_leftovers();
  if (const auto deadline = machine_.next_deadline(); deadline && *deadline <= now()) tell(Tick{});
}

/// Checks, once the ranks are gone, whether their descendants are gone, too.
void Attempt::watch_leftovers() {
  const auto& endings = machine_.endings();
  const bool ranks_gone =
      std::ranges::all_of(endings, [](const auto& ending) { return ending.has_value(); });
  if (exit_code_ || !ranks_gone || leftovers_gone_) return;
  if (!ranks_.has_children()) {
    leftovers_gone_ = true;
    return tell(NoProcessLeft{});
  }
  if (ending_leftovers_) ranks_.kill_children();
}

void Attempt::tell_all(const std::vector<Event>& events) {
  for (const Event& event : events) tell(event);
}

void Attempt::tell(const Event& event) {
  if (exit_code_) return;
  for (const Action& action : machine_.handle(now(), event)) act(action);
}

void Attempt::act(const Action& action) {
  if (const auto* signal = std::get_if<SignalRank>(&action)) {
    ranks_.signal(signal->rank, signal->number);
  } else if (const auto* fail = std::get_if<FailWaitingPeers>(&action)) {
    ranks_.fail_waiting_peers(fail->reason);
    if (machine_.is_failing()) ranks_.order_stop(fail->reason);
  } else if (std::holds_alternative<EndLeftovers>(action)) {
    ending_leftovers_ = true;
    ranks_.kill_children();
  } else if (std::holds_alternative<TellLeftovers>(action)) {
    say(fmt::format("processes that ranks left behind were killed and do not end: {}",
                    fmt::join(ranks_.children_left(), ", ")));
  } else if (std::holds_alternative<Suspend>(action)) {
    suspend_ = true;
  } else if (const auto* words = std::get_if<Say>(&action)) {
    say(words->text);
  } else {
    exit_code_ = std::get<Finish>(action).exit_code;
  }
}

void Attempt::kill() {
  tell(KillAll{});
  ranks_.kill_children();
}

std::optional<RankFailed> Attempt::take_failure() {
  const std::optional<Failure>& failure = machine_.failure();
  if (!failure || !machine_.is_failing() || std::exchange(failure_told_, true)) return {};
  const int rank = first_rank() + failure->rank;
  return RankFailed{start_.placement.attempt, rank,
                    fmt::format("rank {} {}", rank, failure->ending.describe()),
                    failure->ending.exit_code() == static_cast<int>(ExitCode::try_again)};
}

/// Looks at what holds a rank of this host, but for its stacks; `rank` counts from 0 here.
HangEvidence Attempt::evidence_of(int rank) const {
  const pid_t pid = ranks_.pid_of(rank);
  return {.rank = first_rank() + rank,
          .where = ranks_.where(rank),
          .process = read_process_state(pid),
          .threads = threads_of(pid)};
}

HangDescribed Attempt::describe_hang(const Hang& hang) const {
  std::vector<HangEvidence> blamed, waiting;
  const TimePoint limit = now() + kForEvidence;
  const auto left = [&] { return std::chrono::floor<std::chrono::milliseconds>(limit - now()); };
  const auto add = [&](int rank, std::vector<HangEvidence>& evidence) {
    evidence.push_back(evidence_of(rank));
    // A stopped process shows no stack: its tool would wait for it.
    if (!evidence.back().process.held() && left().count() > 0)
      evidence.back().stacks = stacks_of(ranks_.pid_of(rank), left());
  };
  for (int rank = 0; rank < ranks_.size(); ++rank)
    if (ranks_.pid_of(rank) > 0 && is_to_blame(hang, first_rank() + rank)) add(rank, blamed);
  for (int rank = 0; rank < ranks_.size() && std::ssize(waiting) < kMostThatWait; ++rank) {
    const bool waits = std::ranges::count(hang.waiting, first_rank() + rank) > 0;
    if (ranks_.pid_of(rank) < 0 || !waits || is_to_blame(hang, first_rank() + rank)) continue;
    add(rank, waiting);
    waiting.back().waits = true;
  }
  const std::string advice = hang_advice(hang, blamed);
  blamed.insert(blamed.end(), waiting.begin(), waiting.end());
  return {describe_evidence(hang, blamed), advice,
          last_events() + what_nccl_says(std::min(kForNccl, left()))};
}

/// Says what each rank of this host did last, the newest at the end.
std::string Attempt::last_events() const {
  std::string text;
  for (int rank = 0; rank < ranks_.size(); ++rank)
    text += fmt::format(
        "{}rank {}:\n{}", text.empty() ? "" : "\n", first_rank() + rank,
        describe_events(ranks_.page(rank).events.last(kEventsOfARank), coarse_monotonic_ns()));
  return text;
}

/// Asks NCCL's service, if a rank of this host has it; "": none has, or it does not answer. What
/// libraries a rank has open is not looked at: the kernel may never say so of one that hangs.
std::string Attempt::what_nccl_says(std::chrono::milliseconds limit) const {
  const std::string place = ras_address();
  std::vector<pid_t> processes;
  for (int rank = 0; rank < ranks_.size(); ++rank)
    if (ranks_.pid_of(rank) > 0) processes.push_back(ranks_.pid_of(rank));
  try {
    const auto [address, port] = parse_host_and_port("NCCL_RAS_ADDR", place);
    if (!any_listens(processes, port)) return "";
    const std::string text = nccl_status(address, port, limit);
    return text.empty() ? "" : fmt::format("\nNCCL says at {}:\n{}", place, text);
  } catch (const InvalidArgument&) {
    return "";  // NCCL serves nobody there either
  }
}

void Attempt::kill_held(const Hang& hang) {
  for (int rank = 0; rank < ranks_.size(); ++rank)
    if (hang.kind == Hang::Kind::held && is_to_blame(hang, first_rank() + rank))
      ranks_.signal(rank, SIGKILL);
}

std::string Attempt::why_it_stays(int rank) const {
  const pid_t pid = ranks_.pid_of(rank);
  return pid > 0 ? launcher::why_it_stays(pid, evidence_of(rank)) : "";
}

/// True for a single program that is done: its code may have a meaning, as that of diff does.
bool Attempt::ended_as_it_meant(int rank) const {
  const auto& ending = machine_.endings()[static_cast<std::size_t>(rank)];
  return ranks_.size() == 1 && ending && ending->kind == Ending::Kind::exited &&
         ranks_.is_done(rank) && ranks_.error_of(rank).empty();
}

/// Returns nothing when all went well, or when the run ended on request.
std::optional<Failure> Attempt::failure_to_report() const {
  const auto& failure = machine_.failure();
  if (failure && ended_as_it_meant(failure->rank)) return std::nullopt;
  if (!machine_.all_stopped()) return failure;
  // Ranks that stop on request have no error on their status pages.
  if (failure && !ranks_.error_of(failure->rank).empty()) return failure;
  for (int rank = 0; rank < ranks_.size(); ++rank)
    if (!ranks_.error_of(rank).empty())
      return Failure{rank, *machine_.endings()[static_cast<std::size_t>(rank)], ""};
  return std::nullopt;
}

EndedRank Attempt::ended_rank(int rank) const {
  const StatusPageData& page = ranks_.page(rank);
  return {.ending = machine_.endings()[static_cast<std::size_t>(rank)],
          .where = ranks_.where(rank),
          .error = ranks_.error_of(rank),
          .done = ranks_.is_done(rank),
          .step = std::max<std::int64_t>(page.step.load(), -1),
          .phase = ranks_.phase(rank),
          .instruction = std::max<std::int64_t>(page.instruction.load(), -1),
          .instruction_name = ranks_.instruction_name(rank),
          .collective = std::max<std::int64_t>(page.collective.load(), 0),
          .collective_name = ranks_.collective_name(rank),
          .peak_rss_bytes = ranks_.peak_rss_bytes(rank),
          .phase_seconds = 1e-9 * static_cast<double>(boot_time_ns() - page.phase_since_ns.load()),
          .save_failure = ranks_.save_failure(rank),
          .stays = machine_.gave_up() ? why_it_stays(rank) : ""};
}

AttemptFacts Attempt::facts() const {
  AttemptFacts facts;
  facts.exit_code = *exit_code_;
  facts.all_stopped = machine_.all_stopped();
  facts.user_signal = machine_.user_signal();
  facts.kill_asked = machine_.was_kill_asked();
  facts.left_behind = machine_.gave_up();
  facts.out_of_memory_kills = out_of_memory_kills() - kills_before_;
  if (const auto failure = failure_to_report())
    facts.failed = AttemptFacts::Failed{first_rank() + failure->rank, failure->spawn_error,
                                        screen_.error_tail(failure->rank)};
  facts.was_asked = facts.user_signal != 0 || !facts.failed;
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    facts.ranks.push_back(ended_rank(rank));
    const std::int64_t committed = ranks_.page(rank).committed_step.load(std::memory_order_acquire);
    if (committed <= facts.committed) continue;
    facts.committed = committed;
    facts.checkpoint = ranks_.checkpoint_of(rank);
  }
  return facts;
}

}  // namespace strata::launcher
