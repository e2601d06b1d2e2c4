// Options of model, data, batch, precision, and where state lives: ZeRO and offload.
#include "kernels/ops/add_loss.h"
#include "train/config/option_rows.h"

namespace strata::train {
namespace {

constexpr double kMostElements = 9.3e18;
constexpr Range kSequences{1, 1 << 24};
constexpr Range kElements{0, kMostElements, NumberKind::count};
constexpr Range kBytes{1, 1e19, NumberKind::bytes};

constexpr Choice kDTypes[] = {
    {DType::f32, "fp32"},    {DType::bf16, "bf16"}, {DType::f16, "fp16"},
    {DType::f32, "float32"}, {DType::f32, "float"}, {DType::bf16, "bfloat16"},
    {DType::f16, "float16"}, {DType::f16, "half"},
};

constexpr Choice kRecipes[] = {
    {StateRecipe::fp32_master, "fp32-master"},
    {StateRecipe::packed_master, "packed-master"},
    {StateRecipe::bf16_moments, "bf16-moments"},
    {StateRecipe::packed_bf16_moments, "packed-bf16-moments"},
    {StateRecipe::eight_bit, "8bit"},
    {StateRecipe::bf16_sr, "bf16-sr"},
};

constexpr Choice kReductions[] = {{comm::Reduction::ordered, "ordered"},
                                  {comm::Reduction::native, "native"}};

constexpr Choice kHomes[] = {
    {plan::Home::device, "none"}, {plan::Home::host, "cpu"}, {plan::Home::disk, "nvme"}};

constexpr Choice kStrategies[] = {{plan::Strategy::balanced, "balanced"},
                                  {plan::Strategy::conservative, "conservative"},
                                  {plan::Strategy::aggressive, "aggressive"},
                                  {plan::Strategy::maximum, "maximum"},
                                  {plan::Strategy::balanced, "auto"}};

constexpr Choice kFarthest[] = {{plan::Home::device, "none"},
                                {plan::Home::host, "host"},
                                {plan::Home::disk, "disk"},
                                {plan::Home::host, "cpu"},
                                {plan::Home::disk, "nvme"}};

constexpr Choice kUpdateTimes[] = {{UpdateTime::automatic, "automatic"},
                                   {UpdateTime::step_end, "step_end"},
                                   {UpdateTime::next_step, "next_step"},
                                   {UpdateTime::gradient, "gradient"}};

constexpr OptionRow kModelRows[] = {
    {FIELD(model), Spelling{"--model,--model_name_or_path,--model-name-or-path", "DIR|PRESET"},
     "Hugging Face directory, config.json or preset"},
    {FIELD(data), Spelling{"--data,--train_file,--train-file", "FILE..."},
     "training text or token files; none, for models without weights: the bundled text"},
    {FIELD(eval_data),
     Spelling{"--eval-data,--validation_file,--validation-file,--eval_file", "FILE"},
     "held-out data"},
    {FIELD(data_is_text), Spelling{"--data-is-text"},
     "data files are plain text, though their names (.json, .csv ...) or texts look like records; "
     "compressed and binary formats stay refused"},
    {FIELD(tokenizer), Spelling{"--tokenizer,--tokenizer_name,--tokenizer-name", "DIR|FILE|bytes"},
     "directory or tokenizer.json for text; bytes: each byte is a token; default: the model's"},
    {FIELD(token_cache), Spelling{"--token-cache,--data_cache_path", "DIR"},
     "folder for text as tokens; default: ~/.cache/strata/tokens"},
    {FIELD(eval_every_steps), Range{0, kMostSteps, NumberKind::whole, PLACE(eval_part)},
     Spelling{"--eval-every,--eval_steps,--eval-steps,--eval_interval"}, Key{"strata.eval_every"},
     "steps between evaluations, or part of all steps (0.1); 0: at the end only"},
    {FIELD(eval_strategy), kCadences, Spelling{"--eval-strategy,--evaluation_strategy"},
     "when to evaluate, as in transformers: no (at the end only), steps, epoch"},
    {FIELD(eval_samples), kSteps, Spelling{"--eval-samples,--max_eval_samples"},
     Key{"strata.eval_samples"},
     "most held-out sequences per evaluation, in whole micro-batches of all ranks; 0: all"},
    {FIELD(sequence_length), Range{0, 1 << 24},
     Spelling{"--sequence-length,--block_size,--max_seq_length,--max_length,--model_max_length,"
              "--max_seq_len,--cutoff_len,--seq_length,--sequence_len"},
     Key{"strata.sequence_length"}, "tokens per sequence; 0: the model's context, at most 1024"},
    {FIELD(micro_batch), kSequences,
     Spelling{"--micro-batch,--per_device_train_batch_size,--per-device-train-batch-size,"
              "--train_micro_batch_size_per_gpu,--micro_batch_size,--micro_batch_size_per_gpu,"
              "--per_gpu_train_batch_size"},
     Key{"train_micro_batch_size_per_gpu"}, "sequences per rank (or virtual rank) and micro-step"},
    {FIELD(accumulation), kSequences,
     Spelling{"--accumulation,--gradient_accumulation_steps,--gradient-accumulation-steps,"
              "--grad_accum"},
     Key{"gradient_accumulation_steps", "1"}, "micro-steps per step"},
    {FIELD(virtual_ranks), Range{0, kernels::kMaxLossLeaves},
     Spelling{"--virtual-ranks,--virtual_ranks", "V"}, Key{"strata.virtual_ranks"},
     Decides{"virtual_ranks"},
     "elastic sameness: a power of two up to 512; every number of ranks that divides it gives the "
     "bits of that many, each rank computing the micro-batches of several one after another; 0: as "
     "many as there are ranks"},
    {FIELD(global_batch), Range{1, 1e12},
     Spelling{"--global-batch,--train_batch_size,--train-batch-size,--global_batch_size"},
     Key{"train_batch_size"}, "sequences per step over all ranks"},
    {FIELD(steps), Range{-1, kMostSteps},
     Spelling{"--steps,--max_steps,--max-steps,--train_iters,--max_train_steps"},
     Key{"strata.steps"}, "optimizer steps; -1: as many as the epochs are"},
    {FIELD(epochs), Range{0, 1e9}, Spelling{"--epochs,--num_train_epochs,--num_epochs"},
     Key{"strata.epochs"},
     "passes over the data, 0.5 and 3 alike; 0: steps says how long to train"},
    {FIELD(seed), Range{0, 9.2e18}, Spelling{"--seed"}, Key{"strata.seed"},
     "of initial weights, data order and dropout"},
    {FIELD(shuffle), Spelling{"--shuffle"}, Key{"strata.shuffle"},
     "false: samples in the order of the file"},
    {FIELD(dtype), kDTypes, Spelling{"--dtype,--torch_dtype,--model_dtype", "fp32|bf16|fp16|auto"},
     "parameters, activations, produced gradients: fp32, bf16, fp16"},
    {FIELD(loss_scale.fixed_scale), Range{0, 1e30}, Spelling{"--loss-scale"},
     Key{"fp16.loss_scale", "0"}, "fp16; 0: dynamic"},
    {FIELD(loss_scale.initial_scale_power), Range{0, 100}, Key{"fp16.initial_scale_power", "16"},
     "first dynamic scale is 2 to this power"},
    {FIELD(loss_scale.window_steps), kSomeSteps, Spelling{"--loss-scale-window"},
     Key{"fp16.loss_scale_window", "1000"}, "clean steps before the scale doubles"},
    {FIELD(loss_scale.hysteresis), Range{1, 1e9}, Spelling{"--hysteresis"},
     Key{"fp16.hysteresis", "2"}, "overflows tolerated before the scale is halved, plus one"},
    {FIELD(loss_scale.consecutive_hysteresis), Key{"fp16.consecutive_hysteresis", "false"},
     "a clean step refills that tolerance"},
    {FIELD(loss_scale.minimum), Range{1e-30, 1e30}, Spelling{"--min-loss-scale"},
     Key{"fp16.min_loss_scale", "1"}, "an overflow at this scale ends the run"},
    {FIELD(bf16_check_overflow), Key{"bf16.check_grad_overflow", "true"},
     "false: a bf16 step whose gradients are not finite ends the run, as in fp32"},
    {FIELD(communication_dtype), kDTypes,
     Spelling{"--communication-dtype,--communication_data_type"},
     Key{"communication_data_type", "the model's type"}, "gradients on the wire; default: dtype"},
    {FIELD(accumulation_dtype), kDTypes, Key{"data_types.grad_accum_dtype", "the model's type"},
     Decides{"gradient.accumulated"}, "gradients added over micro-steps: fp32, or dtype"},
    {FIELD(reduction), kReductions, Spelling{"--reduction"}, Key{"strata.reduction"},
     "of gradients over ranks; ordered: the same bits at every stage and backend; native: NCCL's "
     "own sums, other bits"},
    {FIELD(state_recipe), kRecipes, Spelling{"--state-recipe", "RECIPE"},
     Key{"strata.state_recipe"}, Decides{"recipe.optimizer.master"},
     "what the optimizer keeps of 16-bit parameters (bytes per element with AdamW, parameter "
     "included); fp32-master: fp32 copy and moments (14); packed-master: the same numbers, the "
     "copy's upper half is the bf16 parameter (12); bf16-moments: fp32 copy, moments rounded "
     "stochastically (10); packed-bf16-moments: both (8); 8bit: fp32 copy, moments of 8 bits in "
     "blocks of 128, lossy, AdamW and Adam (8.06); bf16-sr: bf16 moments, no copy, all rounded "
     "stochastically (6)"},
    {FIELD(zero.stage), Range{0, 3}, Spelling{"--zero,--zero_stage,--zero-stage", "0|1|2|3"},
     Key{"zero_optimization.stage", "0"},
     "0: nothing is sharded, 1: optimizer state, 2: and gradients, 3: and parameters"},
    {FIELD(zero.prefetch_bucket_elements), kElements, Spelling{"--prefetch"},
     Key{"zero_optimization.stage3_prefetch_bucket_size", "5e7"},
     "elements gathered ahead at stage 3, 0: none"},
    {FIELD(zero.max_live_parameters_elements), kElements, Spelling{"--max-live-parameters"},
     Key{"zero_optimization.stage3_max_live_parameters", "1e9"},
     "cap on gathered elements at a time"},
    {FIELD(zero.max_reuse_distance_elements), kElements,
     Key{"zero_optimization.stage3_max_reuse_distance", "1e9"},
     "keep a parameter that is needed again within this many elements"},
    {FIELD(zero.param_persistence_threshold_elements), kElements,
     Spelling{"--param-persistence-threshold"},
     Key{"zero_optimization.stage3_param_persistence_threshold", "1e5"},
     "parameters up to this size stay gathered at stage 3"},
    {FIELD(zero.model_persistence_threshold_elements), kElements,
     Key{"zero_optimization.stage3_model_persistence_threshold", "2^63 - 1"},
     "cap on all parameters that stay gathered"},
    {FIELD(zero.reduce_bucket_elements), kElements, Spelling{"--reduce-bucket"},
     Key{"zero_optimization.reduce_bucket_size", "5e8"}, "gradient elements per reduction"},
    {FIELD(zero.allgather_bucket_elements), Range{1, kMostElements, NumberKind::count},
     Key{"zero_optimization.allgather_bucket_size", "5e8"},
     "parameter elements per gather at stages 1 and 2"},
    {FIELD(zero.overlap_comm), Spelling{"--overlap-comm,--overlap_comm"},
     Key{"zero_optimization.overlap_comm", "true at stage 3, else false"},
     "reductions run during backward"},
    {FIELD(zero.sub_group_elements), kElements, Key{"zero_optimization.sub_group_size", "1e9"},
     "most elements per optimizer slice, 0: no limit"},
    {FIELD(offload.optimizer), kHomes,
     Spelling{"--offload-optimizer,--offload_optimizer,--offload-optimizer-device,"
              "--offload_optimizer_device"},
     Key{"zero_optimization.offload_optimizer.device", "none"},
     "where master copies and moments live: none (on the device), cpu (in host memory), nvme"},
    {FIELD(offload.parameters), kHomes,
     Spelling{"--offload-param,--offload_param,--offload-parameters,--offload_param_device"},
     Key{"zero_optimization.offload_param.device", "none"}, Decides{"tier.parameter"},
     "where parameters live that compute reads: none, cpu, nvme"},
    {FIELD(offload.activations), kHomes, Spelling{"--offload-activations,--offload_activations"},
     Key{"strata.offload_activations"},
     "where activations wait for the backward pass; with recomputation the inputs of blocks: none, "
     "cpu, nvme"},
    {FIELD(offload.optimizer_ratio), kShare, Spelling{"--offload-ratio,--offload_ratio"},
     Key{"zero_optimization.offload_optimizer.ratio", "1.0"},
     "share of the optimizer's elements that leaves the device"},
    {FIELD(offload.parameter_host_elements), kElements,
     Key{"zero_optimization.offload_param.max_in_cpu", "1e9"},
     "with parameters on nvme: elements per rank that stay in host memory"},
    {FIELD(offload.nvme_paths),
     Spelling{"--nvme-path,--nvme_path,--offload_optimizer_nvme_path,--offload_param_nvme_path",
              "DIR,...", true},
     Key{"strata.nvme_paths"}, "folders, one per drive: data is striped over them"},
    {FIELD(offload.device_memory_bytes), kBytes, Spelling{"--device-memory,--device_memory"},
     Key{"strata.device_memory"}, "hard limit per rank: 24GB, 16GiB, plain bytes"},
    {FIELD(offload.host_memory_bytes), kBytes, Spelling{"--host-memory,--host_memory"},
     Key{"strata.host_memory"},
     "hard limit per machine: pinned, pageable and shared memory of all ranks on it; on the CPU "
     "arenas, too, unless `offload.device_memory_bytes` limits those"},
    {FIELD(offload.request_bytes), Range{0, 1 << 30, NumberKind::bytes},
     Key{"aio.block_size", "1048576", JsonShape::number},
     "of one request to a drive, 0: measured at start"},
    {FIELD(offload.queue_depth), Range{0, 4096}, Key{"aio.queue_depth", "8"},
     "requests under way on each drive, 0: measured at start"},
    {FIELD(offload.updates), kUpdateTimes, Spelling{"--update-time,--update_time"},
     Key{"strata.update_time"}, Decides{"updates"},
     "when updates of offloaded state run: step_end, next_step (while the next forward pass "
     "runs) or automatic, which is next_step; or gradient, offloaded or not: each after its own "
     "gradient, without clipping, loss scale and skipped steps, so that a gradient that is not "
     "finite ends the run; the numbers are the same"},
    {FIELD(offload.layer_major), Spelling{"--layer-major,--layer_major"}, Key{"strata.layer_major"},
     "all micro-batches of a step through a layer before the next layer, so that its parameters "
     "come once per step; gradients are reduced once per step, too, as at stages 0 and 1"},
    {FIELD(offload.gradients), Spelling{"--offload-gradients,--offload_gradients"},
     Key{"strata.offload_gradients"},
     "sums of gradients wait beside the offloaded optimizer state between micro-steps, too, in "
     "place of on the device: each micro-step brings them and sends them back; one micro-step, or "
     "--layer-major, moves them once and keeps them there anyway"},
    {FIELD(offload.checksums), Spelling{"--checksum-swap,--checksum_swap"},
     Key{"strata.checksum_swap"}, "find swapped bytes that come back other than they were written"},
    {FIELD(target.memory), Spelling{"--target-memory", "SIZE|auto"},
     Key{"strata.target_memory", "", JsonShape::size},
     "memory of each GPU in all, or of each process on the CPU: settings of batch, ZeRO, "
     "checkpointing and offload that are not given are then chosen so that steps fit and are fast; "
     "auto: what is free"},
    {FIELD(target.strategy), kStrategies, Spelling{"--strategy"}, Key{"strata.strategy"},
     "with a target, or for all memory that is free: conservative (no disk, 5 % of it stay free, "
     "at most 15 % slower than without a limit), balanced or auto (the fastest), aggressive (the "
     "least memory at 40 % slower), maximum (the least memory)"},
    {FIELD(target.offload), kFarthest, Spelling{"--allow-offload"}, Key{"strata.allow_offload"},
     "with a target, how far state may go: none, host, disk (where --nvme-path is given)"},
    {FIELD(target.lossy), Spelling{"--allow-lossy", "none|RECIPE,...", true},
     Key{"strata.allow_lossy"},
     "with a target, what of `state_recipe` may be chosen although results change: bf16-moments, "
     "packed-bf16-moments, 8bit, bf16-sr"},
};

}  // namespace

std::span<const OptionRow> model_options() { return kModelRows; }

}  // namespace strata::train
