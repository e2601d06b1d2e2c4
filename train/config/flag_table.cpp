#include "train/config/flag_table.h"

#include <array>

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
    value("--eval-data,--validation_file,--validation-file", "eval_data", "FILE"),
    on_off("--data-is-text", "data_is_text"),
    value("--tokenizer,--tokenizer_name,--tokenizer-name", "tokenizer", "DIR|FILE|bytes"),
    value("--token-cache", "token_cache", "DIR"),
    value("--eval-every,--eval_steps,--eval-steps", "eval_every_steps", "N"),
    value("--sequence-length,--block_size,--max_seq_length,--max_length", "sequence_length", "N"),
    value("--micro-batch,--per_device_train_batch_size,--per-device-train-batch-size,"
          "--train_micro_batch_size_per_gpu",
          "micro_batch", "N"),
    value("--accumulation,--gradient_accumulation_steps,--gradient-accumulation-steps",
          "accumulation", "N"),
    value("--virtual-ranks,--virtual_ranks", "virtual_ranks", "V"),
    value("--global-batch,--train_batch_size,--train-batch-size", "global_batch", "N"),
    value("--steps,--max_steps,--max-steps", "steps", "N"),
    value("--seed", "seed", "N"),
    on_off("--shuffle", "shuffle"),
    value("--dtype", "dtype", "fp32|bf16|fp16"),
    fixed("--bf16", "dtype", "bf16", "the same as --dtype bf16"),
    fixed("--fp16", "dtype", "fp16", "the same as --dtype fp16"),
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
    value("--gradient-clipping,--gradient_clipping,--max_grad_norm,--max-grad-norm",
          "gradient_clipping", "X"),
    value("--scheduler,--lr_scheduler_type,--lr-scheduler-type", "scheduler.type", "TYPE"),
    value("--warmup-steps,--warmup_steps,--num_warmup_steps", "scheduler.warmup_num_steps", "N"),
    on_off("--activation-checkpointing,--gradient_checkpointing,--gradient-checkpointing",
           "activation_checkpointing"),
    on_off("--recompute-norms", "recompute_norms"),
    value("--checkpoint-segments", "checkpoint_segments", "N"),
    value("--device", "device", "auto|cpu|cuda"),
    on_off("--autotune", "autotune"),
    value("--choices", "choices", "FILE"),
    on_off("--check-device", "check_device"),
    on_off("--device-graphs", "device_graphs"),
    on_off("--tf32", "tf32"),
    value("--threads", "threads", "N"),
    value("--tile-elements", "tile_elements", "N"),
    value("--output,--output_dir,--output-dir", "output", "DIR"),
    value("--save-every,--save_steps,--save-steps", "checkpoint.every", "N|TIME"),
    value("--keep,--save_total_limit,--save-total-limit", "checkpoint.keep", "N"),
    value("--keep-every", "checkpoint.keep_every", "N"),
    value("--on-save-error", "checkpoint.on_error", "continue|stop"),
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
    value("--profile", "profile", "FILE"),
    value("--dump-state", "dump_state", "FILE"),
    value("--steps-per-print,--logging_steps,--logging-steps", "steps_per_print", "N"),
    on_off("--print-plan", "print_plan"),
    on_off("--print-program", "print_program"),
    on_off("--print-config", "print_config"),
    control("--check-config", 1, "FILE", "check a DeepSpeed JSON, print it resolved, and stop"),
    control("--world-size", 1, "N", "with --check-config: ranks to assume"),
    control("--strict-config", 0, "", "unknown keys are errors"),
    control("--help,-h", 0, "", "print this text"),
    ignored("--local_rank,--local-rank", 1, "ranks come from the launcher"),
    ignored("--do_train", 0, "train trains"),
    ignored("--save_strategy,--save-strategy", 1,
            "--save_steps says when; without it there is one checkpoint, at the end"),
    ignored("--save_safetensors,--save-safetensors", 1, "weights are always safetensors"),
    ignored("--report_to", 1, "use --metrics FILE"),
    ignored("--ddp_timeout", 1, "there is nothing to set"),
    ignored("--dataloader_num_workers", 1, "there are no loader processes"),
    refused("--target-memory",
            "the planner is not available yet; --device-memory sets a limit, --offload-optimizer, "
            "--offload-param and --offload-activations move state"),
    refused("--num_train_epochs,--num-train-epochs", "give --steps N"),
    refused("--warmup_ratio,--warmup-ratio", "give --warmup-steps N"),
    refused("--load_best_model_at_end", "the last model is written"),
    refused("--dataset_name", "give files with --data"),
};

}  // namespace

std::span<const FlagRow> flag_table() { return kFlags; }

}  // namespace strata::train
