#include "train/planning/planned_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "core/json.h"
#include "core/json_writer.h"
#include "train/config/option_fields.h"

namespace strata::train {
namespace {

/// The options that say what steps compute, how many there are, where their bytes lie and who is
/// told of them; a name that ends with a dot stands for all of its group. How often a run does
/// something is left to flags.
constexpr std::string_view kShaping[] = {
    "steps",
    "epochs",
    "seed",
    "shuffle",
    "sequence_length",
    "micro_batch",
    "accumulation",
    "global_batch",
    "virtual_ranks",
    "communication_dtype",
    "accumulation_dtype",
    "reduction",
    "state_recipe",
    "zero.",
    "offload.",
    "optimizer.",
    "no_decay",
    "gradient_clipping",
    "scheduler.",
    "loss_scale.",
    "bf16_check_overflow",
    "recompute_norms",
    "checkpoint_segments",
    "checkpoint_ratio",
    "actions",
    "device",
    "tf32",
    "threads",
    "tile_elements",
    "on_nonfinite",
    "nonfinite_steps",
    "logs.tensorboard.",
    "logs.csv.",
    "steps_per_print",
    "wall_clock_breakdown",
};

/// The options that are written whatever they are.
constexpr std::string_view kAlways[] = {"micro_batch", "accumulation", "global_batch",
                                        "zero.stage"};

bool is_shaping(std::string_view option) {
  return std::ranges::any_of(kShaping, [&](std::string_view name) {
    return name.ends_with('.') ? option.starts_with(name) : option == name;
  });
}

/// Returns the type of a schedule that a DeepSpeed file can name; "" for those of transformers.
std::string_view deepspeed_schedule(kernels::ScheduleKind kind) {
  using enum kernels::ScheduleKind;
  switch (kind) {
    case warmup:
      return "WarmupLR";
    case warmup_decay:
      return "WarmupDecayLR";
    case warmup_cosine:
      return "WarmupCosineLR";
    case one_cycle:
      return "OneCycle";
    case range_test:
      return "LRRangeTest";
    default:
      return "";
  }
}

/// True if a flag or a file gives the option, or a planner sets it.
bool is_chosen(const ResolvedConfig& config, std::string_view option) {
  return config.origin_of(option) >= Origin::planned;
}

/// True if a file says "auto" and leaves the answer to the flags of a run.
bool is_left_open(const ResolvedConfig& config, std::string_view option) {
  return std::ranges::any_of(config.fields, [&](const ResolvedField& field) {
    return field.name == option && field.left_open;
  });
}

/// A key and its value as JSON text.
struct Entry {
  std::string path;  ///< "zero_optimization.stage"
  std::string json;
};

std::string row_of(const std::vector<std::string>& words) {
  JsonWriter json(0);
  json.begin_row();
  for (const std::string& word : words) json.value(word);
  return json.end_array().finish();
}

std::string json_of(const OptionField& field) {
  switch (kind_of(field).shape) {
    case JsonShape::number:
      return field.range.kind == NumberKind::bytes
                 ? std::to_string(*std::get<std::int64_t*>(field.target))
                 : text_of(field);
    case JsonShape::flag:
    case JsonShape::tree:
      return text_of(field);
    case JsonShape::texts:
      return row_of(*std::get<std::vector<std::string>*>(field.target));
    default:
      return quoted_json(text_of(field));
  }
}

/// Collects the entries of a file.
class Entries {
 public:
  explicit Entries(const ResolvedConfig& config) : config_(config), options_(config.options) {
    // The minimum of a flag has no key of its own.
    SchedulerOptions& s = options_.scheduler;
    if (s.type == kernels::ScheduleKind::warmup_cosine && s.min_lr_rate > 0)
      s.cos_min_ratio = s.min_lr_rate;
  }

  /// The entries of the options alone that `wants`; their optimizer and schedule are named.
  std::vector<Entry> of(const std::function<bool(std::string_view)>& wants) {
    const std::vector<OptionField> fields = option_fields(options_);
    for (const OptionField& field : fields)
      if (wants(field.name) && counts(field.name)) add(field.key.path, json_of(field));
    const auto has = [&](std::string_view section) {
      return std::ranges::any_of(entries_,
                                 [&](auto& one) { return one.path.starts_with(section); });
    };
    if (has("optimizer.")) add("optimizer.type", quoted_json(type_of_optimizer()));
    if (has("scheduler.")) add_schedule_type();
    return std::move(entries_);
  }

  std::vector<Entry> all() {
    TrainOptions defaults;
    const std::vector<OptionField> untouched = option_fields(defaults);
    const std::vector<OptionField> fields = option_fields(options_);
    add_optimizer(fields, untouched);
    if (!deepspeed_schedule(options_.scheduler.type).empty()) add_schedule_type();
    for (std::size_t i = 0; i < fields.size(); ++i)
      if (is_shaping(fields[i].name) && !fields[i].key.path.empty() && counts(fields[i].name) &&
          differs(fields[i], untouched[i]))
        add(fields[i].key.path,
            is_left_open(config_, fields[i].name) ? quoted_json("auto") : json_of(fields[i]));
    add_precision();
    add_recomputation(fields);
    add_drives();
    // Sections come in the order of their first entry; Strata's own is the last.
    std::stable_partition(entries_.begin(), entries_.end(),
                          [](const Entry& entry) { return !entry.path.starts_with("strata."); });
    return std::move(entries_);
  }

 private:
  void add(std::string_view path, std::string json) {
    entries_.push_back({std::string(path), std::move(json)});
  }

  /// True if a run of the file could otherwise do something else.
  [[nodiscard]] bool differs(const OptionField& field, const OptionField& untouched) const {
    return std::ranges::find(kAlways, field.name) != std::end(kAlways) ||
           is_chosen(config_, field.name) || is_left_open(config_, field.name) ||
           text_of(field) != text_of(untouched);
  }

  /// False for options that have no effect beside others, which a file would be blamed for, and for
  /// those that follow from others.
  [[nodiscard]] bool counts(std::string_view option) const {
    const OffloadOptions& offload = options_.offload;
    if (option == "offload.nvme_paths" || option.starts_with("checkpoint_")) return false;
    if (option == "offload.optimizer_ratio") return offload.optimizer != plan::Home::device;
    if (option == "offload.parameter_host_elements")
      return offload.parameters != plan::Home::device;
    if (option == "offload.activations" || option == "recompute_norms")
      return options_.actions.empty();
    if (option.starts_with("scheduler."))
      return !deepspeed_schedule(options_.scheduler.type).empty();
    if (option.starts_with("loss_scale.")) return options_.dtype == DType::f16;
    if (option == "bf16_check_overflow") return options_.dtype == DType::bf16;
    if (option == "steps") return options_.steps != 0;  // 0 is said where nothing is to be trained
    if (option == "communication_dtype")
      return is_chosen(config_, option) || options_.communication_dtype != options_.dtype;
    return true;
  }

  [[nodiscard]] std::string type_of_optimizer() const {
    constexpr const char* kTypes[] = {"AdamW", "Adam", "Lion", "SGD"};
    return kTypes[static_cast<int>(options_.optimizer.type)];
  }

  /// Adds the type, and of OneCycle that betas do not cycle, which they do by default.
  void add_schedule_type() {
    const kernels::ScheduleKind type = options_.scheduler.type;
    add("scheduler.type", quoted_json(std::string(deepspeed_schedule(type))));
    if (type == kernels::ScheduleKind::one_cycle) add("scheduler.params.cycle_momentum", "false");
  }

  /// Adds the type, and betas, which have one key for both. AdamW is what a run has anyway: it is
  /// named beside its learning rate only, since a named type takes the place of the rate that
  /// stored weights are trained with by default.
  void add_optimizer(const std::vector<OptionField>& fields,
                     const std::vector<OptionField>& untouched) {
    const OptimizerOptions& optimizer = options_.optimizer;
    const auto says = [&](std::string_view option) {
      return differs(*find_field(fields, option), *find_field(untouched, option));
    };
    if (optimizer.type != OptimizerType::adamw || says("optimizer.learning_rate")) {
      add("optimizer.type", quoted_json(type_of_optimizer()));
    }
    if (optimizer.type == OptimizerType::adam) add("optimizer.params.adam_w_mode", "false");
    if ((says("optimizer.beta1") || says("optimizer.beta2")) &&
        optimizer.type != OptimizerType::sgd)
      add("optimizer.params.betas",
          fmt::format("[{}, {}]", json_number(optimizer.beta1), json_number(optimizer.beta2)));
  }

  /// fp32 is said where it was asked for: weights may be stored in another type.
  void add_precision() {
    if (options_.dtype != DType::f32)
      add(options_.dtype == DType::bf16 ? "bf16.enabled" : "fp16.enabled", "true");
    else if (is_chosen(config_, "dtype"))
      add("bf16.enabled", "false");
  }

  void add_recomputation(const std::vector<OptionField>& fields) {
    if (!options_.activation_checkpointing || !options_.actions.empty()) return;
    for (const char* option : {"checkpoint_segments", "checkpoint_ratio"}) {
      const OptionField& field = *find_field(fields, option);
      add(field.key.path, json_of(field));
    }
  }

  /// DeepSpeed takes a folder of each section; Strata takes all of them as a list, too.
  void add_drives() {
    const OffloadOptions& offload = options_.offload;
    if (offload.nvme_paths.empty()) return;
    const std::string first = quoted_json(offload.nvme_paths.front());
    if (offload.optimizer == plan::Home::disk)
      add("zero_optimization.offload_optimizer.nvme_path", first);
    if (offload.parameters == plan::Home::disk)
      add("zero_optimization.offload_param.nvme_path", first);
    const bool is_said =
        offload.optimizer == plan::Home::disk || offload.parameters == plan::Home::disk;
    if (!is_said || offload.nvme_paths.size() > 1)
      add("strata.nvme_paths", row_of(offload.nvme_paths));
  }

  const ResolvedConfig& config_;
  TrainOptions options_;
  std::vector<Entry> entries_;
};

/// Writes the entries below `prefix` as members of the open object.
void write_members(JsonWriter& json, const std::vector<Entry>& entries, const std::string& prefix) {
  std::set<std::string> written;
  for (const Entry& entry : entries) {
    if (!entry.path.starts_with(prefix)) continue;
    const std::string rest = entry.path.substr(prefix.size());
    const std::size_t dot = rest.find('.');
    const std::string name = rest.substr(0, dot);
    if (!written.insert(name).second) continue;
    json.key(name);
    if (dot == std::string::npos) {
      json.value(parse_json(entry.json, entry.path, {}));
    } else {
      json.begin_object();
      write_members(json, entries, prefix + name + ".");
      json.end_object();
    }
  }
}

}  // namespace

std::string planned_config(const ResolvedConfig& config) {
  JsonWriter json;
  json.begin_object();
  write_members(json, Entries(config).all(), "");
  json.end_object();
  return json.finish() + "\n";
}

bool is_written(const ResolvedConfig& config, std::string_view option) {
  if (option == "scheduler.warmup_ratio") return false;
  if (option.starts_with("scheduler."))
    return !deepspeed_schedule(config.options.scheduler.type).empty();
  return is_shaping(option) || option == "dtype" || option == "activation_checkpointing";
}

std::string config_of(const ResolvedConfig& config,
                      const std::function<bool(std::string_view option)>& wants) {
  JsonWriter json(0);
  json.begin_object();
  write_members(json, Entries(config).of(wants), "");
  return json.end_object().finish();
}

}  // namespace strata::train
