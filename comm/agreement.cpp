#include "comm/agreement.h"

#include <fmt/core.h>
#include <algorithm>
#include <cstdint>
#include <vector>

#include "comm/gather_texts.h"
#include "comm/shown_collective.h"
#include "core/error.h"

namespace strata::comm {
namespace {

constexpr std::string_view kNothing = "(no more)";

std::uint64_t hash_of(std::span<const std::string> lines) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const std::string& line : lines) {
    for (const char c : line) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    hash = (hash ^ '\n') * 0x100000001b3;
  }
  return hash;
}

/// Returns the text of `rank` on every rank.
std::string text_of(Communicator& communicator, int rank, std::string_view mine) {
  const std::string_view own = communicator.rank() == rank ? mine : std::string_view();
  return gather_texts(communicator, own)[static_cast<std::size_t>(rank)];
}

std::string_view line_at(std::span<const std::string> lines, std::size_t index) {
  return index < lines.size() ? std::string_view(lines[index]) : kNothing;
}

/// Returns the index of the first line of `lines` that differs from rank 0's text, or npos.
std::size_t first_difference(std::span<const std::string> lines, std::string_view text) {
  std::size_t index = 0;
  for (; !text.empty(); ++index) {
    const std::size_t end = text.find('\n');
    if (index == lines.size() || lines[index] != text.substr(0, end)) return index;
    text.remove_prefix(end + 1);
  }
  return index < lines.size() ? index : std::string::npos;
}

[[noreturn]] void report(Communicator& communicator, std::span<const std::string> lines) {
  std::string mine;
  if (communicator.rank() == 0)
    for (const std::string& line : lines) mine += line + "\n";
  const std::string first = text_of(communicator, 0, mine);
  const std::size_t own_index = first_difference(lines, first);
  const auto indices = gather_numbers(
      communicator, static_cast<std::int64_t>(std::min<std::size_t>(own_index, INT64_MAX)));
  const auto earliest = std::min_element(indices.begin(), indices.end());
  const auto index = static_cast<std::size_t>(*earliest);
  const int other = static_cast<int>(earliest - indices.begin());
  const std::string at_zero = text_of(communicator, 0, line_at(lines, index));
  const std::string at_other = text_of(communicator, other, line_at(lines, index));
  throw InternalError(
      fmt::format("the ranks disagree on line {} of what they will run: rank 0 has '{}', rank {} "
                  "has '{}'; were all ranks given the same configuration and files?",
                  index, at_zero, other, at_other));
}

}  // namespace

void require_equal_sequences(Communicator& communicator, std::span<const std::string> lines) {
  const ShownCollective shown(communicator, "compare the Programs of ranks");
  const auto hashes = gather_numbers(communicator, static_cast<std::int64_t>(hash_of(lines)));
  if (std::equal(hashes.begin() + 1, hashes.end(), hashes.begin())) return;
  report(communicator, lines);
}

}  // namespace strata::comm
