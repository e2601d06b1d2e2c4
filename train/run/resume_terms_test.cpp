#include "train/run/resume_terms.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "train/models/model_family.h"

namespace strata::train {
namespace {

constexpr const char* kDigest = "0123456789abcdef0123456789abcdef";

struct Resuming {
  TrainerState saved;
  ResumingRun run{
      .world = 2, .data_digest = kDigest, .data_tokens = 1000, .samples = 62, .said = {}};
  TrainOptions options;

  Resuming() {
    saved.step = 4;
    saved.consumed_samples = 32;
    saved.seed = options.seed;
    saved.global_batch = options.global_batch = 8;
    saved.sequence_length = options.sequence_length = 16;
    saved.shuffle = options.shuffle;
    saved.data_digest = kDigest;
    saved.data_tokens = 1000;
    saved.optimizer = "adamw";
    options.micro_batch = 4;
  }
  std::string take() {
    const BatchNote note = take_terms(saved, "out/step-00000004", run, options);
    return (note.is_warning ? "warning: " : "") + note.text;
  }
  std::string refusal() {
    try {
      take();
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  }
};

TEST(ResumeTerms, TheSameRunGoesOn) { EXPECT_EQ(Resuming().take(), ""); }

TEST(ResumeTerms, AModelOfOtherTensorsIsNamed) {
  const ModelConfig saved{
      .family = find_family("llama"), .vocabulary = 256, .layers = 4, .hidden = 64};
  ModelConfig now = saved;
  now.rope_theta = 5e5;  // may change, since no tensor depends on it
  require_same_model(saved, "out/step-00000004", now);
  now.layers = 2;
  try {
    require_same_model(saved, "out/step-00000004", now);
    FAIL() << "another model was taken";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "cannot resume from out/step-00000004: it was saved with layers 4, this run has "
                 "2; set --model out/step-00000004, or leave --resume out to begin with another "
                 "model");
  }
}

TEST(ResumeTerms, EverySizeOfATensorIsCompared) {
  const ModelConfig saved{
      .family = find_family("llama"), .vocabulary = 256, .layers = 4, .hidden = 64};
  for (std::int64_t ModelConfig::*size :
       {&ModelConfig::layers, &ModelConfig::hidden, &ModelConfig::vocabulary, &ModelConfig::heads,
        &ModelConfig::kv_heads, &ModelConfig::head_size, &ModelConfig::intermediate}) {
    ModelConfig now = saved;
    now.*size += 1;
    EXPECT_THROW(require_same_model(saved, "out/step-00000004", now), ConfigError);
  }
  ModelConfig untied = saved;
  untied.tied_embeddings = !saved.tied_embeddings;
  EXPECT_THROW(require_same_model(saved, "out/step-00000004", untied), ConfigError);
}

TEST(ResumeTerms, TheSavedGlobalBatchStays) {
  Resuming resuming;
  resuming.options.global_batch = 4;
  resuming.run.world = 1;
  EXPECT_EQ(resuming.take(), "global batch 8 as saved, not 4: accumulation 2");
  EXPECT_EQ(resuming.options.accumulation, 2);
  EXPECT_EQ(resuming.options.global_batch, 8);
}

TEST(ResumeTerms, ABatchThatCannotBeDividedSaysWhatCould) {
  Resuming resuming;  // a global batch of 8 samples
  resuming.options.global_batch = 12;
  resuming.run.world = 3;
  EXPECT_NE(resuming.refusal().find("3 ranks x micro-batch 4 do not divide it: go on with a number "
                                    "of ranks that does"),
            std::string::npos)
      << resuming.refusal();
  resuming.run.world = 4;
  EXPECT_NE(resuming.refusal().find("4 ranks x micro-batch 4 do not divide it: set --micro-batch "
                                    "to a divisor of 2"),
            std::string::npos)
      << resuming.refusal();
}

TEST(ResumeTerms, AGlobalBatchThatWasTypedIsWhatToChange) {
  Resuming resuming;
  resuming.run.world = 1;
  resuming.options.global_batch = resuming.options.micro_batch = 16;
  resuming.run.said.global.where = "--train_batch_size";
  EXPECT_TRUE(
      resuming.refusal().ends_with("this run has 16; 1 rank x micro-batch 16 does not "
                                   "divide it: leave out --train_batch_size 16, or give 8"))
      << resuming.refusal();
  resuming.saved.global_batch = 6;  // the micro-batch by default, 4, does not divide it
  EXPECT_TRUE(resuming.refusal().ends_with("divide it: give --train_batch_size 6"))
      << resuming.refusal();
  resuming.run.said.micro = true;
  EXPECT_TRUE(resuming.refusal().ends_with(
      "divide it: give --train_batch_size 6 with a --micro-batch that divides 6"))
      << resuming.refusal();
  resuming.run.said.accumulation.where = "--accumulation";
  EXPECT_TRUE(resuming.refusal().ends_with(
      "with a --micro-batch that divides 6, and leave out --accumulation 1"))
      << resuming.refusal();
  resuming.run.said.accumulation = {"ds.json:3: gradient_accumulation_steps", true};
  EXPECT_TRUE(
      resuming.refusal().ends_with(", and leave out gradient_accumulation_steps 1 (ds.json:3)"))
      << resuming.refusal();
}

TEST(ResumeTerms, ABatchOfAFileIsWhatToChange) {
  Resuming resuming;
  resuming.run.world = 1;
  resuming.saved.global_batch = 6;
  resuming.options.global_batch = resuming.options.micro_batch = 4;
  resuming.run.said.global = {"ds.json:2: train_batch_size", true};
  EXPECT_TRUE(resuming.refusal().ends_with("divide it: give train_batch_size 6 (ds.json:2)"))
      << resuming.refusal();
  resuming.saved.global_batch = 8;
  EXPECT_EQ(resuming.take(),
            "warning: global batch 8 as saved, not 4: accumulation 2; train_batch_size 4 "
            "(ds.json:2) is not obeyed: set it to 8");
}

TEST(ResumeTerms, ANumberThatWasTypedInVainIsAWarning) {
  Resuming resuming;
  resuming.run.world = 1;
  resuming.options.global_batch = 4;
  resuming.run.said.micro = true;
  EXPECT_EQ(resuming.take(), "global batch 8 as saved, not 4: accumulation 2") << "it is obeyed";
  resuming.options.global_batch = 16;
  resuming.options.accumulation = 4;
  resuming.run.said.accumulation.where = "--accumulation";
  EXPECT_EQ(resuming.take(),
            "warning: global batch 8 as saved, not 16: accumulation 2; --accumulation 4 is not "
            "obeyed: leave it out, or give 2");
  resuming.options.global_batch = 4;
  resuming.options.accumulation = 1;
  resuming.run.said.global.where = "--global-batch";
  EXPECT_EQ(resuming.take(),
            "warning: global batch 8 as saved, not 4: accumulation 2; --global-batch 4 is not "
            "obeyed: leave it out, or give 8; --accumulation 1 is not obeyed: leave it out, or "
            "give 2");
}

TEST(ResumeTerms, AnotherMicroBatchIsSaid) {
  TrainOptions options;
  options.micro_batch = 16;
  EXPECT_EQ(note_on_micro_batch(0, options), "") << "as of an older checkpoint";
  EXPECT_EQ(note_on_micro_batch(16, options), "");
  EXPECT_EQ(note_on_micro_batch(2, options),
            "the checkpoint is of a run with micro-batch 2, this one has 16. Another micro-batch "
            "adds gradients in another order, so that losses differ in their last digits from "
            "those of a run that was not interrupted; --micro-batch 2 keeps the bits");
}

TEST(ResumeTerms, OtherSumsOverRanksAreSaid) {
  TrainOptions options;
  EXPECT_EQ(note_on_leaves(0, 0, 2, options), "");  // as in an imported checkpoint
  EXPECT_EQ(note_on_leaves(2, 0, 2, options), "");
  EXPECT_EQ(note_on_leaves(3, 0, 2, options),
            "the checkpoint is of a run with the sums of 3 ranks, this one makes those of 2: the "
            "state is the same, losses of later steps agree closely, not to the bit");
  EXPECT_EQ(note_on_leaves(1, 0, 2, options).find("with the sums of 1 rank, this one makes"),
            std::string("the checkpoint is of a run ").size());
  const std::string note = note_on_leaves(8, 0, 2, options);
  EXPECT_TRUE(note.ends_with("; --virtual-ranks 8 keeps the bits")) << note;
  options.virtual_ranks = 8;
  EXPECT_EQ(note_on_leaves(8, 0, 2, options), "");
  EXPECT_TRUE(note_on_leaves(4, 0, 2, options).ends_with("; --virtual-ranks 4 keeps the bits"));
  const std::int64_t other = options.micro_batch + 1;
  EXPECT_TRUE(note_on_leaves(4, other, 2, options)
                  .ends_with("; --virtual-ranks 4 with --micro-batch " + std::to_string(other) +
                             " keeps the bits"));
  EXPECT_TRUE(note_on_leaves(4, 0, 8, options).ends_with("not to the bit"));
}

TEST(ResumeTerms, OtherDataIsRefusedByItsDigest) {
  Resuming resuming;
  resuming.run.data_tokens = 999;
  EXPECT_NE(resuming.refusal().find("it was saved with data " + std::string(kDigest) +
                                    " (1000 tokens), this run has " + kDigest + " (999 tokens)"),
            std::string::npos);
  resuming.options.checkpoint.changed_data = true;
  EXPECT_EQ(resuming.take(), "");
}

TEST(ResumeTerms, ImportedCheckpointsSayThatTheyAre) {
  Resuming resuming;
  resuming.saved.data_digest = kUnknownData;
  resuming.saved.seed = resuming.options.seed + 1;
  const std::string refusal = resuming.refusal();
  EXPECT_NE(refusal.find("out/step-00000004: it was imported"), std::string::npos) << refusal;
  EXPECT_NE(refusal.find("--resume-with-changed-data"), std::string::npos);
  EXPECT_NE(refusal.find("after 32 samples"), std::string::npos);
  resuming.options.checkpoint.changed_data = true;
  EXPECT_EQ(resuming.take(), "");
}

TEST(ResumeTerms, EpochsAreCountedInTheSavedGlobalBatch) {
  Resuming run;
  run.options.epochs = 2;
  run.options.global_batch = 16;  // as two more ranks would make it
  run.options.accumulation = 2;
  EXPECT_EQ(run.take(), "global batch 8 as saved, not 16: accumulation 1");
  EXPECT_EQ(run.options.steps, 16);  // twice 62 samples, 8 in a step
  run.saved.step = 16;
  EXPECT_NE(run.refusal().find("set --steps to more"), std::string::npos) << run.refusal();
}

}  // namespace
}  // namespace strata::train
