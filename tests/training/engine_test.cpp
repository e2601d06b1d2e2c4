// Misuses of engines, saves and loads: each is refused with a message that says what is expected.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "comm/factory.h"
#include "core/error.h"
#include "core/file_system.h"
#include "core/testing/test_directory.h"
#include "tests/training/ranks.h"
#include "train/checkpoint/checkpoint_reader.h"
#include "train/engine/load_checkpoint.h"
#include "train/engine/save_checkpoint.h"
#include "train/engine/state_digest.h"
#include "train/engine/step_scalars.h"
#include "train/engine/weights.h"

namespace strata::tests {
namespace {

TEST(Engine, RefusesAProgramThatTheVerifierRefuses) {
  TrainingCase training;
  training.model = tiny_gpt2();
  training.options = tiny_options(1, 8, 1);
  const auto communicator = comm::make_communicator({}, "single");
  const auto make = [&](std::int64_t shift_bytes) {
    train::EngineParts parts;
    parts.programs = build_rank(training, *communicator);
    parts.programs.programs.begin()->second.instructions.front().outputs.front().offset_bytes +=
        shift_bytes;
    parts.site = std::make_unique<train::CpuSite>(*communicator);
    return std::make_unique<train::Engine>(std::move(parts));
  };
  EXPECT_THROW(make(64), InternalError);
}

TrainingCase one_rank() {
  TrainingCase training;
  training.model = tiny_gpt2();
  training.options = tiny_options(1, 8, 1);
  return training;
}

/// An engine of one rank with new weights.
struct OneEngine {
  std::unique_ptr<comm::Communicator> communicator = comm::make_communicator({}, "single");
  std::unique_ptr<train::Engine> engine;

  explicit OneEngine(const TrainingCase& training = one_rank(),
                     const std::function<void(train::EngineParts&)>& change = {}) {
    train::EngineParts parts;
    parts.programs = build_rank(training, *communicator);
    parts.site = std::make_unique<train::CpuSite>(*communicator);
    if (change) change(parts);
    engine = std::make_unique<train::Engine>(std::move(parts));
    train::initialize_weights(*engine, 1);
  }
};

void fill_with_ones(std::int64_t, int, const train::MicroBatch& batch) {
  std::ranges::fill(batch.tokens, 1);
  std::ranges::fill(batch.targets, 1);
}

/// Runs `body` and returns the message of its InvalidArgument, or "" if it throws none.
std::string fault_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

using testing::HasSubstr;

TEST(Engine, RefusesPartsThatDoNotBelongTogether) {
  const auto fault = [](const std::function<void(train::EngineParts&)>& change) {
    return fault_of([&] { OneEngine(one_rank(), change); });
  };
  EXPECT_THAT(fault([](auto& parts) { parts.site = nullptr; }), HasSubstr("site"));
  EXPECT_THAT(fault([](auto& parts) { train::CpuSite(parts.site->host_communicator(), 0); }),
              HasSubstr("threads"));
  EXPECT_THAT(fault([](auto& parts) { parts.initial_loss_scale = 0; }), HasSubstr("loss_scale"));
  EXPECT_THAT(fault([](auto& parts) { parts.programs.settings.plan.mesh = comm::data_mesh(2); }),
              HasSubstr("another rank or world"));
}

/// Builds Programs for the same training with changed options.
compile::StepPrograms programs_with(const TrainingCase& training,
                                    const std::function<void(train::TrainOptions&)>& change) {
  TrainingCase changed = training;
  change(changed.options);
  return build_rank(changed, *comm::make_communicator({}, "single"));
}

/// Fills a batch by position alone: samples of any length begin with the same tokens.
void fill_by_place(std::int64_t step, int micro_step, const train::MicroBatch& batch) {
  for (std::size_t i = 0; i < batch.tokens.size(); ++i) {
    batch.tokens[i] = static_cast<std::int32_t>((i * 7 + static_cast<std::size_t>(step) * 3) % 50);
    batch.targets[i] = (batch.tokens[i] + 1 + micro_step) % 50;
  }
}

TEST(Engine, AdoptsProgramsThatDoTheSameInAnotherWay) {
  OneEngine kept, changing;
  for (std::int64_t step = 0; step < 6; ++step) {
    if (step == 2)
      changing.engine->adopt(programs_with(
          one_rank(), [](auto& options) { options.activation_checkpointing = true; }));
    if (step == 4) changing.engine->adopt(programs_with(one_rank(), [](auto&) {}));
    EXPECT_EQ(changing.engine->train_step(step, fill_by_place).loss,
              kept.engine->train_step(step, fill_by_place).loss);
  }
  EXPECT_EQ(train::describe_state(*changing.engine), train::describe_state(*kept.engine));
}

TEST(Engine, AdoptsAShorterSequence) {
  const auto shorter = [](train::TrainOptions& options) { options.sequence_length /= 2; };
  TrainingCase short_case = one_rank();
  shorter(short_case.options);
  OneEngine all(short_case), changing;
  all.engine->adopt(programs_with(short_case, [](auto&) {}));
  changing.engine->adopt(programs_with(one_rank(), shorter));
  for (std::int64_t step = 0; step < 3; ++step)
    EXPECT_EQ(changing.engine->train_step(step, fill_by_place).loss,
              all.engine->train_step(step, fill_by_place).loss);
  EXPECT_EQ(train::describe_state(*changing.engine), train::describe_state(*all.engine));
  changing.engine->adopt(programs_with(one_rank(), [](auto&) {}));
  EXPECT_GT(changing.engine->train_step(3, fill_by_place).loss, 0);
}

TEST(Engine, AdoptsAnotherAccumulation) {
  for (const bool by_layer : {false, true})
    for (const auto& [before, after] : {std::pair{2, 4}, {4, 2}}) {
      SCOPED_TRACE(fmt::format("by layer {}, {} micro-steps, then {}", by_layer, before, after));
      const auto case_of = [&](int micro_steps) {
        TrainingCase training = one_rank();
        training.options.micro_batch = 2;
        training.options.accumulation = micro_steps;
        training.options.global_batch = 2 * micro_steps;
        training.options.offload.layer_major = by_layer;
        return training;
      };
      const auto most = std::max(before, after);
      OneEngine made(case_of(after)), changing(case_of(most));
      if (before != most) changing.engine->adopt(programs_with(case_of(before), [](auto&) {}));
      changing.engine->adopt(programs_with(case_of(after), [](auto&) {}));
      for (std::int64_t step = 0; step < 2; ++step)
        EXPECT_EQ(changing.engine->train_step(step, fill_by_place).loss,
                  made.engine->train_step(step, fill_by_place).loss);
      EXPECT_EQ(train::describe_state(*changing.engine), train::describe_state(*made.engine));
    }
}

TEST(Engine, RefusesToAdoptWhatItHasNoRoomOrPlaceFor) {
  OneEngine one;
  const auto fault = [&](const std::function<void(train::TrainOptions&)>& change) {
    return fault_of([&] { one.engine->adopt(programs_with(one_rank(), change)); });
  };
  EXPECT_THAT(fault([](auto& options) { options.sequence_length *= 2; }),
              HasSubstr("bytes of tier device, and the engine has"));
  EXPECT_THAT(fault([](auto& options) { options.offload.optimizer = plan::Home::host; }),
              HasSubstr("elsewhere, or not at all"));
  {
    const auto save = one.engine->lend();
    EXPECT_THAT(fault([](auto&) {}), HasSubstr("while a checkpoint is being saved"));
  }
  EXPECT_GT(one.engine->train_step(0, fill_by_place).loss, 0) << "nothing has changed";
  one.engine->start_step(1, fill_by_place);
  EXPECT_THAT(fault([](auto&) {}), HasSubstr("adopt()"));
}

TEST(Engine, BeginsWithTheLossScaleOfItsOptions) {
  TrainingCase training = one_rank();
  training.options.dtype = training.options.communication_dtype = DType::f16;
  training.options.loss_scale.fixed_scale = 128;
  OneEngine one(training);
  EXPECT_EQ(one.engine->train_step(0, fill_with_ones).loss_scale, 128);
}

TEST(Engine, NamesATokenOutsideTheVocabulary) {
  for (const bool target : {false, true}) {
    OneEngine one;
    const auto fill = [&](std::int64_t step, int micro_step, const train::MicroBatch& batch) {
      fill_with_ones(step, micro_step, batch);
      (target ? batch.targets : batch.tokens)[3] =
          static_cast<std::int32_t>(one_rank().model.vocabulary);
    };
    EXPECT_EQ(fault_of([&] { one.engine->train_step(0, fill); }),
              std::string(target ? "target" : "token") + " 3 of a micro-batch is " +
                  std::to_string(one_rank().model.vocabulary) +
                  ", expected one of a vocabulary of " +
                  std::to_string(one_rank().model.vocabulary));
  }
}

TEST(Engine, IsOfNoUseAfterAnErrorInAStep) {
  OneEngine one;
  EXPECT_THROW(one.engine->train_step(0, [](auto, auto, const auto&) { throw DataError("mine"); }),
               DataError);
  EXPECT_THAT(fault_of([&] { one.engine->train_step(0, fill_with_ones); }),
              HasSubstr("make another engine"));
  EXPECT_THAT(fault_of([&] { one.engine->drain(); }), HasSubstr("make another engine"));
}

/// Notes when each Program was taken up.
class Beginnings final : public runtime::Observer {
 public:
  void begin_program(const runtime::Program&, std::int64_t) override {
    const std::lock_guard lock(mutex_);
    times_.push_back(std::chrono::steady_clock::now());
  }
  void begin(const runtime::Program&, int) override {}
  void end(const runtime::Program&, int) override {}
  [[nodiscard]] std::chrono::steady_clock::time_point of(std::size_t program) const {
    const std::lock_guard lock(mutex_);
    return times_.at(program);
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::chrono::steady_clock::time_point> times_;
};

TEST(Engine, KnowsWhenAStepEndedAlthoughTheNextIsFarAlong) {
  Beginnings beginnings;
  TrainingCase training = one_rank();
  constexpr int kMicroSteps = 4;
  training.options.accumulation = kMicroSteps;
  training.options.global_batch *= kMicroSteps;
  OneEngine one(training, [&](auto& parts) { parts.observers = {&beginnings}; });
  one.engine->start_step(0, fill_with_ones);
  one.engine->start_step(1, fill_with_ones);
  EXPECT_GT(one.engine->step_end(), beginnings.of(kMicroSteps - 1));
  EXPECT_LT(one.engine->step_end(), beginnings.of(kMicroSteps + 1)) << "the next step's second";
  one.engine->drain();
  EXPECT_GT(one.engine->step_end(), beginnings.of(2 * kMicroSteps - 1));
}

TEST(Engine, RefusesWhatAStepUnderWayForbids) {
  OneEngine one;
  one.engine->start_step(0, fill_with_ones);
  EXPECT_THAT(fault_of([&] { one.engine->train_step(1, fill_with_ones); }), HasSubstr("drain()"));
  EXPECT_THAT(fault_of([&] { one.engine->evaluate(1, fill_with_ones); }), HasSubstr("drain()"));
  EXPECT_THAT(fault_of([&] { one.engine->barrier(); }), HasSubstr("drain()"));
  EXPECT_THAT(fault_of([&] { one.engine->logits({1}); }), HasSubstr("build_generation()"));
  EXPECT_THAT(fault_of([&] { one.engine->start_step(1, fill_with_ones, train::Snapshot::take); }),
              HasSubstr("ProgramRequest::saving"));
  EXPECT_THAT(fault_of([&] { train::initialize_weights(*one.engine, 1); }),
              HasSubstr("initialize_weights: a step is under way; drain() first"));
  EXPECT_THAT(fault_of([&] { train::write_scalars(*one.engine, {}, "here"); }),
              HasSubstr("drain() first"));
  one.engine->drain();
  one.engine->barrier();
}

TEST(Engine, RefusesOptionsAndModelsThatCanBeNone) {
  TrainingCase training = one_rank();
  training.options.accumulation = 0;
  training.options.optimizer.learning_rate = -1;
  EXPECT_THAT(fault_of([&] { OneEngine one(training); }),
              testing::AllOf(HasSubstr("accumulation is 0"), HasSubstr("learning_rate is -1")));
  training = one_rank();
  training.model.layers = 0;
  training.model.attention_dropout = 1;
  EXPECT_THAT(fault_of([&] { OneEngine one(training); }),
              testing::AllOf(HasSubstr("layers is 0"), HasSubstr("attention_dropout is 1")));
}

/// A launcher tells a slow start from a hang by them.
TEST(Engine, WorkOnItsStateBeats) {
  std::atomic<int> beats = 0;
  OneEngine one(one_rank(),
                [&](train::EngineParts& parts) { parts.beat = Beat([&beats] { ++beats; }); });
  const auto tensors =
      static_cast<int>(step::list_state(one.engine->programs().units,
                                        one.engine->programs().settings, step::StateScope::held, 0)
                           .size());
  ASSERT_GT(tensors, 3);
  EXPECT_GE(beats, tensors / 4) << "new weights, of four kinds of state";
  int before = beats;
  (void)train::describe_state(*one.engine);
  EXPECT_GE(beats - before, tensors / 2) << "digests";
  const TestDirectory folder;
  PosixFileSystem files;
  train::prepare_output_folder(files, folder / "out");
  const train::SaveRequest request{
      .output = folder / "out", .step = 1, .attempt = {.run_id = "test"}};
  before = beats;
  (void)train::save_checkpoint(*one.engine, files, request);
  EXPECT_GT(beats, before) << "saving";
  before = beats;
  const train::CheckpointReader reader(files, folder / "out/step-00000001",
                                       {.beat = one.engine->beat()});
  train::load_checkpoint(*one.engine, reader);
  EXPECT_GT(beats, before) << "loading";
}

class SaveMisused : public testing::Test {
 protected:
  train::SaveRequest request() const {
    return {.output = folder_ / "out", .step = 1, .attempt = {.run_id = "test"}};
  }
  void SetUp() override { train::prepare_output_folder(files_, folder_ / "out"); }
  TestDirectory folder_;
  PosixFileSystem files_;
};

TEST_F(SaveMisused, WithoutASnapshotOrADrainedStateIsRefused) {
  TrainingCase training = one_rank();
  training.saving = runtime::SaveMemory::snapshot;
  OneEngine one(training);
  {
    train::CheckpointSave save(*one.engine, files_, request());
    EXPECT_THAT(fault_of([&] { save.advance(); }), HasSubstr("before write_state()"));
    EXPECT_THAT(fault_of([&] { save.write_snapshot(); }), HasSubstr("Snapshot::take"));
    one.engine->start_step(0, fill_with_ones);
    EXPECT_THAT(fault_of([&] { save.write_state(); }), HasSubstr("drain()"));
    one.engine->drain();
    save.write_state();
    EXPECT_THAT(fault_of([&] { save.write_state(); }), HasSubstr("already"));
    while (!save.advance()) continue;
  }
  one.engine->start_step(1, fill_with_ones);
  EXPECT_THAT(fault_of([&] { train::save_checkpoint(*one.engine, files_, request()); }),
              HasSubstr("drain()"));
  const train::CheckpointReader reader(files_, folder_ / "out/step-00000001");
  EXPECT_THAT(fault_of([&] { train::load_checkpoint(*one.engine, reader); }), HasSubstr("drain()"));
}

TEST_F(SaveMisused, WithoutANameIsRefused) {
  OneEngine one;
  for (const std::string id : {"", "a b", "../x"}) {
    train::SaveRequest unnamed = request();
    unnamed.attempt.run_id = id;
    EXPECT_THAT(fault_of([&] { train::save_checkpoint(*one.engine, files_, unnamed); }),
                HasSubstr("run_id"));
  }
}

TEST_F(SaveMisused, AfterItsEngineEndsTheProcess) {
  EXPECT_DEATH(
      {
        OneEngine one;
        train::CheckpointSave save(*one.engine, files_, request());
        one.engine.reset();
      },
      "destroy the save first");
}

TEST_F(SaveMisused, LoadedIntoASmallerModelOrAnotherOptimizerIsRefused) {
  {
    OneEngine one;
    train::save_checkpoint(*one.engine, files_, request());
  }
  const train::CheckpointReader reader(files_, folder_ / "out/step-00000001");
  const auto refusal = [&](const TrainingCase& training) -> std::string {
    OneEngine one(training);
    try {
      train::load_checkpoint(*one.engine, reader);
    } catch (const DataError& error) {
      return error.what();
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal(one_rank()), "");
  TrainingCase training = one_rank();
  training.model.layers -= 1;
  EXPECT_THAT(refusal(training), HasSubstr("this model has none of that name"));
  training = one_rank();
  training.options.optimizer.type = train::OptimizerType::lion;
  EXPECT_THAT(refusal(training), HasSubstr("moment2"));
}

}  // namespace
}  // namespace strata::tests
