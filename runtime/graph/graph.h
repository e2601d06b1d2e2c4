// The step as data, before placement: typed values and pure operations in one total order, grouped
// in blocks. Model code builds the forward pass (graph_builder.h); differentiate (autodiff.h)
// appends the backward pass; later passes only move, gather, repeat or free values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "comm/collective.h"
#include "kernels/ops/operation.h"
#include "machine/demand.h"
#include "runtime/graph/distribution.h"
#include "runtime/graph/parameter_unit.h"
#include "runtime/graph/queue.h"
#include "runtime/graph/tier.h"

namespace strata::runtime {

using ValueId = std::int32_t;
inline constexpr ValueId kNoValue = -1;

/// Transient storage is laid out per Program; persistent storage once for all Programs, by name.
/// Storage handed on has one place in all Programs, after the persistent storage, and holds at a
/// Program's start what the one before left there; other values may use the bytes in between.
enum class Storage : std::uint8_t { transient, persistent, handed_on };

/// The purpose of a value, for reports and lifetimes.
enum class Role : std::uint8_t {
  activation,
  parameter,
  gradient,
  optimizer,
  input,
  control,
  snapshot,  ///< a copy of state, while a checkpoint is written from it
};
std::string_view name_of(Role role);

/// A typed piece of memory at one version. A root owns storage; a view is (root, byte offset, type
/// with row stride, version).
/// Every byte of a root holds one version at a time. Persistent and handed-on storage holds version
/// 0 when the Program starts. Transient storage holds nothing until its first write, which leaves
/// version 0, or a later one if the parts of a root are written a different number of times, so
/// that all parts end with the same version. A write leaves its value's version in the bytes that
/// it covers, which must have held an earlier one (not always the one just before: parts of a whole
/// may skip some). A read demands that all bytes that it covers hold exactly the version that it
/// names. A predicated write counts as done even if it is skipped, for then both versions are the
/// same bytes; but if it fills empty transient storage, the value may be read under the same
/// predicate only.
struct Value {
  std::string name;
  kernels::TensorType type;
  Tier tier = Tier::device;
  /// Declared for what the Program finds in persistent storage, and for this rank's own part of
  /// what all ranks have; all other values get theirs after the last pass (infer_distributions.h).
  Distribution distribution;
  Storage storage = Storage::transient;
  Role role = Role::activation;
  ValueId root = kNoValue;  ///< kNoValue: this is a root
  std::int64_t offset_bytes = 0;
  std::int32_t version = 0;
  std::int64_t place_bytes = 0;  ///< handed-on root: place after the persistent storage
};

/// Returns the value's name, and its version unless that is 0: "agreed_word v2".
std::string describe(const Value& value);

enum class Pass : std::uint8_t { forward, backward, update };
inline constexpr std::size_t kPasses = 3;
std::string_view name_of(Pass pass);

/// The purpose of a transfer: it brings a value to its next use, or takes a result away.
enum class TransferPurpose : std::uint8_t { none, fetch, write_back };

/// One operation on values. The order of Graph::nodes is program order.
struct Node {
  const kernels::Operation* operation = nullptr;
  kernels::Attributes attributes;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  int block = 0;
  Pass pass = Pass::forward;
  ValueId predicate = kNoValue;  ///< uint32 at the start of this value; 0: complete without effect
  std::optional<comm::Collective> collective;
  /// The queue that runs it. Operands are on the device, except on queue `host` and the disk's, and
  /// those of copies.
  Queue queue = Queue::compute;
  TransferPurpose purpose = TransferPurpose::none;
  std::string label;       ///< example: "layer.3.attention"
  machine::Demand demand;  ///< time demand, written at lowering
};

class Graph {
 public:
  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<std::string> blocks;   ///< names; Node::block indexes them
  std::vector<ParameterUnit> units;  ///< ordered by first use in execution
  std::vector<ValueId> unit_values;  ///< root of each unit's parameters, [elements] flat
  /// Each unit's whole gradient, [elements] flat; kNoValue before autodiff, and if there is none. A
  /// pass that changes it leaves here the version that the next one is to read.
  std::vector<ValueId> unit_gradients;

  /// Appends a block and returns its index. Throws InvalidArgument if another block has that name:
  /// Plans and reports address blocks and units by name.
  int add_block(std::string name);
  /// Appends a unit and the persistent root of its parameters, of `dtype`. Returns its index, which
  /// becomes the unit's number. Throws InvalidArgument if another unit has that name.
  int add_unit(ParameterUnit unit, DType dtype);
  ValueId add_value(Value value);
  /// Adds a view of `of` (a root or a view) at `offset_bytes` from its start, in its version. Ends
  /// the process if the view would leave the root's storage.
  ValueId add_view(ValueId of, std::int64_t offset_bytes, kernels::TensorType type,
                   std::string name);
  /// Adds a view of the same bytes one version later: the result of a write in place.
  ValueId next_version(ValueId of);
  /// Adds a view of the same bytes in this version.
  ValueId at_version(ValueId of, std::int32_t version);
  /// Finds the persistent root of this name; kNoValue if there is none. Takes constant time, and
  /// time for each value added since the last call.
  ValueId find_persistent(const std::string& name);
  /// Lets a root and all of its views live in `tier`.
  void set_home(ValueId root, Tier tier);
  /// Makes a transient root persistent under `name`. At the start it then holds what the last
  /// Program left there, as version 0, so all of its versions go up by one.
  void make_persistent(ValueId root, std::string name);
  /// Infers output types, makes output values named LABEL or LABEL.k and appends the node.
  /// Operations without kernel types (collectives, disk transfers) go to `nodes` directly.
  std::vector<ValueId> apply(std::string_view operation, std::vector<ValueId> inputs,
                             kernels::Attributes attributes, int block, Pass pass,
                             std::string label);
  /// Appends a node whose outputs exist already (views of planned storage); their types must agree
  /// with what the operation infers.
  void apply_into(std::string_view operation, std::vector<ValueId> inputs,
                  std::vector<ValueId> outputs, kernels::Attributes attributes, int block,
                  Pass pass, std::string label);

  [[nodiscard]] ValueId root_of(ValueId id) const {
    return values[id].root == kNoValue ? id : values[id].root;
  }
  [[nodiscard]] const kernels::TensorType& type(ValueId id) const { return values[id].type; }
  /// Returns the bytes of a value's storage from its first to its last element.
  [[nodiscard]] std::int64_t bytes(ValueId id) const { return values[id].type.span_bytes(); }
  [[nodiscard]] kernels::Types types(const std::vector<ValueId>& ids) const;

  /// Prints one line per node: outputs = operation(inputs) {attributes}; a value is NAME:TYPE, with
  /// its distribution along axes where it is not replicated.
  [[nodiscard]] std::string to_string() const;

 private:
  std::unordered_map<std::string, ValueId> persistent_;  ///< maps names to roots
  std::size_t indexed_ = 0;                              ///< number of values already indexed
};

/// The half-open byte range of a root that a value covers.
struct ByteRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  [[nodiscard]] bool overlaps(const ByteRange& other) const {
    return begin < other.end && other.begin < end;
  }
};
ByteRange range_of(const Graph& graph, ValueId id);

/// True if two values share an element. Views of one product with the same row stride may lie
/// between one another's rows and share none.
bool overlap(const Graph& graph, ValueId a, ValueId b);

}  // namespace strata::runtime
