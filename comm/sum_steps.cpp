#include "comm/sum_steps.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "kernels/cpu/ordered_sum.h"

namespace strata::comm {
namespace {

/// Walks down the tree of sums and writes steps on the way up.
class StepWriter {
 public:
  StepWriter(std::span<const Subtree> parts, DType wire_type)
      : parts_(parts), wire_type_(wire_type) {}

  SumSteps write(int world) {
    const int root = static_cast<int>(std::bit_ceil(static_cast<unsigned>(world)));
    add_up(operands_of(0, parts_.size(), 0, root), SumStep::kResult);
    return {std::move(steps_), static_cast<int>(slot_taken_.size())};
  }

 private:
  /// Returns operands whose ordered sum is that of parts [begin, end): of all that lie in the
  /// aligned subtree of `width` leaves from `first` on.
  std::vector<int> operands_of(std::size_t begin, std::size_t end, int first, int width) {
    std::vector<int> operands;
    if (alike(begin, end)) {
      for (std::size_t part = begin; part < end; ++part) operands.push_back(static_cast<int>(part));
      return operands;
    }
    std::size_t middle = begin;
    while (middle < end && parts_[middle].first < first + width / 2) ++middle;
    if (middle == end) return operands_of(begin, end, first, width / 2);
    int left = one_operand(operands_of(begin, middle, first, width / 2));
    int right = one_operand(operands_of(middle, end, first + width / 2, width / 2));
    if (type_of(left) != type_of(right)) {
      int& narrow = type_of(left) == DType::f32 ? right : left;
      narrow = add_up({narrow}, free_slot());
    }
    return {left, right};
  }

  /// True if these parts are next to one another as leaves of a smaller tree. The last may be of
  /// any width: it has no neighbour in the tree that could be wrong. False of more parts than one
  /// ordered sum takes.
  [[nodiscard]] bool alike(std::size_t begin, std::size_t end) const {
    if (end - begin > kernels::kMaxContributions) return false;
    const Subtree& model = parts_[begin];
    for (std::size_t part = begin; part < end; ++part) {
      const Subtree& subtree = parts_[part];
      if (subtree.first != model.first + static_cast<int>(part - begin) * model.leaves ||
          (part + 1 < end && subtree.leaves != model.leaves) ||
          sum_type(subtree, wire_type_) != sum_type(model, wire_type_))
        return false;
    }
    return true;
  }

  [[nodiscard]] bool is_part(int operand) const {
    return operand < static_cast<int>(parts_.size());
  }
  [[nodiscard]] int slot_of(int operand) const { return operand - static_cast<int>(parts_.size()); }
  [[nodiscard]] DType type_of(int operand) const {
    return is_part(operand) ? sum_type(parts_[static_cast<std::size_t>(operand)], wire_type_)
                            : DType::f32;
  }

  int free_slot() {
    const auto free = std::ranges::find(slot_taken_, false);
    const auto slot = static_cast<int>(free - slot_taken_.begin());
    if (free == slot_taken_.end()) slot_taken_.push_back(false);
    return slot;
  }

  /// Returns an operand with the sum of `operands`.
  int one_operand(std::vector<int> operands) {
    if (operands.size() == 1) return operands.front();
    for (const int operand : operands)
      if (!is_part(operand)) return add_up(std::move(operands), slot_of(operand));
    return add_up(std::move(operands), free_slot());
  }

  /// Writes a step; the slots of its operands are free afterwards, but for its own.
  int add_up(std::vector<int> operands, int slot) {
    for (const int operand : operands)
      if (!is_part(operand)) slot_taken_[static_cast<std::size_t>(slot_of(operand))] = false;
    if (slot != SumStep::kResult) slot_taken_[static_cast<std::size_t>(slot)] = true;
    const DType type = type_of(operands.front());
    steps_.push_back({std::move(operands), type, slot});
    return static_cast<int>(parts_.size()) + slot;
  }

  std::span<const Subtree> parts_;
  DType wire_type_;
  std::vector<SumStep> steps_;
  std::vector<bool> slot_taken_;
};

}  // namespace

SumSteps sum_steps(std::span<const Subtree> parts, int world, DType wire_type) {
  return StepWriter(parts, wire_type).write(world);
}

}  // namespace strata::comm
