// The instructions that one rank executes: in one total order, each on a queue, with explicit
// operands and waits, every buffer at a fixed place in one arena per tier (design 2.5, 2.6).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "machine/demand.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/queue.h"

namespace strata::runtime {

/// One operand: a typed view at a fixed place of an arena.
struct Operand {
  kernels::TensorType type;
  Tier tier = Tier::device;
  std::int64_t offset_bytes = 0;
  std::int64_t bytes = 0;    ///< distance from first to last element
  ValueId value = kNoValue;  ///< index into Program::values, for names
};

struct Instruction {
  const kernels::Operation* operation = nullptr;
  kernels::Attributes attributes;
  Queue queue = Queue::compute;
  bool on_host = false;  ///< runs with the host's kernels, on host memory
  std::vector<Operand> inputs;
  std::vector<Operand> outputs;
  std::optional<Operand> workspace;
  std::optional<Operand> predicate;  ///< uint32; 0: completes and changes nothing
  std::optional<comm::Collective> collective;
  /// Earlier instructions of this list, on other queues, that must have completed.
  std::vector<std::int32_t> waits;
  /// Bit q is set if queue q of the Program before this one must have finished.
  std::uint32_t border_waits = 0;
  machine::Demand demand;
  int block = 0;
  Pass pass = Pass::forward;
  std::string label;
};

/// Returns the bytes that an instruction touches from the beginning of one of its operands: a disk
/// transfer moves whole sectors (kDiskAlignment), so it also touches the rest of the last one.
std::int64_t touched_bytes(const Instruction& in, const Operand& operand);

struct Program {
  std::string name;  ///< examples: "train.only", "evaluate"
  std::vector<Instruction> instructions;
  std::vector<std::string> blocks;
  std::vector<Value> values;  ///< values of the lowered Graph, for names, roles, memory reports
  std::array<std::int64_t, kTiers> persistent_bytes{};
  std::array<std::int64_t, kTiers> arena_bytes{};  ///< persistent + transient
  /// Largest sum of live transient bytes at any instruction: no layout can be smaller.
  std::array<std::int64_t, kTiers> live_bytes{};
  bool is_scheduled = false;     ///< a schedule placed its transfers
  std::int64_t foreseen_ns = 0;  ///< foreseen duration: as simulated, or one after another

  /// Describes each collective in a line, equal on every rank; compared at start (design 2.9).
  [[nodiscard]] std::vector<std::string> collective_sequence() const;
  /// Prints each instruction in a line, with queue, operands, offsets and waits.
  [[nodiscard]] std::string to_string() const;
};

}  // namespace strata::runtime
