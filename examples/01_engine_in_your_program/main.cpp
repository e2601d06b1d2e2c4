// Runs the engine inside your own program: one rank, one model, your own batches.
//
//     build/bin/example_engine        prints the loss of 30 steps, falling from about 5.5
#include <cstdio>
#include <string>

#include "comm/factory.h"
#include "core/error.h"
#include "core/standard_output.h"
#include "train/config/make_plan.h"
#include "train/engine/engine.h"
#include "train/engine/memory_report.h"
#include "train/engine/weights.h"
#include "train/models/hf_config.h"

using namespace strata;

/// Makes a batch. Any data will do; here the model learns to count in bytes.
void fill(std::int64_t step, int, const train::MicroBatch& batch) {
  const std::size_t sequence = batch.tokens.size() / batch.samples.size();
  for (std::size_t row = 0; row < batch.samples.size(); ++row) {
    batch.samples[row] =
        step * static_cast<std::int64_t>(batch.samples.size()) + static_cast<std::int64_t>(row);
    for (std::size_t t = 0; t < sequence; ++t) {
      const auto start = static_cast<std::size_t>(batch.samples[row] * 31 % 256);
      batch.tokens[row * sequence + t] = static_cast<std::int32_t>((start + t) % 256);
      batch.targets[row * sequence + t] = static_cast<std::int32_t>((start + t + 1) % 256);
    }
  }
}

int main() {
  // 1. Say what to train and how. Everything has a default; train/config/options.h lists it.
  const train::ModelConfig model = train::read_model_config("gpt2-tiny");
  train::TrainOptions options;
  options.sequence_length = 64;
  options.micro_batch = options.global_batch = 8;
  options.optimizer.learning_rate = 3e-3;

  // 2. Build Programs from shapes alone: the memory is known before any is allocated.
  const auto communicator = comm::make_communicator({}, "single");
  constexpr int kThreads = 2;
  train::EngineParts parts;
  parts.programs = train::build_programs({model, options, false}, communicator->seat(),
                                         machine::cpu_machine(kThreads));
  std::fputs(train::format_memory(train::count_memory(parts.programs)).c_str(), stdout);

  // 3. Make the engine. It owns the site where Programs run: arena, executor and threads.
  parts.site = std::make_unique<train::CpuSite>(*communicator, kThreads);
  train::Engine engine(std::move(parts));
  train::initialize_weights(engine, options.seed);
  for (std::int64_t step = 0; step < 30; ++step) {
    const kernels::StepMetrics metrics = engine.train_step(step, fill);
    std::printf("step %2lld  loss %.4f  gradient norm %.3f\n", static_cast<long long>(step + 1),
                metrics.loss, metrics.gradient_norm);
  }
  try {
    StandardOutput().finish();  // throws if a full disk did not take what was printed
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.exit_code());
  }
  return 0;
}
