#include "runtime/chain/chain_cost.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "core/check.h"
#include "runtime/chain/chain_rate.h"

namespace strata::runtime {
namespace {

/// Walks one choice along the chain.
class Walk {
 public:
  Walk(const Chain& chain, const ChainChoice& choice)
      : chain_(chain),
        link_out_(chain.link.out_bytes_per_s),
        link_in_(chain.link.in_bytes_per_s),
        disk_out_(chain.disk.out_bytes_per_s),
        disk_in_(chain.disk.in_bytes_per_s) {
    STRATA_CHECK(choice.size() == chain.blocks.size());
    chosen_.reserve(choice.size());
    for (int i = 0; i < chain.length(); ++i) {
      const int index = choice[static_cast<std::size_t>(i)];
      const auto& options = chain.options(i);
      STRATA_CHECK(index >= 0 && index < static_cast<int>(options.size()), i, index);
      chosen_.push_back(options[static_cast<std::size_t>(index)]);
      possible_ = possible_ && chain.is_possible(chosen_.back());
    }
  }

  ChainCost run() {
    if (!possible_) return {.floor_bytes = std::numeric_limits<std::int64_t>::max()};
    for (int i = 0; i < chain_.length(); ++i) forward(i);
    turn();
    for (int i = chain_.length() - 1; i >= 0; --i) backward(i);
    cost_.extra_ns = cost_.recompute_ns + waited_ns_ + link_out_.ns(waited_bytes_);
    cost_.fits = cost_.floor_bytes <= chain_.budget_bytes &&
                 cost_.host_peak_bytes <= chain_.host_budget_bytes;
    return cost_;
  }

 private:
  [[nodiscard]] const ChainOption& option(int i) const {
    return chosen_[static_cast<std::size_t>(i)];
  }
  [[nodiscard]] const ChainBlock& block(int i) const {
    return chain_.blocks[static_cast<std::size_t>(i)];
  }
  /// Time in which the bytes of block i come back.
  [[nodiscard]] std::int64_t back_ns(int i) const {
    return std::max(link_in_.ns(option(i).link_bytes()), disk_in_.ns(option(i).disk_bytes));
  }
  [[nodiscard]] std::int64_t written_ns(int i) const { return disk_out_.ns(option(i).disk_bytes); }

  void hold(int position, std::int64_t bytes, std::int64_t backlog) {
    if (bytes + backlog > cost_.peak_bytes) {
      cost_.peak_bytes = bytes + backlog;
      cost_.peak_position = position;
    }
    cost_.floor_bytes = std::max(cost_.floor_bytes, bytes);
  }

  void forward(int i) {
    const std::int64_t held = block(i).forward_bytes() + kept_;
    const std::int64_t room = std::max<std::int64_t>(0, chain_.budget_bytes - held);
    if (backlog_ > room) {
      waited_bytes_ += backlog_ - room;
      backlog_ = room;
    }
    hold(i, held, backlog_);
    backlog_ = std::max<std::int64_t>(0, backlog_ - link_out_.bytes(block(i).forward_ns));
    backlog_ += option(i).link_bytes();
    kept_ += option(i).kept_bytes;
    host_ += option(i).host_bytes;
    const std::int64_t before = i > 0 ? option(i - 1).disk_bytes : 0;
    cost_.host_peak_bytes = std::max(cost_.host_peak_bytes, host_ + option(i).disk_bytes + before);
    if (i > 0) waited_ns_ += std::max<std::int64_t>(0, written_ns(i - 1) - block(i).forward_ns);
  }

  void turn() {
    const int last = chain_.length() - 1;
    waited_bytes_ += backlog_;
    waited_ns_ += written_ns(last) + back_ns(last);
  }

  void backward(int i) {
    const ChainOption& own = option(i);
    const std::int64_t coming = i > 0 ? option(i - 1).link_bytes() : 0;
    hold(2 * chain_.length() - 1 - i,
         block(i).backward_bytes() + kept_ + own.link_bytes() + coming + own.working_bytes, 0);
    kept_ -= own.kept_bytes;  // what blocks before this one keep
    cost_.recompute_ns += own.recompute_ns;
    if (i > 0)
      waited_ns_ +=
          std::max<std::int64_t>(0, back_ns(i - 1) - (block(i).backward_ns + own.recompute_ns));
  }

  const Chain& chain_;
  ChainRate link_out_, link_in_, disk_out_, disk_in_;
  std::vector<ChainOption> chosen_;
  bool possible_ = true;
  std::int64_t kept_ = 0;          ///< by blocks so far
  std::int64_t backlog_ = 0;       ///< of the link
  std::int64_t host_ = 0;          ///< bytes that wait in host memory
  std::int64_t waited_bytes_ = 0;  ///< for the link out of the device
  std::int64_t waited_ns_ = 0;     ///< for all else
  ChainCost cost_;
};

}  // namespace

ChainCost chain_cost(const Chain& chain, const ChainChoice& choice) {
  return Walk(chain, choice).run();
}

}  // namespace strata::runtime
