#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "train/config/testing/settled_options.h"
#include "train/models/hf_config.h"
#include "train/models/presets.h"

namespace strata::train {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(Resolve, ListsProblemsByTheirLines) {
  const std::string said = refusal(with_batch(R"("scheduler": {"type": "WarmupLR",
    "params": {"warmup_num_steps": -1}}, "gradient_clipping": -2,
    "optimizer": {"type": "Lamb"}, "steps_per_print": "no", "wandb": {"enable": true},
    "strata": {"stepz": 3, "shuffle": 7}, "bf16": {"enabled": 7}, "stpes": 3)"));
  std::vector<char> lines;
  std::istringstream messages(said);
  for (std::string line; std::getline(messages, line);) {
    const std::size_t place = line.find("ds.json:");
    ASSERT_NE(place, line.npos) << line;
    lines.push_back(line.starts_with("warning: ") ? line[place + 8] + 10 : line[place + 8]);
  }
  EXPECT_GE(lines.size(), 6U) << said;
  EXPECT_TRUE(std::ranges::is_sorted(lines)) << said;
}

TEST(Resolve, NothingAtAllIsARun) {
  const ResolvedConfig resolved = resolve_flags({}, 2);
  EXPECT_EQ(resolved.options.micro_batch, 4);
  EXPECT_EQ(resolved.options.global_batch, 8);
  EXPECT_EQ(resolved.options.sequence_length, 128);
  EXPECT_EQ(resolved.options.gradient_clipping, 1);
  EXPECT_EQ(resolved.options.scheduler.type, kernels::ScheduleKind::constant);
  EXPECT_EQ(resolved.origin_of("optimizer.learning_rate"), Origin::default_value);
  EXPECT_EQ(resolved.origin_of("sequence_length"), Origin::automatic);
  EXPECT_THAT(resolved.notes, IsEmpty());
}

TEST(Resolve, ClippingByDefaultIsNewsToWhoBringsADeepSpeedFile) {
  EXPECT_THAT(lines(resolve_text(with_batch("")).notes),
              HasSubstr("gradient_clipping is 1.0 by default"));
}

StoredModel stored_in(std::optional<DType> dtype) { return {true, "my-model", dtype}; }

ResolvedConfig resolve_stored(const std::vector<std::string>& words, const std::string& json = "",
                              std::optional<DType> dtype = DType::bf16) {
  if (json.empty()) return resolve(flags(words), 1, small_model(), stored_in(dtype));
  const ParsedCommandLine line = flags(words);
  return resolve(line, parse_deepspeed_json(json, "ds.json", line.strict), 1, small_model(),
                 stored_in(dtype));
}

TEST(Resolve, StoredWeightsBringTheirTypeAndDefaultsOfFineTuning) {
  const ResolvedConfig resolved = resolve_stored({});
  EXPECT_EQ(resolved.options.dtype, DType::bf16);
  EXPECT_EQ(resolved.options.optimizer.learning_rate, 2e-5);
  EXPECT_EQ(resolved.options.scheduler.type, kernels::ScheduleKind::linear);
  EXPECT_EQ(resolved.options.epochs, 3);
  EXPECT_EQ(resolved.options.output, "my-model-tuned");
  for (const char* name :
       {"dtype", "optimizer.learning_rate", "scheduler.type", "epochs", "output"})
    EXPECT_EQ(resolved.origin_of(name), Origin::stored_model) << name;
  EXPECT_THAT(describe(resolved), HasSubstr("default for a stored model"));
  EXPECT_THAT(lines(resolved.notes),
              HasSubstr("defaults for a stored model: bf16 as stored, learning rate 2e-5, linear "
                        "decay, 3 epochs, --output my-model-tuned"));
  // Models without stored weights keep their defaults.
  const ResolvedConfig fresh = resolve_flags({});
  EXPECT_EQ(fresh.options.optimizer.learning_rate, 1e-3);
  EXPECT_EQ(fresh.options.steps, 100);
  EXPECT_EQ(fresh.options.output, "");
}

TEST(Resolve, WhatIsSaidWinsOverDefaultsForStoredModels) {
  const ResolvedConfig said = resolve_stored({"--dtype", "fp32", "--lr", "1e-4", "--scheduler",
                                              "cosine", "--steps", "7", "--output", "o"});
  EXPECT_EQ(said.options.dtype, DType::f32);
  EXPECT_EQ(said.options.optimizer.learning_rate, 1e-4);
  EXPECT_EQ(said.options.scheduler.type, kernels::ScheduleKind::cosine);
  EXPECT_EQ(said.options.steps, 7);
  EXPECT_EQ(said.options.epochs, 0);
  EXPECT_EQ(said.options.output, "o");
  EXPECT_THAT(lines(said.notes), Not(HasSubstr("stored model")));
  EXPECT_EQ(resolve_stored({"--output", ""}).options.output, "");
  EXPECT_EQ(resolve_stored({"--steps", "0"}).options.output, "");  // it only evaluates
  // A file that switches 16-bit types off asks for fp32; one that does not mention them does not.
  const std::string off = with_batch(R"("fp16": {"enabled": false})");
  EXPECT_EQ(resolve_stored({}, off).options.dtype, DType::f32);
  EXPECT_EQ(resolve_stored({}, with_batch("")).options.dtype, DType::bf16);
  const std::string open =
      with_batch(R"("fp16": {"enabled": "auto"}, "bf16": {"enabled": "auto"})");
  EXPECT_EQ(resolve_stored({}, open).options.dtype, DType::bf16);
  EXPECT_THAT(lines(resolve_stored({}, open, std::nullopt).notes),
              HasSubstr("bf16.enabled: found \"auto\", taken as fp32; give --dtype bf16, fp16 or "
                        "fp32 to say which"));
  EXPECT_EQ(resolve_stored({"--fp16"}, open).options.dtype, DType::f16);
  EXPECT_THAT(lines(resolve_stored({"--fp16"}, open, std::nullopt).notes),
              Not(HasSubstr("bf16.enabled")));
  EXPECT_EQ(resolve_stored({}, "", std::nullopt).options.dtype, DType::f32);
}

TEST(Resolve, AFileOfDeepSpeedKeepsItsOwnDefaultsWithAStoredModel) {
  const std::string optimizer = with_batch(R"("optimizer": {"type": "AdamW", "params": {}})");
  EXPECT_EQ(resolve_stored({}, optimizer).options.optimizer.learning_rate, 1e-3);
  const std::string automatic =
      with_batch(R"("optimizer": {"type": "AdamW", "params": {"lr": "auto"}},
        "scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": "auto",
          "warmup_max_lr": "auto", "warmup_num_steps": "auto", "warmup_min_lr": "auto"}})");
  const ResolvedConfig resolved = resolve_stored({}, automatic);
  EXPECT_EQ(resolved.options.optimizer.learning_rate, 2e-5);
  EXPECT_EQ(resolved.options.scheduler.warmup_max_lr, 2e-5);
  EXPECT_EQ(resolved.options.scheduler.type, kernels::ScheduleKind::warmup_decay);
  EXPECT_EQ(value_of(resolved, "scheduler.total_num_steps"), "by epochs");
}

TEST(Resolve, NoEpochsAreNoLengthOfARun) {
  EXPECT_THAT(refusal(with_batch(""), {"--num_train_epochs", "0"}),
              HasSubstr("0 epochs train nothing; give more, or --steps 0 to evaluate alone"));
  EXPECT_EQ(resolve_flags({"--num_train_epochs", "0", "--max_steps", "7"}).options.steps, 7);
}

TEST(Resolve, WordsThatNobodyChoosesAreNotOffered) {
  EXPECT_THAT(refusal(with_batch(""), {"--save_strategy", "never"}),
              HasSubstr("expected one of no, steps, epoch"));
}

TEST(Resolve, LinesAreAsFarApartAsAnybodyAsks) {
  for (const char* number : {"1e9", "1e20", "9223372036854775807", "Infinity"}) {
    SCOPED_TRACE(number);
    const ResolvedConfig resolved =
        resolve_text(with_batch(std::string("\"steps_per_print\": ") + number));
    EXPECT_GE(resolved.options.steps_per_print, 1'000'000'000);
  }
  EXPECT_THAT(refusal(with_batch("\"steps_per_print\": -1")), HasSubstr("steps_per_print: found"));
  EXPECT_THAT(refusal(with_batch("\"steps_per_print\": 0.5")),
              HasSubstr("steps_per_print: found '0.5', expected a whole number of at least 0"));
  EXPECT_THAT(refusal(with_batch("\"gradient_clipping\": Infinity")),
              HasSubstr("gradient_clipping"));
}

TEST(Resolve, DataEfficiencyIsOnWhereATechniqueOfItIs) {
  const auto file = [](const char* sampling, const char* curriculum, const char* routing,
                       const char* dropping) {
    return with_batch(
        std::string(
            R"("data_efficiency": {"enabled": true, "seed": 1234, "data_sampling": {"enabled": )") +
        sampling + R"(, "num_epochs": 1, "curriculum_learning": {"enabled": )" + curriculum +
        R"(, "data_cluster_path": "x"}}, "data_routing": {"enabled": )" + routing +
        R"(, "random_ltd": {"enabled": )" + dropping + R"(, "total_layer_num": 24}}})");
  };
  EXPECT_EQ(refusal(file("false", "true", "false", "true")), "");
  EXPECT_EQ(refusal(file("true", "false", "true", "false")), "");
  EXPECT_THAT(refusal(file("true", "true", "false", "false")),
              HasSubstr("data_efficiency.data_sampling.curriculum_learning: not supported"));
  EXPECT_THAT(refusal(file("false", "false", "true", "true")),
              HasSubstr("data_efficiency.data_routing.random_ltd: not supported"));
}

TEST(Resolve, WhatDeepSpeedHasRemovedIsRefusedSayingSo) {
  for (
      const char* section :
      {R"("compression_training": {"weight_quantization": {"shared_parameters": {"enabled": true}}})",
       R"("curriculum_learning": {"enabled": true, "curriculum_type": "seqlen"})",
       R"("elasticity": {"enabled": true})", R"("amp": {"enabled": true})",
       R"("sparse_attention": {"mode": "fixed"})", R"("nebula": {"enabled": true})",
       R"("progressive_layer_drop": {"enabled": true})",
       R"("optimizer": {"type": "OneBitAdam", "params": {"lr": 1e-3}})",
       R"("optimizer": {"type": "OneBitLamb", "params": {"lr": 1e-3}})"})
    EXPECT_THAT(refusal(with_batch(section)), HasSubstr("DeepSpeed has removed it, too"))
        << section;
}

TEST(Resolve, FlagsWinOverTheFileWithANote) {
  const ResolvedConfig resolved =
      resolve_text(with_batch("\"gradient_clipping\": 0.5, \"bf16\": {\"enabled\": true},\n"
                              "\"zero_optimization\": {\"stage\": 2}"),
                   {"--zero", "3", "--dtype", "fp32", "--gradient-clipping", "0.5"});
  EXPECT_EQ(resolved.options.zero.stage, 3);
  EXPECT_EQ(resolved.options.dtype, DType::f32);
  EXPECT_EQ(resolved.origin_of("zero.stage"), Origin::command_line);
  const std::string notes = lines(resolved.notes);
  EXPECT_THAT(notes, HasSubstr("--zero 3 wins over ds.json:3: zero_optimization.stage: 2"));
  EXPECT_THAT(notes, HasSubstr("--dtype fp32 wins over ds.json:2: bf16.enabled: bf16"));
  EXPECT_THAT(lines(resolve_text(with_batch("\"bf16\": {\"enabled\": true}"), {"--fp16"}).notes),
              HasSubstr("--fp16 wins over ds.json:2: bf16.enabled: bf16"));
  EXPECT_THAT(notes, Not(HasSubstr("--gradient-clipping")));  // the same value
}

TEST(Resolve, BatchTripleTakesFlagsAndWorld) {
  const ResolvedConfig resolved =
      resolve_text(R"({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 4,
                       "gradient_accumulation_steps": 8})",
                   {"--micro-batch", "8"}, 2);
  EXPECT_EQ(resolved.options.accumulation, 4);
  EXPECT_EQ(resolved.origin_of("accumulation"), Origin::automatic);
  EXPECT_THAT(lines(resolved.notes), HasSubstr("gradient_accumulation_steps 8 of the file"));
  EXPECT_THAT(refusal("{}"), HasSubstr("ds.json: one of train_batch_size"));
  EXPECT_THAT(refusal(R"({"train_batch_size": 3})", {}, 2),
              HasSubstr("nearest: 2 (micro batch 1)"));
  // Each mistake is reported once: the refused number is not used further.
  EXPECT_EQ(refusal(R"({"train_batch_size": 0})").find('\n'), std::string::npos);
  EXPECT_EQ(resolve_text("{}", {"--micro-batch", "3"}).options.global_batch, 3);
}

TEST(Resolve, VirtualRanksTakeThePlaceOfTheWorldInTheBatch) {
  const std::string file = with_batch("\"strata\": {\"virtual_ranks\": 8}");
  for (const int world : {1, 2, 4, 8}) {
    const ResolvedConfig resolved = resolve_text(file, {}, world);
    EXPECT_EQ(resolved.options.virtual_ranks, 8);
    EXPECT_EQ(resolved.options.global_batch, 16);
    EXPECT_EQ(resolved.options.accumulation, 1);
  }
  EXPECT_EQ(resolve_text(file, {"--virtual-ranks", "0"}, 2).options.global_batch, 4);
  EXPECT_EQ(resolve_text(file, {"--virtual-ranks", "1"}, 1).options.global_batch, 2);
  EXPECT_THAT(refusal(file, {"--global-batch", "20"}, 2),
              HasSubstr("is not divisible by micro batch 2 x 8 virtual ranks = 16; nearest"));
}

TEST(Resolve, APartOfCheckpointingNeedsCheckpointingOfSingleLayers) {
  EXPECT_EQ(refusal(with_batch(""), {"--checkpoint-ratio", "0.5"}),
            "--checkpoint-ratio: found 0.5 and no activation checkpointing: give "
            "--activation-checkpointing");
  const std::string ratio = R"("strata": {"activation_checkpointing": {"ratio": 0.5}})";
  EXPECT_EQ(refusal(with_batch(ratio)), "");
  EXPECT_EQ(refusal(with_batch(ratio), {"--checkpoint-segments", "2"}),
            "ds.json:2: strata.activation_checkpointing.ratio: found 0.5 with checkpoint_segments "
            "2, which are made again as a whole; leave one of the two out");
}

TEST(Resolve, VirtualRanksThatRanksCannotStandForAreRefused) {
  const auto wrong = [](int count, int world, const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {"--virtual-ranks", std::to_string(count)};
    words.insert(words.end(), more.begin(), more.end());
    return refusal(with_batch(""), words, world);
  };
  EXPECT_EQ(wrong(6, 2), "--virtual-ranks: found 6, expected a power of two: 4 or 8");
  EXPECT_EQ(wrong(6, 6), wrong(6, 2));
  EXPECT_EQ(
      wrong(4, 3),
      "--virtual-ranks: found 4 with 3 ranks, expected 1, 2 or 4 ranks, or more virtual ranks");
  EXPECT_EQ(wrong(2, 4),
            "--virtual-ranks: found 2 with 4 ranks, expected 1 or 2 ranks, or more virtual ranks");
  EXPECT_EQ(wrong(1, 2),
            "--virtual-ranks: found 1 with 2 ranks, expected 1 rank, or more virtual ranks");
  EXPECT_THAT(wrong(1024, 2), HasSubstr("--virtual-ranks: "));
  EXPECT_EQ(
      wrong(4, 2, {"--layer-major", "--accumulation", "2"}),
      "--virtual-ranks: found 4 with micro-steps layer by layer (layer_major), which adds all "
      "micro-batches up before the ranks; leave one of the two out");
  EXPECT_THAT(refusal(with_batch("\"strata\": {\"virtual_ranks\": 4, \"reduction\": \"native\"}")),
              HasSubstr("ds.json:2: strata.virtual_ranks: found 4 with reduction native"));
}

TEST(Resolve, CommunicationTypeIsTheModelsUnlessSaid) {
  EXPECT_EQ(resolve_flags({"--dtype", "bf16"}).options.communication_dtype, DType::bf16);
  EXPECT_EQ(resolve_flags({"--dtype", "bf16", "--communication-dtype", "fp32"})
                .options.communication_dtype,
            DType::f32);
  EXPECT_EQ(resolve_flags({"--dtype", "bf16"}).options.accumulation_dtype, DType::f32);
}

TEST(Resolve, AutoFollowsTheFlagsAndTheModelAsInHuggingFace) {
  const std::string json = R"({
    "bf16": {"enabled": "auto"}, "fp16": {"enabled": "auto", "loss_scale": "auto"},
    "train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto",
    "gradient_accumulation_steps": "auto", "gradient_clipping": "auto",
    "optimizer": {"type": "AdamW", "params": {"lr": "auto", "betas": "auto", "eps": "auto",
                  "weight_decay": "auto"}},
    "scheduler": {"type": "WarmupDecayLR", "params": {"warmup_min_lr": "auto",
      "warmup_max_lr": "auto", "warmup_num_steps": "auto", "total_num_steps": "auto"}},
    "zero_optimization": {"stage": 3, "reduce_bucket_size": "auto",
      "stage3_prefetch_bucket_size": "auto", "stage3_param_persistence_threshold": "auto",
      "overlap_comm": "auto"}})";
  const ResolvedConfig resolved =
      resolve_text(json,
                   {"--bf16", "--per_device_train_batch_size", "2", "--lr", "3e-4", "--max_steps",
                    "50", "--warmup_steps", "5"},
                   4);
  const TrainOptions& o = resolved.options;
  EXPECT_EQ(o.dtype, DType::bf16);
  EXPECT_EQ(o.global_batch, 8);
  EXPECT_EQ(o.accumulation, 1);
  EXPECT_EQ(o.gradient_clipping, 1);
  EXPECT_EQ(o.optimizer.learning_rate, 3e-4);
  EXPECT_EQ(o.optimizer.beta2, 0.999);
  EXPECT_EQ(o.scheduler.warmup_max_lr, 3e-4);
  EXPECT_EQ(o.scheduler.warmup_num_steps, 5);
  EXPECT_EQ(o.scheduler.total_num_steps, 50);
  EXPECT_EQ(o.zero.reduce_bucket_elements, 64 * 64);
  EXPECT_EQ(o.zero.prefetch_bucket_elements, 3686);  // floor(0.9 * 64^2)
  EXPECT_EQ(o.zero.param_persistence_threshold_elements, 640);
  EXPECT_TRUE(o.zero.overlap_comm);
  for (const char* name : {"zero.reduce_bucket_elements", "scheduler.total_num_steps",
                           "zero.overlap_comm", "optimizer.beta1", "gradient_clipping"}) {
    EXPECT_EQ(resolved.origin_of(name), Origin::automatic) << name;
  }
  const std::string without = refusal(json, {}, 4);
  EXPECT_THAT(without,
              HasSubstr("train_micro_batch_size_per_gpu: \"auto\" needs --micro-batch N, or "
                        "--target-memory auto to let it be chosen"));
  EXPECT_THAT(without, HasSubstr("optimizer.params.lr: \"auto\" needs --learning-rate X"));
  EXPECT_EQ(std::count(without.begin(), without.end(), '\n'), 1) << without;
}

TEST(Resolve, WhatNoPlanDependsOnStaysOpenInAPlan) {
  const auto planned_with = [](const std::string& members) {
    ParsedCommandLine line = flags({});
    line.chooses = true;
    return resolve(line, parse_deepspeed_json(with_batch(members), "ds.json", false), 1,
                   small_model());
  };
  const ResolvedConfig planned =
      planned_with(R"("optimizer": {"type": "AdamW", "params": {"lr": "auto"}},
        "scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": "auto",
          "warmup_max_lr": "auto", "warmup_num_steps": "auto", "warmup_min_lr": "auto"}})");
  EXPECT_EQ(value_of(planned, "optimizer.learning_rate"), "auto");
  EXPECT_EQ(planned.origin_of("optimizer.learning_rate"), Origin::automatic);
  EXPECT_THAT(lines(planned.notes),
              HasSubstr("optimizer.params.lr: found \"auto\", on which no plan depends; train "
                        "needs --learning-rate X"));
  EXPECT_THROW(planned_with(R"("strata": {"state_recipe": "auto"})"), ConfigError);
}

TEST(Resolve, AnOpenBatchIsTheDefaultWhereThePlannerDividesIt) {
  const std::string json =
      R"({"train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto",)"
      R"( "gradient_accumulation_steps": "auto", "autotuning": {"enabled": true}})";
  const ResolvedConfig resolved = resolve_text(json, {}, 2);
  EXPECT_EQ(resolved.options.micro_batch, TrainOptions().micro_batch);
  EXPECT_EQ(resolved.options.global_batch, 2 * TrainOptions().micro_batch);
  EXPECT_EQ(resolved.origin_of("micro_batch"), Origin::automatic);
  EXPECT_THAT(resolved.notes, Contains(HasSubstr("a step has 4 samples per rank")));
}

TEST(Resolve, AnOpenBatchAndStageAreThePlannersWhereItChoosesWithoutATarget) {
  const std::string open =
      R"({"train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto",)"
      R"( "gradient_accumulation_steps": "auto", "zero_optimization": {"stage": "auto"}})";
  const auto resolved_by = [&](ParsedCommandLine line) {
    line.chooses = true;
    return resolve(line, parse_deepspeed_json(open, "ds.json", false), 2, small_model());
  };
  const ResolvedConfig planned = resolved_by(flags({}));
  EXPECT_EQ(planned.options.global_batch, 2 * TrainOptions().micro_batch);
  EXPECT_EQ(planned.origin_of("micro_batch"), Origin::automatic);
  EXPECT_THAT(planned.notes, Contains(HasSubstr("a step has 4 samples per rank")));
  EXPECT_THAT(lines(planned.notes), Not(HasSubstr("taken as 0")));
  EXPECT_THROW((void)resolved_by(flags({"--plan", "file"})), ConfigError)
      << "a Plan chooses nothing";
  EXPECT_EQ(resolve_text(open, {"--strategy", "maximum"}, 2).options.target.memory, "auto");
}

TEST(Resolve, AListOfTargetsNamesThePlanThatTakesIt) {
  for (const std::string list : {"24GB,16GB", "24G,16GB", "auto,16GB"})
    EXPECT_THAT(refusal(with_batch(""), {"--target-memory", list}),
                HasSubstr("--target-memory: found '" + list +
                          "', expected one amount of memory; plan --target-memory " + list +
                          " plans for each"));
  EXPECT_THAT(refusal(with_batch(""), {"--target-memory", "24,000MB"}),
              HasSubstr("expected an amount of memory such as 24GB"));
}

TEST(Resolve, AnyOpenBatchSaysWhatChoosesIt) {
  for (const std::string key : {"train_batch_size", "gradient_accumulation_steps"}) {
    const std::string open = "{\"" + key + "\": \"auto\"}";
    EXPECT_EQ(refusal(open), "ds.json:1: " + key +
                                 ": \"auto\" needs --micro-batch N, or --target-memory auto to let "
                                 "it be chosen");
    const ResolvedConfig planned = resolve_text(open, {"--target-memory", "auto"}, 2);
    EXPECT_EQ(planned.options.global_batch, 2 * TrainOptions().micro_batch);
    EXPECT_EQ(planned.origin_of("micro_batch"), Origin::automatic);
  }
}

TEST(Resolve, SequencesMustFitTheModel) {
  EXPECT_THAT(refusal(with_batch(""), {"--sequence-length", "129"}),
              HasSubstr("--sequence-length: found 129 tokens, expected at most 128"));
  ModelConfig mistral = small_model();
  mistral.family = &kRotaryPositions;
  mistral.sliding_window = 64;
  EXPECT_THAT(refusal(with_batch("\"strata\": {\"sequence_length\": 100}"), {}, 1, mistral),
              HasSubstr("ds.json:2: strata.sequence_length: found 100 tokens, expected at most the "
                        "model's sliding window of 64"));
  mistral.sliding_window = 0;
  const ResolvedConfig longer =
      resolve_text(with_batch(""), {"--sequence-length", "200"}, 1, mistral);
  EXPECT_THAT(lines(longer.warnings), HasSubstr("more than the 128"));
}

TEST(Resolve, AZeroThatStandsForTheDefaultMayBeSaid) {
  const ResolvedConfig said =
      resolve_flags({"--sequence-length", "0", "--virtual-ranks", "0", "--eval-every", "0",
                     "--eval-samples", "0", "--keep", "0"});
  const ResolvedConfig silent = resolve_flags({});
  EXPECT_EQ(said.options.sequence_length, 128);  // the model's context
  for (const char* name :
       {"sequence_length", "virtual_ranks", "eval_every_steps", "eval_samples", "checkpoint.keep"})
    EXPECT_EQ(value_of(said, name), value_of(silent, name)) << name;
}

TEST(Resolve, TheTenFacts) {
  // 1: clipping is on by default. 2: Adam is AdamW. 5: gradients travel in the model's type.
  const ResolvedConfig resolved =
      resolve_text(with_batch(R"("optimizer": {"type": "Adam"}, "bf16": {"enabled": true},
                    "activation_checkpointing": {}, "comms_logger": {"enabled": false})"));
  EXPECT_EQ(resolved.options.gradient_clipping, 1);
  EXPECT_EQ(resolved.options.optimizer.type, OptimizerType::adamw);
  EXPECT_EQ(resolved.options.communication_dtype, DType::bf16);
  // 4: without the key, the progress line decides. 7: the section alone switches nothing on.
  EXPECT_EQ(resolved.options.steps_per_print, 0);
  EXPECT_FALSE(resolved.options.activation_checkpointing);
  // 10: a communication logger that is off gives no note.
  EXPECT_THAT(lines(resolved.notes), Not(HasSubstr("comms_logger")));
  // 6: the scale's rules. 8: reduce_scatter changes nothing. 3, 9: offload_config_test.cpp.
  EXPECT_EQ(resolved.options.loss_scale.hysteresis, 2);
  EXPECT_EQ(refusal(with_batch(R"("zero_optimization": {"reduce_scatter": false})")), "");
}

TEST(Resolve, EveryReadyFileResolves) {
  const std::filesystem::path folder = std::filesystem::path(configs_directory()) / "deepspeed";
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    SCOPED_TRACE(entry.path().string());
    ++files;
    const ResolvedConfig resolved =
        resolve(flags({"--config", entry.path().string(), "--strict-config", "--micro-batch", "2",
                       "--lr", "1e-4", "--steps", "400"}),
                4, read_model_config("gpt2-124m"));
    EXPECT_EQ(resolved.options.global_batch % 8, 0);
    EXPECT_THAT(resolved.warnings, IsEmpty());
    EXPECT_EQ(std::to_string(resolved.options.zero.stage),
              entry.path().filename().string().substr(4, 1));
  }
  EXPECT_GE(files, 5);
}

TEST(Resolve, PrintedTableNamesEveryOptionWithItsOrigin) {
  const std::string table =
      describe(resolve_text(with_batch("\"gradient_clipping\": 2"), {"--zero", "3"}));
  EXPECT_THAT(table, HasSubstr("gradient_clipping"));
  EXPECT_THAT(table, HasSubstr("file (ds.json:2: gradient_clipping)"));
  EXPECT_THAT(table, HasSubstr("command line (--zero)"));
  EXPECT_THAT(table, HasSubstr("default"));
}

}  // namespace
}  // namespace strata::train
