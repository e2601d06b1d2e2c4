#include "runtime/testing/random_chain.h"

#include <algorithm>
#include <limits>
#include <random>

#include "runtime/chain/chain_cost.h"

namespace strata::runtime {
namespace {

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}
  std::int64_t from(std::int64_t least, std::int64_t most) {
    return least +
           static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(most - least + 1));
  }
  bool one_in(int count) { return from(1, count) == 1; }

 private:
  std::mt19937_64 random_;
};

ChainOption draw_option(Draw& draw, std::int64_t unit, bool with_disk) {
  ChainOption option;
  option.kept_bytes = draw.from(0, 12) * unit;
  if (!draw.one_in(3)) option.host_bytes = draw.from(0, 12) * unit;
  if (with_disk && draw.one_in(2)) option.disk_bytes = draw.from(0, 8) * unit;
  if (!draw.one_in(3)) option.recompute_ns = draw.from(0, 40) * 100;
  if (draw.one_in(2)) option.working_bytes = draw.from(0, 10) * unit;
  return option;
}

}  // namespace

Chain random_chain(std::uint64_t seed, const RandomChainShape& shape) {
  Draw draw(seed);
  Chain chain;
  const std::int64_t unit = draw.one_in(3) ? draw.from(1, 9) : draw.from(1, 5000);
  const bool with_disk = draw.one_in(4);
  const auto classes = draw.from(1, 3);
  for (std::int64_t c = 0; c < classes; ++c) {
    auto& options = chain.classes.emplace_back();
    const auto count = draw.from(shape.least_options, shape.most_options);
    for (std::int64_t o = 0; o < count; ++o) options.push_back(draw_option(draw, unit, with_disk));
  }
  // Makes the forward pass, too, wait for its backlog.
  const std::int64_t tight = draw.one_in(2) ? draw.from(5, 40) : 0;
  const auto length = draw.from(shape.least_blocks, shape.most_blocks);
  for (std::int64_t i = 0; i < length; ++i) {
    const auto lazy = draw.one_in(2) ? (length - i) : std::int64_t{0};  // gradients made so far
    chain.blocks.push_back({.class_index = static_cast<int>(draw.from(0, classes - 1)),
                            .forward_ns = draw.from(0, 30) * 100,
                            .backward_ns = draw.from(0, 60) * 100,
                            .forward_base_bytes = draw.from(0, 10) * unit,
                            .backward_base_bytes = (draw.from(0, 10) + lazy) * unit,
                            .forward_working_bytes = (draw.from(0, 10) + tight) * unit,
                            .backward_working_bytes = draw.from(0, 10) * unit});
  }
  // Links range from ones that are always too slow to ones that never are.
  const std::int64_t rate = std::max<std::int64_t>(1'000'000, unit * draw.from(1, 100) * 400'000);
  if (!draw.one_in(20)) chain.link = {rate, draw.one_in(2) ? rate : rate * draw.from(1, 4)};
  if (with_disk) chain.disk = {rate / 2 + 1'000'000, rate};
  chain.budget_bytes = draw.from(16, 24 + 12 * length) * unit + draw.from(0, unit);
  if (draw.one_in(3)) chain.host_budget_bytes = draw.from(0, 8 * length) * unit;
  return chain;
}

BruteForce try_all_choices(const Chain& chain) {
  BruteForce best;
  ChainChoice choice(chain.blocks.size(), 0);
  for (;;) {
    const ChainCost cost = chain_cost(chain, choice);
    if (cost.fits && (!best.fits || cost.extra_ns < best.extra_ns)) {
      best.fits = true;
      best.extra_ns = cost.extra_ns;
    }
    if (cost.floor_bytes < std::numeric_limits<std::int64_t>::max() &&
        cost.host_peak_bytes <= chain.host_budget_bytes &&
        (best.floor_bytes < 0 || cost.floor_bytes < best.floor_bytes))
      best.floor_bytes = cost.floor_bytes;
    std::size_t block = 0;
    while (block < choice.size()) {
      if (++choice[block] < static_cast<int>(chain.options(static_cast<int>(block)).size())) break;
      choice[block++] = 0;
    }
    if (block == choice.size()) return best;
  }
}

}  // namespace strata::runtime
