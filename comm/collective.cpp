#include "comm/collective.h"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <bit>

#include "core/error.h"
#include "kernels/cpu/ordered_sum.h"

namespace strata::comm {
namespace {

constexpr std::array<std::string_view, 8> kKindNames{"all_gather", "reduce_scatter", "all_reduce",
                                                     "broadcast",  "all_to_all",     "send",
                                                     "receive",    "barrier"};

bool is_float(DType type) {
  return type == DType::f32 || type == DType::bf16 || type == DType::f16;
}

[[noreturn]] void refuse(const Collective& collective, const std::string& what) {
  throw InvalidArgument("collective '" + describe(collective) + "': " + what);
}

}  // namespace

std::string_view name_of(CollectiveKind kind) { return kKindNames[static_cast<int>(kind)]; }

std::string describe(const Collective& collective) {
  char text[kDescriptionBytes];
  return std::string(describe_into(collective, text));
}

std::string_view describe_into(const Collective& collective, std::span<char> text) {
  char* end = text.data();
  const auto append = [&](fmt::string_view format, const auto&... values) {
    const char* last = &text.back();
    end = fmt::format_to_n(end, last - end, fmt::runtime(format), values...).out;
    *end = '\0';
  };
  append("{}", name_of(collective.kind));
  if (collective.kind == CollectiveKind::barrier) return {text.data(), end};
  append(" {}", name_of(collective.input_type));
  if (collective.kind == CollectiveKind::reduce_scatter)
    append(" as {}", name_of(collective.wire_type));
  if (!collective.partition.bounds.empty())
    append(", {} elements over {} ranks", collective.partition.total(),
           collective.partition.ranks());
  if (collective.peer >= 0) append(", peer {}", collective.peer);
  return {text.data(), end};
}

std::uint64_t fingerprint(const Collective& collective) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a over whole words
  const auto add = [&hash](std::uint64_t word) { hash = (hash ^ word) * 0x100000001b3; };
  const bool sums = collective.kind == CollectiveKind::reduce_scatter;
  const CollectiveKind kind =
      collective.kind == CollectiveKind::receive ? CollectiveKind::send : collective.kind;
  add(static_cast<std::uint64_t>(kind));
  add(collective.axes.index());
  if (kind == CollectiveKind::barrier) return hash;
  add(static_cast<std::uint64_t>(collective.input_type));
  add(sums ? static_cast<std::uint64_t>(collective.wire_type) : 0);
  add(sums ? std::bit_cast<std::uint32_t>(collective.scale) : 0);
  for (const std::int64_t bound : collective.partition.bounds)
    add(static_cast<std::uint64_t>(bound));
  return hash;
}

OperandBytes operand_bytes(const Collective& collective, int rank) {
  if (collective.kind == CollectiveKind::barrier) return {};
  const Partition& partition = collective.partition;
  const std::int64_t size = size_of(collective.input_type);
  const std::int64_t whole = partition.total() * size;
  const std::int64_t mine = partition.count(rank) * size;
  switch (collective.kind) {
    case CollectiveKind::all_gather:
      return {mine, whole};
    case CollectiveKind::reduce_scatter:
      return {whole, partition.count(rank) * size_of(DType::f32)};
    case CollectiveKind::all_reduce:
    case CollectiveKind::broadcast:
      return {whole, whole};
    case CollectiveKind::all_to_all:
      return {whole, mine * partition.ranks()};
    case CollectiveKind::send:
      return {whole, 0};
    case CollectiveKind::receive:
      return {0, whole};
    case CollectiveKind::barrier:
      break;
  }
  return {};
}

void validate(const Collective& collective, int rank, int ranks, int added) {
  if (collective.kind == CollectiveKind::barrier) return;
  const std::vector<std::int64_t>& bounds = collective.partition.bounds;
  if (bounds.size() != static_cast<std::size_t>(ranks) + 1)
    refuse(collective, fmt::format("its partition has {} bounds; {} ranks need {}", bounds.size(),
                                   ranks, ranks + 1));
  if (bounds[0] != 0 || !std::is_sorted(bounds.begin(), bounds.end()))
    refuse(collective, "its partition's bounds must start at 0 and never fall");
  if (collective.kind == CollectiveKind::all_reduce && collective.input_type != DType::i64)
    refuse(collective, "all_reduce sums int64 only; floats use reduce_scatter, then all_gather");
  if (collective.kind == CollectiveKind::reduce_scatter &&
      !(is_float(collective.input_type) && is_float(collective.wire_type)))
    refuse(collective, "reduce_scatter sums fp32, bf16 and fp16 only");
  if (collective.kind == CollectiveKind::reduce_scatter && added > kernels::kMaxContributions)
    refuse(collective,
           fmt::format("sums add at most {} ranks of a host, or of all where there is one level",
                       kernels::kMaxContributions));
  const bool pair =
      collective.kind == CollectiveKind::send || collective.kind == CollectiveKind::receive;
  if (pair && (collective.peer < 0 || collective.peer >= ranks || collective.peer == rank))
    refuse(collective,
           fmt::format("peer {} is not another of the {} ranks", collective.peer, ranks));
}

Collective integer_sum(std::int64_t elements, int ranks, AxisSet axes) {
  Collective sum;
  sum.axes = axes;
  sum.kind = CollectiveKind::all_reduce;
  sum.input_type = sum.wire_type = DType::i64;
  for (int r = 0; r <= ranks; ++r) sum.partition.bounds.push_back(r * elements / ranks);
  return sum;
}

}  // namespace strata::comm
