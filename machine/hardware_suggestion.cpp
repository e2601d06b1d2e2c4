#include "machine/hardware_suggestion.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "core/ascii.h"
#include "core/integer.h"
#include "core/nearest_name.h"

namespace strata::machine {
namespace {

using Names = std::vector<std::string>;

bool is_among(std::string_view name, const Names& names) {
  return std::ranges::find(names, name) != names.end();
}

/// A number of devices of a kind: "8xh100", "h100x8", "h100:8".
struct CountedDevices {
  std::string device;
  std::int64_t count = 0;
};

std::optional<CountedDevices> read_counted(std::string_view wanted, const Names& names) {
  for (std::size_t at = 0; at < wanted.size(); ++at) {
    if (wanted[at] != 'x' && wanted[at] != ':' && wanted[at] != '*') continue;
    const std::string_view before = wanted.substr(0, at), after = wanted.substr(at + 1);
    for (const auto& [number, device] : {std::pair(before, after), std::pair(after, before)})
      if (const auto count = parse_integer(number); count && *count > 0 && is_among(device, names))
        return CountedDevices{std::string(device), *count};
  }
  return {};
}

/// Names a machine with so many of the devices, or how one with another number changes.
std::string machine_with(const CountedDevices& wanted, const Names& names) {
  const std::string named = fmt::format("{}x{}", wanted.count, wanted.device);
  if (wanted.count == 1) return wanted.device;
  if (is_among(named, names)) return named;
  std::string base = wanted.device;
  for (const std::string& name : names)  // one that has several has the links between them
    if (const auto other = read_counted(name, {wanted.device}); other) base = name;
  return fmt::format("{},devices={}", base, wanted.count);
}

/// True if both names are of a series that one letter names, as in a100, h100 and v100, and the
/// letters differ: these are other devices.
bool are_of_other_series(std::string_view one, std::string_view other) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto has_letter = [&](std::string_view name) {
    return name.size() > 1 && !is_digit(name[0]) && is_digit(name[1]);
  };
  return has_letter(one) && has_letter(other) && one[0] != other[0];
}

std::string asked(const std::vector<std::string>& meant) {
  if (meant.empty()) return "";
  const std::size_t last = meant.size() - 1;
  std::string text = ", did you mean ";
  for (std::size_t i = 0; i < meant.size(); ++i)
    text += (i == 0 ? "'" : i == last ? " or '" : ", '") + meant[i] + "'";
  return text + "?";
}

}  // namespace

std::string hardware_suggestion(const std::string& name, const Names& names) {
  constexpr std::size_t kFewestLetters = 3;
  const std::string wanted = ascii_lower_case(name);
  if (const auto counted = read_counted(wanted, names))
    return asked({machine_with(*counted, names)});
  Names begun, ended;
  for (const std::string& known : names) {
    if (wanted.size() < kFewestLetters) break;
    if (known.starts_with(wanted + "-")) begun.push_back(known);
    if (known.ends_with(wanted)) ended.push_back(known);
  }
  if (!begun.empty()) return asked(begun);
  std::vector<std::string_view> same_series;
  for (const std::string& known : names)
    if (!are_of_other_series(wanted, known)) same_series.push_back(known);
  if (const std::string near = suggestion(wanted, same_series); !near.empty()) return near;
  return ended.empty() ? "" : asked({ended.front()});
}

}  // namespace strata::machine
