#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "train/config/config_testing.h"
#include "train/config/flag_table.h"
#include "train/config/option_fields.h"

namespace strata::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string word(const ParsedCommandLine& line, const std::string& option) {
  const auto it = line.settings.find(option);
  return it == line.settings.end() ? "absent" : it->second.words[0];
}

std::string complaint(const std::vector<std::string>& words) {
  try {
    flags(words);
    return "";
  } catch (const InvalidArgument& error) {
    return error.what();
  }
}

TEST(CommandLine, EverySpellingOfAValueIsAccepted) {
  const std::vector<std::vector<std::string>> cases = {
      {"micro_batch", "4", "--micro-batch", "--per_device_train_batch_size"},
      {"accumulation", "4", "--accumulation", "--gradient_accumulation_steps"},
      {"steps", "4", "--steps", "--max_steps"},
      {"optimizer.learning_rate", "4", "--learning-rate", "--learning_rate", "--lr"},
      {"gradient_clipping", "4", "--gradient-clipping", "--max_grad_norm"},
      {"optimizer.weight_decay", "4", "--weight-decay", "--weight_decay"},
      {"scheduler.warmup_num_steps", "4", "--warmup-steps", "--warmup_steps"},
      {"checkpoint.every", "4", "--save-every", "--save_steps"},
      {"checkpoint.keep", "4", "--keep", "--save_total_limit"},
      {"checkpoint.on_signal", "false", "--save-on-signal"},
      {"checkpoint.grace_seconds", "4", "--grace"},
      {"output", "4", "--output", "--output_dir"},
      {"model", "4", "--model", "--model_name_or_path"},
      {"data", "4", "--data", "--train_file"},
      {"eval_data", "4", "--eval-data", "--validation_file"},
      {"seed", "4", "--seed"},
      {"zero.prefetch_bucket_elements", "4", "--prefetch"},
      {"eval_every_steps", "4", "--eval-every"},
      {"offload.optimizer", "cpu", "--offload-optimizer", "--offload_optimizer_device"},
      {"offload.parameters", "nvme", "--offload-param", "--offload-parameters"},
      {"offload.activations", "cpu", "--offload-activations"},
      {"offload.optimizer_ratio", "0.5", "--offload-ratio"},
      {"offload.nvme_paths", "/a", "--nvme-path", "--nvme_path"},
      {"offload.device_memory_bytes", "24GB", "--device-memory"},
      {"offload.host_memory_bytes", "1.5GiB", "--host-memory"},
      {"offload.updates", "step_end", "--update-time"},
      {"sequence_length", "4", "--sequence-length"},
      {"threads", "4", "--threads"},
      {"trace", "4", "--trace"},
      {"metrics", "4", "--metrics"},
      {"dump_state", "4", "--dump-state"},
  };
  for (const std::vector<std::string>& row : cases) {
    for (std::size_t i = 2; i < row.size(); ++i) {
      SCOPED_TRACE(row[i]);
      EXPECT_EQ(word(flags({row[i], row[1]}), row[0]), row[1]);
      EXPECT_EQ(word(flags({row[i] + "=" + row[1]}), row[0]), row[1]);
    }
  }
}

TEST(CommandLine, SwitchesTakeAnOptionalBoolean) {
  EXPECT_EQ(word(flags({"--bf16"}), "dtype"), "bf16");
  EXPECT_EQ(word(flags({"--fp16", "True"}), "dtype"), "fp16");
  EXPECT_EQ(word(flags({"--bf16", "false"}), "dtype"), "absent");
  EXPECT_EQ(word(flags({"--gradient_checkpointing"}), "activation_checkpointing"), "true");
  EXPECT_EQ(word(flags({"--activation-checkpointing", "--steps", "3"}), "activation_checkpointing"),
            "true");
  EXPECT_EQ(word(flags({"--shuffle", "false"}), "shuffle"), "false");
  EXPECT_EQ(word(flags({"--print-plan", "--print-program"}), "print_program"), "true");
}

TEST(CommandLine, ListsAndPairs) {
  const ParsedCommandLine line =
      flags({"--data", "a.txt", "b.bin", "--betas", "0.9", "0.95", "--zero", "1", "--zero", "3"});
  EXPECT_THAT(line.settings.at("data").words, ElementsAre("a.txt", "b.bin"));
  EXPECT_EQ(word(line, "optimizer.beta1"), "0.9");
  EXPECT_EQ(word(line, "optimizer.beta2"), "0.95");
  EXPECT_EQ(word(line, "zero.stage"), "3");  // the last one
  EXPECT_THAT(flags({"--nvme-path", "/a,/b", "/c", "--nvme-path", "/d"})
                  .settings.at("offload.nvme_paths")
                  .words,
              ElementsAre("/a", "/b", "/c", "/d"));
}

TEST(CommandLine, ConfigurationFileHasManyNames) {
  EXPECT_EQ(flags({"--config", "a.json"}).config, "a.json");
  EXPECT_EQ(flags({"--deepspeed", "a.json"}).config, "a.json");
  EXPECT_EQ(flags({"--deepspeed_config", "a.json"}).config, "a.json");
  EXPECT_EQ(flags({"--deepspeed"}).config, "");
  const ParsedCommandLine check = flags({"--check-config", "a.json", "--world-size", "8"});
  EXPECT_EQ(check.action, ParsedCommandLine::Action::check_config);
  EXPECT_EQ(check.config, "a.json");
  EXPECT_EQ(check.assumed_world, 8);
  EXPECT_EQ(flags({"-h"}).action, ParsedCommandLine::Action::help);
  EXPECT_EQ(requested_model(flags({})), "gpt2-tiny");
}

TEST(CommandLine, LocalRankIsIgnoredWithANote) {
  EXPECT_THAT(lines(flags({"--local_rank=3"}).notes), HasSubstr("--local_rank: accepted, unused"));
}

TEST(CommandLine, MistakesAreUsageErrorsThatSayWhatWasMeant) {
  EXPECT_THAT(complaint({"--sequence-lenght", "4"}),
              HasSubstr("did you mean '--sequence-length'?"));
  EXPECT_THAT(complaint({"--learnin-rate=4"}), HasSubstr("did you mean '--learning-rate'?"));
  EXPECT_THAT(complaint({"--adam-eps", "4"}), HasSubstr("did you mean '--adam"));
  EXPECT_THAT(complaint({"--warm-up-steps", "4"}), HasSubstr("did you mean '--warmup-steps'?"));
  EXPECT_THAT(complaint({"--lora-rank", "8"}), Not(HasSubstr("did you mean '--local")));
  EXPECT_THAT(complaint({"--zzzzzzzz"}), HasSubstr("unknown flag --zzzzzzzz (train --help"));
  EXPECT_THAT(complaint({"corpus.txt"}), HasSubstr("unexpected argument corpus.txt"));
  EXPECT_THAT(complaint({"--steps"}), HasSubstr("--steps"));
  EXPECT_THAT(complaint({"--betas", "0.9"}), HasSubstr("--betas"));
  EXPECT_THAT(complaint({"--save-every", "3fortnights"}),
              HasSubstr("--save-every: found '3fortnights', expected a number of steps (500) or"));
  EXPECT_THAT(complaint({"--save-every", "-3"}), HasSubstr("--save-every: found '-3'"));
  EXPECT_THAT(complaint({"--on-save-error", "cry"}),
              HasSubstr("--on-save-error: found 'cry', expected one of continue, stop"));
  EXPECT_THAT(complaint({"--offload-optimizer", "gpu"}),
              HasSubstr("--offload-optimizer: found 'gpu', expected one of none, cpu, nvme"));
  EXPECT_THAT(complaint({"--device-memory", "24G"}),
              HasSubstr("--device-memory: found '24G', expected bytes, or a number with KB"));
  EXPECT_THAT(complaint({"--host-memory", "0"}), HasSubstr("--host-memory: found '0'"));
  EXPECT_THAT(complaint({"--offload-ratio", "1.5"}), HasSubstr("from 0 to 1"));
  EXPECT_THAT(complaint({"--nvme-path", ","}), HasSubstr("--nvme-path: found 0 values"));
  EXPECT_THAT(complaint({"--zero", "4"}), HasSubstr("--zero: found '4', expected a whole number"));
  EXPECT_THAT(complaint({"--dtype", "int8"}), HasSubstr("--dtype: found 'int8', expected one of"));
  EXPECT_THAT(complaint({"--bf16", "--fp16"}), HasSubstr("contradicts"));
  EXPECT_THAT(complaint({"--bf16", "maybe"}), HasSubstr("expected true or false"));
  EXPECT_THAT(complaint({"--betas", "0.9", "0.9", "--adam_beta1", "0.8"}),
              HasSubstr("contradicts"));
  const std::string both = complaint({"--micro-batch", "0", "--lr", "fast"});
  EXPECT_THAT(both, HasSubstr("--micro-batch: found '0'"));
  EXPECT_THAT(both, HasSubstr("--learning-rate: found 'fast'"));
}

TEST(CommandLine, EveryFlagHasATargetAndAMeaning) {
  TrainOptions options;
  const std::vector<OptionField> fields = option_fields(options);
  const std::string help = train_help();
  for (const FlagRow& row : flag_table()) {
    SCOPED_TRACE(row.spellings);
    if (row.use == FlagUse::option || row.use == FlagUse::fixed) {
      EXPECT_NE(find_field(fields, row.target.substr(0, row.target.find('+'))), nullptr);
      const std::string first(row.spellings.substr(0, row.spellings.find(',')));
      EXPECT_THAT(help, HasSubstr("  " + first + " "));
    }
  }
}

}  // namespace
}  // namespace strata::train
