// What one rank executes: instructions in one total order, each on a queue, with explicit operands
// and waits, every buffer at a fixed place in one arena per tier (design 2.5, 2.6).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "machine/demand.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/queue.h"
#include "runtime/program/disk.h"

namespace strata::runtime {

/// One operand: a typed view at a fixed place of an arena.
struct Operand {
  kernels::TensorType type;
  Tier tier = Tier::device;
  std::int64_t offset_bytes = 0;
  std::int64_t bytes = 0;    ///< from first to last element
  ValueId value = kNoValue;  ///< index into Program::values, for names
};

struct Instruction {
  const kernels::Operation* operation = nullptr;
  kernels::Attributes attributes;
  Queue queue = Queue::compute;
  bool on_host = false;  ///< runs with the host's kernels on host memory
  std::vector<Operand> inputs;
  std::vector<Operand> outputs;
  std::optional<Operand> workspace;
  std::optional<Operand> predicate;  ///< uint32; 0: completes and changes nothing
  std::optional<comm::Collective> collective;
  /// Earlier instructions of this list, on other queues, that must have completed.
  std::vector<std::int32_t> waits;
  /// Bit q set: queue q of the Program before this one must have finished (event handed on).
  std::uint32_t border_waits = 0;
  machine::Demand demand;
  int block = 0;
  Pass pass = Pass::forward;
  std::string label;
};

/// Persistent storage, laid out once and shared by all Programs of a run.
struct PersistentValue {
  std::string name;  ///< runtime/graph/state_names.h
  kernels::TensorType type;
  Tier tier = Tier::device;
  Role role = Role::parameter;
  std::int64_t offset_bytes = 0;
  bool operator==(const PersistentValue&) const = default;
};

class PersistentLayout {
 public:
  /// Adds storage of this name and type, or checks that it is the same as before.
  void add(const std::string& name, const kernels::TensorType& type, Tier tier, Role role);
  /// Every persistent root that a node of `graph` touches, but for inputs.
  void add_state(const Graph& graph);
  /// Adds every input, even if no node reads it (random numbers without dropout), so that its
  /// writer need not know the model. Call after add_state of all Graphs: places of state then do
  /// not depend on a micro-batch's shape.
  void add_inputs(const Graph& graph);
  void add_all(const Graph& graph) {
    add_state(graph);
    add_inputs(graph);
  }
  /// Throws InvalidArgument when unknown.
  [[nodiscard]] const PersistentValue& find(const std::string& name) const;
  [[nodiscard]] bool has(const std::string& name) const;
  [[nodiscard]] const std::vector<PersistentValue>& values() const { return values_; }
  [[nodiscard]] std::int64_t bytes(Tier tier) const { return bytes_[static_cast<int>(tier)]; }

 private:
  std::vector<PersistentValue> values_;
  std::unordered_map<std::string, std::size_t> index_;  ///< of values_, by name
  std::array<std::int64_t, kTiers> bytes_{};
};

struct Program {
  std::string name;  ///< "train.only", "evaluate", ...
  std::vector<Instruction> instructions;
  std::vector<std::string> blocks;
  std::vector<Value> values;  ///< of the lowered graph, for names, roles and the memory report
  std::array<std::int64_t, kTiers> persistent_bytes{};
  std::array<std::int64_t, kTiers> arena_bytes{};  ///< persistent + transient
  /// Largest sum of live transient bytes at any instruction: the bound of the layout.
  std::array<std::int64_t, kTiers> live_bytes{};
  bool is_scheduled = false;     ///< its transfers were placed by simulation
  std::int64_t foreseen_ns = 0;  ///< how long it takes: as simulated, or one after another

  /// One line per collective, the same on every rank; compared at start (design 2.9).
  [[nodiscard]] std::vector<std::string> collective_sequence() const;
  /// One line per instruction with queue, operands, offsets and waits.
  [[nodiscard]] std::string to_string() const;
};

/// Alignment of every root in an arena, bytes: a cache line, and what AVX-512 loads like. What the
/// disk reads and writes starts at the disk's own.
inline constexpr std::int64_t kArenaAlignment = 64;
constexpr std::int64_t alignment_of(Tier tier) {
  return tier == Tier::disk || tier == Tier::pinned ? kDiskAlignment : kArenaAlignment;
}
/// `bytes` rounded up to what a root of that size takes in the tier's arena.
constexpr std::int64_t room_of(std::int64_t bytes, Tier tier) {
  return (bytes + alignment_of(tier) - 1) / alignment_of(tier) * alignment_of(tier);
}

}  // namespace strata::runtime
