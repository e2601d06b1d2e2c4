#include "launcher/control/view_question.h"

#include <fmt/core.h>

#include <limits>

#include "core/integer.h"

namespace strata::launcher {
namespace {

constexpr std::string_view kStatus = "status", kStop = "stop", kStopNow = "stop now", kEnd = "wait";
constexpr std::string_view kLogs = "logs ", kFollow = "follow ", kAll = "all";
constexpr std::int64_t kMostRank = std::numeric_limits<int>::max();

std::optional<AskLogs> parse_logs(std::string_view line) {
  AskLogs asked{.follow = line.starts_with(kFollow)};
  if (!asked.follow && !line.starts_with(kLogs)) return {};
  line.remove_prefix(asked.follow ? kFollow.size() : kLogs.size());
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos) return {};
  const std::string_view whose = line.substr(0, space);
  std::string_view from = line.substr(space + 1);
  asked.from_end = from.starts_with('-');
  if (asked.from_end) from.remove_prefix(1);
  const auto number = parse_integer(from), rank = parse_integer(whose);
  if (!number || *number < 0) return {};
  asked.number = static_cast<std::uint64_t>(*number);
  if (whose == kAll) return asked;
  if (!rank || *rank < 0 || *rank > kMostRank) return {};
  asked.rank = static_cast<int>(*rank);
  return asked;
}

}  // namespace

std::string format_view_question(const ViewQuestion& question) {
  if (const auto* logs = std::get_if<AskLogs>(&question))
    return fmt::format("{}{} {}{}", logs->follow ? kFollow : kLogs,
                       logs->rank ? std::to_string(*logs->rank) : kAll, logs->from_end ? "-" : "",
                       logs->number);
  if (const auto* stop = std::get_if<AskStop>(&question))
    return std::string(stop->now ? kStopNow : kStop);
  return std::string(std::holds_alternative<AskStatus>(question) ? kStatus : kEnd);
}

std::optional<ViewQuestion> parse_view_question(std::string_view line) {
  if (line == kStatus) return AskStatus{};
  if (line == kStop || line == kStopNow) return AskStop{line == kStopNow};
  if (line == kEnd) return AskEnd{};
  return parse_logs(line);
}

}  // namespace strata::launcher
