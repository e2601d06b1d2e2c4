// What waits between forward and backward pass, by names that Plans use, and what becomes of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"
#include "runtime/graph/plan.h"

namespace strata::runtime {

/// Output of residual_norm that is the residual stream; the others are those of norm on it.
inline constexpr std::size_t kResidualSum = 0;

/// A value that a block's forward pass makes and that its backward pass, or another block, reads.
struct SavedValue {
  ValueId root = kNoValue;
  int block = 0;
  std::string name;          ///< in its block: "5.attention.1"; equal blocks have equal names
  int first_user_block = 0;  ///< of the blocks that read it, in either pass
  int last_user_block = 0;
  std::int64_t bytes = 0;
  int maker = 0;    ///< index of the node that makes it first
  double work = 0;  ///< to make it again from saved values: FLOPs, bytes touched counted as FLOPs
  bool is_cheap = false;  ///< of a norm or an activation function: memory-bound work only
  /// Whether it can leave the device in the meantime: not where its parts have several versions, so
  /// that nothing names the whole, nor where the backward pass writes it.
  bool can_leave = false;
  [[nodiscard]] bool is_used_by(int first, int last) const {
    return first_user_block >= first && last_user_block <= last;
  }
};

/// Lists them by the node that makes each. `graph` is differentiated, and nothing else.
std::vector<SavedValue> list_saved_values(const Graph& graph);

/// The action on each saved value of `graph`, by its root. Throws InvalidArgument naming block and
/// value where the Plan names a value that is not saved, or sends away one that cannot leave. A
/// value that is not saved (of a frozen layer) may be named and has none.
std::map<ValueId, SavedAction> saved_actions(const Graph& graph,
                                             const std::vector<BlockActions>& planned);

/// Actions for what people ask for. Blocks that end with equal actions are one entry.
class SavedChoices {
 public:
  explicit SavedChoices(const Graph& graph) : values_(list_saved_values(graph)) {}

  /// Makes all of blocks [first, last] again from what enters them.
  void recompute_blocks(int first, int last);
  /// Makes results of norms and activation functions again, from inputs that are kept.
  void recompute_cheap(int first, int last);
  /// Makes what each block reads alone again until `part` (0 to 1) of its bytes is free: first what
  /// frees most for its work, and of equal blocks the first, whose values wait longest.
  void recompute_part(int first, int last, double part);
  /// Sends values of at least `least_bytes` away that are kept so far.
  void send(int first, int last, SavedAction to, std::int64_t least_bytes);

  /// On all saved values.
  [[nodiscard]] std::vector<BlockActions> actions() const;

 private:
  std::vector<SavedValue> values_;
  std::map<ValueId, SavedAction> actions_;
};

}  // namespace strata::runtime
