#include "core/byte_size.h"

#include <charconv>
#include <cmath>

#include "core/ascii.h"

namespace strata {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t bytes;
};

constexpr Unit kUnits[] = {
    {"B", 1},
    {"KB", 1'000},
    {"MB", 1'000'000},
    {"GB", 1'000'000'000},
    {"TB", 1'000'000'000'000},
    {"KiB", std::int64_t{1} << 10},
    {"MiB", std::int64_t{1} << 20},
    {"GiB", std::int64_t{1} << 30},
    {"TiB", std::int64_t{1} << 40},
};

constexpr std::string_view kUnlimitedWord = "unlimited";

/// Returns false unless all of `text` is a finite number.
bool read_number(std::string_view text, double& number) {
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && rest == end && std::isfinite(number);
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

}  // namespace

std::optional<std::int64_t> parse_byte_size(std::string_view text) {
  if (same_letters(text, kUnlimitedWord)) return kUnlimitedMemory;
  std::size_t begin = text.size();
  while (begin > 0 && is_letter(text[begin - 1])) --begin;
  const std::string_view name = text.substr(begin);
  std::string_view number = text.substr(0, begin);
  while (!number.empty() && number.back() == ' ') number.remove_suffix(1);
  std::int64_t unit = name.empty() ? 1 : 0;
  for (const Unit& known : kUnits) {
    if (same_letters(known.name, name)) unit = known.bytes;
  }
  double value = 0;
  if (unit == 0 || !read_number(number, value) || value < 0) return std::nullopt;
  const double bytes = std::floor(value * static_cast<double>(unit));
  // Stays clear of 2^63, beyond which the cast is undefined.
  if (bytes >= 9.2e18) return std::nullopt;
  return static_cast<std::int64_t>(bytes);
}

std::string byte_size_text(std::int64_t bytes) {
  if (bytes == kUnlimitedMemory) return std::string(kUnlimitedWord);
  std::string best = std::to_string(bytes);
  if (bytes == 0) return best;
  for (const Unit& unit : kUnits) {
    if (unit.bytes == 1 || bytes % unit.bytes != 0) continue;
    const std::string text = std::to_string(bytes / unit.bytes) + std::string(unit.name);
    if (text.size() < best.size()) best = text;
  }
  return best;
}

}  // namespace strata
