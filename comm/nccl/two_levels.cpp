#include "comm/nccl/two_levels.h"

#include <algorithm>

namespace strata::comm {

TwoLevels::TwoLevels(const Seat& seat)
    : layout(layout_of(seat)),
      host(layout.host_of(seat.rank)),
      sums(made_sums(layout, host)),
      parts(subtrees_of(layout)),
      outgoing(sums_from(layout, seat.rank)),
      incoming(sums_to(layout, seat.rank)) {
  for (int rank = first(); rank < first() + locals(); ++rank) {
    served.push_back(layout.served_by(rank));
    adds.push_back({rank});
    if (!sums.empty())
      adds.back().insert(adds.back().end(), served.back().begin(), served.back().end());
  }
  for (const DType wire_type : {DType::f32, DType::bf16, DType::f16}) {
    const SumSteps& made = steps[wire_type] = sum_steps(parts, layout.world, wire_type);
    most_slots = std::max(most_slots, static_cast<std::size_t>(made.slots));
  }
}

}  // namespace strata::comm
