// Checks that every key that the source of DeepSpeed 0.19.8 reads from a configuration is known.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "train/config/key_table.h"

namespace strata::train {
namespace {

struct Section {
  std::string_view path;  ///< "" for the top level
  std::string_view keys;  ///< separated by spaces
};

constexpr Section kSections[] = {
    {"",
     "train_batch_size train_micro_batch_size_per_gpu gradient_accumulation_steps "
     "managed_gradient_accumulation optimizer scheduler zero_allow_untested_optimizer "
     "zero_force_ds_cpu_optimizer steps_per_print bf16 bfloat16 fp16 torch_autocast "
     "gradient_clipping communication_data_type seq_parallel_communication_data_type "
     "prescale_gradients gradient_predivide_factor gradient_allreduce_op disable_allgather "
     "dump_state disable_python_gc vocabulary_size wall_clock_breakdown memory_breakdown "
     "checkpoint data_types dataloader_drop_last use_data_before_expert_parallelism log_level "
     "zero_optimization activation_checkpointing aio comms_logger flops_profiler tensorboard "
     "wandb csv_monitor comet autotuning hybrid_engine pipeline data_efficiency datastates_ckpt "
     "weight_quantization compile timers tensor_parallel expert_parallel sequence_parallel_size "
     "data_parallel_size"},
    {"optimizer", "type params legacy_fusion"},
    {"optimizer.params",
     "lr betas eps weight_decay bias_correction amsgrad torch_adam adam_w_mode "
     "fp32_optimizer_states set_grad_none momentum dampening nesterov"},
    {"scheduler", "type params"},
    {"scheduler.params",
     "warmup_min_lr warmup_max_lr warmup_num_steps warmup_type total_num_steps warmup_min_ratio "
     "cos_min_ratio lr_range_test_min_lr lr_range_test_step_size lr_range_test_step_rate "
     "lr_range_test_staircase cycle_min_lr cycle_max_lr decay_lr_rate cycle_first_step_size "
     "cycle_second_step_size cycle_first_stair_count cycle_second_stair_count decay_step_size "
     "cycle_momentum cycle_min_mom cycle_max_mom decay_mom_rate last_batch_iteration"},
    {"fp16",
     "enabled auto_cast loss_scale initial_scale_power loss_scale_window hysteresis "
     "consecutive_hysteresis min_loss_scale fp16_master_weights_and_grads"},
    {"bf16",
     "enabled immediate_grad_update check_grad_overflow bf16_master_weights_and_grads "
     "bf16_optimizer_states"},
    {"torch_autocast", "enabled dtype lower_precision_safe_modules"},
    {"data_types", "grad_accum_dtype param_dtype buffer_dtype keep_in_fp32_modules"},
    {"zero_optimization",
     "stage contiguous_gradients reduce_scatter reduce_bucket_size "
     "use_multi_rank_bucket_allreduce allgather_partitions allgather_bucket_size overlap_comm "
     "compute_grad_norm load_from_fp32_weights elastic_checkpoint offload_param "
     "offload_optimizer zenflow sub_group_size cpu_offload_param cpu_offload_use_pin_memory "
     "cpu_offload prefetch_bucket_size stage3_prefetch_bucket_size param_persistence_threshold "
     "stage3_param_persistence_threshold model_persistence_threshold "
     "stage3_model_persistence_threshold max_live_parameters stage3_max_live_parameters "
     "max_reuse_distance stage3_max_reuse_distance gather_16bit_weights_on_model_save "
     "stage3_gather_16bit_weights_on_model_save module_granularity_threshold "
     "stage3_module_granularity_threshold use_all_reduce_for_fetch_params "
     "stage3_use_all_reduce_for_fetch_params allgather_sequential stage3_allgather_sequential "
     "stage3_gather_fp16_weights_on_model_save ignore_unused_parameters legacy_stage1 "
     "round_robin_gradients parameter_alignment zero_hpz_partition_size zero_quantized_weights "
     "zero_quantized_nontrainable_weights zero_quantized_gradients memory_efficient_linear "
     "pipeline_loading_checkpoint override_module_apply log_trace_cache_warnings "
     "enable_sanity_checks save_muon_momentum_buffer_in_memory leaf_module"},
    {"zero_optimization.offload_param",
     "device nvme_path buffer_count buffer_size max_in_cpu pin_memory"},
    {"zero_optimization.offload_optimizer",
     "device nvme_path buffer_count pin_memory pipeline_read pipeline_write fast_init ratio "
     "super_offload cpuadam_cores_perc"},
    {"zero_optimization.zenflow", "topk_ratio select_strategy update_interval overlap_step"},
    {"zero_optimization.leaf_module", "classes names name_suffixes"},
    {"activation_checkpointing",
     "partition_activations contiguous_memory_optimization cpu_checkpointing number_checkpoints "
     "synchronize_checkpoint_boundary profile"},
    {"autotuning",
     "enabled fast results_dir exps_dir overwrite start_profile_step end_profile_step metric "
     "model_info mp_size max_train_batch_size min_train_batch_size "
     "max_train_micro_batch_size_per_gpu min_train_micro_batch_size_per_gpu "
     "num_tuning_micro_batch_sizes tuner_type tuner_early_stopping tuner_num_trials arg_mappings "
     "metric_path model_info_path"},
    {"aio", "block_size queue_depth intra_op_parallelism single_submit overlap_events use_gds"},
    {"compile", "deepcompile autoep_non_moe free_activation offload_activation passes"},
    {"checkpoint",
     "tag_validation load_universal use_node_local_storage parallel_write "
     "checkpoint_serialization writer"},
    {"comms_logger", "enabled verbose prof_all debug prof_ops"},
    {"flops_profiler",
     "enabled recompute_fwd_factor profile_step module_depth top_modules detailed output_file"},
    {"tensor_parallel", "autotp_size tensor_parallel tp tp_size tp_grain_size partition_config"},
    {"expert_parallel", "enabled autoep_size"},
    {"data_efficiency", "enabled seed data_sampling data_routing"},
    {"data_efficiency.data_sampling",
     "enabled num_epochs num_workers pin_memory curriculum_learning dynamic_batching"},
    {"data_efficiency.data_sampling.curriculum_learning",
     "enabled data_cluster_path curriculum_metrics"},
    {"data_efficiency.data_routing", "enabled random_ltd"},
    {"data_efficiency.data_routing.random_ltd", "enabled total_layer_num random_ltd_schedule"},
    // Keys that 0.19.8 refuses as removed, which old files may still have.
    {"",
     "nebula compression_training amp quantize_training sparse_gradients eigenvalue "
     "sparse_attention elasticity graph_harvesting curriculum_learning progressive_layer_drop"},
    {"zero_optimization", "mics_shard_size mics_hierarchical_params_gather zeropp_loco_param"},
};

/// True also for a key inside a section whose keys are not read.
bool is_known(std::string_view path) {
  if (find_key(path) != nullptr) return true;
  for (std::size_t dot = path.rfind('.'); dot != std::string_view::npos;
       dot = path.substr(0, dot).rfind('.')) {
    const KeyRow* row = find_key(path.substr(0, dot));
    if (row == nullptr) continue;
    return row->shape == JsonShape::any || row->support == Support::noted ||
           row->support == Support::refused;
  }
  return false;
}

TEST(PublishedKeys, AllThatDeepSpeedReadsAreKnown) {
  for (const Section& section : kSections) {
    std::string_view rest = section.keys;
    while (!rest.empty()) {
      const std::size_t space = rest.find(' ');
      const std::string_view key = rest.substr(0, space);
      rest = space == std::string_view::npos ? "" : rest.substr(space + 1);
      const std::string path = section.path.empty()
                                   ? std::string(key)
                                   : std::string(section.path) + "." + std::string(key);
      EXPECT_TRUE(is_known(path)) << path;
    }
  }
  EXPECT_FALSE(is_known("zero_optimization.nosuch"));
  EXPECT_FALSE(is_known("nosuch"));
}

}  // namespace
}  // namespace strata::train
