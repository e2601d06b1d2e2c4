// Every policy decision of the system, as plain data (design section 1). Passes read it; nothing
// else decides. Printable and serializable, the same on all ranks.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "runtime/graph.h"

namespace strata::runtime {

/// What is sharded of one unit (that is the ZeRO stage) and where each kind lives.
struct UnitPlan {
  std::string unit;
  bool shard_optimizer = false;
  bool shard_gradient = false;
  bool shard_parameter = false;
  Tier optimizer_tier = Tier::device;
  Tier gradient_tier = Tier::device;
  Tier parameter_tier = Tier::device;
};

/// Blocks [first, last] whose forward pass is repeated in the backward pass from their inputs.
struct RecomputeSegment {
  int first_block = 0;
  int last_block = 0;
};

/// Types of a gradient on its way (design 2.13).
struct GradientTypes {
  DType produced = DType::f32;     ///< as backward operations write it
  DType reduced = DType::f32;      ///< on the wire; every contribution is rounded to it once
  DType accumulated = DType::f32;  ///< in which micro-steps add up
};

/// Limits on transfers, in elements of flat parameter space.
struct TransferLimits {
  static constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();
  std::int64_t prefetch_elements = 50'000'000;        ///< gathered ahead of their block
  std::int64_t max_live_elements = 1'000'000'000;     ///< gathered at one time; stops prefetch only
  std::int64_t max_reuse_distance = 1'000'000'000;    ///< keep gathered when used again within
  std::int64_t reduce_bucket_elements = 500'000'000;  ///< largest single reduction
  std::int64_t gather_bucket_elements = 500'000'000;  ///< largest single gather
  std::int64_t tile_elements = 4 << 20;               ///< optimizer work per instruction
};

struct Plan {
  int world = 1;
  int micro_steps = 1;  ///< gradient accumulation
  std::vector<UnitPlan> units;
  std::vector<RecomputeSegment> recompute;
  GradientTypes gradient;
  TransferLimits limits;

  /// Pretty-printed JSON with every field.
  [[nodiscard]] std::string to_json() const;
};

}  // namespace strata::runtime
