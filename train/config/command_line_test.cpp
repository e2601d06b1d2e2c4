#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "core/testing/test_directory.h"
#include "train/config/flag_table.h"
#include "train/config/option_fields.h"
#include "train/config/testing/settled_options.h"

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
      {"checkpoint.every", "4", "--save-every", "--save_steps", "--checkpointing_steps"},
      {"checkpoint.keep", "4", "--keep", "--save_total_limit"},
      {"checkpoint.on_signal", "false", "--save-on-signal"},
      {"checkpoint.grace_seconds", "4", "--grace"},
      {"output", "4", "--output", "--output_dir"},
      {"model", "4", "--model", "--model_name_or_path"},
      {"data", "4", "--data", "--train_file"},
      {"eval_data", "4", "--eval-data", "--validation_file"},
      {"seed", "4", "--seed"},
      {"zero.prefetch_bucket_elements", "4", "--prefetch"},
      {"eval_every_steps", "4", "--eval-every", "--eval_interval"},
      {"eval_strategy", "epoch", "--eval-strategy", "--eval_strategy", "--evaluation_strategy"},
      {"loss_scale.fixed_scale", "4", "--loss-scale", "--loss_scale"},
      {"loss_scale.window_steps", "4", "--loss-scale-window"},
      {"loss_scale.hysteresis", "4", "--hysteresis"},
      {"loss_scale.minimum", "4", "--min-loss-scale"},
      {"token_cache", "4", "--token-cache", "--data-cache-path"},
      {"eval_samples", "4", "--eval-samples", "--max_eval_samples"},
      {"epochs", "0.5", "--epochs", "--num_train_epochs", "--num-train-epochs"},
      {"checkpoint.strategy", "steps", "--save_strategy"},
      {"logging_strategy", "no", "--logging_strategy"},
      {"scheduler.warmup_ratio", "0.5", "--warmup_ratio", "--lr-warmup-fraction"},
      {"scheduler.min_lr", "0.5", "--min-lr"},
      {"dtype", "bfloat16", "--torch_dtype", "--dtype", "--model_dtype"},
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
  EXPECT_EQ(word(line, "zero.stage"), "3");  // the last one counts
  EXPECT_THAT(flags({"--nvme-path", "/a,/b", "/c", "--nvme-path", "/d"})
                  .settings.at("offload.nvme_paths")
                  .words,
              ElementsAre("/a", "/b", "/c", "/d"));
}

TEST(CommandLine, WhatIsGivenTwiceIsSaid) {
  const ParsedCommandLine line =
      flags({"--config", "a.json", "--zero", "1", "--max_seq_length", "512", "--block_size", "256",
             "--steps", "3", "--steps", "3", "--config", "b.json", "--zero=3"});
  EXPECT_EQ(line.config, "b.json");
  EXPECT_EQ(lines(line.notes),
            "--config: given as a.json and as b.json, the last one counts\n"
            "--sequence-length: given as 512 and as 256, the last one counts\n"
            "--zero: given as 1 and as 3, the last one counts\n");
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
  EXPECT_EQ(flags({"--hardware", "rtx4090"}).hardware, "rtx4090");
  EXPECT_EQ(flags({"-h"}).action, ParsedCommandLine::Action::help);
  EXPECT_EQ(flags({"-h", "--check-config", "a.json"}).action, ParsedCommandLine::Action::help);
  EXPECT_EQ(flags({"--check-config", "a.json", "-h"}).action, ParsedCommandLine::Action::help);
  EXPECT_EQ(flags({"--version"}).action, ParsedCommandLine::Action::version);
  EXPECT_EQ(requested_model(flags({})), "gpt2-tiny");
}

TEST(CommandLine, FlagsThatSetNothingAreNotedByTheirName) {
  const std::string notes =
      lines(flags({"--run_name", "x", "--per-device-eval-batch-size=8", "--with_tracking",
                   "--push_to_hub", "False", "--packing", "true", "--do_eval"})
                .notes);
  EXPECT_THAT(notes, HasSubstr("--run_name: accepted, unused: use --report-to"));
  EXPECT_THAT(notes, HasSubstr("--per_device_eval_batch_size: accepted, unused: the mean"));
  EXPECT_THAT(notes, HasSubstr("--with_tracking: accepted, unused"));
  EXPECT_THAT(notes, HasSubstr("--packing: accepted, unused"));
  EXPECT_THAT(notes, HasSubstr("--do_eval: accepted, unused"));
  EXPECT_THAT(notes, Not(HasSubstr("push_to_hub")));  // because nothing was asked for
}

/// Covers flags as transformers 5.23 and its programs take them, and the switches that argparse
/// makes for those that are true by default.
TEST(CommandLine, FlagsOfTransformersThatSetNothingAreKnown) {
  for (const char* flag : {"--no_average_tokens_across_devices",
                           "--no_log_on_each_node",
                           "--no_logging_nan_inf_filter",
                           "--no_eval_do_concat_batches",
                           "--no_dataloader_pin_memory",
                           "--no_dataloader_in_order",
                           "--no_remove_unused_columns",
                           "--no_skip_memory_metrics",
                           "--no_save_safetensors",
                           "--no_use_fast_tokenizer",
                           "--trackio_bucket_id",
                           "--trackio_static_space_id",
                           "--restore_callback_states_from_checkpoint",
                           "--use_mps_device",
                           "--predict_with_generate",
                           "--generation_config",
                           "--generation_max_length",
                           "--generation_num_beams",
                           "--sortish_sampler",
                           "--num_padding_at_beginning"})
    EXPECT_THAT(lines(flags({flag}).notes), HasSubstr(flag + std::string(": accepted, unused: ")));
}

TEST(CommandLine, FlagsThatAreNotAvailableAreRefusedUnlessTheyAskForNothing) {
  EXPECT_THAT(complaint({"--lora-rank", "8"}), HasSubstr("--lora_rank is not supported: adapters"));
  EXPECT_THAT(complaint({"--load_best_model_at_end"}),
              HasSubstr("is not supported: the last model"));
  EXPECT_THAT(complaint({"--neftune_noise_alpha", "5"}), HasSubstr("noise on embeddings"));
  EXPECT_EQ(complaint({"--load_best_model_at_end", "False", "--load_in_4bit", "no", "--lora_r", "0",
                       "--tensor-model-parallel-size", "1", "--label_smoothing_factor", "0.0"}),
            "");
  EXPECT_THAT(complaint({"--tensor-model-parallel-size", "2"}), HasSubstr("only data parallelism"));
  EXPECT_THAT(complaint({"--train-tokens", "1000"}), HasSubstr("tokens / (global batch x"));
  for (const char* flag : {"--lr-warmup-tokens", "--lr-decay-tokens", "--adafactor",
                           "--no-load-optim", "--no-load-rng", "--no_keep_linebreaks"})
    EXPECT_THAT(complaint({flag}), HasSubstr(" is not supported: "));
}

TEST(CommandLine, NotTrainingIsRefusedWithWhatEvaluatesAlone) {
  EXPECT_EQ(complaint({"--do_train", "False", "--do_eval"}),
            "--do_train False is not supported: --steps 0 with --eval-data FILE evaluates alone");
  EXPECT_THAT(complaint({"--skip-train"}), HasSubstr("--skip_train is not supported: --steps 0"));
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"--do_train"}, {"--do_train", "True"}, {"--skip-train", "no"}})
    EXPECT_EQ(complaint(words), "");
}

TEST(CommandLine, AllProblemsAreSaidAtOnce) {
  const std::string all = complaint({"--stepz", "3", "--use_peft", "--zero", "9", "--bf16",
                                     "--fp16", "--nosuchflag=1", "--quantization_bit", "4"});
  for (const char* part : {"unknown flag --stepz, did you mean '--steps'?",
                           "--use_peft is not supported", "--zero: found '9'", "contradicts",
                           "unknown flag --nosuchflag=1", "--quantization_bit is not supported"})
    EXPECT_THAT(all, HasSubstr(part));
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 5) << all;
  // Suggestions never name a flag that does nothing.
  EXPECT_THAT(complaint({"--lora-ranking", "3"}), Not(HasSubstr("did you mean '--lora")));
}

TEST(CommandLine, WordsOfOtherProgramsAreTurnedIntoOptions) {
  const ParsedCommandLine fsdp = flags({"--fsdp", "full_shard auto_wrap offload"});
  EXPECT_EQ(word(fsdp, "zero.stage"), "3");
  EXPECT_EQ(word(fsdp, "offload.optimizer"), "cpu");
  EXPECT_EQ(word(fsdp, "offload.parameters"), "cpu");
  EXPECT_EQ(word(flags({"--fsdp", "shard_grad_op", "auto_wrap"}), "zero.stage"), "2");
  EXPECT_THAT(complaint({"--fsdp", "half_shard"}), HasSubstr("--fsdp: found 'half_shard'"));
  EXPECT_EQ(word(flags({"--torch_dtype", "auto"}), "dtype"), "absent");
  EXPECT_EQ(word(flags({"--bf16", "--torch_dtype", "auto"}), "dtype"), "bf16");
  EXPECT_EQ(complaint({"--bf16", "--torch_dtype", "bfloat16"}), "");
  EXPECT_EQ(word(flags({"--resume_from_checkpoint", "False"}), "checkpoint.resume"), "absent");
  EXPECT_EQ(word(flags({"--warmup_steps", "0.03"}), "scheduler.warmup_ratio"), "0.03");
  EXPECT_EQ(word(flags({"--checkpointing_steps", "epoch"}), "checkpoint.strategy"), "epoch");
  const ParsedCommandLine offload = flags({"--zero_stage", "3", "--offload"});
  EXPECT_EQ(word(offload, "offload.optimizer"), "cpu");
  EXPECT_EQ(word(offload, "offload.parameters"), "cpu");
  EXPECT_THAT(lines(flags({"--offload", "false"}).notes),
              HasSubstr("to overrule them give --offload-optimizer none|cpu|nvme"));
  EXPECT_EQ(word(flags({"--cpu-optimizer"}), "offload.optimizer"), "cpu");
  EXPECT_EQ(word(flags({"--cpu-optimizer"}), "offload.parameters"), "absent");
  EXPECT_EQ(word(flags({"--initial-loss-scale", "65536"}), "loss_scale.initial_scale_power"), "16");
  for (const char* scale : {"1000", "0.5", "0", "big"})
    EXPECT_THAT(complaint({"--initial-loss-scale", scale}), HasSubstr("expected a power of two"));
  const ParsedCommandLine kwargs = flags(
      {"--lr_scheduler_kwargs", R"({"min_lr": 1e-5, "decay_type": "1-sqrt", "num_cycles": 2})"});
  EXPECT_EQ(word(kwargs, "scheduler.min_lr"), "1e-05");
  EXPECT_EQ(word(kwargs, "scheduler.decay_shape"), "1-sqrt");
  EXPECT_EQ(word(kwargs, "scheduler.num_cycles"), "2");
  EXPECT_THAT(complaint({"--lr_scheduler_kwargs", R"({"min_lr_rat": 1})"}),
              HasSubstr("unknown argument 'min_lr_rat', did you mean 'min_lr_rat"));
  EXPECT_THAT(complaint({"--lr_scheduler_kwargs", "min_lr=1"}),
              HasSubstr("--lr_scheduler_kwargs:1: "));
  EXPECT_THAT(complaint({"--lr_scheduler_kwargs", R"({"power": 0})"}),
              HasSubstr("--lr_scheduler_kwargs: found '0', expected a whole number from 1"));
}

TEST(CommandLine, NoSpellingMeansTwoThings) {
  std::map<std::string, std::string_view> owners;
  for (const FlagRow& row : flag_table())
    for (const std::string& spelling : spellings_of(row)) {
      const auto [owner, added] = owners.emplace(spelling, row.spellings);
      EXPECT_TRUE(added) << spelling << " is of " << owner->second << " and of " << row.spellings;
    }
}

TEST(CommandLine, LocalRankIsIgnoredWithANote) {
  EXPECT_THAT(lines(flags({"--local_rank=3"}).notes), HasSubstr("--local_rank: accepted, unused"));
}

TEST(CommandLine, MistakesNameTheProgramAndItsOwnFlags) {
  const auto complaint_of_plan = [](const char* word) {
    const char* words[] = {"plan", word};
    return message_of<InvalidArgument>([&] {
      (void)parse_train_command_line(2, words, {.program = "plan", .own = {"--explain"}});
    });
  };
  EXPECT_EQ(complaint_of_plan("--no-such-flag"),
            "unknown flag --no-such-flag (plan --help lists the flags)");
  EXPECT_EQ(complaint_of_plan("--explian"),
            "unknown flag --explian, did you mean '--explain'? (plan --help lists the flags)");
}

TEST(CommandLine, MistakesAreUsageErrorsThatSayWhatWasMeant) {
  EXPECT_THAT(complaint({"--sequence-lenght", "4"}),
              HasSubstr("did you mean '--sequence-length'?"));
  EXPECT_THAT(complaint({"--learnin-rate=4"}), HasSubstr("did you mean '--learning-rate'?"));
  EXPECT_THAT(complaint({"--adam-eps", "4"}), HasSubstr("did you mean '--adam"));
  EXPECT_THAT(complaint({"--warm-up-steps", "4"}), HasSubstr("did you mean '--warmup-steps'?"));
  EXPECT_THAT(complaint({"--lora-rank", "8"}), Not(HasSubstr("did you mean '--local")));
  EXPECT_THAT(complaint({"--zzzzzzzz"}), HasSubstr("unknown flag --zzzzzzzz (train --help"));
  EXPECT_EQ(
      complaint({"--hardware", "rtx4090,link=12GB/s,h100"}),
      "--hardware rtx4090,link=12GB/s,h100: train plans for one machine, and these are 2; plan "
      "--hardware rtx4090,link=12GB/s,h100 plans for each");
  EXPECT_EQ(flags({"--hardware", "rtx4090,link=12GB/s"}).hardware, "rtx4090,link=12GB/s");
  EXPECT_THAT(complaint({"corpus.txt"}), HasSubstr("unexpected argument corpus.txt"));
  EXPECT_EQ(complaint({"--steps"}), "--steps needs a value");
  EXPECT_EQ(complaint({"--betas", "0.9"}), "--betas needs 2 values");
  EXPECT_EQ(complaint({"--betas", "0.8,0.9"}),
            "--betas needs 2 values, separated by a blank, not by a comma");
  EXPECT_EQ(word(flags({"--eval-data", ""}), "eval_data"), "");
  // An unset variable of the shell gives '': the run would begin anew, or without its file.
  EXPECT_THAT(complaint({"--resume", ""}), HasSubstr("--resume: found '', expected auto"));
  EXPECT_THAT(complaint({"--deepspeed", ""}), HasSubstr("found '', expected the name of a file"));
  EXPECT_THAT(complaint({"--save-every", "3fortnights"}),
              HasSubstr("--save-every: found '3fortnights', expected a number of steps (500) or"));
  EXPECT_THAT(complaint({"--save-every", "-3"}), HasSubstr("--save-every: found '-3'"));
  for (const char* flag : {"--eval-every", "--steps-per-print"})
    EXPECT_EQ(complaint({flag, "1.5"}),
              flag + std::string(": found '1.5', expected a part of all steps (0.1) or a whole "
                                 "number of at least 0"));
  EXPECT_THAT(complaint({"--on-save-error", "cry"}),
              HasSubstr("--on-save-error: found 'cry', expected one of continue, stop"));
  EXPECT_THAT(complaint({"--offload-optimizer", "gpu"}),
              HasSubstr("--offload-optimizer: found 'gpu', expected one of none, cpu, nvme"));
  EXPECT_THAT(complaint({"--device-memory", "24G"}),
              HasSubstr("--device-memory: found '24G', which has two readings; write 24GB"));
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

TEST(CommandLine, WordsOfMlaunchAreSentThere) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"-np", "2"},
                                                {"--num_gpus=2"},
                                                {"--nproc_per_node", "2"},
                                                {"--log-dir", "x"},
                                                {"--max_restarts=2"}})
    EXPECT_THAT(complaint(words), HasSubstr(" is mlaunch's, before the program's name"));
}

TEST(CommandLine, FlagsWithoutTheirValueAreSaidWithTheOthers) {
  const std::string all =
      complaint({"--zero", "--lr", "fast", "--nosuch", "--data", "--betas", "0.9", "--steps"});
  for (const char* part :
       {"--zero needs a value", "--learning-rate: found 'fast'", "unknown flag --nosuch",
        "--data needs a value", "--betas needs 2 values", "--steps needs a value"})
    EXPECT_THAT(all, HasSubstr(part));
  EXPECT_EQ(std::ranges::count(all, '\n'), 5) << all;
}

TEST(CommandLine, EveryFlagHasATargetAndAMeaning) {
  TrainOptions options;
  const std::vector<OptionField> fields = option_fields(options);
  const std::string help = train_help();
  for (const FlagGroup& group : flag_groups()) {
    EXPECT_THAT(help, HasSubstr("\n\n" + std::string(group.title) + ":\n  " +
                                std::string(group.first) + " "));
  }
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
