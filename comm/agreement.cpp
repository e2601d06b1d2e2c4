#include "comm/agreement.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "comm/host_stream.h"
#include "comm/mapped_file.h"
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

/// Every rank's text, `sizes_bytes` of them by rank known to all, through an arena of this call.
std::vector<std::string> gather(Communicator& communicator, std::string_view mine,
                                std::span<const std::int64_t> sizes_bytes) {
  Collective collective{.kind = CollectiveKind::all_gather, .input_type = DType::u8};
  collective.partition.bounds = {0};
  for (const std::int64_t size : sizes_bytes)
    collective.partition.bounds.push_back(collective.partition.total() + size);
  const auto bytes =
      static_cast<std::size_t>(std::max<std::int64_t>(collective.partition.total(), 1));

  const UniqueFd fd = make_memfd("strata-agreement", bytes);
  const MappedFile arena(fd.get(), bytes, Access::read_write, "agreement arena");
  std::byte* all = arena.memory().data();
  std::byte* own = all + collective.partition.begin(communicator.rank());
  std::memcpy(own, mine.data(), mine.size());
  communicator.register_arena({all, static_cast<std::int64_t>(bytes), fd.get()});
  std::vector<std::byte> workspace(
      static_cast<std::size_t>(communicator.workspace_bytes(collective)));
  HostStream stream;
  communicator.run(stream, collective, own, all, workspace);
  communicator.unregister_arena(all);

  std::vector<std::string> texts;
  for (int rank = 0; rank < communicator.size(); ++rank)
    texts.emplace_back(reinterpret_cast<const char*>(all) + collective.partition.begin(rank),
                       static_cast<std::size_t>(collective.partition.count(rank)));
  return texts;
}

/// One number from each rank.
std::vector<std::int64_t> gather_numbers(Communicator& communicator, std::int64_t mine) {
  const std::vector<std::int64_t> sizes(static_cast<std::size_t>(communicator.size()), sizeof mine);
  std::vector<std::int64_t> numbers;
  const std::string_view own(reinterpret_cast<const char*>(&mine), sizeof mine);
  for (const std::string& text : gather(communicator, own, sizes)) {
    std::int64_t number = 0;
    std::memcpy(&number, text.data(), sizeof number);
    numbers.push_back(number);
  }
  return numbers;
}

/// The text of `rank` on every rank.
std::string text_of(Communicator& communicator, int rank, std::string_view mine) {
  const std::string_view own = communicator.rank() == rank ? mine : std::string_view();
  const std::vector<std::int64_t> sizes =
      gather_numbers(communicator, static_cast<std::int64_t>(own.size()));
  return gather(communicator, own, sizes)[static_cast<std::size_t>(rank)];
}

std::string_view line_at(std::span<const std::string> lines, std::size_t index) {
  return index < lines.size() ? std::string_view(lines[index]) : kNothing;
}

/// Index of the first line in which `lines` differs from the text of rank 0; npos: in none.
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
  throw InternalError("the ranks disagree on line " + std::to_string(index) +
                      " of what they will run: rank 0 has '" + at_zero + "', rank " +
                      std::to_string(other) + " has '" + at_other +
                      "'; were all ranks given the same configuration and files?");
}

}  // namespace

void require_equal_sequences(Communicator& communicator, std::span<const std::string> lines) {
  const auto hashes = gather_numbers(communicator, static_cast<std::int64_t>(hash_of(lines)));
  if (std::equal(hashes.begin() + 1, hashes.end(), hashes.begin())) return;
  report(communicator, lines);
}

}  // namespace strata::comm
