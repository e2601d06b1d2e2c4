#include "runtime/chain/chain.h"

#include <fmt/core.h>
#include <algorithm>
#include <initializer_list>
#include <string>

#include "core/error.h"
#include "runtime/chain/chain_rate.h"

namespace strata::runtime {
namespace {

/// Bounds each number, so that sums over the largest chain stay below 2^63.
constexpr std::int64_t kMost = std::int64_t{1} << 48;
/// Bounds bytes times ChainRate::kRateNs, and nanoseconds times bytes per unit of the link.
constexpr std::int64_t kMostProduct = std::int64_t{1} << 60;
constexpr int kMostBlocks = 1 << 12;

void check_numbers(std::initializer_list<std::int64_t> numbers, const std::string& where) {
  for (const std::int64_t number : numbers)
    if (number < 0 || number > kMost)
      throw InvalidArgument(fmt::format(
          "{} has the number {}; bytes and nanoseconds are from 0 to 2^48", where, number));
}

void check_rate(std::int64_t rate, const std::string& engine) {
  if (rate != 0 && (rate < ChainRate::kSlowestBytesPerS || rate > ChainRate::kFastestBytesPerS))
    throw InvalidArgument(fmt::format(
        "chain: the {} copies {} bytes/s; give 0 for none, or 1 MB/s to 1 TB/s", engine, rate));
}

void check_block(const Chain& chain, int index) {
  const ChainBlock& block = chain.blocks[static_cast<std::size_t>(index)];
  const std::string where = fmt::format("chain: block {}", index);
  if (block.class_index < 0 || block.class_index >= static_cast<int>(chain.classes.size()))
    throw InvalidArgument(fmt::format("{} is of class {}, but there are {}", where,
                                      block.class_index, chain.classes.size()));
  check_numbers(
      {block.forward_ns, block.backward_ns, block.forward_base_bytes, block.backward_base_bytes,
       block.forward_working_bytes, block.backward_working_bytes},
      where);
}

/// Bounds what any choice takes in bytes and time.
void check_sums(const Chain& chain) {
  const ChainRate out(chain.link.out_bytes_per_s);
  const ChainRate in(chain.link.in_bytes_per_s);
  const ChainRate disk_out(chain.disk.out_bytes_per_s);
  const ChainRate disk_in(chain.disk.in_bytes_per_s);
  const std::int64_t most_ns = kMostProduct / out.bytes_per_unit();
  std::int64_t bytes = 0;
  std::int64_t ns = 0;
  for (int i = 0; i < chain.length(); ++i) {
    const ChainBlock& block = chain.blocks[static_cast<std::size_t>(i)];
    std::int64_t largest = 0;
    std::int64_t longest = 0;
    for (const ChainOption& option : chain.options(i)) {
      largest = std::max(largest, option.kept_bytes + option.link_bytes() + option.working_bytes);
      if (!chain.is_possible(option)) continue;
      if (largest > kMostProduct / ChainRate::kRateNs) break;  // refused below
      const std::int64_t moving = out.ns(option.link_bytes()) + in.ns(option.link_bytes()) +
                                  disk_out.ns(option.disk_bytes) + disk_in.ns(option.disk_bytes);
      longest = std::max(longest, option.recompute_ns + moving);
    }
    bytes += largest + block.forward_bytes() + block.backward_bytes();
    ns += longest + block.forward_ns + block.backward_ns;
    if (bytes > kMostProduct / ChainRate::kRateNs || ns > most_ns)
      throw InvalidArgument(
          fmt::format("chain: blocks up to {} hold more than 2^50 bytes or take hours; their "
                      "numbers must be of one micro-step, in bytes and nanoseconds",
                      i));
  }
}

}  // namespace

void check_chain(const Chain& chain) {
  if (chain.blocks.empty() || chain.length() > kMostBlocks)
    throw InvalidArgument(
        fmt::format("chain: it has {} blocks; 1 to {} are possible", chain.length(), kMostBlocks));
  for (std::size_t c = 0; c < chain.classes.size(); ++c) {
    const std::string where = fmt::format("chain: class {}", c);
    if (chain.classes[c].empty()) throw InvalidArgument(fmt::format("{} has no options", where));
    for (const ChainOption& option : chain.classes[c])
      check_numbers({option.kept_bytes, option.host_bytes, option.disk_bytes, option.recompute_ns,
                     option.working_bytes},
                    where);
  }
  for (int i = 0; i < chain.length(); ++i) check_block(chain, i);
  if (chain.budget_bytes < 0 || chain.host_budget_bytes < 0)
    throw InvalidArgument("chain: a budget is negative");
  check_rate(chain.link.out_bytes_per_s, "link out of the device");
  check_rate(chain.link.in_bytes_per_s, "link into the device");
  check_rate(chain.disk.out_bytes_per_s, "disk when it writes");
  check_rate(chain.disk.in_bytes_per_s, "disk when it reads");
  check_sums(chain);
}

}  // namespace strata::runtime
