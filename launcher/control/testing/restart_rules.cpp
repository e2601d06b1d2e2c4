#include "launcher/control/testing/restart_rules.h"

#include <fmt/core.h>
#include <signal.h>

#include <algorithm>
#include <set>

#include "core/error.h"

namespace strata::launcher::simulation {

std::optional<std::string> RestartRules::after(const AttemptReport& report) {
  ends_.push_back(judge(report));
  const End& end = ends_.back();
  const auto count = static_cast<int>(ends_.size());
  static const std::set<int> kFinal{2, 65, 78, 93};
  if (limits_.most_restarts == 0) return "no restart is allowed";
  if (kFinal.contains(end.exit_code)) return "the code says that it would end alike";
  if (!end.could_start) return "a program could not be started";
  if (end.committed < 0 && !limits_.without_commit) return "nothing is known to be committed";
  if (count > limits_.most_restarts) return "all restarts are used up";
  if (count >= 2 && end.out_of_memory && ends_[ends_.size() - 2].out_of_memory &&
      ends_[ends_.size() - 2].step == end.step)
    return "out of memory twice at one step";
  if (end.kept_out && count >= 2 &&
      ends_[ends_.size() - 2].exit_code == static_cast<int>(ExitCode::io))
    return "a disk failed, and keeps the ranks out";
  if (end.kept_out) return {};
  if (end.exit_code == static_cast<int>(ExitCode::host) && end.step < 0 && !limits_.without_commit)
    return "a host is not ready, and has not been before";
  // Starts that were kept out say nothing of the run, but what was committed when they ended
  // counts.
  std::vector<std::size_t> counted;
  for (std::size_t i = 0; i < ends_.size(); ++i)
    if (!ends_[i].kept_out) counted.push_back(i);
  if (counted.size() < 3) return {};
  const auto last = counted.end() - 3;
  if (are_alike(ends_[last[0]], end) && are_alike(ends_[last[1]], end)) return "three times alike";
  const std::int64_t before = last[0] > 0 ? ends_[last[0] - 1].committed : -1;
  if (end.committed <= before) return "three times no newer commit";
  return {};
}

/// Steps that nobody knows are alike only if the run has not got on between.
bool RestartRules::are_alike(const End& a, const End& b) const {
  return a.what == b.what && a.step == b.step && (a.step >= 0 || a.committed == b.committed);
}

RestartRules::End RestartRules::judge(const AttemptReport& report) const {
  End end{.exit_code = static_cast<int>(ExitCode::try_again)};
  end.committed = known_;
  for (const AttemptReport::OfHost& host : report.hosts) {
    if (!host.facts) continue;
    for (const EndedRank& rank : host.facts->ranks) end.step = std::max(end.step, rank.step);
  }
  const auto& host = report.hosts.at(static_cast<std::size_t>(report.failed_host));
  if (report.hang) {
    end.what = fmt::format("hang {} in '{}'", static_cast<int>(report.hang->kind),
                           report.hang->collective_name + report.hang->other_name);
  } else if (!report.lost_because.empty() || !host.facts) {
    end.what = "lost " + host.host;
  } else {
    end.exit_code = host.facts->exit_code;
    if (!host.facts->failed) return end;
    const AttemptFacts::Failed& failed = *host.facts->failed;
    const EndedRank& rank =
        host.facts->ranks.at(static_cast<std::size_t>(failed.rank - host.first_rank));
    end.step = rank.step;
    end.could_start = failed.spawn_error.empty();
    end.out_of_memory =
        rank.ending == Ending{Ending::Kind::killed, SIGKILL} && host.facts->out_of_memory_kills > 0;
    const bool unready = end.exit_code == static_cast<int>(ExitCode::host) ||
                         end.exit_code == static_cast<int>(ExitCode::io);
    end.kept_out =
        unready && rank.step < 0 && (last_step_ >= 0 || (report.attempt > 0 && known_ >= 0));
    end.what = rank.ending.value_or(Ending{}).describe();
  }
  return end;
}

}  // namespace strata::launcher::simulation
