#include "train/session/last_words.h"

#include <algorithm>
#include <thread>

namespace strata::train {
namespace {

using std::chrono::milliseconds;

// Ranks start within this time of one another, and a launcher notices within it that one has ended.
constexpr milliseconds kForRankZero{2000};
constexpr milliseconds kForEachLowerRank{200};
constexpr milliseconds kLongest{6000};

bool before_the_ranks_met(Phase phase) {
  return phase == Phase::starting || phase == Phase::planning;
}

bool is_found_by_all(ExitCode code) {
  return code == ExitCode::usage || code == ExitCode::configuration || code == ExitCode::data ||
         code == ExitCode::host || code == ExitCode::io;
}

}  // namespace

milliseconds wait_before_last_words(const RankContext& context, Phase phase, ExitCode code) {
  if (context.rank == 0 || !before_the_ranks_met(phase) || !is_found_by_all(code))
    return milliseconds(0);
  return std::min(kForRankZero + (context.rank - 1) * kForEachLowerRank, kLongest);
}

void say_last_words(const RankContext& context, StatusPage& status, ExitCode code,
                    const std::string& message, Console& console) {
  status.set_error(message);  // the phase stays, which says where the rank failed
  const bool launcher_says_it =
      context.status_fd >= 0 && message.size() < sizeof(StatusPageData::error);
  if (launcher_says_it) return;
  const auto phase = static_cast<Phase>(status.data().phase.load());
  std::this_thread::sleep_for(wait_before_last_words(context, phase, code));
  console.fail(message);
}

}  // namespace strata::train
