// Flags of published commands (transformers, TRL, LLaMA-Factory, FastChat, DeepSpeed's and
// Megatron's examples) that set nothing here: accepted with a note, or refused with advice. Those
// that do set something are spellings in rows of options (option_rows_*.cpp) or in flag_table.cpp.
#pragma once

#include <array>

#include "train/config/flag_table.h"

namespace strata::train::foreign {

inline constexpr std::string_view kOff = "false|no|none|0|off|";
inline constexpr std::string_view kOn = "true|yes|1|on";
inline constexpr std::string_view kOne = "1|none|";

/// A flag that is accepted with a note on why it does nothing, unless its word is one of `inert`.
constexpr FlagRow noted(std::string_view spellings, std::string_view why,
                        std::string_view inert = kOff, int most_words = 1) {
  return {spellings, FlagUse::ignored, "", 0, most_words, "", why, "", false, inert};
}
/// A flag that is refused unless its word is one of `inert`.
constexpr FlagRow refused(std::string_view spellings, std::string_view inert,
                          std::string_view instead) {
  return {spellings, FlagUse::refused, "", 0, kAnyNumber, "", instead, "", false, inert};
}

constexpr std::string_view kEvaluates = "--steps 0 with --eval-data FILE evaluates alone";
constexpr std::string_view kMetrics =
    "use --report-to tensorboard or csv with --logging-dir DIR, or --metrics FILE";
constexpr std::string_view kNothingUploaded = "nothing is uploaded: `hf upload REPO DIR` does that";
constexpr std::string_view kNoLoader = "there are no loader processes";
constexpr std::string_view kOneProgram = "a step is one program already";
constexpr std::string_view kOwnAttention = "attention never holds a whole matrix of scores anyway";
constexpr std::string_view kNoPython = "models are built here, no code of theirs is run";
constexpr std::string_view kSameMean = "the mean over the held-out text is the same";
constexpr std::string_view kMeasuresLoss = "evaluation measures the loss";
constexpr std::string_view kOneType = "evaluation runs in the type that training runs in";
constexpr std::string_view kLocal = "models and data are local files";
constexpr std::string_view kAsItIs = "text is taken as it is, with its line breaks";
constexpr std::string_view kFullWindows = "every sample is a full window, so it changes nothing";
constexpr std::string_view kNoDdp = "gradients are reduced by --zero's own rules";
constexpr std::string_view kTokenizer = "the tokenizer is that of the model's directory";
constexpr std::string_view kShape =
    "the shape is the model's: --model DIR with a config.json, or a preset";
constexpr std::string_view kAdapters =
    "adapters and quantized training are not available; every parameter is trained: leave it out";
constexpr std::string_view kConversations =
    "only running text is trained on: conversations, instructions and data sets of the hub must "
    "be turned into text files first, --data FILE...";
constexpr std::string_view kOnlyText =
    "every token of the text is a target: losses on a part of it are not available";
constexpr std::string_view kParallel = "only data parallelism is available; set 1";
constexpr std::string_view kBest = "every checkpoint stays whole; --keep N says how many";

inline constexpr std::array kForeignFlags = {
    // transformers
    refused("--do_train", kOn, kEvaluates),
    refused("--skip_train", kOff, kEvaluates),
    noted("--do_eval", "evaluation runs where --eval-data or --eval-every is given"),
    refused("--do_predict", kOff, "use generate"),
    noted("--per_device_eval_batch_size,--per_gpu_eval_batch_size", kSameMean, ""),
    noted("--eval_accumulation_steps", kSameMean, ""),
    refused("--eval_on_start", kOff, kEvaluates),
    refused("--eval_delay", kOff, "evaluations come every --eval-every steps"),
    noted("--prediction_loss_only,--eval_do_concat_batches,--no_eval_do_concat_batches,"
          "--eval_use_gather_object,--batch_eval_metrics,--predict_with_generate,"
          "--generation_config,--generation_max_length,--generation_num_beams,"
          "--use_legacy_prediction_loop",
          kMeasuresLoss),
    noted("--include_for_metrics,--include_inputs_for_metrics,--label_names", kMeasuresLoss, kOff,
          kAnyNumber),
    noted("--tensorboard_path", kMetrics, ""),
    noted("--run_name,--wandb_project,--wandb_run_id,--wandb_entity,--wandb_exp_name,"
          "--wandb_save_dir,--trackio_space_id,--trackio_bucket_id,--trackio_static_space_id,"
          "--project",
          kMetrics, ""),
    noted("--enable_tensorboard,--plot_loss,--print_loss", kMetrics),
    noted("--logging_first_step", "the first step is always printed"),
    noted("--logging_nan_inf_filter,--no_logging_nan_inf_filter,--log_level,--log_level_replica,"
          "--log_on_each_node,--no_log_on_each_node",
          "it changes nothing here", ""),
    noted("--disable_tqdm", "progress fits where it goes, terminal or file"),
    noted("--include_num_input_tokens_seen,--include_tokens_per_second", kMetrics),
    noted("--skip_memory_metrics,--no_skip_memory_metrics",
          "memory is planned and printed before the first step", ""),
    noted("--data_seed", "the order of the samples comes from --seed", ""),
    noted("--full_determinism", "the same run gives the same bits anyway"),
    noted("--dataloader_drop_last", "samples are drawn without end, no batch is short"),
    noted("--dataloader_pin_memory,--no_dataloader_pin_memory,--dataloader_persistent_workers,"
          "--dataloader_prefetch_factor,--dataloader_multiprocessing_context,"
          "--dataloader_in_order,--no_dataloader_in_order,--preprocessing_num_workers,"
          "--num_workers,--num_proc,--dataset_num_proc",
          kNoLoader, ""),
    noted("--overwrite_cache,--lazy_preprocess,--cache_dir", kLocal, ""),
    refused("--keep_linebreaks", kOn, kAsItIs),
    refused("--no_keep_linebreaks", kOff, kAsItIs),
    noted("--remove_unused_columns,--no_remove_unused_columns", "text has no columns", ""),
    noted("--group_by_length,--length_column_name,--train_sampling_strategy,--sortish_sampler",
          kFullWindows),
    noted("--average_tokens_across_devices,--no_average_tokens_across_devices", kFullWindows, ""),
    noted("--bf16_full_eval,--fp16_full_eval", kOneType),
    noted("--half_precision_backend,--fp16_backend,--fp16_opt_level", "--dtype says it all", ""),
    noted("--gradient_checkpointing_kwargs,--use_reentrant,--activation_checkpointing_kwargs",
          "recomputation has one form", ""),
    noted(
        "--torch_compile,--torch_compile_backend,--torch_compile_mode,--torchdynamo,"
        "--use_liger_kernel,--liger_kernel_config,--enable_liger_kernel,--jit_mode_eval,--use_ipex",
        kOneProgram),
    noted("--attn_implementation,--attn_impl,--use_flash_attn,--use_flash_attention_2,"
          "--use_flash_attention,--use_flash_attn_v2,--flash_attn,--use_sdpa",
          kOwnAttention, ""),
    noted("--trust_remote_code,--trust-remote-code,--low_cpu_mem_usage,--use_cache", kNoPython,
          kOff),
    noted("--use_fast_tokenizer,--no_use_fast_tokenizer,--use_slow_tokenizer", kTokenizer),
    noted("--ddp_find_unused_parameters,--ddp_backend,--ddp_bucket_cap_mb,--ddp_broadcast_buffers,"
          "--ddp_static_graph,--distributed_backend,--DDP_impl",
          kNoDdp, ""),
    noted("--fsdp_transformer_layer_cls_to_wrap,--fsdp_min_num_params",
          "every layer is a unit of its own", ""),
    noted("--accelerator_config,--split_batches,--dispatch_batches", kNoLoader, ""),
    noted("--save_on_each_node,--save_only_model,--enable_jit_checkpoint,--hub_always_push,"
          "--zero3_save_16bit_model",
          "all ranks write every checkpoint into one folder", kOff),
    noted("--metric_for_best_model,--greater_is_better", kBest, ""),
    refused("--load_best_model_at_end", kOff,
            "the last model is written; every checkpoint of --save-every is a model, too"),
    noted("--push_to_hub,--push_to_hub_model_id,--push_to_hub_organization,--push_to_hub_token,"
          "--hub_model_id,--hub_token,--hub_strategy,--hub_private_repo,"
          "--hub_revision",
          kNothingUploaded),
    noted("--token,--use_auth_token,--hf_token", kLocal, ""),
    noted("--restore_callback_states_from_checkpoint", "there are no callbacks"),
    noted("--use_mps_device,--tpu_num_cores,--tpu_metrics_debug,--xpu_backend",
          "it runs on an NVIDIA GPU or on the CPU: --device"),
    refused("--adafactor", kOff, "give --optimizer adamw, adam, lion or sgd"),
    noted("--ignore_data_skip", "resuming finds its place in the data at once", kOff),
    noted("--torch_empty_cache_steps,--past_index,--mp_parameters,--debug,--ray_scope,"
          "--return_token_type_ids",
          "it changes nothing here", ""),
    refused("--neftune_noise_alpha", kOff, "noise on embeddings is not available; leave it out"),
    refused("--label_smoothing_factor,--label_smoothing", "0|0.0", "set 0"),
    refused("--auto_find_batch_size", kOff,
            "memory is known before the first step: give --micro-batch N"),
    refused("--optim_args,--optim_target_modules", "|none",
            "give --betas, --epsilon, --weight-decay"),
    refused("--fsdp_config,--parallelism_config", "|none",
            "give --zero 1, 2 or 3; --fsdp full_shard is --zero 3"),
    refused("--sharded_ddp", "|none", "give --zero 1, 2 or 3"),
    // run_clm.py
    refused("--dataset_name,--dataset_config_name,--dataset_config,--dataset_split,"
            "--dataset_train_split,--dataset_test_split,--dataset_text_field,--dataset,"
            "--dataset_dir,--dataset_mixer,--data_path,--eval_dataset,--instruct_dataset",
            "|none", kConversations),
    refused("--validation_split_percentage", "10",
            "give --eval-data FILE; --eval-every alone holds out a tenth"),
    refused("--val_size", kOff, "give --eval-data FILE; --eval-every alone holds out a tenth"),
    refused("--max_train_samples,--max_samples", "|none", "give a shorter file, or --steps N"),
    refused("--streaming", kOff, "files are read as they are needed: leave it out"),
    refused("--tokenizer_name_or_path,--tokenizer_path,--chat_template_path,"
            "--eos_token,--pad_token,--eot_token",
            "|none", kTokenizer),
    refused("--add_eot_token", kOff, kTokenizer),
    refused("--config_name,--config_overrides,--model_type", "|none", kShape),
    refused("--model_revision", "main|none", kLocal),
    refused("--dropout,--attention_dropout,--hidden_dropout", "0|0.0", "it is config.json's"),
    refused("--disable_dropout", kOff, "it is config.json's: set it to 0 there"),
    // TRL
    noted("--packing,--eval_packing,--packing_strategy,--sample_packing,--neat_packing,"
          "--group_texts",
          "texts follow one another without padding, always", ""),
    noted("--padding_free,--pad_to_multiple_of,--padding_side,--pad_to_max_length,"
          "--num_padding_at_beginning",
          kFullWindows, ""),
    noted("--dataset_kwargs,--skip_prepare_dataset,--use_unsloth", "it changes nothing here", kOff),
    refused("--assistant_only_loss,--completion_only_loss,--train_on_inputs,--train_on_prompt,"
            "--mask_history",
            kOff, kOnlyText),
    refused("--use_peft,--use_lora,--lora_r,--lora_rank,--lora_alpha,--lora_dropout,--lora_target,"
            "--lora_target_modules,--lora_task_type,--lora_modules_to_save,--lora_bias,--lora_dim,"
            "--lora_module_name,--lora_weight_path,--lora_learning_rate,--only_optimize_lora,"
            "--use_rslora,--use_dora,--q_lora,--load_in_8bit,--load_in_4bit,--load_in_kbit,"
            "--quantization_bit,--quantization_method,--double_quant,--quant_type,--use_qlora,"
            "--bnb_4bit_quant_type,--use_bnb_nested_quant,--additional_target",
            kOff, kAdapters),
    refused("--bits", "16|32", kAdapters),
    refused("--freeze_trainable_layers,--freeze_vision_tower,--freeze_backbone", kOff, kAdapters),
    // LLaMA-Factory, FastChat, DeepSpeed's examples
    refused("--finetuning_type", "full", kAdapters),
    refused("--stage", "pt", "only language modelling on text is available; set pt"),
    refused("--template,--chat_template,--conv_template,--prompt_template", "none|default|empty|",
            kConversations),
    refused("--reward_model,--ref_model,--pref_beta,--pref_loss,--dpo_beta,--beta", "|none",
            "only language modelling on text is available"),
    noted("--ddp_timeout_minutes", "there is nothing to set", ""),
    refused("--data_split,--data_output_path,--sft_only_data_path", "|none", kConversations),
    refused("--zero_hpz_partition_size", kOne, kParallel),
    // Megatron-DeepSpeed
    refused("--tensor_model_parallel_size,--pipeline_model_parallel_size,"
            "--context_parallel_size,--expert_model_parallel_size,--ds_sequence_parallel_size,"
            "--model_parallel_size,--pipe_parallel_size,--sequence_parallel_size,--cp_size,"
            "--num_experts",
            "1|0", kParallel),
    refused("--sequence_parallel", kOff, kParallel),
    noted("--no_pipeline_parallel,--use_distributed_optimizer,--overlap_grad_reduce,"
          "--overlap_param_gather",
          "--zero says what is sharded", kOff),
    refused(
        "--num_layers,--hidden_size,--num_attention_heads,--num_key_value_heads,"
        "--ffn_hidden_size,--max_position_embeddings,--kv_channels,--group_query_attention,"
        "--num_query_groups,--swiglu,--normalization,--use_rotary_position_embeddings,"
        "--untie_embeddings_and_output_weights,--disable_bias_linear,--vocab_size,"
        "--make_vocab_size_divisible_by,--rotary_base,--position_embedding_type,--init_method_std",
        "|none", kShape),
    refused("--vocab_file,--merge_file,--tokenizer_type,--tokenizer_model", "|none", kTokenizer),
    refused("--train_data_path,--valid_data_path,--test_data_path,--data_impl,--split", "|none",
            "give text or token files: --data FILE..., --eval-data FILE"),
    refused("--load", "|none", "--resume DIR goes on from a checkpoint, --model DIR from weights"),
    refused("--no_load_optim,--no_load_rng,--finetune", kOff,
            "--model DIR takes the weights of a checkpoint alone, --resume DIR all of it"),
    noted("--no_save_optim,--no_save_rng", "a checkpoint has all that a run needs to go on"),
    noted("--override-opt_param-scheduler,--use_checkpoint_opt_param_scheduler",
          "the schedule is what the flags say"),
    refused("--train_samples,--lr_warmup_samples,--lr_decay_samples,--rampup_batch_size", "|none",
            "give steps, samples / global batch: --steps N, --warmup-steps N, --schedule-steps N"),
    refused("--train_tokens,--lr_warmup_tokens,--lr_decay_tokens", "|none",
            "give steps, tokens / (global batch x sequence length): --steps N, --warmup-steps N, "
            "--schedule-steps N"),
    noted("--eval_iters", "the whole held-out text is evaluated; --eval-samples N limits it", ""),
    noted("--exit_interval,--exit_duration_in_mins", "give --steps N", ""),
    noted("--num_accelerators,--attention_softmax_in_fp32,--no_masked_softmax_fusion,"
          "--no_bias_dropout_fusion,--no_bias_gelu_fusion,--accumulate_allreduce_grads_in_fp32,"
          "--no_query_key_layer_scaling,--no_gradient_accumulation_fusion,--use_mcore_models,"
          "--transformer_impl,--use_cpu_initialization,--no_async_tensor_model_parallel_allreduce",
          "it changes nothing here", kOff),
    noted("--recompute_granularity,--recompute_method,--recompute_num_layers,"
          "--deepspeed_activation_checkpointing",
          "--activation-checkpointing switches recomputation on", ""),
    noted("--log_timers_to_tensorboard,--log_batch_size_to_tensorboard,"
          "--log_validation_ppl_to_tensorboard,--tensorboard_dir,--tensorboard_queue_size,"
          "--tensorboard_log_interval,--log_optimizer_states_to_tensorboard",
          kMetrics, ""),
};

}  // namespace strata::train::foreign
