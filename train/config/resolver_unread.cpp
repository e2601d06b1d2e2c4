// Says what is given and not read: flags of another schedule or optimizer, a minimum that gives way
// to a flag's, keys of sections that are off in the file.
#include <fmt/core.h>
#include <span>

#include "train/config/flag_table.h"
#include "train/config/resolver.h"

namespace strata::train {
namespace {

using enum kernels::ScheduleKind;
using enum OptimizerType;

/// A set of types, a bit for each.
template <typename... Type>
constexpr unsigned types(Type... type) {
  return ((1U << static_cast<unsigned>(type)) | ...);
}

/// An option and the types that read it.
struct ReadBy {
  std::string_view option;
  unsigned readers;
};

constexpr unsigned kWithWarmup = ~types(one_cycle, range_test);  ///< up to the learning rate
constexpr unsigned kWithMinimum =
    types(linear, cosine, warmup_cosine, cosine_warmup, warmup_stable_decay);

/// Lists what the formulas of kernels/ops/learning_rate.h use of what make_plan.cpp hands them.
/// WarmupLR and WarmupDecayLR rise to the learning rate of a flag (take_scheduler()).
constexpr ReadBy kOfSchedules[] = {
    {"optimizer.learning_rate", kWithWarmup},
    {"scheduler.warmup_num_steps", kWithWarmup},
    {"scheduler.warmup_ratio", kWithWarmup},
    {"scheduler.warmup_type", types(warmup, warmup_decay, warmup_cosine)},
    {"scheduler.warmup_min_lr", types(warmup, warmup_decay)},
    {"scheduler.warmup_max_lr", types(warmup, warmup_decay)},
    {"scheduler.warmup_min_ratio", types(warmup_cosine)},
    {"scheduler.cos_min_ratio", types(warmup_cosine)},
    {"scheduler.total_num_steps", types(linear, cosine, warmup_decay, warmup_cosine, cosine_warmup,
                                        cosine_restarts, polynomial, warmup_stable_decay)},
    {"scheduler.cycle_min_lr", types(one_cycle)},
    {"scheduler.cycle_max_lr", types(one_cycle)},
    {"scheduler.cycle_first_step_size", types(one_cycle)},
    {"scheduler.cycle_second_step_size", types(one_cycle)},
    {"scheduler.cycle_first_stair_count", types(one_cycle)},
    {"scheduler.cycle_second_stair_count", types(one_cycle)},
    {"scheduler.decay_lr_rate", types(one_cycle)},
    {"scheduler.decay_step_size", types(one_cycle)},
    {"scheduler.lr_range_test_min_lr", types(range_test)},
    {"scheduler.lr_range_test_step_size", types(range_test)},
    {"scheduler.lr_range_test_step_rate", types(range_test)},
    {"scheduler.lr_range_test_staircase", types(range_test)},
    {"scheduler.min_lr", kWithMinimum},
    {"scheduler.min_lr_rate", kWithMinimum},
    {"scheduler.num_cycles", types(cosine, cosine_warmup, cosine_restarts, warmup_stable_decay)},
    {"scheduler.power", types(polynomial)},
    {"scheduler.lr_end", types(polynomial)},
    {"scheduler.timescale", types(inverse_sqrt)},
    {"scheduler.warmup_lr_rate", types(cosine_warmup)},
    {"scheduler.num_stable_steps", types(warmup_stable_decay)},
    {"scheduler.num_decay_steps", types(warmup_stable_decay)},
    {"scheduler.warmup_shape", types(warmup_stable_decay)},
    {"scheduler.decay_shape", types(warmup_stable_decay)},
};

/// Lists what the kernels of optimizers use; all of them decay weights.
constexpr ReadBy kOfOptimizers[] = {
    {"optimizer.beta1", types(adamw, adam, lion)},
    {"optimizer.beta2", types(adamw, adam, lion)},
    {"optimizer.epsilon", types(adamw, adam)},
    {"optimizer.bias_correction", types(adamw, adam)},
    {"optimizer.momentum", types(sgd)},
    {"optimizer.dampening", types(sgd)},
    {"optimizer.nesterov", types(sgd)},
};

/// Returns the options of these rows that the type does not read.
std::vector<std::string_view> unread_by(unsigned type, std::span<const ReadBy> rows) {
  std::vector<std::string_view> options;
  for (const ReadBy& row : rows)
    if ((row.readers >> type & 1U) == 0) options.push_back(row.option);
  return options;
}

/// Returns the words of a flag, those of an argument of a schedule behind its name.
std::string words_after(const Given& flag, const OptionField& field) {
  std::string words = joined(flag.words, " ");
  if (flag.where != "--lr_scheduler_kwargs") return words;
  return fmt::format("{} {}", listed(field.argument.names).front(), words);
}

/// True if the flag asks for something else than the option's default.
bool asks_for_change(const Given& flag, std::string_view option) {
  TrainOptions options;
  const std::vector<OptionField> fields = option_fields(options);
  const OptionField& field = *find_field(fields, option);
  const std::string before = text_of(field);
  std::string note;
  return assign(field, flag.words, note).empty() && text_of(field) != before;
}

}  // namespace

void Resolver::check_unread() {
  warn_of_unread(unread_by(static_cast<unsigned>(options_.scheduler.type), kOfSchedules),
                 "scheduler.type");
  warn_of_unread(unread_by(static_cast<unsigned>(options_.optimizer.type), kOfOptimizers),
                 "optimizer.type");
  note_other_minimum();
  note_off_sections();
}

/// Warns of flags and keys that set these options, which `chosen`, an option, makes nothing read.
/// Nothing is needed for such an option that is "auto" in the file. The type is called as the file
/// spells it if it is the file's.
void Resolver::warn_of_unread(const std::vector<std::string_view>& options,
                              std::string_view chosen) {
  for (const std::string_view option : options)
    if (open_autos_.contains(option)) derived(option);
  const bool is_of_file = flag(chosen) == nullptr && in_file(chosen) != nullptr;
  const Given* spelt = is_of_file ? fact(chosen) : nullptr;
  const std::string type =
      spelt != nullptr ? spelt->words[0] : text_of(*find_field(fields_, chosen));
  const bool is_refused = !findings_.problems.empty();  // such a type says nothing of others
  if (is_of_file || !is_refused) warn_of_unread_keys(options, type);
  if (!is_refused) warn_of_unread_flags(options, type);
}

/// Says nothing of a file's learning rate: schedules that have their own make DeepSpeed pass over
/// it, too, and files have it all the same.
void Resolver::warn_of_unread_keys(const std::vector<std::string_view>& options,
                                   const std::string& type) {
  std::set<std::string> places;  // a key may set several options
  for (const std::string_view option : options) {
    const Given* key = in_file(option);
    if (key == nullptr || option == "optimizer.learning_rate") continue;
    if (places.insert(key->where).second)
      findings_.warnings.push_back(fmt::format("{}: has no effect with {}", key->where, type));
  }
}

void Resolver::warn_of_unread_flags(const std::vector<std::string_view>& options,
                                    const std::string& type) {
  std::map<std::string, std::string> said;  // words of each flag, which may set several options
  std::set<std::string> asking;
  for (const std::string_view option : options) {
    const Given* from_flag = flag(option);
    if (from_flag == nullptr) continue;
    said[from_flag->where] += " " + words_after(*from_flag, *find_field(fields_, option));
    const Given* key = in_file(option);
    if (key != nullptr || asks_for_change(*from_flag, option)) asking.insert(from_flag->where);
    if (key != nullptr) std::erase(findings_.notes, contradiction(*from_flag, *key));
  }
  for (const std::string& name : asking)
    findings_.warnings.push_back(fmt::format("{}{} has no effect with {}", name, said[name], type));
}

/// Notes that a flag's minimum wins over the one that WarmupCosineLR has in the file.
void Resolver::note_other_minimum() {
  const SchedulerOptions& s = options_.scheduler;
  const Given* own = in_file("scheduler.cos_min_ratio");
  if (s.type != warmup_cosine || own == nullptr) return;
  if (s.min_lr_rate == 0 || s.min_lr_rate == s.cos_min_ratio) return;
  const char* option = s.min_lr > 0 ? "scheduler.min_lr" : "scheduler.min_lr_rate";
  const Given* wins = given(option);
  findings_.notes.push_back(fmt::format("{} {} wins over {}: {}", wins->where,
                                        words_after(*wins, *find_field(fields_, option)),
                                        own->where, own->words[0]));
}

/// Notes keys beside a switch that is off in the file and that a flag overrules.
void Resolver::note_off_sections() {
  const OffloadOptions& offload = options_.offload;
  const struct {
    const char* section;
    const char* option;
    bool is_on;
  } kinds[] = {
      {"fp16", "dtype", options_.dtype == DType::f16},
      {"bf16", "dtype", options_.dtype == DType::bf16},
      {"zero_optimization.offload_optimizer", "offload.optimizer",
       offload.optimizer != plan::Home::device},
      {"zero_optimization.offload_param", "offload.parameters",
       offload.parameters != plan::Home::device},
  };
  for (const auto& kind : kinds) {
    const std::string text = kind.is_on ? off_section(kind.section, kind.option) : "";
    if (!text.empty()) findings_.notes.push_back(text);
  }
}

std::string Resolver::off_section(std::string_view section, std::string_view option) const {
  const Given* off = fact(section);
  const Given* by = flag(option);
  if (off == nullptr || by == nullptr) return "";
  return fmt::format("{} is off in the file, and {} turns it on; its other keys are not read",
                     off->where, by->where);
}

}  // namespace strata::train
