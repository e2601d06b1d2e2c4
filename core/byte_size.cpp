#include "core/byte_size.h"

#include <algorithm>
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

/// Returns value * unit without fractions. 4.1 * 1e9 comes out below 4100000000, which is what was
/// written if it alone, divided again, gives the number that was read.
double whole_product(double value, double unit) {
  const double nearest = std::round(value * unit);
  return nearest / unit == value ? nearest : std::floor(value * unit);
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// Returns where the letters begin with which `text` ends.
std::size_t unit_begin(std::string_view text) {
  std::size_t begin = text.size();
  while (begin > 0 && is_letter(text[begin - 1])) --begin;
  return begin;
}

/// Returns the amount of a rate, "400Gbit" of "400Gbit/s" and of "400Gbitps"; "" if `text` is none.
std::string_view amount_per_second(std::string_view text) {
  for (const std::string_view per_second : {"/s", "ps"})
    if (text.ends_with(per_second)) return text.substr(0, text.size() - per_second.size());
  return "";
}

bool ends_with_bit(std::string_view text) {
  constexpr std::string_view kBit = "bit";
  return text.size() >= kBit.size() && same_letters(text.substr(text.size() - kBit.size()), kBit);
}

/// Reads an amount of bits, "400Gb" or "400Gbit", as the bytes that it fills.
std::optional<std::int64_t> bytes_of_bits(std::string_view text) {
  constexpr std::size_t kAfterB = std::string_view("it").size();
  constexpr std::int64_t kBitsInByte = 8;
  if (ends_with_bit(text)) text.remove_suffix(kAfterB);
  const std::optional<std::int64_t> bits = parse_byte_size(text);
  if (!bits || *bits == kUnlimitedMemory) return std::nullopt;
  return *bits / kBitsInByte;
}

}  // namespace

std::optional<std::int64_t> parse_byte_size(std::string_view text) {
  if (same_letters(text, kUnlimitedWord)) return kUnlimitedMemory;
  const std::size_t begin = unit_begin(text);
  const std::string_view name = text.substr(begin);
  std::string_view number = text.substr(0, begin);
  while (!number.empty() && number.back() == ' ') number.remove_suffix(1);
  std::int64_t unit = name.empty() ? 1 : 0;
  for (const Unit& known : kUnits) {
    if (same_letters(known.name, name)) unit = known.bytes;
  }
  double value = 0;
  if (unit == 0 || !read_number(number, value) || value < 0) return std::nullopt;
  const double bytes = whole_product(value, static_cast<double>(unit));
  // Stays clear of 2^63, beyond which the cast is undefined.
  if (bytes >= 9.2e18) return std::nullopt;
  return static_cast<std::int64_t>(bytes);
}

std::optional<std::int64_t> parse_byte_rate(std::string_view text) {
  const std::string_view amount = amount_per_second(text);
  if (amount.empty() || !both_readings_of_rate(text).empty()) return std::nullopt;
  const bool in_bits = amount.back() == 'b' || ends_with_bit(amount);
  const std::optional<std::int64_t> bytes =
      in_bits ? bytes_of_bits(amount) : parse_byte_size(amount);
  if (!bytes || *bytes == 0 || *bytes == kUnlimitedMemory) return std::nullopt;
  return bytes;
}

std::string both_readings_of_rate(std::string_view text) {
  const std::string_view amount = amount_per_second(text);
  if (!amount.ends_with('b') || !parse_byte_size(amount)) return "";
  const std::string number(amount.substr(0, unit_begin(amount)));
  const std::string_view unit = amount.substr(number.size());
  if (!std::ranges::all_of(unit, [](char c) { return c == ascii_lower_case(c); })) return "";
  const std::string name(std::ranges::find_if(kUnits, [&](const Unit& u) {
                           return same_letters(u.name, unit);
                         })->name);
  return number + name.substr(0, name.size() - 1) + "bit/s for bits or " + number + name +
         "/s for bytes";
}

std::string both_readings_of_size(std::string_view text) {
  if (text.size() - unit_begin(text) != 1) return "";
  for (const Unit& known : kUnits) {
    const bool has_prefix = known.name.size() == 2;
    if (!has_prefix || !same_letters(known.name.substr(0, 1), text.substr(text.size() - 1)))
      continue;
    const std::string number(text.substr(0, text.size() - 1));
    const std::string decimal = number + std::string(known.name);
    if (!parse_byte_size(decimal)) return "";
    return decimal + " (powers of 1000) or " + number + known.name.front() + "iB (of 1024)";
  }
  return "";
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
