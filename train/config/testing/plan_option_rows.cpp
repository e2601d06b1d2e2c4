// Options of sizes, types, sharding, tiers and recomputation, and what each of them changes.
#include "train/config/testing/option_effects.h"

namespace strata::train {
namespace {

const Settings kZero3{{"zero.stage", "3"}};
const Settings kOptimizerOnDisk{{"offload.optimizer", "nvme"}};
const Settings kParametersOnDisk{{"zero.stage", "3"}, {"offload.parameters", "nvme"}};
const Settings kCheckpointing{{"activation_checkpointing", "true"}};

// clang-format off
const EffectRow kRows[] = {
    {{"micro_batch", "3"}, {{"plan.shape.batch", "3"}}},
    {{"sequence_length", "256"}, {{"plan.shape.sequence", "256"}}},
    {{"offload.device_memory_bytes", "1GiB"}, {{"plan.budget_bytes.device", "1073741824"}}},
    {{"accumulation", "3"}, {{"plan.micro_steps", "3"}}},
    {{"virtual_ranks", "8"}, {{"plan.virtual_ranks", "8"}}},
    {{"dtype", "bf16"}, {{"plan.shape.dtype", "bf16"}, {"plan.gradient.produced", "bf16"}, {"plan.recipe.dtype", "bf16"}}},
    {{"dtype", "fp16"}, {{"plan.shape.dtype", "fp16"}, {"plan.gradient.produced", "fp16"}, {"plan.recipe.dtype", "fp16"},
                         {"control.scale_mode", "1"}, {"loss_scale", "65536"}}},
    {{"communication_dtype", "bf16"}, {{"plan.gradient.reduced", "bf16"}}},
    {{"accumulation_dtype", "bf16"}, {{"plan.gradient.accumulated", "bf16"}},
     {{"dtype", "bf16"}}},
    {{"state_recipe", "packed-master"}, {{"plan.recipe.optimizer.operation", "adamw_packed"}, {"plan.recipe.optimizer.master", "packed"}}},
    {{"state_recipe", "bf16-moments"},
     {{"plan.recipe.optimizer.moment_dtype", "bf16"}, {"plan.recipe.optimizer.random", "true"}}},
    {{"state_recipe", "packed-bf16-moments"},
     {{"plan.recipe.optimizer.operation", "adamw_packed"}, {"plan.recipe.optimizer.master", "packed"}, {"plan.recipe.optimizer.moment_dtype", "bf16"},
      {"plan.recipe.optimizer.random", "true"}}},
    {{"state_recipe", "8bit"},
     {{"plan.recipe.optimizer.operation", "adamw_8bit"}, {"plan.recipe.optimizer.moment_dtype", "uint8"},
      {"plan.recipe.optimizer.scale_block", "128"}}},
    {{"state_recipe", "bf16-sr"},
     {{"plan.recipe.optimizer.operation", "adamw_bf16"}, {"plan.recipe.optimizer.master", "none"}, {"plan.recipe.optimizer.moment_dtype", "bf16"},
      {"plan.recipe.optimizer.random", "true"}}},

    {{"zero.stage", "1"}, {{"big.shard.optimizer", "true"}, {"small.shard.optimizer", "true"},
                           {"large.shard.optimizer", "true"}}},
    {{"zero.stage", "2"}, {{"big.shard.gradient", "true"}, {"small.shard.gradient", "true"},
                           {"large.shard.gradient", "true"}}, {{"zero.stage", "1"}}},
    {{"zero.stage", "3"}, {{"big.shard.parameter", "true"}, {"large.shard.parameter", "true"}},
     {{"zero.stage", "2"}}},
    {{"zero.reduce_bucket_elements", "5000"}, {{"plan.limits.reduce_bucket_elements", "5000"}}},
    {{"zero.allgather_bucket_elements", "6000"}, {{"plan.limits.gather_bucket_elements", "6000"}}},
    {{"zero.sub_group_elements", "7000"}, {{"plan.limits.tile_elements", "6144"}}},
    {{"zero.sub_group_elements", "0"}, {{"plan.limits.tile_elements", "4194304"}},
     {{"zero.sub_group_elements", "7000"}}},
    {{"zero.prefetch_bucket_elements", "8000"}, {{"plan.limits.prefetch_elements", "8000"}}},
    {{"zero.overlap_comm", "false"}, {{"plan.limits.prefetch_elements", "0"}}},
    {{"zero.param_persistence_threshold_elements", "102400"}, {{"big.shard.parameter", "false"}},
     kZero3},
    {{"zero.param_persistence_threshold_elements", "2047"}, {{"small.shard.parameter", "true"}},
     kZero3},
    {{"zero.model_persistence_threshold_elements", "2047"}, {{"small.shard.parameter", "true"}},
     kZero3},
    {{"zero.max_live_parameters_elements", "9000"}, {{"plan.limits.max_live_elements", "9000"}}},
    {{"zero.max_reuse_distance_elements", "10000"}, {{"plan.limits.max_reuse_distance", "10000"}}},
    {{"tile_elements", "2048"}, {{"plan.limits.tile_elements", "2048"}}},

    {{"offload.optimizer", "cpu"},
     {{"big.tier.optimizer", "pageable"}, {"small.tier.optimizer", "pageable"}, {"large.tier.optimizer", "pageable"}, {"large.tier.gradient", "pinned"},
      {"big.tier.gradient", "pinned"}, {"small.tier.gradient", "pinned"},
      {"plan.updates", "next_step"}}},
    {{"offload.optimizer", "nvme"},
     {{"big.tier.optimizer", "disk"}, {"small.tier.optimizer", "disk"}, {"large.tier.optimizer", "disk"}, {"plan.updates", "next_step"}},
     {{"accumulation", "2"}}},
    {{"offload.parameters", "cpu"},
     {{"big.tier.parameter", "pinned"}, {"large.tier.parameter", "pinned"}}},
    {{"offload.parameters", "nvme"},
     {{"big.tier.parameter", "disk"}, {"large.tier.parameter", "disk"}}},
    // Keeps the rank's half of the first unit in memory, and nothing of the second.
    {{"offload.parameter_host_elements", "51200"}, {{"big.tier.parameter", "pinned"}},
     kParametersOnDisk},
    {{"offload.parameter_host_elements", "51199"}, {}, kParametersOnDisk},
    {{"offload.activations", "cpu"},
     {{"plan.saved [1 3].0.norm", "host"}, {"plan.saved [1 3].1.linear", "host"}, {"plan.saved [1 3].2.gelu", "host"}, {"plan.saved [1 3].4.residual_add", "host"}}},
    {{"offload.activations", "nvme"},
     {{"plan.saved [1 3].0.norm", "disk"}, {"plan.saved [1 3].1.linear", "disk"}, {"plan.saved [1 3].2.gelu", "disk"}, {"plan.saved [1 3].4.residual_add", "disk"}}},
    {{"offload.optimizer_ratio", "0.75"},
     {{"big.resident.device", "25600"}, {"small.resident.device", "1024"}, {"large.resident.device", "51200"}},
     kOptimizerOnDisk},
    {{"offload.optimizer_ratio", "0.75"}, {{"big.resident.device", "13312"}, {"large.resident.device", "25600"}},
     {{"offload.optimizer", "cpu"}, {"zero.stage", "1"}}},
    // A unit whose parameters are on the disk is updated in one place, whatever the ratio.
    {{"offload.optimizer_ratio", "0.75"}, {{"small.resident.device", "1024"}},
     {{"offload.optimizer", "nvme"}, {"offload.parameters", "nvme"}}},
    {{"offload.updates", "step_end"}, {{"plan.updates", "step_end"}}, kOptimizerOnDisk},
    {{"offload.updates", "gradient"}, {{"plan.updates", "gradient"}, {"control.skip_nonfinite", "0"}}},
    {{"offload.layer_major", "true"}, {{"plan.order", "by_layer"}}, {{"accumulation", "2"}}},
    {{"offload.layer_major", "true"}, {}},
    {{"offload.layer_major", "true"},
     {{"plan.order", "by_layer"}, {"big.tier.gradient", "pinned"}, {"small.tier.gradient", "pinned"}, {"large.tier.gradient", "pinned"}},
     {{"accumulation", "2"}, {"offload.optimizer", "cpu"}}},

    {{"offload.gradients", "true"}, {}, {{"accumulation", "2"}}},
    {{"offload.gradients", "true"},
     {{"big.tier.gradient", "pinned"}, {"small.tier.gradient", "pinned"}, {"large.tier.gradient", "pinned"}},
     {{"accumulation", "2"}, {"offload.optimizer", "cpu"}}},

    {{"activation_checkpointing", "true"},
     {{"plan.saved [1 3].0.norm", "recompute"}, {"plan.saved [1 3].0.norm.1", "recompute"}, {"plan.saved [1 3].1.linear", "recompute"}, {"plan.saved [1 3].2.gelu", "recompute"}}},
    {{"recompute_norms", "true"},
     {{"plan.saved [1 3].0.norm", "recompute"}, {"plan.saved [1 3].0.norm.1", "recompute"}, {"plan.saved [1 3].2.gelu", "recompute"}}},
    {{"recompute_norms", "true"}, {}, kCheckpointing},
    {{"checkpoint_segments", "2"},
     {{"plan.saved [1 3].0.norm", ""}, {"plan.saved [1 3].0.norm.1", ""}, {"plan.saved [1 3].1.linear", ""}, {"plan.saved [1 3].2.gelu", ""}, {"plan.saved [1 3].4.residual_add", ""},
      {"plan.saved [1 1].0.norm", "recompute"}, {"plan.saved [1 1].0.norm.1", "recompute"}, {"plan.saved [1 1].1.linear", "recompute"}, {"plan.saved [1 1].2.gelu", "recompute"}, {"plan.saved [1 1].4.residual_add", "keep"},
      {"plan.saved [2 2].0.norm", "recompute"}, {"plan.saved [2 2].0.norm.1", "recompute"}, {"plan.saved [2 2].1.linear", "recompute"}, {"plan.saved [2 2].2.gelu", "recompute"}, {"plan.saved [2 2].4.residual_add", "recompute"},
      {"plan.saved [3 3].0.norm", "recompute"}, {"plan.saved [3 3].0.norm.1", "recompute"}, {"plan.saved [3 3].1.linear", "recompute"}, {"plan.saved [3 3].2.gelu", "recompute"}, {"plan.saved [3 3].4.residual_add", "keep"}},
     kCheckpointing},
    {{"checkpoint_segments", "9"}, {}, kCheckpointing},
    {{"checkpoint_ratio", "0.5"}, {{"plan.saved [1 3].2.gelu", "keep"}}, kCheckpointing},
    {{"actions", R"([{"blocks": [2, 2], "actions": {"2.gelu": "host", "1.linear": "recompute"}}])"},
     {{"plan.saved [1 3].0.norm", ""}, {"plan.saved [1 3].0.norm.1", ""}, {"plan.saved [1 3].1.linear", ""}, {"plan.saved [1 3].2.gelu", ""}, {"plan.saved [1 3].4.residual_add", ""},
      {"plan.saved [0 0].0.embedding", ""}, {"plan.saved [4 4].0.norm.1", ""}, {"plan.saved [4 4].2.head_loss.1", ""},
      {"plan.saved [2 2].1.linear", "recompute"}, {"plan.saved [2 2].2.gelu", "host"}}},
};
// clang-format on

}  // namespace

std::span<const EffectRow> plan_option_rows() { return kRows; }

}  // namespace strata::train
