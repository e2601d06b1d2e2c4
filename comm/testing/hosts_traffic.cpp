#include "comm/testing/hosts_traffic.h"

#include <algorithm>

#include "comm/gather_texts.h"
#include "comm/partial_sums.h"
#include "comm/testing/checked_collectives.h"

namespace strata::comm {
namespace {

constexpr std::int64_t kElements = 5000;  // per rank, more or less

/// Every host gets the pieces of all others once.
std::int64_t least_of_gather(const Collective& gather, const HostLayout& layout) {
  return gather.partition.total() * size_of(gather.input_type) * (layout.hosts() - 1);
}

/// Every host sends its largest subtrees' sums, or contributions, of all pieces of others.
std::int64_t least_of_sum(const Collective& sum, const HostLayout& layout) {
  std::int64_t bytes = 0;
  for (int host = 0; host < layout.hosts(); ++host) {
    std::int64_t away = sum.partition.total();
    for (int rank = layout.first(host); rank < layout.end(host); ++rank)
      away -= sum.partition.count(rank);
    for (const Subtree& subtree : subtrees_of(layout, host))
      bytes += away * std::min<std::int64_t>(4, subtree.leaves * size_of(sum.wire_type));
  }
  return bytes;
}

}  // namespace

HostsTraffic measure_traffic(Communicator& communicator, const HostLayout& layout,
                             const std::function<std::int64_t()>& sent) {
  TestArena arena(communicator, 4 << 20);
  Partition partition{{0}};
  for (int rank = 0; rank < layout.world; ++rank)
    partition.bounds.push_back(partition.total() + kElements + rank * 7);
  HostsTraffic traffic;
  const std::int64_t before = sent();
  std::uint64_t seed = 0;
  for (const DType type : {DType::f32, DType::bf16}) {
    const Collective gather{
        .kind = CollectiveKind::all_gather, .input_type = type, .partition = partition};
    run_checked(communicator, arena, gather, ++seed);
    traffic.least += least_of_gather(gather, layout);
    for (const DType wire : {DType::f32, DType::bf16}) {
      const Collective sum{.kind = CollectiveKind::reduce_scatter,
                           .input_type = type,
                           .wire_type = wire,
                           .partition = partition};
      run_checked(communicator, arena, sum, ++seed);
      traffic.least += least_of_sum(sum, layout);
    }
  }
  const std::int64_t mine = sent() - before;
  for (const std::int64_t bytes : gather_numbers(communicator, mine)) traffic.sent += bytes;
  arena.close();
  return traffic;
}

}  // namespace strata::comm
