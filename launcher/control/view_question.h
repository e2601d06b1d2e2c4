// What others may ask of a run: in the process of mlaunch, as a line over its Unix socket, or as a
// call from another host. Each answer is one line of JSON (docs/formats/status.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace strata::launcher {

/// How the run is.
struct AskStatus {
  bool operator==(const AskStatus&) const = default;
};
/// Asks the ranks to save and end, as SIGTERM does, or to end at once, as Ctrl-C does.
struct AskStop {
  bool now = false;
  bool operator==(const AskStop&) const = default;
};
/// What ranks have printed.
struct AskLogs {
  std::optional<int> rank = {};  ///< nullopt: all, and mlaunch
  /// Where to begin. Lines are counted from 0: those of the rank that is read, or those of all.
  std::uint64_t number = 0;
  bool from_end = false;  ///< true: begins so many lines before the end
  bool follow = false;    ///< true: is answered once there is a line, or the run has ended
  bool operator==(const AskLogs&) const = default;
};
/// How the run has ended; is answered then.
struct AskEnd {
  bool operator==(const AskEnd&) const = default;
};
using ViewQuestion = std::variant<AskStatus, AskStop, AskLogs, AskEnd>;

/// Writes a question as a line without its end:
///
///   status   stop   stop now   wait
///   logs WHOSE FROM     WHOSE: `all` or the number of a rank; FROM: a number, or -N for N lines
///   follow WHOSE FROM   before the end
std::string format_view_question(const ViewQuestion& question);
/// Reads such a line; nullopt: it is none.
std::optional<ViewQuestion> parse_view_question(std::string_view line);

}  // namespace strata::launcher
