// A model of your own on two ranks that are threads of this program, saved and resumed.
//
//     build/bin/example_own_model FOLDER     checkpoints go to FOLDER, which is made
//
// Prints the loss of 20 steps, of which the last 10 are done twice: by the engine that went on, and
// by new engines that began with the checkpoint of step 10. Both are the same numbers.
#include <cstdio>
#include <exception>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "comm/factory.h"
#include "core/error.h"
#include "train/checkpoint/checkpoint_reader.h"
#include "train/checkpoint/trainer_state.h"
#include "train/engine/engine.h"
#include "train/engine/load_checkpoint.h"
#include "train/engine/save_checkpoint.h"
#include "train/engine/step_scalars.h"
#include "train/engine/weights.h"

using namespace strata;

constexpr int kRanks = 2;
constexpr std::int64_t kVocabulary = 256;
constexpr std::int64_t kWidth = 64;

/// Two layers without attention: each byte is foretold from the one before it.
train::BuiltModel build_model(const train::BatchShape& shape, train::ModelUse use) {
  const runtime::Initializer normal{0.05, 0}, one{0, 1};
  runtime::GraphBuilder b(shape.dtype, shape.batch, shape.sequence);
  b.begin_block("embedding");
  const auto table = b.padded_matrix("table.weight", kVocabulary, kVocabulary, kWidth, normal);
  runtime::ValueId x = b.embedding(table, runtime::kNoValue);
  for (const std::string layer : {"layer.0", "layer.1"}) {
    b.begin_block(layer);
    const runtime::Affine norm{b.vector({{layer + ".norm.weight", kWidth}}, one)};
    const auto up = b.matrix({{layer + ".up.weight", 4 * kWidth}}, kWidth, normal);
    const auto down = b.matrix({{layer + ".down.weight", kWidth}}, 4 * kWidth, normal);
    const auto wide = b.gelu(b.linear(b.norm(x, norm, 1e-5, true), {up}), true);
    x = b.residual_add(x, b.linear(wide, {down}), 0);
  }
  b.begin_block("head");
  train::BuiltModel model;
  model.loss = use == train::ModelUse::train ? b.head_loss(x, table, kVocabulary)
                                             : b.head_loss_eval(x, table, kVocabulary);
  model.graph = b.finish();
  return model;
}

train::TrainOptions make_options() {
  train::TrainOptions options;
  options.sequence_length = 32;
  options.micro_batch = 4;
  options.global_batch = options.micro_batch * kRanks;
  options.zero.stage = 2;
  options.optimizer.learning_rate = 1e-2;
  return options;
}

std::unique_ptr<train::Engine> make_engine(comm::Communicator& communicator) {
  train::ProgramRequest request;
  request.model.vocabulary = kVocabulary;
  request.build_model = build_model;
  request.options = make_options();
  train::EngineParts parts;
  parts.programs = train::build_programs(request, communicator.seat(), machine::cpu_machine(1));
  parts.communicator = &communicator;
  return std::make_unique<train::Engine>(std::move(parts));
}

/// Steps [first, end). Samples differ by rank; the model learns to count by threes.
std::vector<double> run(train::Engine& engine, std::int64_t first, std::int64_t end) {
  std::vector<double> losses;
  const int rank = engine.communicator().rank();
  for (std::int64_t step = first; step < end; ++step) {
    const kernels::StepMetrics metrics =
        engine.train_step(step, [&](std::int64_t s, int, const train::MicroBatch& batch) {
          const std::int64_t before = (s * kRanks + rank) * std::ssize(batch.samples);
          std::iota(batch.samples.begin(), batch.samples.end(), before);  // dropout's keys
          for (std::size_t i = 0; i < batch.tokens.size(); ++i) {
            batch.tokens[i] = static_cast<std::int32_t>((s * 7 + rank * 101 + 3 * i) % kVocabulary);
            batch.targets[i] = (batch.tokens[i] + 3) % static_cast<std::int32_t>(kVocabulary);
          }
        });
    losses.push_back(metrics.loss);
  }
  return losses;
}

/// Writes down what tensors do not hold: where the run stands, and the step's scalars.
std::string state_text(const train::Engine& engine, std::int64_t step) {
  const train::TrainOptions options = make_options();
  train::TrainerState state;
  state.step = step;
  state.consumed_samples = step * options.global_batch;
  state.global_batch = options.global_batch;
  state.sequence_length = options.sequence_length;
  state.data_digest = std::string(train::kUnknownData);
  state.optimizer = "adamw";
  state.state_recipe = "fp32-master";
  state.dtype = "fp32";
  state.scalars = train::read_scalars(engine);
  return to_text(state);
}

std::vector<double> train_and_save(comm::Communicator& communicator, const std::string& folder) {
  PosixFileSystem files;
  const auto engine = make_engine(communicator);
  train::initialize_weights(*engine, 1);
  std::vector<double> losses = run(*engine, 0, 10);
  train::SaveRequest request;
  request.output = folder;
  request.step = 10;
  request.attempt.run_id = "example";
  request.whole_files = {{train::kTrainerStateName, state_text(*engine, 10)}};
  train::save_checkpoint(*engine, files, request);
  for (const double loss : run(*engine, 10, 20)) losses.push_back(loss);
  return losses;
}

std::vector<double> resume(comm::Communicator& communicator, const std::string& folder) {
  PosixFileSystem files;
  const train::CheckpointReader reader(files, folder + "/" + train::checkpoint_name(10));
  const train::TrainerState state =
      train::parse_trainer_state(reader.whole_file(train::kTrainerStateName), reader.directory());
  const auto engine = make_engine(communicator);
  train::load_checkpoint(*engine, reader);
  train::write_scalars(*engine, state.scalars, reader.directory());
  return run(*engine, state.step, 20);
}

/// A thread for each rank. An error of one ends the others; that of rank 0 is printed.
template <typename Body>
std::vector<double> on_ranks(const Body& body) {
  auto communicators = comm::make_thread_communicators(kRanks);
  std::vector<double> losses;
  std::vector<std::string> errors(kRanks);
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < kRanks; ++rank)
    threads.emplace_back([&, rank] {
      comm::Communicator& communicator = *communicators[rank];
      try {
        const std::vector<double> mine = body(communicator);
        if (rank == 0) losses = mine;
      } catch (const std::exception& error) {
        errors[rank] = error.what();
        communicator.abort(error.what(), ExitCode::internal);
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& error : errors)
    if (!error.empty()) throw std::runtime_error(error);
  return losses;
}

int main(int argc, char** argv) try {
  if (argc != 2) {
    std::fprintf(stderr, "usage: example_own_model FOLDER\n");
    return static_cast<int>(ExitCode::usage);
  }
  const std::string folder = argv[1];
  PosixFileSystem files;
  train::prepare_output_folder(files, folder);
  const auto all =
      on_ranks([&](auto& communicator) { return train_and_save(communicator, folder); });
  const auto again = on_ranks([&](auto& communicator) { return resume(communicator, folder); });
  for (std::size_t step = 0; step < all.size(); ++step) {
    std::printf("step %2zu  loss %.6f", step + 1, all[step]);
    if (step >= 10) std::printf("  resumed %.6f", again[step - 10]);
    std::printf("\n");
  }
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "example_own_model: %s\n", error.what());
  return 1;
}
