#include "runtime/chain/chain_steps.h"

#include <algorithm>

#include "runtime/chain/chain_options.h"
#include "runtime/chain/chain_rate.h"

namespace strata::runtime {

static_assert(ChainSteps::kTicksPerByte == ChainRate::kRateNs);

ChainSteps::ChainSteps(const Chain& chain)
    : ticks_per_ns(ChainRate(chain.link.out_bytes_per_s).bytes_per_unit()),
      budget_bytes(chain.budget_bytes),
      host_budget_bytes(chain.host_budget_bytes) {
  const ChainRate link_out(chain.link.out_bytes_per_s);
  const ChainRate link_in(chain.link.in_bytes_per_s);
  const ChainRate disk_out(chain.disk.out_bytes_per_s);
  const ChainRate disk_in(chain.disk.in_bytes_per_s);
  std::vector<std::vector<int>> remaining;
  remaining.reserve(chain.classes.size());
  for (const auto& options : chain.classes) remaining.push_back(undominated_options(options));

  std::int64_t host = 0;
  std::int64_t window = 0;
  for (int i = 0; i < chain.length(); ++i) {
    const ChainBlock& block = chain.blocks[static_cast<std::size_t>(i)];
    ChainStep& step = steps.emplace_back();
    step.forward_bytes = block.forward_bytes();
    step.backward_ns = block.backward_ns;
    step.drained_bytes = link_out.bytes(block.forward_ns);
    const std::int64_t until_written =
        i + 1 < chain.length() ? chain.blocks[static_cast<std::size_t>(i) + 1].forward_ns : 0;
    std::int64_t most_host = 0;
    for (const int index : remaining[static_cast<std::size_t>(block.class_index)]) {
      const ChainOption& option = chain.options(i)[static_cast<std::size_t>(index)];
      if (!chain.is_possible(option)) continue;
      step.moves.push_back(
          {.option = index,
           .kept_bytes = option.kept_bytes,
           .link_bytes = option.link_bytes(),
           .host_bytes = option.host_bytes,
           .disk_bytes = option.disk_bytes,
           .backward_bytes = block.backward_bytes() + option.kept_bytes + option.link_bytes() +
                             option.working_bytes,
           .recompute_ns = option.recompute_ns,
           .back_ns = std::max(link_in.ns(option.link_bytes()), disk_in.ns(option.disk_bytes)),
           .write_wait_ns =
               std::max<std::int64_t>(0, disk_out.ns(option.disk_bytes) - until_written)});
      most_host = std::max(most_host, option.host_bytes);
      window = std::max(window, option.disk_bytes);
    }
    host += most_host;
  }
  host_binds = host + 2 * window > host_budget_bytes;
}

bool ChainSteps::has_gap() const {
  return std::any_of(steps.begin(), steps.end(),
                     [](const ChainStep& step) { return step.moves.empty(); });
}

}  // namespace strata::runtime
