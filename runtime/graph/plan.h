// Every policy decision of the system, as plain data (design 1). Passes read it; nothing
// else decides. Printable and serializable, the same on all ranks. docs/formats/plan.md describes
// the text.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "comm/mesh.h"
#include "core/dtype.h"
#include "kernels/device/capabilities.h"
#include "runtime/graph/tier.h"

namespace strata::runtime {

/// Stands for no limit and no budget.
inline constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

/// Bytes of each tier; the index is the Tier.
using TierBytes = std::array<std::int64_t, kTiers>;

inline constexpr TierBytes kUnlimitedBytes{kUnlimited, kUnlimited, kUnlimited, kUnlimited};

/// Where updates add up, for parameters that are not fp32.
enum class MasterFormat : std::uint8_t {
  fp32,    ///< an fp32 copy
  packed,  ///< the bf16 parameter and a remainder of 16 bits (kernels/ops/optimizer_operands.h)
  none,    ///< the parameter itself
};
std::string_view name_of(MasterFormat format);

/// The optimizer of a unit as an operation of kernels/ over flat shards, and the state that it
/// keeps.
struct OptimizerRecipe {
  std::string operation = "adamw";
  MasterFormat master = MasterFormat::fp32;
  int moments = 2;  ///< 0 to 2
  DType moment_dtype = DType::f32;
  std::int64_t scale_block = 0;  ///< elements of a moment that share an fp32 scale; 0: no scales
  bool random = false;           ///< the operation rounds at random: gets rng, key and first
  bool operator==(const OptimizerRecipe&) const = default;
};

/// What a unit is kept in.
struct UnitRecipe {
  DType dtype = DType::f32;   ///< of its parameters
  bool trainable = true;      ///< false: it has neither a gradient nor optimizer state
  OptimizerRecipe optimizer;  ///< where it is trainable
  bool operator==(const UnitRecipe&) const = default;
};

/// What is sharded of one unit (that is the ZeRO stage), where each kind lives and in what it is
/// kept.
struct UnitPlan {
  std::string unit;
  std::int64_t elements = 0;  ///< of its parameters: a Plan is for one model
  bool shard_optimizer = false;
  bool shard_gradient = false;
  bool shard_parameter = false;
  Tier optimizer_tier = Tier::device;
  Tier gradient_tier = Tier::device;
  Tier parameter_tier = Tier::device;
  /// For optimizer state whose tier is not the device: how many of the first elements of each
  /// rank's part, rounded up to cells, live on the device all the same; and how many of the next
  /// ones, rounded up to tiles, live in host memory where the tier is the disk.
  std::int64_t optimizer_device_elements = 0;
  std::int64_t optimizer_host_elements = 0;
  UnitRecipe recipe;
  bool operator==(const UnitPlan&) const = default;
};

/// When updates run (docs/adr/0009).
enum class Updates : std::uint8_t {
  step_end,   ///< at the end of their step
  next_step,  ///< in the next step, each before the first use of its parameters
  gradient,   ///< as soon as their gradient is there: only where nothing of the whole gradient
              ///< enters them (no clipping, no loss scale, no skipped steps)
};
std::string_view name_of(Updates updates);

/// What becomes of a value between the forward and the backward pass.
enum class SavedAction : std::uint8_t {
  keep,       ///< stays on the device
  recompute,  ///< is made again, from values that are there, for its first use
  host,       ///< waits in pinned memory
  disk,       ///< waits on the disk
};
std::string_view name_of(SavedAction action);

/// Actions on what each of the equal blocks [first_block, last_block] saves
/// (runtime/passes/saved_values.h). Values that are not named are kept.
struct BlockActions {
  int first_block = 0;
  int last_block = 0;
  std::vector<std::pair<std::string, SavedAction>> actions;  ///< by the value's name in its block
  bool operator==(const BlockActions&) const = default;
};

/// In which order the micro-steps of a step run.
enum class MicroStepOrder : std::uint8_t {
  one_by_one,  ///< a Program each
  by_layer,    ///< one Program: each layer for all micro-batches, then the next (layer_major.h);
               ///< gradients are reduced once per step
};
std::string_view name_of(MicroStepOrder order);

/// Types of a gradient on its way (design 2.13).
struct GradientTypes {
  DType produced = DType::f32;     ///< as backward operations write it
  DType reduced = DType::f32;      ///< on the wire; every contribution is rounded to it once
  DType accumulated = DType::f32;  ///< in which micro-steps add up and the sum waits: fp32, or
                                   ///< `produced`
  bool operator==(const GradientTypes&) const = default;
};

/// Limits on transfers, in elements of flat parameter space.
struct TransferLimits {
  std::int64_t prefetch_elements = 50'000'000;        ///< gathered ahead of their block
  std::int64_t max_live_elements = 1'000'000'000;     ///< gathered at one time; stops prefetch only
  std::int64_t max_reuse_distance = 1'000'000'000;    ///< keep gathered when used again within
  std::int64_t reduce_bucket_elements = 500'000'000;  ///< largest single reduction
  std::int64_t gather_bucket_elements = 500'000'000;  ///< largest single gather
  std::int64_t tile_elements = 4 << 20;               ///< optimizer work per instruction
  bool operator==(const TransferLimits&) const = default;
};

/// Concrete shapes of one micro-batch (design 2.1).
struct BatchShape {
  DType dtype = DType::f32;   ///< of activations
  std::int64_t batch = 1;     ///< samples
  std::int64_t sequence = 1;  ///< tokens of each
  bool operator==(const BatchShape&) const = default;
};

/// How saving gets its memory.
enum class SaveMemory : std::uint8_t {
  none,      ///< nothing is saved
  writing,   ///< training stands still: blocks on their way to the disk, and pieces of them from
             ///< other ranks
  snapshot,  ///< and a copy of what is saved, and what other ranks send for blocks of this one
  windows,   ///< likewise, but instead of the copy there are a few windows, and room for what
             ///< other ranks are sent
};
std::string_view name_of(SaveMemory saving);

/// Whether steps go on while a checkpoint is written.
constexpr bool takes_snapshots(SaveMemory saving) {
  return saving == SaveMemory::snapshot || saving == SaveMemory::windows;
}

struct Plan {
  /// The kind of machine that scratch and schedules are made for.
  kernels::DeviceCapabilities::Backend backend = kernels::DeviceCapabilities::Backend::cpu;
  comm::Mesh mesh;
  BatchShape shape;
  /// Sequences below shape.sequence that there are Programs for, too; ascending.
  std::vector<std::int64_t> shorter_sequences;
  int micro_steps = 1;  ///< gradient accumulation
  /// Leaves of every sum over ranks (docs/adr/0012); 0: one per rank along the data axis. More
  /// leaves than ranks: both are powers of two.
  int virtual_ranks = 0;
  std::vector<UnitPlan> units;      ///< one per unit of the model, in its order
  std::vector<BlockActions> saved;  ///< ascending, disjoint
  Updates updates = Updates::step_end;
  MicroStepOrder order = MicroStepOrder::one_by_one;
  GradientTypes gradient;
  TransferLimits limits;
  SaveMemory saving = SaveMemory::none;
  bool evaluates = false;  ///< there is a Program for held-out loss
  /// False: transfers stand where they are needed, overlap nothing and take the least memory; found
  /// much faster.
  bool scheduled = true;
  /// Windows of pinned memory for records of the disk that a step reads for the updates after it.
  std::int64_t read_ahead_bytes = 0;
  TierBytes budget_bytes = kUnlimitedBytes;  ///< largest arena of a Program, per rank
  std::int64_t host_bytes = kUnlimited;      ///< of host memory, and a CPU's device without budget

  bool operator==(const Plan&) const = default;

  [[nodiscard]] int data_ranks() const { return mesh.along(comm::MeshAxis::data); }
  [[nodiscard]] int leaves() const { return virtual_ranks > 0 ? virtual_ranks : data_ranks(); }
  /// Virtual ranks that each rank stands for, one after another.
  [[nodiscard]] int leaves_per_rank() const { return leaves() / data_ranks(); }

  /// Pretty-printed JSON with every field.
  [[nodiscard]] std::string to_json() const;

  /// Inverse of to_json. Strict: throws ConfigError that names `file`, line and JSON path, what was
  /// found and what is expected, for an unknown or missing key and a value of another type or out
  /// of range. Whether a model has these units is for whoever lowers it to say (step/check_plan.h).
  static Plan from_json(std::string_view text, const std::string& file);
};

}  // namespace strata::runtime
