// Checks what each option changes. An option without a row (testing/plan_option_rows.cpp,
// testing/step_option_rows.cpp) fails.
#include <gtest/gtest.h>

#include <set>
#include <span>
#include <string>
#include <vector>

#include "train/config/option_fields.h"
#include "train/config/testing/option_effects.h"

namespace strata::train {
namespace {

// clang-format off
/// Options that other code reads: model, data, where Programs run, what is printed and saved.
const std::set<std::string> kElsewhere{
    "autotune", "calibrate", "check_device", "checkpoint.asynchronous", "checkpoint.changed_data",
    "checkpoint.every", "checkpoint.grace_seconds", "checkpoint.keep", "checkpoint.keep_every",
    "checkpoint.on_error", "checkpoint.on_signal", "checkpoint.retry_seconds", "checkpoint.resume", "choices", "data", "device",
    "device_graphs", "dump_state", "eval_data", "eval_every_steps", "global_batch",
    "log_every_seconds", "memory_report", "logs.csv.enabled", "logs.csv.job_name", "logs.csv.output_path", "logs.directory", "logs.report_to",
    "logs.tensorboard.enabled", "logs.tensorboard.job_name", "logs.tensorboard.output_path", "metrics", "model", "nonfinite_steps", "offload.checksums",
    "offload.host_memory_bytes", "offload.nvme_paths", "offload.queue_depth",
    "offload.request_bytes", "on_nonfinite", "output", "plan", "print_config", "print_plan", "print_program", "profile", "reduction",
    "data_is_text", "token_cache", "tokenizer", "checkpoint.strategy", "epochs", "eval_samples", "eval_strategy", "logging_strategy",
    "scheduler.min_lr", "scheduler.warmup_ratio", "target.lossy", "target.memory", "target.offload", "target.strategy", "write_plan",
    "seed", "shuffle", "steps", "steps_per_print", "threads", "trace",
    "trace_steps", "wall_clock_breakdown", "tf32", "checkpoint.overwrite",
};
// clang-format on

std::vector<EffectRow> all_rows() {
  std::vector<EffectRow> rows;
  for (const std::span<const EffectRow> some : {plan_option_rows(), step_option_rows()})
    rows.insert(rows.end(), some.begin(), some.end());
  return rows;
}

TEST(OptionEffects, EachOptionChangesWhatItsRowSaysAndNothingElse) {
  for (const EffectRow& row : all_rows()) {
    std::string what = row.change.first + " " + row.change.second;
    TrainOptions options;
    for (const auto& [name, value] : row.before) {
      set_option(options, name, value);
      what += ", " + name + " " + value;
    }
    const Effects before = effects_of(options);
    set_option(options, row.change.first, row.change.second);
    EXPECT_EQ(difference(before, effects_of(options)), row.effects) << what;
  }
}

TEST(OptionEffects, EveryOptionHasARowOrIsReadElsewhere) {
  std::set<std::string> known = kElsewhere;
  for (const EffectRow& row : all_rows()) {
    EXPECT_FALSE(kElsewhere.contains(row.change.first)) << row.change.first << " stands in both";
    known.insert(row.change.first);
  }
  TrainOptions options;
  for (const OptionField& field : option_fields(options)) {
    EXPECT_EQ(known.erase(std::string(field.name)), 1u)
        << field.name
        << ": give it a row in train/config/testing that says what it changes, or, if nothing of "
        << "make_plan.h may read it, a place in kElsewhere";
  }
  EXPECT_EQ(known, std::set<std::string>()) << "no options any more";
}

/// Any rule or limit that no option reaches would always keep its default.
TEST(OptionEffects, EveryAttributeOfTheStepIsSetBySomeRow) {
  std::set<std::string> changed;
  for (const EffectRow& row : all_rows())
    for (const auto& [name, value] : row.effects) changed.insert(name);
  for (const auto& [name, value] : effects_of({})) {
    const bool is_wired = name.starts_with("control.") || name.starts_with("plan.limits.");
    if (!is_wired || name == "control.leaves")
      continue;  // this one is set where step_control is placed
    EXPECT_TRUE(changed.contains(name)) << name;
  }
}

}  // namespace
}  // namespace strata::train
