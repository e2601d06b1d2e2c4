#include "train/config/flag_table.h"

#include <algorithm>
#include <array>

#include "train/config/foreign_flags.h"

namespace strata::train {
namespace {

constexpr FlagRow value(std::string_view spellings, std::string_view option,
                        std::string_view value_name) {
  return {spellings, FlagUse::option, option, 1, 1, value_name};
}
/// A switch that also takes true or false, as Hugging Face's scripts pass it.
constexpr FlagRow on_off(std::string_view spellings, std::string_view option) {
  return {spellings, FlagUse::option, option, 0, 1, "[BOOL]"};
}
constexpr FlagRow fixed(std::string_view spellings, std::string_view option, std::string_view word,
                        std::string_view help) {
  return {spellings, FlagUse::fixed, option, 0, 1, "[BOOL]", word, help};
}
constexpr FlagRow control(std::string_view spellings, int words, std::string_view value_name,
                          std::string_view help) {
  return {spellings, FlagUse::control, "", words, words, value_name, "", help};
}
constexpr FlagRow ignored(std::string_view spellings, int least_words, std::string_view why) {
  return {spellings, FlagUse::ignored, "", least_words, 1, "", why};
}
constexpr FlagRow refused(std::string_view spellings, std::string_view instead) {
  return {spellings, FlagUse::refused, "", 0, kAnyNumber, "", instead};
}

constexpr std::array kFlags = {
    FlagRow{"--config,--deepspeed_config,--deepspeed-config,--deepspeed", FlagUse::control, "", 0,
            1, "FILE", "", "DeepSpeed JSON, or its base64"},
    value("--model,--model_name_or_path,--model-name-or-path", "model", "DIR|PRESET"),
    FlagRow{"--data,--train_file,--train-file", FlagUse::option, "data", 1, kAnyNumber, "FILE..."},
    value("--eval-data,--validation_file,--validation-file,--eval_file", "eval_data", "FILE"),
    on_off("--data-is-text", "data_is_text"),
    value("--tokenizer,--tokenizer_name,--tokenizer-name", "tokenizer", "DIR|FILE|bytes"),
    value("--token-cache,--data_cache_path", "token_cache", "DIR"),
    value("--eval-every,--eval_steps,--eval-steps,--eval_interval", "eval_every_steps", "N|X"),
    value("--eval-strategy,--evaluation_strategy", "eval_strategy", "no|steps|epoch"),
    value("--eval-samples,--max_eval_samples", "eval_samples", "N"),
    value("--sequence-length,--block_size,--max_seq_length,--max_length,"
          "--model_max_length,--max_seq_len,--cutoff_len,--seq_length,--sequence_len",
          "sequence_length", "N"),
    value("--micro-batch,--per_device_train_batch_size,--per-device-train-batch-size,"
          "--train_micro_batch_size_per_gpu,--micro_batch_size,--micro_batch_size_per_gpu,"
          "--per_gpu_train_batch_size",
          "micro_batch", "N"),
    value("--accumulation,--gradient_accumulation_steps,--gradient-accumulation-steps,--grad_accum",
          "accumulation", "N"),
    value("--virtual-ranks,--virtual_ranks", "virtual_ranks", "V"),
    value("--global-batch,--train_batch_size,--train-batch-size,--global_batch_size",
          "global_batch", "N"),
    value("--steps,--max_steps,--max-steps,--train_iters,--max_train_steps", "steps", "N"),
    value("--epochs,--num_train_epochs,--num_epochs", "epochs", "X"),
    value("--seed", "seed", "N"),
    on_off("--shuffle", "shuffle"),
    value("--dtype,--torch_dtype,--model_dtype", "dtype", "fp32|bf16|fp16|auto"),
    fixed("--bf16", "dtype", "bf16", "the same as --dtype bf16"),
    fixed("--fp16", "dtype", "fp16", "the same as --dtype fp16"),
    value("--loss-scale", "loss_scale.fixed_scale", "X"),
    control("--initial-loss-scale", 1, "X", "fp16: first dynamic scale, a power of two"),
    value("--loss-scale-window", "loss_scale.window_steps", "N"),
    value("--hysteresis", "loss_scale.hysteresis", "N"),
    value("--min-loss-scale", "loss_scale.minimum", "X"),
    value("--communication-dtype,--communication_data_type", "communication_dtype",
          "fp32|bf16|fp16"),
    value("--reduction", "reduction", "ordered|native"),
    value("--state-recipe", "state_recipe", "RECIPE"),
    value("--zero,--zero_stage,--zero-stage", "zero.stage", "0|1|2|3"),
    value("--prefetch", "zero.prefetch_bucket_elements", "N"),
    value("--max-live-parameters", "zero.max_live_parameters_elements", "N"),
    value("--param-persistence-threshold", "zero.param_persistence_threshold_elements", "N"),
    value("--reduce-bucket", "zero.reduce_bucket_elements", "N"),
    on_off("--overlap-comm,--overlap_comm", "zero.overlap_comm"),
    value("--offload-optimizer,--offload_optimizer,--offload-optimizer-device,"
          "--offload_optimizer_device",
          "offload.optimizer", "none|cpu|nvme"),
    value("--offload-param,--offload_param,--offload-parameters,--offload_param_device",
          "offload.parameters", "none|cpu|nvme"),
    fixed("--offload", "offload.optimizer+offload.parameters", "cpu",
          "the same as --offload-optimizer cpu --offload-param cpu"),
    fixed("--cpu-optimizer,--optimizer-cpu-offload", "offload.optimizer", "cpu",
          "the same as --offload-optimizer cpu"),
    value("--offload-activations,--offload_activations", "offload.activations", "none|cpu|nvme"),
    value("--offload-ratio,--offload_ratio", "offload.optimizer_ratio", "X"),
    FlagRow{"--nvme-path,--nvme_path,--offload_optimizer_nvme_path,--offload_param_nvme_path",
            FlagUse::option, "offload.nvme_paths", 1, kAnyNumber, "DIR,...", "", "", true},
    value("--device-memory,--device_memory", "offload.device_memory_bytes", "SIZE"),
    value("--host-memory,--host_memory", "offload.host_memory_bytes", "SIZE"),
    value("--update-time,--update_time", "offload.updates",
          "automatic|step_end|next_step|gradient"),
    on_off("--layer-major,--layer_major", "offload.layer_major"),
    on_off("--checksum-swap,--checksum_swap", "offload.checksums"),
    value("--optimizer,--optim", "optimizer.type", "TYPE"),
    value("--learning-rate,--learning_rate,--lr", "optimizer.learning_rate", "X"),
    FlagRow{"--betas", FlagUse::option, "optimizer.beta1+optimizer.beta2", 2, 2, "X X", "",
            "decay of the two moments"},
    value("--adam_beta1,--adam-beta1", "optimizer.beta1", "X"),
    value("--adam_beta2,--adam-beta2", "optimizer.beta2", "X"),
    value("--epsilon,--adam_epsilon,--adam-epsilon", "optimizer.epsilon", "X"),
    value("--weight-decay,--weight_decay", "optimizer.weight_decay", "X"),
    value("--momentum", "optimizer.momentum", "X"),
    value("--no-decay", "no_decay", "none|default"),
    value("--gradient-clipping,--gradient_clipping,--max_grad_norm,--max-grad-norm,--clip_grad",
          "gradient_clipping", "X"),
    value("--scheduler,--lr_scheduler_type,--lr-scheduler-type,--lr_decay_style,--lr_scheduler",
          "scheduler.type", "TYPE"),
    value("--warmup-steps,--warmup_steps,--num_warmup_steps,--lr_warmup_iters,--lr_warmup_steps",
          "scheduler.warmup_num_steps", "N"),
    value("--warmup-ratio,--lr_warmup_fraction", "scheduler.warmup_ratio", "X"),
    value("--schedule-steps,--lr_decay_iters", "scheduler.total_num_steps", "N"),
    value("--min-lr,--min_lr", "scheduler.min_lr", "X"),
    control(
        "--lr_scheduler_kwargs,--lr-scheduler-kwargs", 1, "JSON",
        "what a schedule of transformers needs besides: min_lr, min_lr_rate, num_decay_steps ..."),
    on_off("--activation-checkpointing,--gradient_checkpointing,--gradient-checkpointing,"
           "--recompute_activations,--checkpoint_activations",
           "activation_checkpointing"),
    on_off("--recompute-norms", "recompute_norms"),
    value("--checkpoint-segments", "checkpoint_segments", "N"),
    value("--device", "device", "auto|cpu|cuda"),
    fixed("--use_cpu,--no_cuda", "device", "cpu", "the same as --device cpu"),
    FlagRow{"--fsdp", FlagUse::control, "", 0, kAnyNumber, "WORDS", "",
            "full_shard: --zero 3, shard_grad_op: --zero 2, no_shard: --zero 0; offload: to host "
            "memory"},
    on_off("--autotune", "autotune"),
    value("--plan", "plan", "FILE"),
    value("--choices", "choices", "FILE"),
    on_off("--check-device", "check_device"),
    on_off("--device-graphs", "device_graphs"),
    on_off("--tf32", "tf32"),
    value("--threads", "threads", "N"),
    value("--tile-elements", "tile_elements", "N"),
    value("--output,--output_dir,--output-dir,--save", "output", "DIR"),
    value("--save-every,--save_steps,--save-steps,--save_interval,--checkpointing_steps",
          "checkpoint.every", "N|X|TIME"),
    value("--save-strategy", "checkpoint.strategy", "no|steps|epoch"),
    value("--keep,--save_total_limit,--save-total-limit", "checkpoint.keep", "N"),
    value("--keep-every", "checkpoint.keep_every", "N"),
    value("--on-save-error", "checkpoint.on_error", "continue|stop"),
    value("--save-retry", "checkpoint.retry_seconds", "SECONDS"),
    value("--on-nonfinite", "on_nonfinite", "auto|stop|skip"),
    value("--nonfinite-steps", "nonfinite_steps", "N"),
    on_off("--save-on-signal,--save_on_signal", "checkpoint.on_signal"),
    value("--grace", "checkpoint.grace_seconds", "SECONDS"),
    on_off("--async-save", "checkpoint.asynchronous"),
    value("--resume,--resume_from_checkpoint,--resume-from-checkpoint", "checkpoint.resume",
          "auto|required|never|DIR"),
    on_off("--resume-with-changed-data", "checkpoint.changed_data"),
    on_off("--overwrite-output-dir,--overwrite_output_dir", "checkpoint.overwrite"),
    value("--metrics,--log-json", "metrics", "FILE"),
    value("--trace", "trace", "FILE"),
    value("--trace-steps", "trace_steps", "A:B"),
    value("--profile", "profile", "FILE"),
    value("--dump-state", "dump_state", "FILE"),
    value("--steps-per-print,--logging_steps,--logging-steps,--log_interval", "steps_per_print",
          "N|X"),
    value("--logging-strategy", "logging_strategy", "no|steps|epoch"),
    value("--log-every", "log_every_seconds", "SECONDS"),
    on_off("--print-plan", "print_plan"),
    on_off("--print-program", "print_program"),
    on_off("--print-config", "print_config"),
    control("--check-config", 1, "FILE", "check a DeepSpeed JSON, print it resolved, and stop"),
    control("--world-size", 1, "N",
            "with --check-config or --print-plan --steps 0: ranks to assume"),
    control("--hardware", 1, "NAME|FILE",
            "with --print-plan --steps 0: the machine to plan for (configs/hardware, or a file of "
            "doctor --write-hardware)"),
    control("--strict-config", 0, "", "unknown keys are errors"),
    control("--help,-h", 0, "", "print this text"),
    ignored("--local_rank", 1, "ranks come from the launcher"),
    foreign::noted("--save_safetensors,--no_save_safetensors", "weights are always safetensors",
                   ""),
    foreign::noted("--report_to,--with_tracking", foreign::kMetrics, foreign::kOff, kAnyNumber),
    ignored("--ddp_timeout", 1, "there is nothing to set"),
    ignored("--dataloader_num_workers", 1, "there are no loader processes"),
    refused("--target-memory",
            "the planner is not available yet; --device-memory sets a limit, --offload-optimizer, "
            "--offload-param and --offload-activations move state"),
};

constexpr std::array kGroups = {
    FlagGroup{"--config", "Configuration file"},
    FlagGroup{"--model", "Model and data"},
    FlagGroup{"--sequence-length", "Batch and steps"},
    FlagGroup{"--dtype", "Precision and sums over ranks"},
    FlagGroup{"--zero", "ZeRO"},
    FlagGroup{"--offload-optimizer", "Memory outside the device, and limits"},
    FlagGroup{"--optimizer", "Optimizer and learning rate"},
    FlagGroup{"--activation-checkpointing", "Activations computed again"},
    FlagGroup{"--device", "Device"},
    FlagGroup{"--output", "Checkpoints"},
    FlagGroup{"--metrics", "What is shown and recorded"},
    FlagGroup{"--check-config", "Without training"},
};

/// What sets something here, and what does not.
constexpr auto kAll = [] {
  std::array<FlagRow, kFlags.size() + foreign::kForeignFlags.size()> rows;
  std::ranges::copy(foreign::kForeignFlags, std::ranges::copy(kFlags, rows.begin()).out);
  return rows;
}();

/// The same with every '-' or '_' inside being `joint`.
std::string joined_by(char joint, std::string_view spelling) {
  std::string result(spelling);
  for (std::size_t i = result.find_first_not_of('-'); i < result.size(); ++i)
    if (result[i] == '-' || result[i] == '_') result[i] = joint;
  return result;
}

}  // namespace

std::span<const FlagRow> flag_table() { return kAll; }
std::span<const FlagGroup> flag_groups() { return kGroups; }

std::string flag_of(std::string_view option) {
  for (const FlagRow& row : flag_table()) {
    if (row.use != FlagUse::option || row.target != option) continue;
    return std::string(row.spellings.substr(0, row.spellings.find(','))) + " " +
           std::string(row.value_name);
  }
  return "a value";
}

std::vector<std::string> spellings_of(const FlagRow& row) {
  std::vector<std::string> spellings;
  std::string_view rest = row.spellings;
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    const std::string_view spelling = rest.substr(0, comma);
    for (const std::string& word :
         {std::string(spelling), joined_by('-', spelling), joined_by('_', spelling)})
      if (std::ranges::find(spellings, word) == spellings.end()) spellings.push_back(word);
    rest = comma == std::string_view::npos ? "" : rest.substr(comma + 1);
  }
  return spellings;
}

}  // namespace strata::train
