// Storage that outlives Programs: its names, types and places in the arenas.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/graph/graph.h"

namespace strata::runtime {

/// One piece of persistent storage; all Programs of a run share its place.
struct PersistentValue {
  std::string name;  ///< see runtime/graph/state_names.h
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
  /// Adds every persistent root that a node of `graph` touches, except inputs.
  void add_state(const Graph& graph);
  /// Adds every input, even if no node reads it (random numbers without dropout), so that its
  /// writer need not know the model. Call after add_state of all Graphs: places of state then do
  /// not depend on a micro-batch's shape.
  void add_inputs(const Graph& graph);
  void add_all(const Graph& graph) {
    add_state(graph);
    add_inputs(graph);
  }
  /// Throws InvalidArgument if the name is unknown.
  [[nodiscard]] const PersistentValue& find(const std::string& name) const;
  [[nodiscard]] bool has(const std::string& name) const;
  [[nodiscard]] const std::vector<PersistentValue>& values() const { return values_; }
  [[nodiscard]] std::int64_t bytes(Tier tier) const { return bytes_[static_cast<int>(tier)]; }

 private:
  std::vector<PersistentValue> values_;
  std::unordered_map<std::string, std::size_t> index_;  ///< name -> index of values_
  std::array<std::int64_t, kTiers> bytes_{};
};

}  // namespace strata::runtime
