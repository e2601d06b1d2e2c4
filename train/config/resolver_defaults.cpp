// Resolves how long to train, and the defaults of a run that goes on from stored weights.
#include <fmt/core.h>

#include "train/config/resolver.h"
#include "train/config/settle_steps.h"

namespace strata::train {
namespace {

/// Usual values in fine-tuning programs.
constexpr double kTunedRate = 2e-5;
constexpr double kUsualEpochs = 3;

}  // namespace

void Resolver::take_length() {
  const Given* steps = given("steps");
  const Given* epochs = given("epochs");
  const bool has_steps = steps != nullptr && options_.steps >= 0;
  if (epochs != nullptr && options_.epochs == 0 && !has_steps)
    problem(epochs->where, "0 epochs train nothing; give more, or --steps 0 to evaluate alone");
  if (steps != nullptr && options_.steps < 0) {
    if (epochs == nullptr) {
      options_.epochs = kUsualEpochs;
      sources_["epochs"] = {origin("steps"), steps->where};
    }
    sources_.erase("steps");
  } else if (steps != nullptr && options_.epochs > 0 && origin("steps") >= origin("epochs")) {
    findings_.notes.push_back(steps->where + " " + steps->words[0] + " wins over " + epochs->where +
                              " " + epochs->words[0] + ", as in transformers");
    options_.epochs = 0;
  }
}

bool Resolver::file_says_fp32() const {
  bool said = false;
  for (const char* path : {"fp16.enabled", "bf16.enabled"}) {
    const Given* enabled = fact(path);
    if (enabled == nullptr) continue;
    if (enabled->automatic || same_word(enabled->words[0], "true")) return false;
    said = true;
  }
  return said;
}

void Resolver::take_stored_model(const StoredModel& stored) {
  std::string taken;
  const auto take_default = [&](std::string_view option, const std::string& meaning) {
    open_autos_.erase(std::string(option));
    sources_[std::string(option)] = {Origin::stored_model, ""};
    taken += (taken.empty() ? "" : ", ") + meaning;
  };
  if (stored.has_weights) {
    if (is_open("dtype") && stored.dtype && !file_says_fp32()) {
      options_.dtype = *stored.dtype;
      take_default("dtype", std::string(name_of(*stored.dtype)) + " as stored");
    }
    const bool deepspeed_rate =
        in_file("optimizer.type") != nullptr && !open_autos_.contains("optimizer.learning_rate");
    if (is_open("optimizer.learning_rate") && !deepspeed_rate &&
        options_.optimizer.type != OptimizerType::sgd) {
      options_.optimizer.learning_rate = kTunedRate;
      take_default("optimizer.learning_rate", "learning rate 2e-5");
    }
    if (is_open("scheduler.type")) {
      options_.scheduler.type = kernels::ScheduleKind::linear;
      take_default("scheduler.type", "linear decay");
    }
    if (is_open("steps") && is_open("epochs")) {
      options_.epochs = kUsualEpochs;
      take_default("epochs", "3 epochs");
    }
    if (is_open("output") && (options_.epochs > 0 || options_.steps > 0)) {
      options_.output = stored.name + "-tuned";
      take_default("output", "--output " + options_.output);
    }
  }
  if (!taken.empty()) findings_.notes.push_back("defaults for a stored model: " + taken);
  // The number of steps is unknown until the data are open.
  if (options_.epochs > 0) {
    options_.steps = 0;
    derived("steps");
  }
}

void Resolver::take_warmup_ratio() {
  SchedulerOptions& s = options_.scheduler;
  if (s.warmup_ratio == 0) return;
  const Given* ratio = given("scheduler.warmup_ratio");
  const Given* steps = given("scheduler.warmup_num_steps");
  if (steps != nullptr && s.warmup_num_steps > 0 &&
      origin("scheduler.warmup_num_steps") >= origin("scheduler.warmup_ratio")) {
    findings_.notes.push_back(steps->where + " " + steps->words[0] + " wins over " + ratio->where +
                              " " + ratio->words[0] + ", as in transformers");
    s.warmup_ratio = 0;
    return;
  }
  if (steps != nullptr && s.warmup_num_steps > 0) note_contradiction(*ratio, *steps);
  derived("scheduler.warmup_num_steps");
}

void Resolver::take_min_lr() {
  SchedulerOptions& s = options_.scheduler;
  const Given* rate = given("scheduler.min_lr");
  if (rate == nullptr || s.min_lr == 0) return;
  const Given* ratio = given("scheduler.min_lr_rate");
  if (ratio != nullptr)
    return problem(rate->where,
                   "min_lr beside " + ratio->where + " min_lr_rate: give one of the two");
  if (s.min_lr > options_.optimizer.learning_rate)
    return problem(rate->where, "found " + rate->words[0] +
                                    ", expected at most the learning rate " +
                                    text_of(*find_field(fields_, "optimizer.learning_rate")));
  derived("scheduler.min_lr_rate");
}

/// Checks what OneCycle cannot do without, whether a file or a flag chooses it.
void Resolver::check_cycle() {
  if (options_.scheduler.type != kernels::ScheduleKind::one_cycle) return;
  const Given* type = given("scheduler.type");
  const Given* named = fact("scheduler.type");
  const bool is_of_file = named != nullptr && same_word(named->words[0], "OneCycle");
  const Given* momentum = fact("scheduler.params.cycle_momentum");
  const bool cycles =
      momentum == nullptr ? is_of_file : !momentum->automatic && momentum->words[0] == "true";
  if (cycles)
    problem(momentum == nullptr ? named->where : momentum->where,
            "found cycle_momentum true (DeepSpeed's default), expected "
            "\"cycle_momentum\": false: betas do not cycle");
  if (is_of_file) return;  // what is missing in it was said when it was read
  std::vector<std::string> missing;
  for (const char* name : {"cycle_min_lr", "cycle_max_lr"})
    if (given(fmt::format("scheduler.{}", name)) == nullptr) missing.emplace_back(name);
  if (!missing.empty())
    problem(type->where + " OneCycle",
            fmt::format("needs {}, which no flag sets: give {} in scheduler.params of a JSON that "
                        "--config names",
                        joined(missing, " and "), missing.size() > 1 ? "them" : "it"));
}

void Resolver::check_schedule() {
  check_cycle();
  const SchedulerOptions& s = options_.scheduler;
  const Given* type = given("scheduler.type");
  if (type == nullptr) return;
  const bool raised = same_word(type->words[0], "cosine_with_min_lr") ||
                      s.type == kernels::ScheduleKind::cosine_warmup;
  const bool has_minimum =
      given("scheduler.min_lr") != nullptr || given("scheduler.min_lr_rate") != nullptr;
  const std::string arguments = ": --lr_scheduler_kwargs ";
  if (raised && !has_minimum)
    problem(type->where, type->words[0] + " needs min_lr or min_lr_rate" + arguments +
                             "'{\"min_lr_rate\": 0.1}'");
  if (s.type == kernels::ScheduleKind::warmup_stable_decay && s.num_decay_steps == 0)
    problem(type->where, "warmup_stable_decay needs num_decay_steps" + arguments +
                             "'{\"num_decay_steps\": 100}'");
  if (s.type == kernels::ScheduleKind::polynomial && s.lr_end >= options_.optimizer.learning_rate)
    problem(type->where, "polynomial ends at lr_end " +
                             text_of(*find_field(fields_, "scheduler.lr_end")) +
                             ", which must be below the learning rate");
  const Given* rate = given("optimizer.learning_rate");
  const bool peaks_alone =
      s.type == kernels::ScheduleKind::warmup || s.type == kernels::ScheduleKind::warmup_decay;
  if (peaks_alone && rate != nullptr && is_open("scheduler.warmup_max_lr") &&
      s.warmup_max_lr != options_.optimizer.learning_rate)
    findings_.notes.push_back(type->where + " " + type->words[0] +
                              " without warmup_max_lr rises to DeepSpeed's default of " +
                              text_of(*find_field(fields_, "scheduler.warmup_max_lr")) +
                              ", not to " + rate->where + " " + rate->words[0]);
  const bool warms_up = s.warmup_num_steps > 0 || s.warmup_ratio > 0;
  if (same_word(type->words[0], "constant") && warms_up)
    findings_.notes.push_back(
        type->where +
        " constant begins with the warm-up that was asked for, as constant_with_warmup; "
        "transformers' constant leaves it out");
}

}  // namespace strata::train
