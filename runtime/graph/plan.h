// Every policy decision of the system, as plain data (design 1): passes read it, and nothing else
// decides. It is printed and read as text (docs/formats/plan.md), and is the same on all ranks.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "comm/mesh.h"
#include "core/dtype.h"
#include "kernels/device/capabilities.h"
#include "runtime/graph/block_actions.h"
#include "runtime/graph/tier.h"

namespace strata::runtime {

/// Means that there is no limit, or no budget.
inline constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

/// Holds the bytes of each tier; the index is the Tier.
using TierBytes = std::array<std::int64_t, kTiers>;

inline constexpr TierBytes kUnlimitedBytes{kUnlimited, kUnlimited, kUnlimited, kUnlimited};

/// The place where updates add up, for parameters that are not fp32.
enum class MasterFormat : std::uint8_t {
  fp32,    ///< an fp32 copy
  packed,  ///< the bf16 parameter and a remainder of 16 bits (kernels/ops/optimizer_operands.h)
  none,    ///< the parameter itself
};
std::string_view name_of(MasterFormat format);

/// The optimizer of a unit, as an operation of kernels/ over flat shards, and the state that it
/// keeps.
struct OptimizerRecipe {
  std::string operation = "adamw";
  MasterFormat master = MasterFormat::fp32;
  int moments = 2;  ///< 0 to 2
  DType moment_dtype = DType::f32;
  std::int64_t scale_block = 0;  ///< elements of a moment that share an fp32 scale; 0: no scales
  bool random = false;           ///< the operation rounds at random: it gets rng, key and first
  bool operator==(const OptimizerRecipe&) const = default;
};

/// The formats in which a unit is kept.
struct UnitRecipe {
  DType dtype = DType::f32;   ///< type of its parameters
  bool trainable = true;      ///< false: it has neither a gradient nor optimizer state
  OptimizerRecipe optimizer;  ///< used if it is trainable
  bool operator==(const UnitRecipe&) const = default;
};

/// Says about one unit what is sharded (which is what a ZeRO stage means), where each kind of state
/// lives, and in which formats it is kept.
struct UnitPlan {
  std::string unit;
  std::int64_t elements = 0;  ///< size of the unit: a Plan is for one model
  bool shard_optimizer = false;
  bool shard_gradient = false;
  bool shard_parameter = false;
  Tier optimizer_tier = Tier::device;
  Tier gradient_tier = Tier::device;
  Tier parameter_tier = Tier::device;
  /// Parts of optimizer state whose tier is not the device: of each rank's part, this many first
  /// elements, rounded up to cells, live on the device nevertheless; and this many of the next
  /// ones, rounded up to tiles, live in host memory if the tier is the disk.
  std::int64_t optimizer_device_elements = 0;
  std::int64_t optimizer_host_elements = 0;
  UnitRecipe recipe;
  bool operator==(const UnitPlan&) const = default;
};

/// Says when updates run (docs/adr/0009).
enum class Updates : std::uint8_t {
  step_end,   ///< at the end of their step
  next_step,  ///< in the next step, each before the first use of its parameters
  gradient,   ///< as soon as their gradient is there: possible only if they need nothing of the
              ///< whole gradient (no clipping, no loss scale, no skipped steps)
};
std::string_view name_of(Updates updates);

/// The order in which the micro-steps of a step run.
enum class MicroStepOrder : std::uint8_t {
  one_by_one,  ///< one Program for each
  by_layer,    ///< one Program: each layer for all micro-batches, then the next (layer_major.h);
               ///< gradients are reduced once per step
};
std::string_view name_of(MicroStepOrder order);

/// The types of a gradient from kernel to optimizer (design 2.13).
struct GradientTypes {
  DType produced = DType::f32;     ///< written by backward operations
  DType reduced = DType::f32;      ///< on the wire; every contribution is rounded to it once
  DType accumulated = DType::f32;  ///< used to add up micro-steps and to keep the sum: fp32, or
                                   ///< `produced`
  bool operator==(const GradientTypes&) const = default;
};

/// Limits on transfers, in elements of flat parameter space.
struct TransferLimits {
  std::int64_t prefetch_elements = 50'000'000;        ///< gathered ahead of their block
  std::int64_t max_live_elements = 1'000'000'000;     ///< gathered at one time; stops prefetch only
  std::int64_t max_reuse_distance = 1'000'000'000;    ///< distance of uses that share a gather
  std::int64_t reduce_bucket_elements = 500'000'000;  ///< largest single reduction
  std::int64_t gather_bucket_elements = 500'000'000;  ///< largest single gather
  std::int64_t tile_elements = 4 << 20;               ///< optimizer work of one instruction
  bool operator==(const TransferLimits&) const = default;
};

/// The concrete shapes of one micro-batch (design 2.1).
struct BatchShape {
  DType dtype = DType::f32;   ///< type of activations
  std::int64_t batch = 1;     ///< samples
  std::int64_t sequence = 1;  ///< tokens per sample
  bool operator==(const BatchShape&) const = default;
};

/// The memory that a save gets.
enum class SaveMemory : std::uint8_t {
  none,      ///< nothing is saved
  writing,   ///< training stands still: blocks on their way to the disk, and pieces of them from
             ///< other ranks
  snapshot,  ///< also a copy of what is saved, and what other ranks send for this rank's blocks
  windows,   ///< as snapshot, but with a few windows instead of the copy, and room for what other
             ///< ranks are sent
};
std::string_view name_of(SaveMemory saving);

/// True if steps go on while a checkpoint is written.
constexpr bool takes_snapshots(SaveMemory saving) {
  return saving == SaveMemory::snapshot || saving == SaveMemory::windows;
}

struct Plan {
  /// The kind of device for which scratch and schedules are made.
  kernels::DeviceCapabilities::Backend backend = kernels::DeviceCapabilities::Backend::cpu;
  comm::Mesh mesh;
  BatchShape shape;
  /// Lengths below shape.sequence for which there are Programs, too; ascending.
  std::vector<std::int64_t> shorter_sequences;
  int micro_steps = 1;  ///< gradient accumulation
  /// The number of leaves of every sum over ranks (docs/adr/0012); 0: one per rank along the data
  /// axis. If there are more leaves than ranks, both must be powers of two.
  int virtual_ranks = 0;
  std::vector<UnitPlan> units;      ///< one per unit of the model, in its order
  std::vector<BlockActions> saved;  ///< ascending, disjoint
  Updates updates = Updates::step_end;
  MicroStepOrder order = MicroStepOrder::one_by_one;
  GradientTypes gradient;
  TransferLimits limits;
  SaveMemory saving = SaveMemory::none;
  bool evaluates = false;  ///< true: there is a Program for the held-out loss
  /// False: transfers stand where they are needed, overlap nothing and take the least memory; such
  /// a Program is found much faster.
  bool scheduled = true;
  /// Bytes of pinned windows for records on the disk that a step reads for the updates after it.
  std::int64_t read_ahead_bytes = 0;
  TierBytes budget_bytes = kUnlimitedBytes;  ///< limit on the largest arena of a Program, per rank
  std::int64_t host_bytes = kUnlimited;      ///< host memory, and a CPU's device without budget

  bool operator==(const Plan&) const = default;

  [[nodiscard]] int data_ranks() const { return mesh.along(comm::MeshAxis::data); }
  [[nodiscard]] int leaves() const { return virtual_ranks > 0 ? virtual_ranks : data_ranks(); }
  /// Returns the number of virtual ranks, one after another, that each rank stands for.
  [[nodiscard]] int leaves_per_rank() const { return leaves() / data_ranks(); }

  /// Writes JSON with every field, indented.
  [[nodiscard]] std::string to_json() const;

  /// Inverse of to_json. Throws ConfigError that names `file`, line and JSON path, what was found
  /// and what is expected, for an unknown or missing key and a value of another type or out of
  /// range. Does not check that a model has these units (step/check_plan.h does).
  static Plan from_json(std::string_view text, const std::string& file);
};

}  // namespace strata::runtime
