// Whose bytes fill each arena at every instruction of a Program: the profile of its memory, known
// before it runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/graph/plan.h"
#include "runtime/program/program.h"

namespace strata::runtime {

/// Bytes of each tier, by instruction.
using LiveBytes = std::vector<TierBytes>;

/// One root's stay in its arena. `first` and `last` are touches: a root that is kept between steps
/// or handed on from Program to Program also holds its place outside them.
struct BufferLife {
  ValueId root = kNoValue;
  Tier tier = Tier::device;
  Role role = Role::activation;
  bool persistent = false;    ///< kept between steps: its place is never reused
  bool scratch = false;       ///< the workspace of one instruction
  int block = 0;              ///< of the first instruction that touches it
  Pass pass = Pass::forward;  ///< of the same
  int first = 0, last = 0;    ///< instructions that touch it
  std::int64_t bytes = 0;     ///< rounded up to what the layout sets aside
  [[nodiscard]] bool is_in_use(int instruction) const {
    return first <= instruction && instruction <= last;
  }
};

/// Bytes of one role that one block brought into being, each buffer rounded up to kArenaAlignment.
struct Holder {
  Role role = Role::activation;
  bool persistent = false;
  bool scratch = false;
  std::string block;  ///< of the first instruction that touches them
  std::int64_t bytes = 0;
  bool operator==(const Holder&) const = default;
};

/// Borrows the Program.
class MemoryTimeline {
 public:
  explicit MemoryTimeline(const Program& program);

  /// Lists all roots that instructions touch, in the order of their numbers.
  [[nodiscard]] const std::vector<BufferLife>& lives() const { return lives_; }
  /// Counts the Program's persistent bytes and all other roots from their first to their last
  /// instruction.
  [[nodiscard]] LiveBytes live_bytes() const;
  /// Finds the first instruction at which most transient bytes of a tier are in use; -1: none is.
  [[nodiscard]] int peak_instruction(Tier tier) const;
  /// Lists who holds a tier at an instruction, persistent roots that the Program touches included;
  /// the largest first.
  [[nodiscard]] std::vector<Holder> holders_at(Tier tier, int instruction) const;

 private:
  const Program& program_;
  std::vector<BufferLife> lives_;
};

}  // namespace strata::runtime
