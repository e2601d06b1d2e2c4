// Checks that a run of a written file, with the flags that are named beside it, is the run that was
// planned.
#include "train/planning/flags_beside.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "train/config/read_plan.h"
#include "train/config/testing/settled_options.h"
#include "train/planning/planned_config.h"
#include "train/planning/planned_options.h"

namespace strata::train {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kRanks = 2;

/// Splits a line as a shell does.
std::vector<std::string> words_of_line(const std::string& line) {
  std::vector<std::string> words;
  bool quoted = false, begun = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\'') {
      quoted = !quoted;
    } else if (line[i] == ' ' && !quoted) {
      begun = false;
      continue;
    } else if (line[i] == '\\' && !quoted) {
      ++i;
    }
    if (!begun) words.emplace_back();
    begun = true;
    if (line[i] != '\'' || (i > 0 && line[i - 1] == '\\' && !quoted)) words.back() += line[i];
  }
  return words;
}

ResolvedConfig resolve_with(const std::string& note, const DeepSpeedSettings& file = {}) {
  const ParsedCommandLine line = flags(words_of_line(note));
  return line.config.empty() ? resolve(line, file, kRanks, small_model())
                             : resolve(line, kRanks, small_model());
}

/// Expects every option to be the same, but for those named and those about planning.
void expect_same(const ResolvedConfig& planned, const ResolvedConfig& again,
                 const std::set<std::string_view>& but = {}) {
  for (const ResolvedField& field : planned.fields) {
    const bool is_planning = field.name.starts_with("target.") ||
                             field.name.starts_with("print_") || field.name == "write_plan" ||
                             field.name == "memory_report";
    if (is_planning || but.contains(field.name)) continue;
    EXPECT_EQ(value_of(again, field.name), field.value) << field.name;
  }
}

class FlagsBeside : public ::testing::TestWithParam<std::vector<std::string>> {};

TEST_P(FlagsBeside, RepeatTheRunOfASettingsFile) {
  const ResolvedConfig planned = resolve_flags(GetParam(), kRanks);
  const std::string text = planned_config(planned);
  const std::string note = flags_beside(WrittenFile::settings, planned);
  SCOPED_TRACE(text + note);
  expect_same(planned, resolve_with(note, parse_deepspeed_json(text, "ds.json", true)));
}

TEST_P(FlagsBeside, RepeatTheRunOfAPlan) {
  const ResolvedConfig planned = resolve_flags(GetParam(), kRanks);
  const std::string note = flags_beside(WrittenFile::plan, planned);
  SCOPED_TRACE(note);
  const auto decided = options_that_plans_decide();
  std::set<std::string_view> but(decided.begin(), decided.end());
  if (planned.options.offload.updates == UpdateTime::gradient) but.erase("offload.updates");
  but.insert({"offload.device_memory_bytes", "offload.host_memory_bytes"});
  expect_same(planned, resolve_with(note), but);
  for (const char* option : {"--zero", "--activation-checkpointing", "--device-memory"})
    EXPECT_THAT(note, Not(HasSubstr(option)));
}

const std::vector<std::string> kGiven[] = {
    {},
    {"--model", "a folder/with 'quotes'", "--steps", "6", "--data", "a.txt", "b c.txt"},
    {"--steps", "-1"},
    {"--epochs", "3", "--seed", "7", "--shuffle", "false"},
    {"--steps", "9", "--scheduler", "cosine", "--warmup-ratio", "0.3"},
    {"--scheduler", "cosine_with_min_lr", "--lr_scheduler_kwargs",
     R"({"min_lr_rate": 0.1, "num_cycles": 2})"},
    {"--scheduler", "WarmupLR", "--warmup-steps", "3", "--learning-rate", "0.01"},
    {"--optimizer", "lion", "--adam_beta1", "0.8", "--weight-decay", "0.1"},
    {"--optimizer", "sgd", "--momentum", "0.9", "--no-decay", "none"},
    {"--dtype", "bf16", "--optim", "adamw_8bit", "--communication-dtype", "fp32"},
    {"--dtype", "fp16", "--loss-scale", "128"},
    {"--output", "out", "--save-every", "0.1", "--keep", "2", "--async-save", "false"},
    {"--output", "out", "--save-every", "30min", "--eval-data", "held", "--eval-every", "4"},
    {"--zero", "2", "--activation-checkpointing", "--global-batch", "16", "--micro-batch", "2"},
    {"--update-time", "gradient", "--gradient-clipping", "0", "--virtual-ranks", "4"},
    {"--device", "cpu", "--threads", "3", "--tf32", "--metrics", "m", "--report-to",
     "csv,tensorboard", "--logging-dir", "logs", "--trace", "t", "--trace-steps", "2:3"},
    {"--offload-optimizer", "nvme", "--nvme-path", "/a,/b", "--device-memory", "3GB"},
    {"--target-memory", "1GB", "--write-plan", "p", "--memory-report", "r", "--print-config"},
};
INSTANTIATE_TEST_SUITE_P(Given, FlagsBeside, ::testing::ValuesIn(kGiven));

TEST(FlagsBesideFiles, NameWhatOnlyKeysSetInAFileOfTheirOwn) {
  const ResolvedConfig planned = resolve_text(
      with_batch(R"("bf16": {"enabled": true}, "data_types": {"grad_accum_dtype": "bf16"},
        "optimizer": {"type": "AdamW", "params": {"lr": 0.01, "bias_correction": false}},
        "csv_monitor": {"enabled": true, "output_path": "logs"})"),
      {}, kRanks);
  const std::string note = flags_beside(WrittenFile::plan, planned);
  EXPECT_THAT(note, HasSubstr(R"( --config '{"data_types":{"grad_accum_dtype":"bf16"},)"));
  expect_same(planned, resolve_with(note));
}

TEST(FlagsBesideFiles, NameWhatWasPlannedWhereThePlanHasNoWordForIt) {
  ResolvedConfig config =
      resolve_flags({"--output", "out", "--model", "m", "--steps", "9"}, kRanks);
  set_planned({{"micro_batch", "1"}, {"zero.stage", "2"}}, config);
  EXPECT_EQ(flags_beside(WrittenFile::settings, config), "--model m --output out");
  EXPECT_EQ(flags_beside(WrittenFile::plan, config),
            "--model m --sequence-length 128 --micro-batch 1 --accumulation 1 --steps 9 --dtype "
            "fp32 --output out");
}

}  // namespace
}  // namespace strata::train
