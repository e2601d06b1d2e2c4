// Checks what is said of flags and keys that nothing reads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "kernels/ops/learning_rate.h"
#include "train/config/make_plan.h"
#include "train/config/testing/settled_options.h"

namespace strata::train {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// Arguments of a schedule, their values as JSON.
using Arguments = std::map<std::string, std::string>;

std::string json_of(const Arguments& arguments) {
  std::string text;
  for (const auto& [name, value] : arguments)
    text += (text.empty() ? "\"" : ", \"") + name + "\": " + value;
  return "{" + text + "}";
}

struct Schedule {
  std::string type;
  std::string params = "";  ///< in a DeepSpeed JSON; "": a flag names the type
  Arguments needs = {};     ///< without which it is refused
  int reads = 0;            ///< how many of kArguments
};

const Schedule kSchedules[] = {
    {.type = "constant", .reads = 1},
    {.type = "linear", .reads = 4},
    {.type = "cosine", .reads = 5},
    {.type = "WarmupLR", .params = R"("warmup_min_lr": 0)", .reads = 1},
    {.type = "WarmupDecayLR", .params = R"("total_num_steps": 30)", .reads = 2},
    {.type = "WarmupCosineLR", .params = R"("total_num_steps": 30)", .reads = 4},
    {.type = "OneCycle",
     .params = R"("cycle_min_lr": 0.1, "cycle_max_lr": 1, "cycle_momentum": false,
                  "cycle_first_step_size": 5, "decay_step_size": 3, "decay_lr_rate": 0.5)"},
    {.type = "LRRangeTest", .params = R"("lr_range_test_step_size": 5)"},
    {.type = "cosine_warmup_with_min_lr", .needs = {{"min_lr_rate", "0.5"}}, .reads = 6},
    {.type = "cosine_with_restarts", .reads = 3},
    {.type = "polynomial", .reads = 4},
    {.type = "inverse_sqrt", .reads = 2},
    {.type = "warmup_stable_decay", .needs = {{"num_decay_steps", "8"}}, .reads = 9},
};

const Arguments kArguments{
    {"num_warmup_steps", "9"},    {"num_training_steps", "25"}, {"min_lr", "2e-4"},
    {"min_lr_rate", "0.25"},      {"num_cycles", "3"},          {"power", "3"},
    {"lr_end", "1e-5"},           {"timescale", "40"},          {"warmup_lr_rate", "0.3"},
    {"num_stable_steps", "4"},    {"num_decay_steps", "5"},     {"warmup_type", "\"cosine\""},
    {"decay_type", "\"linear\""},
};

/// A run of 30 steps, with these arguments and flags.
ResolvedConfig run_of(const Schedule& schedule, const Arguments& arguments,
                      const std::vector<std::string>& more = {}) {
  std::vector<std::string> words = {"--steps", "30", "--lr_scheduler_kwargs", json_of(arguments)};
  words.insert(words.end(), more.begin(), more.end());
  if (schedule.params.empty()) {
    words.insert(words.end(), {"--scheduler", schedule.type});
    return resolve_flags(words);
  }
  return resolve_text(with_batch(R"("scheduler": {"type": ")" + schedule.type +
                                 R"(", "params": {)" + schedule.params + "}}"),
                      words);
}

std::vector<double> rates_of(const ResolvedConfig& run) {
  const auto schedule = kernels::schedule_from(control_attributes(run.options));
  std::vector<double> rates;
  for (int step = 0; step < 40; ++step) rates.push_back(kernels::learning_rate(schedule, step));
  return rates;
}

Arguments usual_of(const Schedule& schedule) {
  Arguments usual = schedule.needs;
  usual["num_warmup_steps"] = "6";
  return usual;
}

TEST(UnreadFlags, ArgumentsWarnWhereTheyChangeNoRate) {
  for (const Schedule& schedule : kSchedules) {
    const std::vector<double> usual = rates_of(run_of(schedule, usual_of(schedule)));
    int read = 0;
    for (const auto& [name, value] : kArguments) {
      Arguments arguments = usual_of(schedule);
      if (name == "min_lr") arguments.erase("min_lr_rate");
      arguments[name] = value;
      const ResolvedConfig run = run_of(schedule, arguments);
      const bool is_read = rates_of(run) != usual;
      const bool warns = lines(run.warnings).find(" " + name + " ") != std::string::npos;
      EXPECT_NE(warns, is_read) << schedule.type << " " << name << "\n" << lines(run.warnings);
      read += is_read ? 1 : 0;
    }
    EXPECT_EQ(read, schedule.reads) << schedule.type;
  }
}

TEST(UnreadFlags, TheRateAndAPartOfWarmUpWarnWhereTheyChangeNoRate) {
  for (const Schedule& schedule : kSchedules) {
    SCOPED_TRACE(schedule.type);
    const std::vector<double> usual = rates_of(run_of(schedule, usual_of(schedule)));
    const ResolvedConfig rate = run_of(schedule, usual_of(schedule), {"--lr", "5e-4"});
    const ResolvedConfig part = run_of(schedule, schedule.needs, {"--warmup_steps", "0.4"});
    const bool is_own = schedule.type == "OneCycle" || schedule.type == "LRRangeTest";
    EXPECT_EQ(rates_of(rate) == usual, is_own);
    EXPECT_EQ(rates_of(part) == usual, is_own);
    const std::string end = is_own ? " has no effect with " + schedule.type + "\n" : "";
    EXPECT_EQ(lines(part.warnings), is_own ? "--warmup-steps 0.4" + end : "");
    const std::string rates = is_own ? "--learning-rate 5e-4" + end : "";
    const std::string steps = is_own ? "--lr_scheduler_kwargs num_warmup_steps 6" + end : "";
    EXPECT_EQ(lines(rate.warnings), rates + steps);
  }
}

std::string warnings_of(const std::vector<std::string>& words) {
  return lines(resolve_flags(words).warnings);
}

TEST(UnreadFlags, OfOptimizersWarn) {
  EXPECT_EQ(warnings_of({"--momentum", "0.9"}), "--momentum 0.9 has no effect with adamw\n");
  EXPECT_EQ(warnings_of({"--optimizer", "lion", "--adam_epsilon", "1e-6"}),
            "--epsilon 1e-6 has no effect with lion\n");
  EXPECT_EQ(warnings_of({"--optimizer", "sgd", "--adam_beta2", "0.9"}),
            "--adam_beta2 0.9 has no effect with sgd\n");
  EXPECT_EQ(warnings_of({"--optimizer", "lion", "--betas", "0.8", "0.9"}), "");
  EXPECT_EQ(warnings_of({"--optimizer", "sgd", "--momentum", "0.9"}), "");
  EXPECT_EQ(warnings_of({"--optimizer", "adam", "--epsilon", "1e-6"}), "");
}

TEST(UnreadFlags, EachWarnsOnceWhateverItSets) {
  EXPECT_EQ(warnings_of({"--optimizer", "sgd", "--betas", "0.9", "0.95"}),
            "--betas 0.9 0.95 has no effect with sgd\n");
  EXPECT_EQ(warnings_of({"--scheduler", "linear", "--lr_scheduler_kwargs",
                         R"({"num_cycles": 3, "power": 2, "min_lr": 1e-5})"}),
            "--lr_scheduler_kwargs num_cycles 3 power 2 has no effect with linear\n");
}

TEST(UnreadFlags, DefaultsAskForNothing) {
  EXPECT_EQ(warnings_of({"--momentum", "0.0", "--min-lr", "0", "--schedule-steps", "0"}), "");
  EXPECT_EQ(warnings_of({"--optimizer", "sgd", "--betas", "0.9", "0.999"}), "");
  EXPECT_EQ(lines(run_of(kSchedules[6], {}, {"--lr", "0.001", "--warmup-steps", "0"}).warnings),
            "");
}

TEST(UnreadFlags, ATypeThatIsRefusedSaysNothingOfThem) {
  const std::string said = refusal(with_batch(R"("scheduler": {"type": "StepLR"})"),
                                   {"--min-lr", "1e-5", "--momentum", "0.9"});
  EXPECT_THAT(said, HasSubstr("found 'StepLR'"));
  EXPECT_THAT(said, Not(HasSubstr("no effect")));
}

TEST(UnreadKeys, ThatAreAutoNeedNoFlag) {
  const ResolvedConfig run = resolve_text(with_batch(
      R"("optimizer": {"type": "AdamW", "params": {"lr": "auto"}},
         "scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 0.1, "cycle_max_lr": 1,
           "cycle_momentum": false}})"));
  EXPECT_EQ(run.origin_of("optimizer.learning_rate"), Origin::automatic);
  EXPECT_EQ(lines(run.warnings), "");
  const std::string decay = with_batch(R"("scheduler": {"type": "WarmupDecayLR", "params":
         {"total_num_steps": "auto", "warmup_max_lr": "auto"}})");
  EXPECT_EQ(refusal(decay, {"--scheduler", "constant"}), "");
}

std::string optimizer_file(const std::string& type, const std::string& params) {
  return with_batch(R"("optimizer": {"type": ")" + type + R"(", "params": {)" + params + "}}");
}

TEST(UnreadKeys, WarnOnceBesideTheTypeThatCounts) {
  const auto warnings = [](const std::string& file, const std::vector<std::string>& words) {
    return lines(resolve_text(file, words).warnings);
  };
  const std::string sgd = optimizer_file(
      "SGD", R"("lr": 1e-3, "momentum": 0.9, "nesterov": true, "betas": [0.8, 0.9], "eps": 1e-6)");
  const std::string at = "ds.json:2: optimizer.params.";
  EXPECT_EQ(warnings(sgd, {}),
            at + "betas: has no effect with SGD\n" + at + "eps: has no effect with SGD\n");
  EXPECT_EQ(
      warnings(sgd, {"--optimizer", "adamw"}),
      at + "momentum: has no effect with adamw\n" + at + "nesterov: has no effect with adamw\n");
  const std::string adam = optimizer_file("AdamW", R"("lr": 1e-3, "betas": [0.8, 0.9])");
  EXPECT_EQ(warnings(adam, {}), "");
  EXPECT_EQ(warnings(adam, {"--optimizer", "sgd"}), at + "betas: has no effect with sgd\n");
  EXPECT_EQ(warnings(optimizer_file("AdamW", R"("momentum": "auto")"), {}), "");
  const std::string decay = with_batch(R"("scheduler": {"type": "WarmupDecayLR", "params":
         {"total_num_steps": 30, "warmup_num_steps": 2, "warmup_min_lr": 1e-5}})");
  EXPECT_EQ(warnings(decay, {"--scheduler", "linear", "--steps", "30"}),
            "ds.json:3: scheduler.params.warmup_min_lr: has no effect with linear\n");
}

TEST(UnreadFlags, WarnOfADefaultThatDiffersFromTheFileAndWinOverNothing) {
  const std::string file = with_batch(
      R"("optimizer": {"type": "AdamW", "params": {"lr": 3e-4}},
         "scheduler": {"type": "LRRangeTest", "params": {"lr_range_test_step_size": 5}})");
  for (const std::string rate : {"1e-3", "2e-4"}) {
    const ResolvedConfig run = resolve_text(file, {"--lr", rate});
    EXPECT_EQ(lines(run.warnings), "--learning-rate " + rate + " has no effect with LRRangeTest\n");
    EXPECT_THAT(lines(run.notes), Not(HasSubstr("wins over")));
  }
  EXPECT_THAT(lines(resolve_text(optimizer_file("AdamW", R"("lr": 3e-4)"), {"--lr", "1e-3"}).notes),
              HasSubstr("--learning-rate 1e-3 wins over ds.json:2: optimizer.params.lr: "));
}

TEST(UnreadKeys, AMinimumOfFlagsIsThatOfWarmupCosineLR) {
  const std::string file = with_batch(R"("scheduler": {"type": "WarmupCosineLR", "params":
         {"total_num_steps": 30, "warmup_num_steps": 2, "cos_min_ratio": 0.2}})");
  const auto end_of = [](const ResolvedConfig& run) { return rates_of(run).back(); };
  EXPECT_DOUBLE_EQ(end_of(resolve_text(file)), 2e-4);
  const ResolvedConfig rate = resolve_text(file, {"--min-lr", "5e-5"});
  EXPECT_DOUBLE_EQ(end_of(rate), 5e-5);
  EXPECT_THAT(lines(rate.notes), HasSubstr("--min-lr 5e-5 wins over ds.json:3: "
                                           "scheduler.params.cos_min_ratio: 0.2\n"));
  const ResolvedConfig part =
      resolve_text(file, {"--lr_scheduler_kwargs", R"({"min_lr_rate": 0.1})"});
  EXPECT_DOUBLE_EQ(end_of(part), 1e-4);
  EXPECT_THAT(lines(part.notes), HasSubstr("--lr_scheduler_kwargs min_lr_rate 0.1 wins over "
                                           "ds.json:3: scheduler.params.cos_min_ratio: 0.2\n"));
  EXPECT_THAT(lines(resolve_text(file, {"--min-lr", "2e-4"}).notes), Not(HasSubstr("wins over")));
}

constexpr const char* kNotRead = "; its other keys are not read\n";

TEST(UnreadKeys, OfSectionsThatAFlagSwitchesOnAreNoted) {
  const auto notes = [](const std::string& members, const std::vector<std::string>& words) {
    return lines(resolve_text(with_batch(members), words).notes);
  };
  const std::string off = R"("fp16": {"enabled": false, "initial_scale_power": 8})";
  EXPECT_THAT(notes(off, {"--fp16"}),
              HasSubstr(std::string("ds.json:2: fp16 is off in the file, and --fp16 turns it on") +
                        kNotRead));
  EXPECT_EQ(resolve_text(with_batch(off), {"--fp16"}).options.loss_scale.initial_scale_power, 16);
  EXPECT_THAT(notes(R"("fp16": {"initial_scale_power": 8})", {"--dtype", "fp16"}),
              HasSubstr("fp16 is off in the file, and --dtype turns it on"));
  EXPECT_THAT(notes(R"("bfloat16": {"enabled": false, "check_grad_overflow": false})", {"--bf16"}),
              HasSubstr("ds.json:2: bfloat16 is off in the file, and --bf16 turns it on"));
  for (const auto& words : {std::vector<std::string>{}, std::vector<std::string>{"--bf16"}})
    EXPECT_THAT(notes(off, words), Not(HasSubstr("not read")));
  for (const char* alone :
       {R"("fp16": {"enabled": false})",
        R"("fp16": {"enabled": false, "loss_scale": null, "auto_cast": true, "_why": 1})"})
    EXPECT_THAT(notes(alone, {"--fp16"}), Not(HasSubstr("not read"))) << alone;
}

TEST(UnreadKeys, OfOffloadThatAFlagSwitchesOnAreNoted) {
  const std::string file = with_batch(R"("zero_optimization": {"stage": 3,
    "offload_optimizer": {"device": "none", "ratio": 0.3},
    "offload_param": {"device": "none", "max_in_cpu": 7}})");
  const ResolvedConfig run = resolve_text(file, {"--offload-optimizer", "cpu"});
  EXPECT_EQ(run.options.offload.optimizer_ratio, 1);
  EXPECT_THAT(lines(run.notes),
              HasSubstr("ds.json:3: zero_optimization.offload_optimizer is off in the file, and "
                        "--offload-optimizer turns it on; its other keys are not read\n"));
  EXPECT_THAT(lines(run.notes), Not(HasSubstr("offload_param is off")));
  EXPECT_THAT(lines(resolve_text(file, {"--offload"}).notes),
              HasSubstr("ds.json:4: zero_optimization.offload_param is off in the file, and "
                        "--offload turns it on"));
  EXPECT_THAT(lines(resolve_text(file, {"--offload-param", "none"}).notes),
              Not(HasSubstr("not read")));
}

TEST(UnreadKeys, AFolderInASectionThatIsOffIsNamedWhereOneIsMissing) {
  const std::string file = with_batch(R"("zero_optimization": {"stage": 3,
    "offload_optimizer": {"device": "none", "nvme_path": "/a"}})");
  EXPECT_THAT(refusal(file, {"--offload-optimizer", "nvme"}),
              HasSubstr("beside it, or choose cpu; ds.json:3: zero_optimization.offload_optimizer "
                        "is off in the file, and --offload-optimizer turns it on; its other keys "
                        "are not read"));
  EXPECT_EQ(refusal(file, {"--offload-optimizer", "nvme", "--nvme-path", "/b"}), "");
}

}  // namespace
}  // namespace strata::train
