// The settings of a training run, after flags, file, "auto" and defaults have been merged: one
// typed field and one default each, units in the names, in the order of --print-config. Everything
// else about an option is in its row (option_fields.h).
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "comm/reduction.h"
#include "core/byte_size.h"
#include "core/dtype.h"
#include "kernels/ops/lr_schedule.h"
#include "plan/home.h"
#include "plan/strategy.h"
#include "runtime/graph/block_actions.h"

namespace strata::train {

/// adamw: decoupled weight decay (DeepSpeed runs it for "Adam", too). adam: decay added to the
/// gradient ("adam_w_mode": false).
enum class OptimizerType : std::uint8_t { adamw, adam, lion, sgd };

enum class WarmupType : std::uint8_t { logarithmic, linear };

/// A "strategy" of transformers for evaluating, saving and logging. as_given: only the number of
/// steps given beside it counts.
enum class Cadence : std::uint8_t { as_given, never, steps, epoch };

/// The state kept for 16-bit parameters, and its form. In brackets: bytes per element with the
/// parameter, of AdamW and of Lion. fp32 parameters are their own master, without a copy.
enum class StateRecipe : std::uint8_t {
  fp32_master,          ///< fp32 copy and moments (14, 10)
  packed_master,        ///< the same numbers; the copy's upper half is the bf16 parameter (12, 8)
  bf16_moments,         ///< fp32 copy, moments rounded stochastically (10, 8)
  packed_bf16_moments,  ///< both of the above (8, 6)
  eight_bit,            ///< fp32 copy, moments of 8 bits in blocks: AdamW and Adam (8.06); lossy
  bf16_sr,              ///< bf16 moments, no copy: updates rounded stochastically (6)
};
constexpr bool is_packed(StateRecipe recipe) {
  return recipe == StateRecipe::packed_master || recipe == StateRecipe::packed_bf16_moments;
}
constexpr bool has_bf16_moments(StateRecipe recipe) {
  return recipe == StateRecipe::bf16_moments || recipe == StateRecipe::packed_bf16_moments ||
         recipe == StateRecipe::bf16_sr;
}

/// The device of the Programs. automatic: on a CUDA device if there is one.
enum class DeviceChoice : std::uint8_t { automatic, cpu, cuda };

/// The choice whether times of instructions are measured before the first step. automatic: they are
/// read from what earlier runs kept, and measured where a run takes minutes.
enum class Calibration : std::uint8_t { automatic, off, again };

/// The parameters without weight decay.
enum class NoDecay : std::uint8_t { norms_and_biases, none };

/// ZeRO's settings. Counts are elements, as in DeepSpeed; none of them changes a bit of the result.
struct ZeroOptions {
  std::int64_t stage = 0;
  std::int64_t reduce_bucket_elements = 500'000'000;
  std::int64_t allgather_bucket_elements = 500'000'000;
  std::int64_t sub_group_elements = 1'000'000'000;
  std::int64_t prefetch_bucket_elements = 50'000'000;
  std::int64_t param_persistence_threshold_elements = 100'000;
  std::int64_t model_persistence_threshold_elements = std::numeric_limits<std::int64_t>::max();
  std::int64_t max_live_parameters_elements = 1'000'000'000;
  std::int64_t max_reuse_distance_elements = 1'000'000'000;
  bool overlap_comm = true;
};

/// The time of updates (docs/adr/0009). automatic: next_step for offloaded state, else step_end.
enum class UpdateTime : std::uint8_t { automatic, step_end, next_step, gradient };

/// The homes of state. No choice changes a bit of the result.
struct OffloadOptions {
  plan::Home optimizer = plan::Home::device;    ///< master copies and moments
  plan::Home parameters = plan::Home::device;   ///< the parameters that compute reads
  plan::Home activations = plan::Home::device;  ///< saved between forward and backward pass
  double optimizer_ratio = 1;  ///< part of the optimizer's state that leaves the device, 0 to 1
  /// The number of each rank's first elements that stay in host memory if `parameters` is nvme.
  std::int64_t parameter_host_elements = 0;
  UpdateTime updates = UpdateTime::automatic;
  /// Runs all micro-batches of a layer before the next layer: each is brought once per step.
  bool layer_major = false;
  /// Keeps sums of gradients beside offloaded optimizer state between micro-steps, too.
  bool gradients = false;
  std::vector<std::string> nvme_paths;  ///< folders, one per drive; data are striped over them
  /// Hard budgets: of a rank's device arena; and of all host memory (pinned, pageable and shared)
  /// of all ranks on a machine, without the arena of a CPU that is the device.
  std::int64_t device_memory_bytes = kUnlimitedMemory;
  std::int64_t host_memory_bytes = kUnlimitedMemory;
  /// Bytes of one request to a drive, a multiple of 1 MiB, and requests under way per drive; 0: the
  /// best that a measurement at the start finds.
  std::int64_t request_bytes = 0;
  std::int64_t queue_depth = 0;
  bool checksums = true;  ///< detect offloaded bytes that change on the drive
};

struct OptimizerOptions {
  OptimizerType type = OptimizerType::adamw;
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  bool bias_correction = true;
  double momentum = 0;  ///< these three: SGD only
  double dampening = 0;
  bool nesterov = false;
};

/// The schedule, with DeepSpeed's names; `type` decides which fields count.
struct SchedulerOptions {
  kernels::ScheduleKind type = kernels::ScheduleKind::constant;
  WarmupType warmup_type = WarmupType::linear;
  double warmup_min_lr = 0;
  double warmup_max_lr = 1e-3;
  double warmup_min_ratio = 0;
  double cos_min_ratio = 1e-4;
  std::int64_t warmup_num_steps = 0;
  double warmup_ratio = 0;  ///< part of all steps; 0: warmup_num_steps counts
  std::int64_t total_num_steps = 0;
  double cycle_min_lr = 0;
  double cycle_max_lr = 0;
  std::int64_t cycle_first_step_size = 2000;
  std::int64_t cycle_second_step_size = 2000;
  std::int64_t cycle_first_stair_count = 0;
  std::int64_t cycle_second_stair_count = 0;
  double decay_lr_rate = 0;
  std::int64_t decay_step_size = 0;
  double lr_range_test_min_lr = 1e-3;
  std::int64_t lr_range_test_step_size = 2000;
  double lr_range_test_step_rate = 1;
  bool lr_range_test_staircase = false;
  double min_lr = 0;           ///< end of a decay, or the next:
  double min_lr_rate = 0;      ///< the same as part of the learning rate
  double num_cycles = 0;       ///< 0: 0.5, or 1 for cosine_with_restarts
  std::int64_t power = 1;      ///< polynomial only
  double lr_end = 1e-7;        ///< polynomial only
  std::int64_t timescale = 0;  ///< inverse_sqrt; 0: the warm-up, or 10,000
  double warmup_lr_rate = 0;   ///< cosine_warmup_with_min_lr: its start; 0: 1 / warm-up steps
  std::int64_t num_stable_steps = -1;  ///< warmup_stable_decay; -1: what the others leave
  std::int64_t num_decay_steps = 0;
  kernels::RampShape warmup_shape = kernels::RampShape::linear;
  kernels::RampShape decay_shape = kernels::RampShape::cosine;
  bool ends_with_run = false;  ///< resolved: total_num_steps follows the run's steps
};

/// fp16 only.
struct LossScaleOptions {
  double fixed_scale = 0;  ///< 0: dynamic
  std::int64_t initial_scale_power = 16;
  std::int64_t window_steps = 1000;
  std::int64_t hysteresis = 2;
  bool consecutive_hysteresis = false;
  double minimum = 1;
};

/// Steps or seconds between two saves; both 0: save at the end only.
struct SaveInterval {
  std::int64_t steps = 0;
  std::int64_t seconds = 0;
  bool operator==(const SaveInterval&) const = default;
};

/// The fate of the run after a failed save.
enum class SaveFailure : std::uint8_t { keep_training, stop };

struct CheckpointOptions {
  SaveInterval every;
  double part = 0;                       ///< interval as part of all steps; 0: `every` counts
  Cadence strategy = Cadence::as_given;  ///< epoch: `every` is one, once the data are known
  std::int64_t keep = 0;                 ///< number of newest ones to keep; 0: all
  std::int64_t keep_every = 0;           ///< multiples of this step stay, too; 0: none
  SaveFailure on_error = SaveFailure::keep_training;
  std::int64_t retry_seconds = 600;  ///< time to try the last checkpoint of a run again
  bool on_signal = true;             ///< SIGTERM and SIGUSR1 finish the step, save, end
  std::int64_t grace_seconds = 0;    ///< time from the signal to the commit; 0: the launcher's
  bool asynchronous = true;          ///< save from a snapshot, if memory allows
  /// "never", "auto" (from the newest whole one, if any), "required", or a checkpoint's folder.
  std::string resume = "never";
  bool changed_data = false;  ///< resume even if the data have changed
  bool overwrite = false;     ///< replace another run's checkpoints once this run has one
};

/// The consequence of a step whose loss or gradient is not finite: the run ends, or goes on without
/// the step's update. automatic: fp32 ends, 16-bit types go on.
enum class NonFinite : std::uint8_t { automatic, stop, skip };

/// The steps that a trace shows, counted from 1, including both ends.
struct StepRange {
  std::int64_t first = 1;
  std::int64_t last = std::numeric_limits<std::int64_t>::max();
};

/// One of DeepSpeed's sections `tensorboard` and `csv_monitor`.
struct MonitorOptions {
  bool enabled = false;
  std::string output_path;
  std::string job_name = "DeepSpeedJobName";
};

/// Memory to plan for: the planner (train/planning) then makes the settings that are not given.
struct TargetOptions {
  /// Memory of each rank's device in all, or of its process where the CPU computes: a size, or
  /// "auto" for what is free; empty: settings are as given.
  std::string memory;
  plan::Strategy strategy = plan::Strategy::balanced;
  plan::Home offload = plan::Home::disk;  ///< farthest home that state may be given
  /// Names of state recipes that may be chosen although they change results; resolved.
  std::vector<std::string> lossy;
};

/// Files for people's tools (docs/formats/logs.md).
struct LogOptions {
  std::vector<std::string> report_to;  ///< resolved: of tensorboard and csv
  std::string directory;               ///< of report_to; empty: one in `output`/runs
  MonitorOptions tensorboard;
  MonitorOptions csv;
};

struct TrainOptions {
  std::string model = "gpt2-tiny";
  std::vector<std::string> data;  ///< empty: the bundled text
  std::string eval_data;
  bool data_is_text = false;  ///< regardless of the names and first characters of files
  std::string tokenizer;      ///< directory, tokenizer.json or "bytes"; empty: the model's
  std::string token_cache;    ///< folder; empty: ~/.cache/strata/tokens
  std::int64_t eval_every_steps = 0;
  double eval_part = 0;  ///< interval as part of all steps; 0: eval_every_steps counts
  Cadence eval_strategy = Cadence::as_given;
  std::int64_t eval_samples = 0;     ///< limit on the sequences of an evaluation; 0: all
  std::int64_t sequence_length = 0;  ///< resolved: min(the model's context, 1024)
  std::int64_t micro_batch = 4;      ///< sequences per rank (or virtual rank) and micro-step
  std::int64_t accumulation = 1;     ///< micro-steps per step
  std::int64_t virtual_ranks = 0;    ///< leaves of sums over ranks (docs/adr/0012); 0: the ranks
  std::int64_t global_batch = 4;     ///< sequences per step: micro_batch * accumulation * leaves
  std::int64_t steps = 100;
  double epochs = 0;  ///< passes over the data; 0: `steps` counts (settle_steps.h)
  std::int64_t seed = 1;
  bool shuffle = true;
  DType dtype = DType::f32;                ///< parameters, activations and produced gradients
  DType communication_dtype = DType::f32;  ///< gradients on the wire; resolved: dtype
  DType accumulation_dtype = DType::f32;   ///< gradients over micro-steps: fp32 or dtype
  comm::Reduction reduction = comm::Reduction::ordered;  ///< sums of gradients over ranks
  StateRecipe state_recipe = StateRecipe::fp32_master;
  ZeroOptions zero;
  OffloadOptions offload;
  TargetOptions target;
  OptimizerOptions optimizer;
  NoDecay no_decay = NoDecay::norms_and_biases;
  double gradient_clipping = 1;  ///< largest global L2 norm, 0: no clipping
  SchedulerOptions scheduler;
  LossScaleOptions loss_scale;
  bool bf16_check_overflow = true;  ///< steps that are not finite are skipped, nothing else
  NonFinite on_nonfinite = NonFinite::automatic;
  std::int64_t nonfinite_steps = 20;  ///< number of skipped steps in a row that end the run
  bool activation_checkpointing = false;
  bool recompute_norms = false;          ///< only norms and activation functions; if not the above
  std::int64_t checkpoint_segments = 0;  ///< recomputed runs of layers; 0: each layer is one
  double checkpoint_ratio = 1;           ///< part of what recomputing layers frees, 0 to 1
  /// Actions for each saved value; if there are any, in place of what the four above and
  /// offload.activations say.
  std::vector<runtime::BlockActions> actions;
  DeviceChoice device = DeviceChoice::automatic;
  bool autotune = true;  ///< measure matrix products before the first step
  Calibration calibrate = Calibration::automatic;
  std::string plan;           ///< file with the Plan to run; empty: search for one
  std::string write_plan;     ///< file for the Plan that is run or printed
  std::string choices;        ///< file of algorithm choices to begin with
  bool check_device = false;  ///< compare every instruction with the CPU's
  bool device_graphs = true;  ///< record steps and replay them
  bool tf32 = false;          ///< products of fp32 operands on a GPU may round them to TF32
  std::int64_t threads = 0;   ///< per rank; 0: the host's cores / its ranks
  std::int64_t tile_elements = 4 << 20;
  std::string output;
  CheckpointOptions checkpoint;
  std::string metrics;
  LogOptions logs;
  std::string trace;
  StepRange trace_steps;
  std::string profile;
  std::string memory_report;  ///< directory
  std::string dump_state;
  bool print_config = false;
  bool print_plan = false;
  bool print_program = false;
  std::int64_t steps_per_print = 0;     ///< print a line that stays after each so many; 0: never
  double print_part = 0;                ///< part of all steps; 0: steps_per_print counts
  std::int64_t log_every_seconds = 30;  ///< time between lines of a log; 0: first and last only
  Cadence logging_strategy = Cadence::as_given;
  bool wall_clock_breakdown = false;
};

/// True if the run takes steps; otherwise it only evaluates.
inline bool trains(const TrainOptions& options) { return options.steps > 0 || options.epochs > 0; }

/// True if an evaluation may come before the last step.
inline bool evaluates_during(const TrainOptions& options) {
  return options.eval_every_steps > 0 || options.eval_strategy == Cadence::epoch;
}

/// Number of ranks whose micro-batches make up a step: virtual ranks if there are any.
inline std::int64_t leaves(const TrainOptions& options, int world) {
  return options.virtual_ranks > 0 ? options.virtual_ranks : world;
}

}  // namespace strata::train
