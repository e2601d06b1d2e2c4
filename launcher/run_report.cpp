#include "launcher/run_report.h"

#include <signal.h>

#include <string>

#include "launcher/failure_report.h"
#include "launcher/signals.h"

namespace strata::launcher {
namespace {

/// True for a single program that is done: its code may have a meaning, as that of diff does.
bool ended_as_it_meant(const StateMachine& machine, const RankGroup& ranks, int rank) {
  const auto& ending = machine.endings()[static_cast<std::size_t>(rank)];
  return ranks.size() == 1 && ending && ending->kind == Ending::Kind::exited &&
         ranks.is_done(rank) && ranks.error_of(rank).empty();
}

/// Returns nothing when all went well, or when the run ended on request.
std::optional<Failure> failure_to_report(const StateMachine& machine, const RankGroup& ranks) {
  const auto& failure = machine.failure();
  if (failure && ended_as_it_meant(machine, ranks, failure->rank)) return std::nullopt;
  if (!machine.all_stopped()) return failure;
  // Ranks that stop on request have no error on their status pages.
  if (failure && !ranks.error_of(failure->rank).empty()) return failure;
  for (int rank = 0; rank < ranks.size(); ++rank)
    if (!ranks.error_of(rank).empty())
      return Failure{rank, *machine.endings()[static_cast<std::size_t>(rank)], ""};
  return std::nullopt;
}

void say_why_it_ended(const StateMachine& machine, const RankGroup& ranks, Screen& screen) {
  const int number = machine.user_signal();
  const std::string who = number == SIGINT ? "Ctrl-C" : signal_name(number);
  const std::string where = ranks.where(0);
  if (machine.all_stopped())
    screen.say("mlaunch: stopped on request" + (number != 0 ? " (" + who + ")" : ""));
  else if (number != 0)
    screen.say("mlaunch: ended by " + who + (where.empty() ? "" : "; rank 0 was at " + where));
}

}  // namespace

void report_run(const Run& run, const StateMachine& machine, const RankGroup& ranks,
                std::int64_t out_of_memory_kills, Screen& screen) {
  const std::optional<Failure> failure = failure_to_report(machine, ranks);
  if (!failure) return say_why_it_ended(machine, ranks, screen);
  FailureFacts facts;
  facts.rank = failure->rank;
  facts.ranks = run.options.ranks;
  facts.program = run.options.command.front();
  facts.ending = failure->ending;
  facts.spawn_error = failure->spawn_error;
  facts.where = ranks.where(failure->rank);
  facts.error = ranks.error_of(failure->rank);
  facts.error_tail = screen.error_tail(failure->rank);
  facts.peak_rss_bytes = ranks.peak_rss_bytes(failure->rank);
  facts.out_of_memory_kills = out_of_memory_kills;
  for (int other = 0; other < ranks.size(); ++other)
    facts.others.push_back({ranks.where(other), ranks.error_of(other),
                            machine.endings()[static_cast<std::size_t>(other)]});
  std::string text = failure_report(facts);
  text.pop_back();
  screen.say(text);
}

}  // namespace strata::launcher
