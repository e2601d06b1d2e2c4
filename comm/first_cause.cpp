#include "comm/first_cause.h"

#include <fmt/core.h>
#include <algorithm>

namespace strata::comm {
namespace {

constexpr std::string_view kRank = "rank ";
constexpr std::string_view kLauncher = "mlaunch: ";
constexpr std::string_view kHandedOn = "failed: ";

/// True for "rank 12: ..." and "rank 12 (process 7) ...".
bool begins_with_a_rank(std::string_view text) {
  if (!text.starts_with(kRank)) return false;
  text.remove_prefix(kRank.size());
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  return digits > 0 && digits < text.size() && (text[digits] == ':' || text[digits] == ' ');
}

/// True for what names who is at fault: a rank, or the launcher.
bool is_attributed(std::string_view text) {
  return text.starts_with(kLauncher) || begins_with_a_rank(text);
}

}  // namespace

std::string first_cause(std::string_view message) {
  for (std::size_t at = message.rfind(kHandedOn); at != std::string_view::npos && at > 0;
       at = message.rfind(kHandedOn, at - 1)) {
    const std::string_view cause = message.substr(at + kHandedOn.size());
    if (is_attributed(cause)) return std::string(cause);
  }
  return std::string(message);
}

std::string attributed(int rank, std::string_view message) {
  const std::string cause = first_cause(message);
  return is_attributed(cause) ? cause : fmt::format("{}{}: {}", kRank, rank, cause);
}

std::string told_by_launcher(std::string_view reason) {
  return is_attributed(reason) ? std::string(reason) : fmt::format("{}{}", kLauncher, reason);
}

}  // namespace strata::comm
