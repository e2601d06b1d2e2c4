// Describes a run's hosts for those who look: which take part, and which the run waits for.
#pragma once

#include <array>
#include <chrono>
#include <string>
#include <string_view>

namespace strata::launcher {

/// States of hosts, as they are shown.
inline constexpr std::string_view kHasRanks = "ranks";      ///< of the attempt
inline constexpr std::string_view kIsSilent = "silent";     ///< so it is, and nothing comes from it
inline constexpr std::string_view kIsReady = "ready";       ///< it is there, and the run waits
inline constexpr std::string_view kIsSpare = "spare";       ///< it is there, without a rank
inline constexpr std::string_view kIsLeaving = "leaving";   ///< it was told to end
inline constexpr std::string_view kIsLeftOut = "left out";  ///< too many attempts failed there
inline constexpr std::string_view kIsLost = "lost";         ///< it was there, and does not answer
inline constexpr std::string_view kIsMissing = "missing";   ///< it has not come
inline constexpr std::string_view kHasLeft = "left";        ///< it was told to end, and has
inline constexpr std::string_view kIsRefused = "refused";   ///< it may not take part
inline constexpr std::array kHostStates{kHasRanks,  kIsSilent, kIsReady,   kIsSpare, kIsLeaving,
                                        kIsLeftOut, kIsLost,   kIsMissing, kHasLeft, kIsRefused};

struct HostView {
  std::string
      number;  ///< its name in the run: a number, if the run has several hosts; empty: unknown
  std::string name;     ///< for people; may be empty
  std::string address;  ///< from which its agent came; may be empty
  int slots = 0;        ///< ranks that it may have; 0: not known
  int ranks = 0;        ///< of the attempt
  std::string_view state;
  std::string why = {};  ///< it was refused, or is silent or lost
};

struct WaitingView {
  int there = 0;                                ///< hosts on which ranks may start
  int needed = 1;                               ///< least hosts with ranks
  int all = 1;                                  ///< hosts that the run has
  std::chrono::steady_clock::duration since{};  ///< for so long
  std::chrono::steady_clock::duration limit{};  ///< in all; then the run ends
  std::string missing = {};  ///< hosts that are not there and were not refused, for people
  std::string refused = {};  ///< hosts that may not take part as they are, for people
};

}  // namespace strata::launcher
