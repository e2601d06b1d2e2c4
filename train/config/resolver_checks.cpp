// Resolves the scheduler, and checks limits of the model and combinations of options.
#include <fmt/core.h>
#include <algorithm>

#include "core/check.h"
#include "step/check_plan.h"
#include "train/config/make_plan.h"
#include "train/config/optimizer_recipe.h"
#include "train/config/resolver.h"
#include "train/config/settle_steps.h"
#include "train/models/model_family.h"

namespace strata::train {
namespace {

bool is_deepspeed_warmup(kernels::ScheduleKind type) {
  return type == kernels::ScheduleKind::warmup || type == kernels::ScheduleKind::warmup_decay ||
         type == kernels::ScheduleKind::warmup_cosine;
}

}  // namespace

void Resolver::take_scheduler() {
  SchedulerOptions& s = options_.scheduler;
  take_warmup_ratio();
  const bool absolute =
      s.type == kernels::ScheduleKind::warmup || s.type == kernels::ScheduleKind::warmup_decay;
  if (is_deepspeed_warmup(s.type)) {
    // DeepSpeed's defaults: a logarithmic warm-up of 1000 steps.
    if (is_open("scheduler.warmup_type")) s.warmup_type = WarmupType::logarithmic;
    if (is_open("scheduler.warmup_num_steps")) {
      s.warmup_num_steps = open_autos_.contains("scheduler.warmup_num_steps") ? 0 : 1000;
    }
  }
  for (const char* name : {"scheduler.warmup_num_steps", "scheduler.warmup_min_lr"}) {
    if (open_autos_.contains(name)) derived(name);
  }
  const bool peak_from_lr = s.type != kernels::ScheduleKind::warmup_decay ||
                            open_autos_.contains("scheduler.warmup_max_lr") ||
                            origin("scheduler.type") == Origin::command_line;
  if (absolute && is_open("scheduler.warmup_max_lr") && peak_from_lr) {
    s.warmup_max_lr = options_.optimizer.learning_rate;
    derived("scheduler.warmup_max_lr");
  }
  const Given* rate = flag("optimizer.learning_rate");
  if (absolute && rate != nullptr && s.warmup_max_lr != options_.optimizer.learning_rate) {
    findings_.notes.push_back(rate->where + " " + rate->words[0] +
                              " wins over the scheduler's warmup_max_lr " +
                              text_of(*find_field(fields_, "scheduler.warmup_max_lr")));
    s.warmup_max_lr = options_.optimizer.learning_rate;
    sources_["scheduler.warmup_max_lr"] = {Origin::command_line, rate->where};
  }
  if (has_end(s.type) && is_open("scheduler.total_num_steps")) {
    s.ends_with_run = true;
    derived("scheduler.total_num_steps");
  }
  take_min_lr();
  check_schedule();
  settle_steps(options_, 0);
  check_length_of_schedule();
  if (is_open("scheduler.cycle_second_step_size")) {
    s.cycle_second_step_size = s.cycle_first_step_size;
  }
  if (is_open("scheduler.cycle_second_stair_count")) {
    s.cycle_second_stair_count = s.cycle_first_stair_count;
  }
}

/// Looks at runs whose steps are known already; find_beginning() at those by epochs.
/// A file that is checked or planned alone says nothing of the run's length unless it is given.
void Resolver::check_length_of_schedule() {
  const bool runs =
      command_line_.action == ParsedCommandLine::Action::train && !command_line_.chooses;
  if (!runs && given("steps") == nullptr) return;
  const auto warn = [&](const char* option, const std::string& text) {
    if (text.empty()) return;
    const Given* said = given(option);
    if (said == nullptr) said = given("scheduler.type");  // DeepSpeed's default of 1000 steps
    findings_.warnings.push_back(said == nullptr ? text : said->where + ": " + text);
  };
  warn("scheduler.warmup_num_steps", describe_unfinished_warmup(options_));
  warn("scheduler.total_num_steps", describe_ended_schedule(options_));
}

void Resolver::check() {
  const OptimizerOptions& optimizer = options_.optimizer;
  if (optimizer.nesterov && (optimizer.momentum == 0 || optimizer.dampening != 0)) {
    const Given* given = in_file("optimizer.nesterov");
    problem(given == nullptr ? "" : given->where,
            "nesterov needs a momentum above 0 and no dampening");
  }
  check_plan();
  check_nonfinite();
  check_checkpoint_ratio();
  check_actions();
  check_state_recipe();
  check_loss_scale();
  check_logs();
  check_target();
  check_lossy();
  check_checkpoints();
  check_virtual_ranks();
  const std::string world = std::to_string(world_);
  const Given* data_parallel = fact("data_parallel_size");
  if (data_parallel != nullptr && !same_word(data_parallel->words[0], world)) {
    problem(data_parallel->where, fmt::format("found {}, expected {}, the number of ranks",
                                              data_parallel->words[0], world));
  }
  const Given* mics = fact("zero_optimization.mics_shard_size");
  double group = -1;
  if (mics != nullptr && parse_number(mics->words[0], group) && group > 0 && group != world_) {
    problem(mics->where,
            fmt::format("found {}, expected -1 or {} (all ranks): smaller groups are not supported",
                        mics->words[0], world));
  }
  check_model_limits();
  if (options_.tf32 && options_.dtype != DType::f32)
    findings_.notes.push_back(fmt::format("{}: changes nothing, products have operands of {}",
                                          given("tf32")->where, name_of(options_.dtype)));
  // People with a DeepSpeed file may know another default; others can read it in --print-config.
  if (!file_.file.empty() && origin("gradient_clipping") == Origin::default_value) {
    findings_.notes.push_back(
        "gradient_clipping is 1.0 by default, as in DeepSpeed since 0.19.4 (older versions did not "
        "clip: set 0)");
  }
}

void Resolver::check_checkpoints() {
  if (options_.checkpoint.overwrite && !same_word(options_.checkpoint.resume, "never"))
    findings_.notes.push_back(given("checkpoint.overwrite")->where +
                              ": replaces nothing, since --resume goes on from what is there");
  if (!options_.output.empty()) return;
  for (const char* name : {"checkpoint.every", "checkpoint.keep", "checkpoint.keep_every"})
    if (const Given* said = given(name); said != nullptr && said->words[0] != "0")
      problem(said->where, "checkpoints need a folder: --output DIR");
  if (const Given* said = given("checkpoint.strategy");
      said != nullptr && options_.checkpoint.strategy != Cadence::never)
    problem(said->where, "checkpoints need a folder: --output DIR");
  for (const char* word : {"auto", "required", "true"})
    if (const Given* said = given("checkpoint.resume");
        said != nullptr && same_word(said->words[0], word))
      problem(said->where,
              "found " + said->words[0] +
                  ", which looks for checkpoints in --output DIR; name that folder, or "
                  "one checkpoint");
}

/// Checks the Plan that the options ask for against the rules of Plans, with a unit larger than any
/// threshold, and blames the options that set the fields at fault.
void Resolver::check_plan() {
  constexpr std::int64_t kLargeUnit = std::int64_t{1} << 62;
  const std::vector<runtime::ParameterUnit> units{{.name = "unit", .elements = kLargeUnit}};
  const runtime::Plan plan =
      plan::with_choices(plan_frame(options_, world_), choices_of(options_), units);
  const auto rules = kernels::StepRules::from(control_attributes(options_));
  for (const step::PlanProblem& found : step::find_problems(plan, units, &rules)) {
    if (found.field == "recipe.optimizer.operation") continue;  // check_state_recipe says it
    const auto field = std::ranges::find(fields_, found.field,
                                         [](const OptionField& f) { return f.decides.field; });
    if (field == fields_.end() && !missing_for_recipe(options_).empty()) continue;  // as above
    STRATA_CHECK(field != fields_.end(), "no option sets what the rules of Plans blame",
                 found.field);
    std::string text = "found " + text_of(*field) + found.text;
    if (const OptionField* with = find_field(fields_, found.with); with != nullptr)
      text += origin(found.with) == Origin::default_value
                  ? fmt::format(" ({}: {} by default)", with->key.path, text_of(*with))
                  : " (" + sources_[found.with].where + ")";
    problem(sources_[std::string(field->name)].where, text);
  }
}

void Resolver::check_virtual_ranks() {
  if (options_.virtual_ranks > 0 && options_.reduction == comm::Reduction::native)
    problem(given("virtual_ranks")->where,
            fmt::format("found {} with reduction native, whose bits depend on the number of ranks; "
                        "set ordered",
                        options_.virtual_ranks));
}

/// Checks here, not among the rules of Plans: whether steps are skipped is no part of the Plan.
void Resolver::check_nonfinite() {
  if (options_.offload.updates == UpdateTime::gradient && options_.on_nonfinite == NonFinite::skip)
    problem(given("offload.updates")->where,
            "found gradient with on_nonfinite skip, which needs the whole gradient before the "
            "first update; leave it out or choose next_step");
}

void Resolver::check_checkpoint_ratio() {
  if (options_.checkpoint_ratio == 1) return;
  const std::string& where = sources_["checkpoint_ratio"].where;
  const std::string found = "found " + text_of(*find_field(fields_, "checkpoint_ratio"));
  if (!options_.activation_checkpointing)
    problem(where, found + " and no activation checkpointing: give --activation-checkpointing");
  if (options_.checkpoint_segments > 0)
    problem(where, fmt::format("{} with checkpoint_segments {}, which are made again as a whole; "
                               "leave one of the two out",
                               found, options_.checkpoint_segments));
}

void Resolver::check_actions() {
  if (options_.actions.empty()) return;
  const std::string& where = sources_["actions"].where;
  std::vector<std::string> beside;
  for (const char* option : {"activation_checkpointing", "recompute_norms", "checkpoint_segments",
                             "checkpoint_ratio", "offload.activations"})
    if (const Given* said = given(option)) beside.push_back(said->where);
  if (!beside.empty())
    problem(where, fmt::format("says alone what is recomputed and what leaves the device, and "
                               "cannot be combined with {}; leave out one or the other",
                               joined(beside, ", ")));
  if (runtime::has_action(options_.actions, runtime::SavedAction::disk) &&
      given("offload.nvme_paths") == nullptr)
    problem(where,
            "found disk without a folder to use: give --nvme-path DIR or \"strata\": "
            "{\"nvme_paths\": [\"/folder/on/the/drive\"]}, or choose host");
}

void Resolver::check_state_recipe() {
  const std::string needs = missing_for_recipe(options_);
  if (needs.empty()) return;
  const Given* said = given("state_recipe");
  if (said == nullptr) said = given("optimizer.type");
  problem(said->where, "found " + text_of(*find_field(fields_, "state_recipe")) + ", which needs " +
                           needs + "; change that or use fp32-master");
}

void Resolver::check_loss_scale() {
  if (options_.dtype == DType::f16) return;
  for (const auto& [option, said] : command_line_.settings)
    if (option.starts_with("loss_scale."))
      findings_.notes.push_back(said.where + ": changes nothing, only fp16 has a loss scale");
}

void Resolver::check_model_limits() {
  constexpr std::int64_t kUsualLength = 1024;
  if (options_.sequence_length == 0) {
    options_.sequence_length = std::min(model_.context, kUsualLength);
    derived("sequence_length");
  }
  const std::int64_t length = options_.sequence_length;
  const Given* said = given("sequence_length");
  const std::string where = said == nullptr ? "sequence_length" : said->where;
  const std::string found = fmt::format("found {} tokens, ", length);
  if (model_.sliding_window > 0 && length > model_.sliding_window) {
    problem(where, fmt::format("{}expected at most the model's sliding window of {} (attention "
                               "inside a window is not built)",
                               found, model_.sliding_window));
  }
  if (length <= model_.context) return;
  if (model_.family->learned_positions)
    problem(where, fmt::format("{}expected at most {}, the positions the model has", found,
                               model_.context));
  else
    findings_.warnings.push_back(
        fmt::format("{}: {}more than the {} the model was made for", where, found, model_.context));
}

}  // namespace strata::train
