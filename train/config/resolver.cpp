#include "train/config/resolver.h"

#include <fmt/core.h>
#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/error.h"
#include "train/config/batch.h"
#include "train/config/flag_table.h"
#include "train/config/json_words.h"

namespace strata::train {
namespace {

/// The line of the file that a message begins with; of other messages a line behind all.
std::size_t line_of(const std::string& message, const std::string& file) {
  std::size_t line = std::string::npos;
  const std::string_view text = message;
  if (!file.empty() && text.starts_with(file + ":"))
    std::from_chars(text.data() + file.size() + 1, text.data() + text.size(), line);
  return line;
}

/// Sorts messages by their lines in the file; what is about flags comes last.
void sort_by_line(std::vector<std::string>& messages, const std::string& file) {
  std::ranges::stable_sort(messages, {},
                           [&](const std::string& message) { return line_of(message, file); });
}

const Given* find(const Settings& settings, std::string_view name) {
  const auto it = settings.find(name);
  return it == settings.end() ? nullptr : &it->second;
}

}  // namespace

Resolver::Resolver(const ParsedCommandLine& command_line, const DeepSpeedSettings& file, int world,
                   const ModelConfig& model)
    : command_line_(command_line),
      file_(file),
      world_(world),
      model_(model),
      options_(resolved_.options),
      findings_(file.findings),
      fields_(option_fields(resolved_.options)) {
  findings_.notes.insert(findings_.notes.begin(), command_line.notes.begin(),
                         command_line.notes.end());
}

const Given* Resolver::flag(std::string_view option) const {
  return find(command_line_.settings, option);
}

const Given* Resolver::in_file(std::string_view option) const {
  const Given* given = find(file_.settings, option);
  return given == nullptr || given->automatic ? nullptr : given;
}

const Given* Resolver::given(std::string_view option) const {
  const Given* from_flag = flag(option);
  return from_flag != nullptr ? from_flag : in_file(option);
}

const Given* Resolver::fact(std::string_view path) const { return find(file_.facts, path); }

Origin Resolver::origin(std::string_view option) const {
  const auto it = sources_.find(option);
  return it == sources_.end() ? Origin::default_value : it->second.origin;
}

bool Resolver::is_open(std::string_view option) const {
  return origin(option) == Origin::default_value;
}

void Resolver::derived(std::string_view option) {
  const auto open = open_autos_.find(option);
  const std::string where = open == open_autos_.end() ? "" : open->second.where;
  if (open != open_autos_.end()) open_autos_.erase(open);
  if (is_open(option)) sources_[std::string(option)] = {Origin::automatic, where};
}

void Resolver::problem(const std::string& where, const std::string& text) {
  findings_.problems.push_back(where.empty() ? text : where + ": " + text);
}

void Resolver::wrong_value(std::string_view option, const std::string& text) {
  problem(given(option)->where, text);
  if (flag(option) != nullptr) ++wrong_flags_;
}

std::string Resolver::contradiction(const Given& flag, const Given& file) {
  const bool is_switch = std::ranges::any_of(flag_table(), [&](const FlagRow& row) {
    return row.use == FlagUse::fixed && first_spelling(row) == flag.where;
  });
  return fmt::format("{}{} wins over {}: {}", flag.where,
                     is_switch ? "" : " " + joined(flag.words, " "), file.where,
                     joined(file.words, " "));
}

void Resolver::note_contradiction(const Given& flag, const Given& file) {
  if (std::equal(flag.words.begin(), flag.words.end(), file.words.begin(), file.words.end(),
                 same_word)) {
    return;
  }
  findings_.notes.push_back(contradiction(flag, file));
}

void Resolver::take(const OptionField& field) {
  const Given* from_flag = flag(field.name);
  const Given* from_file = find(file_.settings, field.name);
  const bool automatic = from_file != nullptr && from_file->automatic;
  if (from_flag != nullptr && from_file != nullptr && !automatic) {
    note_contradiction(*from_flag, *from_file);
  }
  if (from_flag == nullptr && automatic) {
    open_autos_[std::string(field.name)] = *from_file;
    return;
  }
  const Given* given = from_flag != nullptr ? from_flag : from_file;
  if (given == nullptr) return;
  OptionField read = field;
  // DeepSpeed's key of that name does not take a part of all steps.
  if (from_flag == nullptr && field.name == "steps_per_print") read.part_target = nullptr;
  std::string note;
  const std::string wrong = assign(read, given->words, note);
  if (!wrong.empty()) return problem(given->where, wrong);
  if (!note.empty()) findings_.notes.push_back(given->where + ": " + note);
  sources_[std::string(field.name)] = {from_flag != nullptr ? Origin::command_line : Origin::file,
                                       given->where};
}

void Resolver::take_given_values() {
  for (const OptionField& field : fields_) take(field);
  // Hugging Face's defaults for these are the same as ours.
  for (const char* name : {"gradient_clipping", "optimizer.beta1", "optimizer.beta2",
                           "optimizer.epsilon", "optimizer.weight_decay"}) {
    if (open_autos_.contains(name)) derived(name);
  }
}

void Resolver::take_optimizer() {
  const Given* type = given("optimizer.type");
  // Names that transformers has for AdamW with 8-bit state.
  if (type != nullptr && is_one_of(type->words[0], "adamw_8bit|adamw_bnb_8bit|paged_adamw_8bit")) {
    if (is_open("state_recipe")) {
      options_.state_recipe = StateRecipe::eight_bit;
      sources_["state_recipe"] = {origin("optimizer.type"), type->where};
    } else if (options_.state_recipe != StateRecipe::eight_bit) {
      note_contradiction(*given("state_recipe"), *type);
    }
  }
  if (type != nullptr && type->words[0].starts_with("paged_")) {
    findings_.notes.push_back(type->where + " " + type->words[0] +
                              ": nothing is paged; --offload-optimizer cpu moves the state to host "
                              "memory");
  }
  if (options_.optimizer.type != OptimizerType::lion || !is_open("optimizer.beta2")) return;
  if (origin("optimizer.type") == Origin::file) {
    findings_.notes.push_back(type->where +
                              ": the second beta is 0.999, as DeepSpeed's Lion has it by default; "
                              "its paper uses 0.99: \"betas\": [0.9, 0.99]");
  } else {
    constexpr double kPaper = 0.99;
    options_.optimizer.beta2 = kPaper;
  }
}

void Resolver::take_precision() {
  if (const auto open = open_autos_.find("dtype"); open != open_autos_.end()) {
    findings_.notes.push_back(
        fmt::format("{}: found \"auto\", taken as {}; give --dtype bf16, fp16 "
                    "or fp32 to say which",
                    open->second.where, name_of(options_.dtype)));
    derived("dtype");
  }
  if (is_open("communication_dtype")) {
    options_.communication_dtype = options_.dtype;
    derived("communication_dtype");
  }
  if (open_autos_.contains("accumulation_dtype")) derived("accumulation_dtype");
  const Given* parameters = fact("data_types.param_dtype");
  if (parameters == nullptr || parameters->automatic) return;
  TrainOptions unused;
  std::string note;
  const std::string wrong = assign(unused, "dtype", parameters->words, note);
  if (!wrong.empty()) return problem(parameters->where, wrong);
  if (unused.dtype != options_.dtype) {
    problem(parameters->where,
            fmt::format("found {}, expected {}, which fp16 / bf16 / --dtype choose",
                        parameters->words[0], name_of(options_.dtype)));
  }
}

bool Resolver::is_planned() const {
  const bool chooses = command_line_.chooses && options_.plan.empty();
  return chooses || !options_.target.memory.empty() || given("target.strategy") != nullptr;
}

void Resolver::take_batch() {
  const Given* open = nullptr;  // the first that is "auto"
  for (const char* name : {"micro_batch", "global_batch", "accumulation"})
    if (open == nullptr) open = find(open_autos_, name);
  const auto number = [&](std::string_view name, std::int64_t value) {
    BatchNumber result;
    result.from_flag = origin(name) == Origin::command_line;
    if (!is_open(name)) result.value = value;
    return result;
  };
  BatchRequest request = {number("global_batch", options_.global_batch),
                          number("micro_batch", options_.micro_batch),
                          number("accumulation", options_.accumulation)};
  // A given number that was refused (and reported) leaves nothing to derive others from.
  for (const char* name : {"global_batch", "micro_batch", "accumulation"}) {
    if (in_file(name) != nullptr && is_open(name)) return;
  }
  if (!request.micro.value && !request.global.value) {
    if (open != nullptr && !is_planned()) {  // a planner would divide the batch
      problem(open->where,
              "\"auto\" needs --micro-batch N, or --target-memory auto to let it be chosen");
      for (const char* name : {"micro_batch", "global_batch", "accumulation"}) derived(name);
      return;
    }
    // The default micro-batch serves if there is no file.
    if (file_.file.empty() || open != nullptr) request.micro.value = options_.micro_batch;
    if (open != nullptr)
      findings_.notes.push_back(
          fmt::format("{}: found \"auto\" and no batch size: a step has {} samples per rank, and "
                      "the planner chooses how many are taken at a time; give train_batch_size",
                      open->where, options_.micro_batch));
  }
  request.virtual_ranks = options_.virtual_ranks > 0;
  const BatchTriple triple = solve_batch(request, leaves(options_, world_));
  if (!triple.note.empty()) findings_.notes.push_back(triple.note);
  if (!triple.problem.empty()) problem(file_.file, triple.problem);
  const auto store = [&](std::string_view name, std::int64_t& target, std::int64_t value) {
    if (target != value) sources_.erase(std::string(name));
    target = value;
    derived(name);
  };
  store("global_batch", options_.global_batch, triple.global);
  store("micro_batch", options_.micro_batch, triple.micro);
  store("accumulation", options_.accumulation, triple.accumulation);
}

void Resolver::take_zero() {
  const auto answer = [&](std::string_view name, std::int64_t& target, std::int64_t value) {
    if (!open_autos_.contains(name)) return;
    target = value;
    derived(name);
  };
  // The rules of transformers' HfTrainerDeepSpeedConfig; 0.9 h^2 in integer arithmetic.
  const std::int64_t hidden = model_.hidden;
  answer("zero.reduce_bucket_elements", options_.zero.reduce_bucket_elements, hidden * hidden);
  answer("zero.prefetch_bucket_elements", options_.zero.prefetch_bucket_elements,
         hidden * hidden * 9 / 10);
  answer("zero.param_persistence_threshold_elements",
         options_.zero.param_persistence_threshold_elements, hidden * 10);
}

void Resolver::take_recomputation() {
  const Given* section = fact("activation_checkpointing");
  if (!options_.activation_checkpointing) {
    if (section != nullptr) {
      findings_.notes.push_back(section->where +
                                ": switches nothing on, as in DeepSpeed; "
                                "--activation-checkpointing or \"strata\": "
                                "{\"activation_checkpointing\": true} does");
    }
    return;
  }
  const Given* segments = fact("activation_checkpointing.number_checkpoints");
  if (segments != nullptr && !segments->automatic && is_open("checkpoint_segments")) {
    std::string note;
    const std::string wrong = assign(options_, "checkpoint_segments", segments->words, note);
    if (!wrong.empty()) problem(segments->where, wrong);
    sources_["checkpoint_segments"] = {Origin::file, segments->where};
  }
  const Given* host = fact("activation_checkpointing.cpu_checkpointing");
  if (host == nullptr || host->automatic || host->words[0] != "true") return;
  if (is_open("offload.activations")) {
    options_.offload.activations = plan::Home::host;
    sources_["offload.activations"] = {Origin::file, host->where};
  } else if (options_.offload.activations != plan::Home::host) {
    note_contradiction(*given("offload.activations"), *host);
  }
}

bool Resolver::waits_for_data(std::string_view option) const {
  if (options_.epochs == 0) return false;
  return option == "steps" ||
         (option == "scheduler.total_num_steps" && options_.scheduler.ends_with_run) ||
         (option == "scheduler.warmup_num_steps" && options_.scheduler.warmup_ratio > 0);
}

/// False for options that change the numbers or the screen of a run, and neither its memory nor its
/// time.
static bool decides_plan(std::string_view option) {
  return option != "optimizer.learning_rate" && option != "steps_per_print" &&
         !option.starts_with("scheduler.");
}

void Resolver::report_open_autos() {
  for (const auto& [name, given] : open_autos_) {
    if (given.auto_is_default) {
      sources_[name] = {Origin::automatic, given.where};
      if (name == "zero.stage" && !is_planned())  // "auto" does not sound like 0
        findings_.notes.push_back(
            fmt::format("{}: found \"auto\", taken as {}; give --zero, or --target-memory auto to "
                        "let it be chosen",
                        given.where, options_.zero.stage));
    } else if (command_line_.chooses && !decides_plan(name)) {
      sources_[name] = {Origin::automatic, given.where};
      left_open_.insert(name);
      findings_.notes.push_back(
          fmt::format("{}: found \"auto\", on which no plan depends; train needs {}", given.where,
                      flag_of(name)));
    } else {
      problem(given.where, "\"auto\" needs " + flag_of(name));
    }
  }
  open_autos_.clear();
}

ResolvedConfig Resolver::finish() {
  report_open_autos();
  sort_by_line(findings_.problems, file_.file);
  sort_by_line(findings_.warnings, file_.file);
  if (!findings_.problems.empty()) {
    std::string message = joined(findings_.problems, "\n");
    for (const std::string& text : findings_.warnings) message += "\nwarning: " + text;
    if (findings_.problems.size() == wrong_flags_) throw InvalidArgument(message);
    throw ConfigError(message);
  }
  for (const OptionField& field : fields_) {
    ResolvedField resolved{std::string(field.name), text_of(field), Origin::default_value, ""};
    if (waits_for_data(field.name)) resolved.value = "by epochs";
    resolved.left_open = left_open_.contains(field.name);
    if (resolved.left_open) resolved.value = "auto";
    const auto source = sources_.find(field.name);
    if (source != sources_.end()) {
      resolved.origin = source->second.origin;
      resolved.where = source->second.where;
    }
    resolved_.fields.push_back(resolved);
  }
  resolved_.notes = findings_.notes;
  resolved_.warnings = findings_.warnings;
  return resolved_;
}

}  // namespace strata::train
