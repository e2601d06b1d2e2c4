#include "train/config/option_fields.h"

#include "kernels/add_loss.h"

namespace strata::train {
namespace {

constexpr double kMostSteps = 1e15;
constexpr double kMostElements = 9.3e18;
constexpr double kMostBytes = 1e19;
constexpr double kMostSequences = 1 << 24;
constexpr double kMostRate = 1e6;
constexpr double kMostVirtualRanks = kernels::kMaxLossLeaves;

void add_job_fields(TrainOptions& o, std::vector<OptionField>& fields) {
  fields.insert(
      fields.end(),
      {{"model", "Hugging Face directory, config.json or preset", &o.model},
       {"data", "training text or token files; none, for models without weights: the bundled text",
        &o.data},
       {"eval_data", "held-out data", &o.eval_data},
       {"data_is_text",
        "data files are plain text, whatever their names (.json, .csv ...) and first characters "
        "say",
        &o.data_is_text},
       {"tokenizer",
        "directory or tokenizer.json for text; bytes: each byte is a token; default: the model's",
        &o.tokenizer},
       {"token_cache", "folder for text as tokens; default: ~/.cache/strata/tokens",
        &o.token_cache},
       {"eval_every_steps",
        "steps between evaluations, or part of all steps (0.1); 0: at the end only",
        &o.eval_every_steps, 0, kMostSteps, NumberKind::whole, &o.eval_part},
       {"eval_strategy", "when to evaluate, as in transformers: no (at the end only), steps, epoch",
        &o.eval_strategy},
       {"eval_samples",
        "most held-out sequences per evaluation, in whole micro-batches of all ranks; 0: all",
        &o.eval_samples, 0, kMostSteps},
       {"sequence_length", "tokens per sequence; 0: the model's context, at most 1024",
        &o.sequence_length, 0, 1 << 24},
       {"micro_batch", "sequences per rank (or virtual rank) and micro-step", &o.micro_batch, 1,
        kMostSequences},
       {"accumulation", "micro-steps per step", &o.accumulation, 1, kMostSequences},
       {"virtual_ranks",
        "elastic sameness: a power of two up to 512; every number of ranks that divides it gives "
        "the "
        "bits of that many, each rank computing the micro-batches of several one after another; 0: "
        "as many as there are ranks",
        &o.virtual_ranks, 0, kMostVirtualRanks},
       {"global_batch", "sequences per step over all ranks", &o.global_batch, 1, 1e12},
       {"steps", "optimizer steps; -1: as many as the epochs are", &o.steps, -1, kMostSteps},
       {"epochs", "passes over the data, 0.5 and 3 alike; 0: steps says how long to train",
        &o.epochs, 0, 1e9},
       {"seed", "of initial weights, data order and dropout", &o.seed, 0, 9.2e18},
       {"shuffle", "false: samples in the order of the file", &o.shuffle},
       {"dtype", "parameters, activations, produced gradients: fp32, bf16, fp16", &o.dtype},
       {"communication_dtype", "gradients on the wire; default: dtype", &o.communication_dtype},
       {"accumulation_dtype", "gradients added over micro-steps: fp32, or dtype",
        &o.accumulation_dtype},
       {"reduction",
        "of gradients over ranks; ordered: the same bits at every stage and backend; native: "
        "NCCL's "
        "own sums, other bits",
        &o.reduction},
       {"state_recipe",
        "what the optimizer keeps of 16-bit parameters (bytes per element with AdamW, parameter "
        "included); fp32-master: fp32 copy and moments (14); packed-master: the same numbers, the "
        "copy's upper half is the bf16 parameter (12); bf16-moments: fp32 copy, moments rounded "
        "stochastically (10); packed-bf16-moments: both (8); 8bit: fp32 copy, moments of 8 bits in "
        "blocks of 128, lossy, AdamW and Adam (8.06); bf16-sr: bf16 moments, no copy, all rounded "
        "stochastically (6)",
        &o.state_recipe}});
}

void add_zero_fields(ZeroOptions& o, std::vector<OptionField>& fields) {
  const auto count = [&](std::string_view name, std::string_view meaning, std::int64_t& field,
                         double lowest = 0) {
    fields.push_back({name, meaning, &field, lowest, kMostElements, NumberKind::count});
  };
  fields.push_back({"zero.stage",
                    "0: nothing is sharded, 1: optimizer state, 2: and gradients, "
                    "3: and parameters",
                    &o.stage, 0, 3});
  count("zero.reduce_bucket_elements", "gradient elements per reduction", o.reduce_bucket_elements);
  count("zero.allgather_bucket_elements", "parameter elements per gather at stages 1 and 2",
        o.allgather_bucket_elements, 1);
  count("zero.sub_group_elements", "most elements per optimizer slice, 0: no limit",
        o.sub_group_elements);
  count("zero.prefetch_bucket_elements", "elements gathered ahead at stage 3, 0: none",
        o.prefetch_bucket_elements);
  count("zero.param_persistence_threshold_elements",
        "parameters up to this size stay gathered at stage 3",
        o.param_persistence_threshold_elements);
  count("zero.model_persistence_threshold_elements", "cap on all parameters that stay gathered",
        o.model_persistence_threshold_elements);
  count("zero.max_live_parameters_elements", "cap on gathered elements at a time",
        o.max_live_parameters_elements);
  count("zero.max_reuse_distance_elements",
        "keep a parameter that is needed again within this many elements",
        o.max_reuse_distance_elements);
  fields.push_back({"zero.overlap_comm", "reductions run during backward", &o.overlap_comm});
}

void add_offload_fields(OffloadOptions& o, std::vector<OptionField>& fields) {
  fields.insert(
      fields.end(),
      {{"offload.optimizer",
        "where master copies and moments live: none (on the device), cpu (in host memory), nvme",
        &o.optimizer},
       {"offload.parameters", "where parameters live that compute reads: none, cpu, nvme",
        &o.parameters},
       {"offload.activations",
        "where activations wait for the backward pass; with recomputation the inputs of blocks: "
        "none, cpu, nvme",
        &o.activations},
       {"offload.optimizer_ratio", "share of the optimizer's elements that leaves the device",
        &o.optimizer_ratio, 0, 1},
       {"offload.parameter_host_elements",
        "with parameters on nvme: elements per rank that stay in host memory",
        &o.parameter_host_elements, 0, kMostElements, NumberKind::count},
       {"offload.updates",
        "when updates of offloaded state run: step_end, next_step (hidden behind the next forward "
        "pass) or automatic, which is next_step; or gradient, offloaded or not: each behind its "
        "own "
        "gradient, without clipping, loss scale and skipped steps, so that a gradient that is not "
        "finite ends the run; the numbers are the same",
        &o.updates},
       {"offload.layer_major",
        "all micro-batches of a step through a layer before the next layer, so that its parameters "
        "come once per step; gradients are reduced once per step, too, as at stages 0 and 1",
        &o.layer_major},
       {"offload.nvme_paths", "folders, one per drive: data is striped over them", &o.nvme_paths},
       {"offload.device_memory_bytes", "hard limit per rank: 24GB, 16GiB, plain bytes",
        &o.device_memory_bytes, 1, kMostBytes, NumberKind::bytes},
       {"offload.host_memory_bytes",
        "hard limit per machine: pinned, pageable and shared memory of all ranks on it"
        "; on the CPU arenas, too, unless `offload.device_memory_bytes` limits those",
        &o.host_memory_bytes, 1, kMostBytes, NumberKind::bytes},
       {"offload.request_bytes", "of one request to a drive, 0: measured at start",
        &o.request_bytes, 0, 1 << 30, NumberKind::bytes},
       {"offload.queue_depth", "requests under way on each drive, 0: measured at start",
        &o.queue_depth, 0, 4096},
       {"offload.checksums", "find swapped bytes that come back other than they were written",
        &o.checksums}});
}

void add_optimizer_fields(TrainOptions& o, std::vector<OptionField>& fields) {
  OptimizerOptions& p = o.optimizer;
  fields.insert(
      fields.end(),
      {{"optimizer.type",
        "adamw, adam (decay added to the gradient), lion or sgd; adamw_8bit: adamw with "
        "state_recipe 8bit",
        &p.type},
       {"optimizer.learning_rate", "peak, unless the scheduler names its own", &p.learning_rate, 0,
        kMostRate},
       {"optimizer.beta1", "decay of the first moment", &p.beta1, 0, 0.9999999999999999},
       {"optimizer.beta2",
        "decay of the second moment; lion, decay of its moment: 0.99 by default, in a JSON 0.999 "
        "as in DeepSpeed",
        &p.beta2, 0, 0.9999999999999999},
       {"optimizer.epsilon", "added to the root of the second moment", &p.epsilon, 0, 1},
       {"optimizer.weight_decay", "per unit of learning rate", &p.weight_decay, 0, 1e3},
       {"optimizer.bias_correction", "divide the moments by 1 - beta^t", &p.bias_correction},
       {"optimizer.momentum", "SGD", &p.momentum, 0, 0.9999999999999999},
       {"optimizer.dampening", "SGD", &p.dampening, 0, 1},
       {"optimizer.nesterov", "SGD; needs momentum and no dampening", &p.nesterov},
       {"no_decay", "default: no weight decay on norms and biases; none: decay on all",
        &o.no_decay},
       {"gradient_clipping", "largest global L2 norm, 0: no clipping", &o.gradient_clipping, 0,
        1e30}});
}

void add_scheduler_fields(SchedulerOptions& o, std::vector<OptionField>& fields) {
  fields.insert(
      fields.end(),
      {{"scheduler.type",
        "constant, linear, cosine, cosine_with_min_lr, cosine_warmup_with_min_lr, "
        "cosine_with_restarts, polynomial, inverse_sqrt, warmup_stable_decay (transformers), "
        "WarmupLR, WarmupDecayLR, WarmupCosineLR, OneCycle, LRRangeTest (DeepSpeed)",
        &o.type},
       {"scheduler.warmup_type", "log or linear", &o.warmup_type},
       {"scheduler.warmup_min_lr", "where the warm-up starts", &o.warmup_min_lr, 0, kMostRate},
       {"scheduler.warmup_max_lr", "where it ends", &o.warmup_max_lr, 0, kMostRate},
       {"scheduler.warmup_min_ratio", "WarmupCosineLR: start, as part of the learning rate",
        &o.warmup_min_ratio, 0, 1},
       {"scheduler.cos_min_ratio", "WarmupCosineLR: end, as part of the learning rate",
        &o.cos_min_ratio, 0, 1},
       {"scheduler.warmup_num_steps", "steps of warm-up", &o.warmup_num_steps, 0, kMostSteps},
       {"scheduler.warmup_ratio", "warm-up as part of all steps, rounded up; 0: warmup_num_steps",
        &o.warmup_ratio, 0, 1},
       {"scheduler.total_num_steps", "steps until the decay ends, warm-up included",
        &o.total_num_steps, 0, kMostSteps},
       {"scheduler.cycle_min_lr", "OneCycle", &o.cycle_min_lr, 0, kMostRate},
       {"scheduler.cycle_max_lr", "OneCycle", &o.cycle_max_lr, 0, kMostRate},
       {"scheduler.cycle_first_step_size", "OneCycle: steps up", &o.cycle_first_step_size, 1,
        kMostSteps},
       {"scheduler.cycle_second_step_size", "OneCycle: steps down", &o.cycle_second_step_size, 1,
        kMostSteps},
       {"scheduler.cycle_first_stair_count", "OneCycle", &o.cycle_first_stair_count, 0, kMostSteps},
       {"scheduler.cycle_second_stair_count", "OneCycle", &o.cycle_second_stair_count, 0,
        kMostSteps},
       {"scheduler.decay_lr_rate", "OneCycle: after the cycle", &o.decay_lr_rate, 0, kMostRate},
       {"scheduler.decay_step_size", "OneCycle: after the cycle", &o.decay_step_size, 0,
        kMostSteps},
       {"scheduler.lr_range_test_min_lr", "LRRangeTest", &o.lr_range_test_min_lr, 0, kMostRate},
       {"scheduler.lr_range_test_step_size", "LRRangeTest", &o.lr_range_test_step_size, 1,
        kMostSteps},
       {"scheduler.lr_range_test_step_rate", "LRRangeTest", &o.lr_range_test_step_rate, 0,
        kMostRate},
       {"scheduler.lr_range_test_staircase", "LRRangeTest", &o.lr_range_test_staircase},
       {"scheduler.min_lr", "where linear, the cosines and warmup_stable_decay end", &o.min_lr, 0,
        kMostRate},
       {"scheduler.min_lr_rate", "the same as part of the learning rate", &o.min_lr_rate, 0, 1},
       {"scheduler.num_cycles",
        "waves of a cosine, of cosine_with_restarts its falls; 0: 0.5, or one fall", &o.num_cycles,
        0, 1e6},
       {"scheduler.power", "polynomial: power of what is left", &o.power, 1, 16},
       {"scheduler.lr_end", "polynomial: where it ends", &o.lr_end, 0, kMostRate},
       {"scheduler.timescale", "inverse_sqrt; 0: the warm-up, or 10000", &o.timescale, 0,
        kMostSteps},
       {"scheduler.warmup_lr_rate",
        "cosine_warmup_with_min_lr: start, as part of the learning rate; 0: 1 / warm-up steps",
        &o.warmup_lr_rate, 0, 1},
       {"scheduler.num_stable_steps", "warmup_stable_decay: steps at the peak; -1: the rest",
        &o.num_stable_steps, -1, kMostSteps},
       {"scheduler.num_decay_steps", "warmup_stable_decay: steps down", &o.num_decay_steps, 0,
        kMostSteps},
       {"scheduler.warmup_shape", "warmup_stable_decay: linear, cosine, 1-sqrt", &o.warmup_shape},
       {"scheduler.decay_shape", "warmup_stable_decay: linear, cosine, 1-sqrt", &o.decay_shape}});
}

void add_precision_fields(TrainOptions& o, std::vector<OptionField>& fields) {
  LossScaleOptions& p = o.loss_scale;
  fields.insert(
      fields.end(),
      {{"loss_scale.fixed_scale", "fp16; 0: dynamic", &p.fixed_scale, 0, 1e30},
       {"loss_scale.initial_scale_power", "first dynamic scale is 2 to this power",
        &p.initial_scale_power, 0, 100},
       {"loss_scale.window_steps", "clean steps before the scale doubles", &p.window_steps, 1,
        kMostSteps},
       {"loss_scale.hysteresis", "overflows tolerated before the scale is halved, plus one",
        &p.hysteresis, 1, 1e9},
       {"loss_scale.consecutive_hysteresis", "a clean step refills that tolerance",
        &p.consecutive_hysteresis},
       {"loss_scale.minimum", "an overflow at this scale ends the run", &p.minimum, 1e-30, 1e30},
       {"bf16_check_overflow",
        "false: a bf16 step whose gradients are not finite ends the run, as in fp32",
        &o.bf16_check_overflow},
       {"on_nonfinite",
        "a step whose loss or gradient is not finite changes no parameter; stop: it ends the run, "
        "which saves its state (code 93); skip: training goes on; auto: stop in fp32, skip in 16 "
        "bits",
        &o.on_nonfinite},
       {"nonfinite_steps", "with skip: such steps in a row that end the run", &o.nonfinite_steps, 1,
        kMostSteps}});
}

void add_run_fields(TrainOptions& o, std::vector<OptionField>& fields) {
  fields.insert(
      fields.end(),
      {{"activation_checkpointing", "recompute activations in backward",
        &o.activation_checkpointing},
       {"recompute_norms",
        "recompute norms and activation functions alone: less memory for little time",
        &o.recompute_norms},
       {"checkpoint_segments", "recomputed segments of layers, 0: each layer is one",
        &o.checkpoint_segments, 0, 1 << 16},
       {"device", "auto: a GPU where there is one; cpu; cuda", &o.device},
       {"autotune", "measure the libraries' algorithms before the first step; false: their first",
        &o.autotune},
       {"plan",
        "file with the Plan to run, as --print-plan prints it: it decides what is sharded, where "
        "state lives and what is recomputed, and settings of these are not asked",
        &o.plan},
       {"choices",
        "file of algorithm choices: read where it exists, then written with those that were added; "
        "default: the model directory's, read only",
        &o.choices},
       {"check_device", "run each instruction on the CPU, too, and stop where results differ",
        &o.check_device},
       {"device_graphs", "record steps as CUDA graphs; the bits are the same", &o.device_graphs},
       {"tf32",
        "on a GPU: products of fp32 operands round them to TF32 (10 bits of fraction), several "
        "times as fast and with other bits",
        &o.tf32},
       {"threads", "per rank, 0: the host's cores divided by its ranks", &o.threads, 0, 4096},
       {"tile_elements", "unit of placement and of host optimizer work, a multiple of 1024",
        &o.tile_elements, 1024, 1LL << 40, NumberKind::count},
       {"output", "directory for the trained model", &o.output},
       {"checkpoint.every",
        "steps (500), part of all steps (0.1) or time (30min, 45s, 2h) between checkpoints, 0: at "
        "the end only",
        &o.checkpoint.every, 0, kMostSteps, NumberKind::whole, &o.checkpoint.part},
       {"checkpoint.strategy",
        "when to save, as in transformers: no (at the end only), steps, epoch",
        &o.checkpoint.strategy},
       {"checkpoint.keep", "newest checkpoints to keep, 0: all", &o.checkpoint.keep, 0, kMostSteps},
       {"checkpoint.keep_every", "keep those of every N-th step, too, 0: none",
        &o.checkpoint.keep_every, 0, kMostSteps},
       {"checkpoint.on_error", "after a checkpoint that could not be written",
        &o.checkpoint.on_error},
       {"checkpoint.retry_seconds",
        "for how long the last checkpoint of a run is tried again when it cannot be written; never "
        "with `--on-save-error stop`",
        &o.checkpoint.retry_seconds, 0, 86400},
       {"checkpoint.on_signal",
        "SIGTERM and SIGUSR1 let the run finish its step, save and end with code 75; false: they "
        "end it at once",
        &o.checkpoint.on_signal},
       {"checkpoint.grace_seconds",
        "seconds from such a signal to the commit, then the save is given up; 0: of mlaunch's "
        "--grace, where there is one",
        &o.checkpoint.grace_seconds, 0, 86400},
       {"checkpoint.asynchronous",
        "write checkpoints while training goes on, from a copy of the state in host memory, or in "
        "windows where that has no room",
        &o.checkpoint.asynchronous},
       {"checkpoint.resume",
        "never, auto (from the newest whole checkpoint of --output, if any), required, or a "
        "checkpoint's directory",
        &o.checkpoint.resume},
       {"checkpoint.changed_data", "resume although the data are not those that were saved with",
        &o.checkpoint.changed_data},
       {"checkpoint.overwrite",
        "start anew where --output has checkpoints of another run; these are removed once this run "
        "has committed its first",
        &o.checkpoint.overwrite},
       {"metrics", "JSONL file, a line per step", &o.metrics},
       {"trace", "when each instruction ran on each rank: a file for ui.perfetto.dev", &o.trace},
       {"trace_steps",
        "steps of the trace: 500:502 are three, 500 is one, all: as many as it holds",
        &o.trace_steps, 1, kMostSteps},
       {"profile",
        "file (JSON) of times by operation and shape from the third step on, beside the least that "
        "the machine needs; the largest losses are printed",
        &o.profile},
       {"dump_state", "file with a digest per persistent tensor", &o.dump_state},
       {"print_config", "print this table, then train; with --steps 0 nothing is trained",
        &o.print_config},
       {"print_plan", "print what is sharded and recomputed", &o.print_plan},
       {"print_program", "print the instructions of a step", &o.print_program},
       {"steps_per_print",
        "steps between progress lines that stay on the screen or in the log, of a flag also part "
        "of all steps (0.1); 0: --log-every alone",
        &o.steps_per_print, 0, kMostSteps, NumberKind::most, &o.print_part},
       {"log_every_seconds",
        "seconds between progress lines where the output is no terminal, besides the first and the "
        "last; 0: only these",
        &o.log_every_seconds, 0, 86400},
       {"logging_strategy", "when to print, as in transformers: no, steps, epoch",
        &o.logging_strategy},
       {"wall_clock_breakdown",
        "print what a step spends on forward, backward and update and on what runs beside them: "
        "after every steps_per_print steps, 0: ten times a run",
        &o.wall_clock_breakdown}});
}

}  // namespace

std::vector<OptionField> option_fields(TrainOptions& options) {
  std::vector<OptionField> fields;
  add_job_fields(options, fields);
  add_zero_fields(options.zero, fields);
  add_offload_fields(options.offload, fields);
  add_optimizer_fields(options, fields);
  add_scheduler_fields(options.scheduler, fields);
  add_precision_fields(options, fields);
  add_run_fields(options, fields);
  return fields;
}

const OptionField* find_field(const std::vector<OptionField>& fields, std::string_view name) {
  for (const OptionField& field : fields) {
    if (field.name == name) return &field;
  }
  return nullptr;
}

}  // namespace strata::train
