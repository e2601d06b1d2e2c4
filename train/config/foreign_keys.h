// Keys of a DeepSpeed JSON that are no options: facts with a meaning of their own, sections, other
// spellings, keys that are accepted without effect or refused; and lines that place the keys of
// options. In order of the reference: batch, optimizer step, precision, sharding, the rest.
#pragma once

#include "train/config/key_table.h"

namespace strata::train::foreign_keys {

/// A row of the table, or a line at whose place rows of options come.
struct KeyLine {
  enum class Of { itself, options, some_options };
  KeyRow row;  ///< a line of options has their section as path
  Of of = Of::itself;
  std::string_view names = "";  ///< keys in the section, separated by spaces
};

using enum JsonShape;

constexpr KeyLine fact(std::string_view path, JsonShape shape, std::string_view text,
                       std::string_view fallback = "") {
  return {{path, shape, Support::fact, "", "", text, fallback}};
}
constexpr KeyLine noted(std::string_view path, JsonShape shape, std::string_view inert,
                        std::string_view why) {
  return {{path, shape, Support::noted, "", inert, why, inert}};
}
constexpr KeyLine refused(std::string_view path, JsonShape shape, std::string_view inert,
                          std::string_view instead) {
  return {{path, shape, Support::refused, "", inert, instead, inert}};
}
constexpr KeyLine alias(std::string_view path, std::string_view key) {
  return {{path, any, Support::alias, key}};
}
constexpr KeyLine renamed(std::string_view path, std::string_view key) {
  return {{path, any, Support::renamed, key}};
}
constexpr KeyLine inside(std::string_view path, std::string_view text = "") {
  return {{path, section, Support::obeyed, "", "", text}};
}
constexpr KeyLine switched(std::string_view path, Support support, std::string_view on_switch,
                           std::string_view text) {
  return {{path, section, support, "", "", text, "", on_switch, true}};
}

constexpr KeyLine silent(std::string_view path) { return {{path, any, Support::silent}}; }
/// Places the keys of options in a section (option_fields.h): those in `first`, then the others.
constexpr KeyLine options(std::string_view section, std::string_view first = "") {
  return {{section}, KeyLine::Of::options, first};
}
/// Places only the keys in `names`.
constexpr KeyLine some_options(std::string_view section, std::string_view names) {
  return {{section}, KeyLine::Of::some_options, names};
}

constexpr std::string_view kOurLayout = "Strata lays buffers out before the first step";
constexpr std::string_view kOneBackend = "one set of transfers serves every setting";
constexpr std::string_view kUseMetrics =
    "not written; tensorboard and csv_monitor are, and --metrics FILE (JSONL)";
constexpr std::string_view kUseProfile = "use --profile FILE";
constexpr std::string_view kPinned =
    "what crosses the link to the device is always page-locked, the rest need not be";
constexpr std::string_view kWindows =
    "windows are as many and as large as the step needs them; --host-memory limits them";
constexpr std::string_view kOverlap = "transfers run beside the step as far as memory allows";
constexpr std::string_view kRing = "each rank has one io_uring per drive";
constexpr std::string_view kRemoved = "DeepSpeed has removed it, too; remove the section";
constexpr std::string_view kParallel = "only data parallelism is available; set 1";
constexpr std::string_view kBatchKept = "the planner keeps the batch of a step";
constexpr std::string_view kMemoryLimits =
    "memory limits the micro-batch; set train_micro_batch_size_per_gpu to choose it";
constexpr std::string_view kLossy = "lossy transfers are not available; set false";

inline constexpr KeyLine kKeyLines[] = {
    options("",
            "train_batch_size train_micro_batch_size_per_gpu gradient_accumulation_steps "
            "gradient_clipping"),
    noted("prescale_gradients", flag, "false",
          "sums are taken in fp32 and scaled once, there is nothing to keep from overflowing"),
    noted("gradient_predivide_factor", number, "1.0", "sums are taken in fp32 and scaled once"),
    refused("gradient_allreduce_op", text, "mean", "set \"mean\""),
    refused("managed_gradient_accumulation", flag, "true",
            "the step loop owns the boundary; set true"),
    noted("seq_parallel_communication_data_type", text, "fp32", "sequences are not sharded"),
    noted("sparse_gradients", flag, "false",
          "embedding gradients travel densely, the sum is the same; DeepSpeed has removed it"),
    noted("disable_allgather", flag, "false", "DeepSpeed never reads it"),
    noted("zero_allow_untested_optimizer", flag, "false|true", ""),
    noted("zero_force_ds_cpu_optimizer", flag, "true|false", ""),
    noted("memory_breakdown", flag, "false", "the same is printed at start or with --trace FILE"),
    noted("log_level", text, "", "it changes nothing here"),
    noted("dataloader_drop_last", flag, "false",
          "samples are drawn without end, no batch is short"),
    noted("vocabulary_size", number, "", "the vocabulary is the model's, padded to 128 in memory"),
    noted("graph_harvesting", flag, "false",
          "a step is one program already; DeepSpeed has removed it"),
    refused("sequence_parallel_size", number, "1", kParallel),
    fact("data_parallel_size", number, "must be the number of ranks"),
    refused("use_data_before_expert_parallelism", flag, "false", "set false"),
    noted("allgather_size", number, "500000000", "use zero_optimization.allgather_bucket_size"),
    inside("data_types"),
    options("data_types"),
    fact("data_types.param_dtype", text, "must be the type that fp16 / bf16 choose"),
    noted("data_types.buffer_dtype", text, "", "models here have no buffers in files"),
    noted("data_types.keep_in_fp32_modules", any, "auto", "models here have no buffers in files"),
    noted("disable_python_gc", flag, "false|true", ""),

    inside("optimizer"),
    fact("optimizer.type", text, "Adam and AdamW (both decoupled), Lion, SGD"),
    refused("optimizer.legacy_fusion", flag, "false", "set false"),
    inside("optimizer.params"),
    some_options("optimizer.params", "lr"),
    {{"optimizer.params.betas", list, Support::obeyed, "optimizer.beta1+optimizer.beta2", "", "",
      "[0.9, 0.999]"}},
    options("optimizer.params"),
    fact("optimizer.params.adam_w_mode", flag, "false with type Adam: decay added to the gradient",
         "true"),
    fact("optimizer.params.torch_adam", flag, "true: AdamW decays by 0.01 when not told otherwise",
         "false"),
    refused("optimizer.params.amsgrad", flag, "false", "set false"),
    refused("optimizer.params.fp32_optimizer_states", flag, "true",
            "set true; \"strata\": {\"state_recipe\": \"bf16-moments\"} keeps moments in bf16"),
    noted("optimizer.params.fused", flag, "false|true", ""),
    noted("optimizer.params.foreach", flag, "false|true", ""),
    noted("optimizer.params.set_grad_none", flag, "true|false", ""),
    renamed("optimizer.params.max_grad_norm", "gradient_clipping"),
    inside("scheduler"),
    fact("scheduler.type", text, "WarmupLR, WarmupDecayLR, WarmupCosineLR, OneCycle, LRRangeTest"),
    inside("scheduler.params"),
    options("scheduler.params"),
    fact("scheduler.params.cycle_momentum", flag, "OneCycle: must be false, betas do not cycle",
         "true"),
    noted("scheduler.params.cycle_min_mom", number, "", "betas do not cycle"),
    noted("scheduler.params.cycle_max_mom", number, "", "betas do not cycle"),
    noted("scheduler.params.decay_mom_rate", number, "", "betas do not cycle"),
    noted("scheduler.params.last_batch_iteration", number, "-1", "a run starts at its first step"),

    switched("fp16", Support::obeyed, "enabled", ""),
    fact("fp16.enabled", flag, "dtype fp16", "false"),
    noted("fp16.auto_cast", flag, "false|true", ""),
    options("fp16"),
    refused("fp16.fp16_master_weights_and_grads", flag, "false",
            "master weights are fp32; set false"),
    noted("fp16.fp16", any, "", "an old name of the precision; fp16.enabled decides"),
    noted("fp16.type", any, "", "an old name of the precision; fp16.enabled decides"),
    noted("fp16.opt_level", any, "",
          "DeepSpeed refuses it since apex is gone; fp16.enabled decides"),
    noted("fp16.fp16_scale_tolerance", any, "", "an old name that no DeepSpeed reads"),
    switched("bf16", Support::obeyed, "enabled", ""),
    fact("bf16.enabled", flag, "dtype bf16", "false"),
    options("bf16"),
    noted("bf16.immediate_grad_update", flag, "false", "gradients are added as they arrive anyway"),
    refused("bf16.bf16_master_weights_and_grads", flag, "false",
            "set false; \"strata\": {\"state_recipe\": \"bf16-sr\"} keeps no fp32 master"),
    refused("bf16.bf16_optimizer_states", flag, "false",
            "set false; \"strata\": {\"state_recipe\": \"bf16-moments\"} keeps moments in bf16"),
    noted("bf16.auto_cast", flag, "false|true", ""),
    refused("bf16.loss_scale", number, "0|1", "bf16 is not scaled; set 0 or use fp16"),
    noted("bf16.initial_scale_power", number, "", "bf16 is not scaled"),
    noted("bf16.loss_scale_window", number, "", "bf16 is not scaled"),
    noted("bf16.hysteresis", number, "", "bf16 is not scaled"),
    noted("bf16.min_loss_scale", number, "", "bf16 is not scaled"),
    alias("bfloat16", "bf16"),

    inside("zero_optimization"),
    options("zero_optimization",
            "stage reduce_bucket_size allgather_bucket_size overlap_comm sub_group_size "
            "stage3_prefetch_bucket_size stage3_param_persistence_threshold "
            "stage3_model_persistence_threshold"),
    noted("zero_optimization.stage3_gather_16bit_weights_on_model_save", flag, "true",
          "saved directories are always complete"),
    noted("zero_optimization.reduce_scatter", flag, "true",
          "gradients are always reduce-scattered, with the same bits"),
    noted("zero_optimization.contiguous_gradients", flag, "true", kOurLayout),
    noted("zero_optimization.use_multi_rank_bucket_allreduce", flag, "true", kOneBackend),
    noted("zero_optimization.allgather_partitions", flag, "true", "DeepSpeed never reads it"),
    noted("zero_optimization.round_robin_gradients", flag, "false",
          "borders between ranks are fixed, the numbers are the same"),
    noted("zero_optimization.compute_grad_norm", flag, "true",
          "the norm is taken where clipping, a loss scale or the check for overflow needs it"),
    noted("zero_optimization.parameter_alignment", flag, "false|true", ""),
    noted("zero_optimization.ignore_unused_parameters", flag, "true",
          "every parameter of these models gets a gradient"),
    noted("zero_optimization.load_from_fp32_weights", flag, "true",
          "masters come from stored masters where there are any"),
    noted("zero_optimization.elastic_checkpoint", flag, "false",
          "every checkpoint resumes at any world size and stage"),
    refused("zero_optimization.legacy_stage1", flag, "false", "set false"),
    noted("zero_optimization.stage3_module_granularity_threshold", number, "0",
          "a layer is gathered as a whole"),
    noted("zero_optimization.stage3_use_all_reduce_for_fetch_params", flag, "false", kOneBackend),
    noted("zero_optimization.stage3_allgather_sequential", flag, "false", kOneBackend),
    noted("zero_optimization.leaf_module", any, "", "a layer is gathered as a whole"),
    refused("zero_optimization.zero_hpz_partition_size", number, "1|0", kParallel),
    refused("zero_optimization.zero_quantized_weights", flag, "false", kLossy),
    refused("zero_optimization.zero_quantized_nontrainable_weights", flag, "false", kLossy),
    refused("zero_optimization.zero_quantized_gradients", flag, "false", kLossy),
    noted("zero_optimization.zeropp_loco_param", any, "",
          "DeepSpeed has removed it, too; quantized gradients are not available"),
    fact("zero_optimization.mics_shard_size", number,
         "-1, or the number of ranks; DeepSpeed has removed it", "-1"),
    noted("zero_optimization.mics_hierarchical_params_gather", flag, "false", kOneBackend),
    noted("zero_optimization.memory_efficient_linear", flag, "true|false", ""),
    noted("zero_optimization.pipeline_loading_checkpoint", flag, "false", kOurLayout),
    noted("zero_optimization.override_module_apply", flag, "true|false", ""),
    noted("zero_optimization.log_trace_cache_warnings", flag, "false", "the order never changes"),
    noted("zero_optimization.enable_sanity_checks", flag, "false", "they are always on"),
    noted("zero_optimization.save_muon_momentum_buffer_in_memory", flag, "false",
          "there is no Muon"),
    noted("zero_optimization.grad_hooks", flag, "true|false", ""),
    switched("zero_optimization.zenflow", Support::refused, "",
             "another algorithm; remove the section"),
    switched("zero_optimization.offload_optimizer", Support::obeyed, "device",
             "at every stage, nvme too"),
    some_options("zero_optimization.offload_optimizer", "device"),
    fact("zero_optimization.offload_optimizer.nvme_path", text,
         "a folder on the drive; where offload_param names another one, both are striped"),
    options("zero_optimization.offload_optimizer"),
    noted("zero_optimization.offload_optimizer.pin_memory", flag, "true", kPinned),
    noted("zero_optimization.offload_optimizer.buffer_count", number, "4", kWindows),
    noted("zero_optimization.offload_optimizer.pipeline", flag, "false", kOverlap),
    noted("zero_optimization.offload_optimizer.pipeline_read", flag, "false", kOverlap),
    noted("zero_optimization.offload_optimizer.pipeline_write", flag, "false", kOverlap),
    noted("zero_optimization.offload_optimizer.fast_init", flag, "false",
          "initial values are made where they live"),
    refused("zero_optimization.offload_optimizer.super_offload", flag, "false",
            "it updates before the norm is known and takes back what was wrong; set false: updates "
            "run while the next forward pass does anyway"),
    noted("zero_optimization.offload_optimizer.cpuadam_cores_perc", number, "0.8",
          "host updates share the ranks' threads; use --threads N"),
    switched("zero_optimization.offload_param", Support::obeyed, "device",
             "cpu at every stage; nvme at stages 0 and 3, or with one rank"),
    some_options("zero_optimization.offload_param", "device"),
    fact("zero_optimization.offload_param.nvme_path", text,
         "a folder on the drive; where offload_optimizer names another one, both are striped"),
    noted("zero_optimization.offload_param.pin_memory", flag, "true", kPinned),
    noted("zero_optimization.offload_param.buffer_count", number, "5", kWindows),
    noted("zero_optimization.offload_param.buffer_size", number, "1e8", kWindows),
    options("zero_optimization.offload_param"),
    fact("zero_optimization.cpu_offload", flag,
         "an old form of \"offload_optimizer\": {\"device\": \"cpu\"}", "false"),
    fact("zero_optimization.cpu_offload_param", flag,
         "an old form of \"offload_param\": {\"device\": \"cpu\"}", "false"),
    renamed("zero_optimization.cpu_offload_params", "zero_optimization.cpu_offload_param"),
    noted("zero_optimization.cpu_offload_use_pin_memory", flag, "true|false", kPinned),
    alias("zero_optimization.prefetch_bucket_size",
          "zero_optimization.stage3_prefetch_bucket_size"),
    alias("zero_optimization.param_persistence_threshold",
          "zero_optimization.stage3_param_persistence_threshold"),
    alias("zero_optimization.model_persistence_threshold",
          "zero_optimization.stage3_model_persistence_threshold"),
    alias("zero_optimization.max_live_parameters", "zero_optimization.stage3_max_live_parameters"),
    alias("zero_optimization.max_reuse_distance", "zero_optimization.stage3_max_reuse_distance"),
    alias("zero_optimization.gather_16bit_weights_on_model_save",
          "zero_optimization.stage3_gather_16bit_weights_on_model_save"),
    alias("zero_optimization.module_granularity_threshold",
          "zero_optimization.stage3_module_granularity_threshold"),
    alias("zero_optimization.allgather_sequential",
          "zero_optimization.stage3_allgather_sequential"),
    alias("zero_optimization.use_all_reduce_for_fetch_params",
          "zero_optimization.stage3_use_all_reduce_for_fetch_params"),
    renamed("zero_optimization.stage3_gather_fp16_weights_on_model_save",
            "zero_optimization.stage3_gather_16bit_weights_on_model_save"),

    inside("activation_checkpointing",
           "switches nothing on; --activation-checkpointing or strata.activation_checkpointing "
           "does"),
    fact("activation_checkpointing.number_checkpoints", number,
         "recompute in this many runs of layers, once recomputation is on"),
    fact("activation_checkpointing.cpu_checkpointing", flag,
         "once recomputation is on, the inputs of recomputed blocks wait in host memory: "
         "offload.activations cpu",
         "false"),
    noted("activation_checkpointing.partition_activations", flag, "false",
          "there is one model-parallel rank"),
    noted("activation_checkpointing.contiguous_memory_optimization", flag, "false", kOurLayout),
    noted("activation_checkpointing.synchronize_checkpoint_boundary", flag, "false",
          "it changes speed only"),
    noted("activation_checkpointing.profile", flag, "false", "use --trace FILE"),

    inside("aio", "what is not given here is measured at start"),
    options("aio"),
    noted("aio.intra_op_parallelism", number, "1", kRing),
    noted("aio.thread_count", number, "1", kRing),
    noted("aio.single_submit", flag, "false", kRing),
    noted("aio.overlap_events", flag, "true", kRing),
    noted("aio.use_gds", flag, "false", "data passes through host memory"),
    switched("amp", Support::refused, "enabled", "DeepSpeed has removed it, too; use bf16 or fp16"),
    switched("torch_autocast", Support::refused, "enabled", "use bf16 or fp16"),
    switched("quantize_training", Support::refused, "enabled", kRemoved),
    switched("eigenvalue", Support::refused, "enabled", kRemoved),
    switched("progressive_layer_drop", Support::refused, "enabled", kRemoved),
    switched("weight_quantization", Support::refused, "enabled", "remove the section"),
    switched("compression_training", Support::refused, "*",
             "DeepSpeed has removed it, too; set every \"enabled\" to false"),
    switched("sparse_attention", Support::refused, "",
             "DeepSpeed has removed it, too; remove the section: attention is dense"),
    switched("curriculum_learning", Support::refused, "enabled",
             "DeepSpeed has removed it, too; sequences keep their length: set \"enabled\": false"),
    switched("data_efficiency", Support::obeyed, "enabled", "what is on inside is refused"),
    switched("data_efficiency.data_sampling", Support::obeyed, "enabled", ""),
    switched("data_efficiency.data_sampling.curriculum_learning", Support::refused, "enabled",
             "sequences keep their length and samples their order; set \"enabled\": false"),
    switched("data_efficiency.data_sampling.dynamic_batching", Support::refused, "enabled",
             "every sample is a full window; set \"enabled\": false"),
    silent("data_efficiency.data_sampling.*"),
    switched("data_efficiency.data_routing", Support::obeyed, "enabled", ""),
    switched("data_efficiency.data_routing.random_ltd", Support::refused, "enabled",
             "no tokens are dropped; set \"enabled\": false"),
    silent("data_efficiency.data_routing.*"),
    silent("data_efficiency.*"),
    switched("elasticity", Support::refused, "enabled",
             "DeepSpeed has removed it, too; set \"enabled\": false and give the batch sizes"),
    switched("nebula", Support::refused, "enabled",
             "DeepSpeed has removed it, too; set \"enabled\": false"),
    refused("datastates_ckpt", any, "false", "remove it"),
    switched("expert_parallel", Support::refused, "enabled", "only dense models are built"),
    inside("tensor_parallel"),
    refused("tensor_parallel.autotp_size", number, "0|1", kParallel),
    refused("tensor_parallel.tp_size", number, "0|1", kParallel),
    inside("tensor_parallel.tensor_parallel"),
    refused("tensor_parallel.tensor_parallel.tp_size", number, "0|1", kParallel),
    silent("tensor_parallel.tensor_parallel.*"),
    inside("tensor_parallel.tp"),
    refused("tensor_parallel.tp.tp_size", number, "0|1", kParallel),
    silent("tensor_parallel.tp.*"),
    silent("tensor_parallel.*"),
    switched("tensorboard", Support::obeyed, "enabled", "event files in output_path/job_name"),
    options("tensorboard", "enabled"),
    switched("csv_monitor", Support::obeyed, "enabled", "CSV files in output_path/job_name"),
    options("csv_monitor", "enabled"),
    switched("wandb", Support::noted, "enabled", kUseMetrics),
    switched("comet", Support::noted, "enabled", kUseMetrics),
    switched("flops_profiler", Support::noted, "enabled", kUseProfile),
    switched("comms_logger", Support::noted, "enabled", kUseProfile),
    noted("timers", any, "", "throughput is always printed"),
    noted("checkpoint", any, "", "all ranks write every checkpoint; see --save-every and --resume"),
    noted("pipeline", any, "", "it means nothing without a pipelined model"),
    switched("hybrid_engine", Support::noted, "enabled", "it serves generation only"),
    noted("compile", any, "", "a step is one program already"),
    switched("autotuning", Support::obeyed, "enabled",
             "the planner computes instead of trying: nothing runs for it"),
    fact(
        "autotuning.enabled", flag,
        "the same as strata.target_memory \"auto\", unless it or --target-memory is given: what is "
        "not given, or \"auto\", is chosen",
        "false"),
    noted("autotuning.metric", text, "throughput|latency", "the shortest step is looked for"),
    noted("autotuning.mp_size", number, "1", kParallel),
    noted("autotuning.max_train_batch_size", number, "", kBatchKept),
    noted("autotuning.min_train_batch_size", number, "1", kBatchKept),
    noted("autotuning.max_train_micro_batch_size_per_gpu", number, "", kMemoryLimits),
    noted("autotuning.min_train_micro_batch_size_per_gpu", number, "1", kMemoryLimits),
    silent("autotuning.*"),

    inside("strata", "Strata's own settings; DeepSpeed ignores them"),
    inside("strata.activation_checkpointing", "true, false or {\"segments\": N, \"ratio\": X}"),
    options("strata.activation_checkpointing"),
    options(
        "strata",
        "reduction virtual_ranks sequence_length steps epochs seed shuffle no_decay "
        "state_recipe recompute_norms device device_graphs tf32 autotune calibrate threads "
        "tile_elements "
        "offload_activations offload_gradients nvme_paths device_memory host_memory update_time "
        "layer_major checksum_swap"),
};

}  // namespace strata::train::foreign_keys
