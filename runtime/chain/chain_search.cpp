#include "runtime/chain/chain_search.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "runtime/chain/chain_floor.h"

namespace strata::runtime {

ChainSearch::ChainSearch(const ChainSteps& steps, const ChainBound& bound)
    : steps_(steps), bound_(bound), kept_limits_(runtime::kept_limits(steps)) {}

/// Adds the label's successors over `block`, whose forward position it enters.
void ChainSearch::add_moves(int block, Label label, int parent, std::int64_t most_ticks,
                            std::vector<Label>& next) const {
  constexpr std::int64_t kPerByte = ChainSteps::kTicksPerByte;
  const ChainStep& step = steps_.step(block);
  const bool is_last = block + 1 == steps_.length();
  const std::int64_t room = steps_.budget_bytes - step.forward_bytes - label.kept;
  if (room < 0) return;
  const std::int64_t ready = label.ticks_ready - label.ticks;
  const std::int64_t backlog = (label.busy - label.ticks) / kPerByte;
  label.ticks += kPerByte * std::max<std::int64_t>(0, backlog - room);
  const std::int64_t after =
      std::max<std::int64_t>(0, std::min(backlog, room) - step.drained_bytes);

  const auto& limits = kept_limits_[static_cast<std::size_t>(block) + 1];
  for (std::size_t k = 0; k < step.moves.size(); ++k) {
    const ChainMove& move = step.moves[k];
    Label made;
    made.kept = label.kept + move.kept_bytes;
    if (move.backward_bytes + label.coming > steps_.budget_bytes || made.kept > limits[k]) continue;
    if (steps_.host_binds) {
      made.host = label.host + move.host_bytes;
      made.host_window = made.host + move.disk_bytes;
      if (label.host_window + move.host_bytes + move.disk_bytes > steps_.host_budget_bytes)
        continue;
    }
    const std::int64_t hidden = (step.backward_ns + move.recompute_ns) * steps_.ticks_per_ns;
    made.ticks = label.ticks + std::max<std::int64_t>(0, ready - hidden) +
                 (move.recompute_ns + move.write_wait_ns) * steps_.ticks_per_ns;
    const std::int64_t queued = after + move.link_bytes;
    if (is_last) {
      made.ticks += queued * kPerByte + move.back_ns * steps_.ticks_per_ns;
      made.busy = made.ticks_ready = made.busy_ready = made.bound = made.ticks;
      made.coming = made.kept = 0;
    } else {
      made.busy = made.ticks + queued * kPerByte;
      // A wait never ends before the next block's backward pass does.
      const std::int64_t next_ready =
          std::max(move.back_ns, steps_.step(block + 1).backward_ns) * steps_.ticks_per_ns;
      made.ticks_ready = made.ticks + next_ready;
      made.busy_ready = made.busy + next_ready;
      made.coming = made.kept + move.link_bytes;
      made.bound = bound_.ticks(block + 1, made.kept, queued, made.ticks);
    }
    if (made.bound > most_ticks) continue;
    made.parent = parent;
    made.move = static_cast<int>(k);
    next.push_back(made);
  }
}

/// Leaves out what is dominated. Returns false if the effort ended before.
bool ChainSearch::cull(std::vector<Label>& labels, ChainWork& work) {
  // A label is dominated only by labels before it.
  std::sort(labels.begin(), labels.end(), [](const Label& a, const Label& b) {
    return std::tie(a.ticks, a.busy, a.kept, a.coming, a.ticks_ready, a.busy_ready, a.host,
                    a.host_window, a.parent, a.move) < std::tie(b.ticks, b.busy, b.kept, b.coming,
                                                                b.ticks_ready, b.busy_ready, b.host,
                                                                b.host_window, b.parent, b.move);
  });
  std::size_t remaining = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    bool dominated = false;
    std::size_t j = 0;
    while (j < remaining && !dominated) dominated = labels[j++].dominates(labels[i]);
    work.spent += static_cast<std::int64_t>(j);
    if (work.is_spent()) return false;
    if (!dominated) labels[remaining++] = labels[i];
  }
  labels.resize(remaining);
  return true;
}

ChainChoice ChainSearch::choice_of(const std::vector<std::vector<Ancestor>>& ancestors,
                                   const Label& last) const {
  ChainChoice choice(ancestors.size() + 1);
  int parent = last.parent;
  int move = last.move;
  for (std::size_t block = ancestors.size() + 1; block-- > 0;) {
    choice[block] = steps_.steps[block].moves[static_cast<std::size_t>(move)].option;
    if (block == 0) break;
    const Ancestor& before = ancestors[block - 1][static_cast<std::size_t>(parent)];
    parent = before.parent;
    move = before.move;
  }
  return choice;
}

ChainSearchResult ChainSearch::run(std::int64_t most_ticks, std::size_t width,
                                   ChainWork& work) const {
  ChainSearchResult result;
  std::vector<std::vector<Ancestor>> ancestors;
  std::vector<Label> labels(1);
  const auto by_bound = [](const Label& a, const Label& b) {
    return std::tie(a.bound, a.ticks, a.kept, a.parent, a.move) <
           std::tie(b.bound, b.ticks, b.kept, b.parent, b.move);
  };
  const auto narrow = [&](std::vector<Label>& from, std::size_t most) {
    if (from.size() <= most) return;
    const auto end = from.begin() + static_cast<std::ptrdiff_t>(most);
    std::nth_element(from.begin(), end, from.end(), by_bound);
    result.least_left_out_ticks = std::min(result.least_left_out_ticks, end->bound);
    from.resize(most);
  };
  for (int block = 0; block < steps_.length(); ++block) {
    std::vector<Label> next;
    for (std::size_t i = 0; i < labels.size(); ++i)
      add_moves(block, labels[i], static_cast<int>(i), most_ticks, next);
    work.spent += static_cast<std::int64_t>(labels.size() * steps_.step(block).moves.size());
    narrow(next, 8 * width);
    if (work.is_spent() || !cull(next, work)) {
      result.complete = false;
      return result;
    }
    narrow(next, width);
    if (block + 1 < steps_.length()) {
      auto& row = ancestors.emplace_back();
      for (const Label& label : next) row.push_back({label.parent, label.move});
    }
    labels = std::move(next);
    if (labels.empty()) return result;
  }
  result.choice = choice_of(ancestors, *std::min_element(labels.begin(), labels.end(), by_bound));
  return result;
}

}  // namespace strata::runtime
