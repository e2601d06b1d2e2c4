// Options of optimizer, learning rate, recomputation, device, checkpoints and output.
#include "train/config/option_rows.h"

namespace strata::train {
namespace {

constexpr Range kDecay{0, 0.9999999999999999};
constexpr Range kSeconds{0, 86400};

constexpr Choice kOptimizers[] = {
    {OptimizerType::adamw, "adamw"},
    {OptimizerType::adam, "adam"},
    {OptimizerType::lion, "lion"},
    {OptimizerType::sgd, "sgd"},
    {OptimizerType::adamw, "adamw_torch"},
    {OptimizerType::adamw, "adamw_torch_fused"},
    {OptimizerType::adamw, "adamw_hf"},
    {OptimizerType::adamw, "adamw_8bit"},
    {OptimizerType::adamw, "adamw_bnb_8bit"},
    {OptimizerType::lion, "lion_32bit"},
    {OptimizerType::adamw, "adamw_apex_fused"},
    {OptimizerType::adamw, "adamw_anyprecision"},
    {OptimizerType::adamw, "adamw_torch_xla"},
    {OptimizerType::adamw, "adamw_torch_npu_fused"},
    {OptimizerType::adamw, "paged_adamw_32bit"},
    {OptimizerType::adamw, "paged_adamw_8bit"},
    {OptimizerType::adamw, "paged_adamw"},
    {OptimizerType::lion, "paged_lion_32bit"},
};

constexpr Choice kSchedulers[] = {
    {kernels::ScheduleKind::constant, "constant"},
    {kernels::ScheduleKind::linear, "linear"},
    {kernels::ScheduleKind::cosine, "cosine"},
    {kernels::ScheduleKind::warmup, "WarmupLR"},
    {kernels::ScheduleKind::warmup_decay, "WarmupDecayLR"},
    {kernels::ScheduleKind::warmup_cosine, "WarmupCosineLR"},
    {kernels::ScheduleKind::one_cycle, "OneCycle"},
    {kernels::ScheduleKind::range_test, "LRRangeTest"},
    {kernels::ScheduleKind::constant, "constant_with_warmup"},
    {kernels::ScheduleKind::cosine, "cosine_with_min_lr"},
    {kernels::ScheduleKind::cosine_warmup, "cosine_warmup_with_min_lr"},
    {kernels::ScheduleKind::cosine_restarts, "cosine_with_restarts"},
    {kernels::ScheduleKind::polynomial, "polynomial"},
    {kernels::ScheduleKind::inverse_sqrt, "inverse_sqrt"},
    {kernels::ScheduleKind::warmup_stable_decay, "warmup_stable_decay"},
    {kernels::ScheduleKind::inverse_sqrt, "inverse-square-root"},
    {kernels::ScheduleKind::warmup_stable_decay, "WSD"},
};

constexpr Choice kRampShapes[] = {{kernels::RampShape::linear, "linear"},
                                  {kernels::RampShape::cosine, "cosine"},
                                  {kernels::RampShape::one_minus_sqrt, "1-sqrt"}};

constexpr Choice kWarmups[] = {{WarmupType::logarithmic, "log"}, {WarmupType::linear, "linear"}};

constexpr Choice kNoDecays[] = {{NoDecay::norms_and_biases, "default"}, {NoDecay::none, "none"}};

constexpr Choice kCalibrations[] = {
    {Calibration::automatic, "auto"}, {Calibration::off, "off"}, {Calibration::again, "again"}};

constexpr Choice kDevices[] = {
    {DeviceChoice::automatic, "auto"}, {DeviceChoice::cpu, "cpu"}, {DeviceChoice::cuda, "cuda"}};

constexpr Choice kSaveFailures[] = {{SaveFailure::keep_training, "continue"},
                                    {SaveFailure::stop, "stop"}};

constexpr Choice kNonFinites[] = {
    {NonFinite::automatic, "auto"}, {NonFinite::stop, "stop"}, {NonFinite::skip, "skip"}};

constexpr OptionRow kRunRows[] = {
    {FIELD(optimizer.type), kOptimizers, Spelling{"--optimizer,--optim", "TYPE"},
     "adamw, adam (decay added to the gradient), lion or sgd; adamw_8bit: adamw with state_recipe "
     "8bit"},
    {FIELD(optimizer.learning_rate), kRate, Spelling{"--learning-rate,--learning_rate,--lr"},
     Key{"optimizer.params.lr", "0.001"}, "peak, unless the scheduler names its own"},
    {FIELD(optimizer.beta1), kDecay, Spelling{"--adam_beta1,--adam-beta1"},
     "decay of the first moment"},
    {FIELD(optimizer.beta2), kDecay, Spelling{"--adam_beta2,--adam-beta2"},
     "decay of the second moment; lion, decay of its moment: 0.99 by default, in a JSON 0.999 as "
     "in DeepSpeed"},
    {FIELD(optimizer.epsilon), kShare, Spelling{"--epsilon,--adam_epsilon,--adam-epsilon"},
     Key{"optimizer.params.eps", "1e-8"}, "added to the root of the second moment"},
    {FIELD(optimizer.weight_decay), Range{0, 1e3}, Spelling{"--weight-decay,--weight_decay"},
     Key{"optimizer.params.weight_decay", "0"}, "per unit of learning rate"},
    {FIELD(optimizer.bias_correction), Key{"optimizer.params.bias_correction", "true"},
     "divide the moments by 1 - beta^t"},
    {FIELD(optimizer.momentum), kDecay, Spelling{"--momentum"},
     Key{"optimizer.params.momentum", "0"}, "SGD"},
    {FIELD(optimizer.dampening), kShare, Key{"optimizer.params.dampening", "0"}, "SGD"},
    {FIELD(optimizer.nesterov), Key{"optimizer.params.nesterov", "false"},
     "SGD; needs momentum and no dampening"},
    {FIELD(no_decay), kNoDecays, Spelling{"--no-decay", "none|default"}, Key{"strata.no_decay"},
     "default: no weight decay on norms and biases; none: decay on all"},
    {FIELD(gradient_clipping), Range{0, 1e30},
     Spelling{
         "--gradient-clipping,--gradient_clipping,--max_grad_norm,--max-grad-norm,--clip_grad"},
     Key{"gradient_clipping", "1.0 (0 before 0.19.4)"}, "largest global L2 norm, 0: no clipping"},
    {FIELD(scheduler.type), kSchedulers,
     Spelling{"--scheduler,--lr_scheduler_type,--lr-scheduler-type,--lr_decay_style,--lr_scheduler",
              "TYPE"},
     "constant, linear, cosine, cosine_with_min_lr, cosine_warmup_with_min_lr, "
     "cosine_with_restarts, polynomial, inverse_sqrt, warmup_stable_decay (transformers), "
     "WarmupLR, WarmupDecayLR, WarmupCosineLR, OneCycle, LRRangeTest (DeepSpeed)"},
    {FIELD(scheduler.warmup_min_lr), kRate, Key{"scheduler.params.warmup_min_lr", "0"},
     "where the warm-up starts"},
    {FIELD(scheduler.warmup_max_lr), kRate,
     Key{"scheduler.params.warmup_max_lr", "WarmupLR: lr, WarmupDecayLR: 0.001"}, "where it ends"},
    {FIELD(scheduler.warmup_num_steps), kSteps,
     Spelling{"--warmup-steps,--warmup_steps,--num_warmup_steps,--lr_warmup_iters,"
              "--lr_warmup_steps"},
     Key{"scheduler.params.warmup_num_steps", "1000"}, Argument{"num_warmup_steps"},
     "steps of warm-up"},
    {FIELD(scheduler.warmup_ratio), kShare, Spelling{"--warmup-ratio,--lr_warmup_fraction"},
     "warm-up as part of all steps, rounded up; 0: warmup_num_steps"},
    {FIELD(scheduler.warmup_type), kWarmups, Key{"scheduler.params.warmup_type", "log"},
     "log or linear"},
    {FIELD(scheduler.total_num_steps), kSteps, Spelling{"--schedule-steps,--lr_decay_iters"},
     Key{"scheduler.params.total_num_steps"}, Argument{"num_training_steps"},
     "steps until the decay ends, warm-up included"},
    {FIELD(scheduler.warmup_min_ratio), kShare, Key{"scheduler.params.warmup_min_ratio", "0"},
     "WarmupCosineLR: start, as part of the learning rate"},
    {FIELD(scheduler.cos_min_ratio), kShare, Key{"scheduler.params.cos_min_ratio", "1e-4"},
     "WarmupCosineLR: end, as part of the learning rate, unless min_lr says it"},
    {FIELD(scheduler.lr_range_test_min_lr), kRate,
     Key{"scheduler.params.lr_range_test_min_lr", "0.001"}, "LRRangeTest"},
    {FIELD(scheduler.lr_range_test_step_size), kSomeSteps,
     Key{"scheduler.params.lr_range_test_step_size", "2000"}, "LRRangeTest"},
    {FIELD(scheduler.lr_range_test_step_rate), kRate,
     Key{"scheduler.params.lr_range_test_step_rate", "1.0"}, "LRRangeTest"},
    {FIELD(scheduler.lr_range_test_staircase),
     Key{"scheduler.params.lr_range_test_staircase", "false"}, "LRRangeTest"},
    {FIELD(scheduler.cycle_min_lr), kRate, Key{"scheduler.params.cycle_min_lr"}, "OneCycle"},
    {FIELD(scheduler.cycle_max_lr), kRate, Key{"scheduler.params.cycle_max_lr"}, "OneCycle"},
    {FIELD(scheduler.decay_lr_rate), kRate, Key{"scheduler.params.decay_lr_rate", "0"},
     "OneCycle: after the cycle"},
    {FIELD(scheduler.cycle_first_step_size), kSomeSteps,
     Key{"scheduler.params.cycle_first_step_size", "2000"}, "OneCycle: steps up"},
    {FIELD(scheduler.cycle_second_step_size), kSomeSteps,
     Key{"scheduler.params.cycle_second_step_size", "cycle_first_step_size"},
     "OneCycle: steps down"},
    {FIELD(scheduler.cycle_first_stair_count), kSteps,
     Key{"scheduler.params.cycle_first_stair_count", "0"}, "OneCycle"},
    {FIELD(scheduler.cycle_second_stair_count), kSteps,
     Key{"scheduler.params.cycle_second_stair_count", "cycle_first_stair_count"}, "OneCycle"},
    {FIELD(scheduler.decay_step_size), kSteps, Key{"scheduler.params.decay_step_size", "0"},
     "OneCycle: after the cycle"},
    {FIELD(scheduler.min_lr), kRate, Spelling{"--min-lr,--min_lr"}, Argument{"min_lr"},
     "where linear, the cosines without restarts and warmup_stable_decay end"},
    {FIELD(scheduler.min_lr_rate), kShare, Argument{"min_lr_rate,min_lr_ratio"},
     "the same as part of the learning rate"},
    {FIELD(scheduler.num_cycles), Range{0, 1e6}, Argument{"num_cycles"},
     "waves of a cosine, of cosine_with_restarts its falls; 0: 0.5, or one fall"},
    {FIELD(scheduler.power), Range{1, 16}, Argument{"power"}, "polynomial: power of what is left"},
    {FIELD(scheduler.lr_end), kRate, Argument{"lr_end"}, "polynomial: where it ends"},
    {FIELD(scheduler.timescale), kSteps, Argument{"timescale"},
     "inverse_sqrt; 0: the warm-up, or 10000"},
    {FIELD(scheduler.warmup_lr_rate), kShare, Argument{"warmup_lr_rate"},
     "cosine_warmup_with_min_lr: start, as part of the learning rate; 0: 1 / warm-up steps"},
    {FIELD(scheduler.num_stable_steps), Range{-1, kMostSteps}, Argument{"num_stable_steps"},
     "warmup_stable_decay: steps at the peak; -1: the rest"},
    {FIELD(scheduler.num_decay_steps), kSteps, Argument{"num_decay_steps"},
     "warmup_stable_decay: steps down"},
    {FIELD(scheduler.warmup_shape), kRampShapes, Argument{"warmup_type"},
     "warmup_stable_decay: linear, cosine, 1-sqrt"},
    {FIELD(scheduler.decay_shape), kRampShapes, Argument{"decay_type"},
     "warmup_stable_decay: linear, cosine, 1-sqrt"},
    {FIELD(activation_checkpointing),
     Spelling{"--activation-checkpointing,--gradient_checkpointing,--gradient-checkpointing,"
              "--recompute_activations,--checkpoint_activations"},
     "recompute activations in backward"},
    {FIELD(recompute_norms), Spelling{"--recompute-norms"}, Key{"strata.recompute_norms"},
     "recompute norms and activation functions alone: less memory for little time"},
    {FIELD(checkpoint_segments), Range{0, 1 << 16}, Spelling{"--checkpoint-segments"},
     Key{"strata.activation_checkpointing.segments"},
     "recomputed runs of layers, 0: each layer is one"},
    {FIELD(checkpoint_ratio), kShare, Spelling{"--checkpoint-ratio"},
     Key{"strata.activation_checkpointing.ratio"},
     "share of the bytes that activation checkpointing frees: below 1 only what is cheapest to "
     "make "
     "again for its bytes is recomputed, in the first layers first"},
    {FIELD(actions), Spelling{"--actions"}, Key{"strata.actions"},
     "what becomes of each saved value, as a Plan's \"saved\" says it: "
     "[{\"blocks\": [1, 6], \"actions\": {\"2.gelu\": \"recompute\"}}]; keep, recompute, host or "
     "disk, "
     "in place of activation checkpointing, recomputed norms and offloaded activations"},
    {FIELD(device), kDevices, Spelling{"--device"}, Key{"strata.device"},
     "auto: a GPU where there is one; cpu; cuda"},
    {FIELD(autotune), Spelling{"--autotune"}, Key{"strata.autotune"},
     "measure the libraries' algorithms before the first step; false: their first"},
    {FIELD(calibrate), kCalibrations, Spelling{"--calibrate"}, Key{"strata.calibrate"},
     "auto: foresee steps by times of instructions that earlier runs measured and kept, and "
     "measure "
     "new ones where a run takes minutes; off; again: measure all before the first step"},
    {FIELD(plan), Spelling{"--plan", "FILE"},
     "file with the Plan to run, as --print-plan prints it: it decides what is sharded, where "
     "state lives and what is recomputed, and settings of these are not asked"},
    {FIELD(write_plan), Spelling{"--write-plan", "FILE"},
     "file for the Plan that is run, for a later --plan"},
    {FIELD(choices), Spelling{"--choices", "FILE"},
     "file of algorithm choices: read where it exists, then written with those that were added; "
     "default: the model directory's, read only"},
    {FIELD(check_device), Spelling{"--check-device"},
     "run each instruction on the CPU, too, and stop where results differ"},
    {FIELD(device_graphs), Spelling{"--device-graphs"}, Key{"strata.device_graphs"},
     "record steps as CUDA graphs; the bits are the same"},
    {FIELD(tf32), Spelling{"--tf32"}, Key{"strata.tf32"},
     "on a GPU: products of fp32 operands round them to TF32 (10 bits of fraction), several times "
     "as fast and with other bits"},
    {FIELD(threads), Range{0, 4096}, Spelling{"--threads"}, Key{"strata.threads"},
     "per rank, 0: the host's cores divided by its ranks"},
    {FIELD(tile_elements), Range{1024, 1LL << 40, NumberKind::count}, Spelling{"--tile-elements"},
     Key{"strata.tile_elements"}, Decides{"limits.tile_elements"},
     "unit of placement and of host optimizer work, a multiple of 1024"},
    {FIELD(output), Spelling{"--output,--output_dir,--output-dir,--save", "DIR"},
     "directory for the trained model"},
    {FIELD(checkpoint.every), Range{0, kMostSteps, NumberKind::whole, PLACE(checkpoint.part)},
     Spelling{"--save-every,--save_steps,--save-steps,--save_interval,--checkpointing_steps"},
     Key{"strata.save_every"},
     "steps (500), part of all steps (0.1) or time (30min, 45s, 2h) between checkpoints, 0: at the "
     "end only"},
    {FIELD(checkpoint.strategy), kCadences, Spelling{"--save-strategy"},
     "when to save, as in transformers: no (at the end only), steps, epoch"},
    {FIELD(checkpoint.keep), kSteps, Spelling{"--keep,--save_total_limit,--save-total-limit"},
     Key{"strata.keep"}, "newest checkpoints to keep, 0: all"},
    {FIELD(checkpoint.keep_every), kSteps, Spelling{"--keep-every"}, Key{"strata.keep_every"},
     "keep those of every N-th step, too, 0: none"},
    {FIELD(checkpoint.on_error), kSaveFailures, Spelling{"--on-save-error"},
     Key{"strata.on_save_error"}, "after a checkpoint that could not be written"},
    {FIELD(checkpoint.retry_seconds), kSeconds, Spelling{"--save-retry", "SECONDS"},
     Key{"strata.save_retry"},
     "for how long the last checkpoint of a run is tried again when it cannot be written; never "
     "with `--on-save-error stop`"},
    {FIELD(on_nonfinite), kNonFinites, Spelling{"--on-nonfinite"}, Key{"strata.on_nonfinite"},
     "a step whose loss or gradient is not finite changes no parameter; stop: it ends the run, "
     "which saves its state (code 93); skip: training goes on; auto: stop in fp32, skip in 16 "
     "bits"},
    {FIELD(nonfinite_steps), kSomeSteps, Spelling{"--nonfinite-steps"},
     Key{"strata.nonfinite_steps"}, "with skip: such steps in a row that end the run"},
    {FIELD(checkpoint.on_signal), Spelling{"--save-on-signal,--save_on_signal"},
     Key{"strata.save_on_signal"},
     "SIGTERM and SIGUSR1 let the run finish its step, save and end with code 75; false: they end "
     "it at once"},
    {FIELD(checkpoint.grace_seconds), kSeconds, Spelling{"--grace", "SECONDS"}, Key{"strata.grace"},
     "seconds from such a signal to the commit, then the save is given up; 0: of mlaunch's "
     "--grace, where there is one"},
    {FIELD(checkpoint.asynchronous), Spelling{"--async-save"}, Key{"strata.async_save"},
     "write checkpoints while training goes on, from a copy of the state in host memory, or in "
     "windows where that has no room"},
    {FIELD(checkpoint.resume),
     Spelling{"--resume,--resume_from_checkpoint,--resume-from-checkpoint",
              "auto|required|never|DIR"},
     "never, auto (from the newest whole checkpoint of --output, if any), required, or a "
     "checkpoint's directory"},
    {FIELD(checkpoint.changed_data), Spelling{"--resume-with-changed-data"},
     "resume although the data are not those that were saved with"},
    {FIELD(checkpoint.overwrite), Spelling{"--overwrite-output-dir,--overwrite_output_dir"},
     "start anew where --output has checkpoints of another run; these are removed once this run "
     "has committed its first"},
    {FIELD(metrics), Spelling{"--metrics,--log-json", "FILE"}, "JSONL file, a line per step"},
    {FIELD(logs.report_to), Spelling{"--report-to", "none|tensorboard|csv", true},
     "files for tools: event files of TensorBoard, a CSV file per tag; names and values as "
     "transformers' Trainer writes them"},
    {FIELD(logs.directory), Spelling{"--logging-dir", "DIR"},
     "folder of what --report-to writes; default: a new one in runs/ of --output"},
    {FIELD(logs.tensorboard.enabled), Key{"tensorboard.enabled", "false"},
     "write event files of TensorBoard with DeepSpeed's tags"},
    {FIELD(logs.tensorboard.output_path), Key{"tensorboard.output_path"},
     "the event files lie in output_path/job_name"},
    {FIELD(logs.tensorboard.job_name), Key{"tensorboard.job_name", "DeepSpeedJobName"},
     "a folder in output_path"},
    {FIELD(logs.csv.enabled), Key{"csv_monitor.enabled", "false"},
     "write a CSV file of each of DeepSpeed's tags"},
    {FIELD(logs.csv.output_path), Key{"csv_monitor.output_path"},
     "the CSV files lie in output_path/job_name"},
    {FIELD(logs.csv.job_name), Key{"csv_monitor.job_name", "DeepSpeedJobName"},
     "a folder in output_path"},
    {FIELD(trace), Spelling{"--trace", "FILE"},
     "when each instruction ran on each rank: a file for ui.perfetto.dev"},
    {FIELD(trace_steps), kSomeSteps, Spelling{"--trace-steps"},
     "steps of the trace: 500:502 are three, 500 is one, all: as many as it holds"},
    {FIELD(profile), Spelling{"--profile", "FILE"},
     "file (JSON) of times by operation and shape from the third step on, beside the least that "
     "the machine needs; the largest losses are printed"},
    {FIELD(memory_report), Spelling{"--memory-report", "DIR"}, Key{"strata.memory_report"},
     "directory of a report on memory and time, foreseen beside measured: report.html, "
     "summary.txt, "
     "tables and a trace; with --print-plan and --steps 0 of what is foreseen alone"},
    {FIELD(dump_state), Spelling{"--dump-state", "FILE"},
     "file with a digest per persistent tensor"},
    {FIELD(steps_per_print), Range{0, kMostSteps, NumberKind::most, PLACE(print_part)},
     Spelling{"--steps-per-print,--logging_steps,--logging-steps,--log_interval"},
     Key{"steps_per_print", "none"},
     "steps between progress lines that stay on the screen or in the log, of a flag also part of "
     "all steps (0.1); 0: --log-every alone"},
    {FIELD(wall_clock_breakdown), Key{"wall_clock_breakdown", "false"},
     "print what a step spends on forward, backward and update and on what runs beside them: after "
     "every steps_per_print steps, 0: ten times a run"},
    {FIELD(logging_strategy), kCadences, Spelling{"--logging-strategy"},
     "when to print, as in transformers: no, steps, epoch"},
    {FIELD(log_every_seconds), kSeconds, Spelling{"--log-every", "SECONDS"},
     "seconds between progress lines where the output is no terminal, besides the first and the "
     "last; 0: only these"},
    {FIELD(print_plan), Spelling{"--print-plan"}, "print what is sharded and recomputed"},
    {FIELD(print_program), Spelling{"--print-program"}, "print the instructions of a step"},
    {FIELD(print_config), Spelling{"--print-config"}, Key{"dump_state", "false"},
     "print this table, then train; with --steps 0 nothing is trained"},
};

}  // namespace

std::span<const OptionRow> run_options() { return kRunRows; }

}  // namespace strata::train
