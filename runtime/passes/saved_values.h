// The values that wait between forward and backward pass, by the names of Plans, and their actions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/graph/graph.h"
#include "runtime/graph/plan.h"

namespace strata::runtime {

/// The output of residual_norm that is the residual stream; its other outputs are those of norm.
inline constexpr std::size_t kResidualSum = 0;

/// A value that a block's forward pass makes and that its backward pass, or another block, reads.
struct SavedValue {
  ValueId root = kNoValue;
  int block = 0;
  std::string name;          ///< name in its block: "5.attention.1"; equal blocks have equal names
  int first_user_block = 0;  ///< first of the blocks that make or read it
  int last_user_block = 0;
  std::int64_t bytes = 0;
  int maker = 0;          ///< index of the first node that writes it
  double work = 0;        ///< cost of recomputing it from saved values: FLOPs and bytes as FLOPs
  bool is_cheap = false;  ///< result of a norm or activation function: memory-bound work only
  /// True if it can leave the device until its use. False if its parts have several versions, so
  /// that no version names the whole, or if the backward pass writes it.
  bool can_leave = false;
  [[nodiscard]] bool is_used_by(int first, int last) const {
    return first_user_block >= first && last_user_block <= last;
  }
};

/// Lists saved values by the nodes that make them. `graph` must be differentiated, but no more.
std::vector<SavedValue> list_saved_values(const Graph& graph);

/// Returns the action on each saved value of `graph`, by root. Throws InvalidArgument naming block
/// and value if the Plan names a value that is not saved, or sends away one that cannot leave. A
/// value that the block has but does not save (of a frozen layer) may be named and gets no action.
/// `planner`: who names them, for messages.
std::map<ValueId, SavedAction> saved_actions(const Graph& graph,
                                             const std::vector<BlockActions>& planned,
                                             std::string_view planner = "the Plan");

/// Makes actions from what people ask for. Blocks that end with equal actions become one entry.
class SavedChoices {
 public:
  explicit SavedChoices(const Graph& graph) : values_(list_saved_values(graph)) {}

  [[nodiscard]] const std::vector<SavedValue>& values() const { return values_; }
  /// Chooses what becomes of one saved value, whatever was chosen before.
  void choose(ValueId root, SavedAction action) { actions_[root] = action; }
  /// Recomputes all values of blocks [first, last] from what enters these blocks.
  void recompute_blocks(int first, int last);
  /// Recomputes results of norms and activation functions, from inputs that are kept.
  void recompute_cheap(int first, int last);
  /// Recomputes values that only their own block reads until `part` (0 to 1) of their bytes is
  /// free: those first that free most for their work; of equal blocks the first, which wait
  /// longest.
  void recompute_part(int first, int last, double part);
  /// Returns the bytes that recompute_part has freed whenever it goes on to values that free less
  /// for their work, the last of them those of all values that it may recompute: with these parts
  /// equal blocks recompute the same.
  [[nodiscard]] std::vector<std::int64_t> freed_by_price(int first, int last) const;
  /// Sends away values of at least `least_bytes` that have no action so far.
  void send(int first, int last, SavedAction to, std::int64_t least_bytes);

  /// Returns the actions on all saved values.
  [[nodiscard]] std::vector<BlockActions> actions() const;

 private:
  /// Outputs of one operation, which are recomputed together.
  struct OperationOutputs {
    int block = 0;
    double work = 0;
    std::int64_t bytes = 0;
    std::vector<ValueId> roots;
    [[nodiscard]] double price() const { return work / static_cast<double>(bytes); }
  };
  /// Returns what recompute_part recomputes, in its order.
  [[nodiscard]] std::vector<OperationOutputs> cheapest_first(int first, int last) const;

  std::vector<SavedValue> values_;
  std::map<ValueId, SavedAction> actions_;
};

}  // namespace strata::runtime
