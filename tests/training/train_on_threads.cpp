// |Runs `train` with its ranks as threads of one process, to compare with the same run over shared
// |memory and over MPI. |  train_on_threads WORLD [arguments of train, --dump-state among them]
#include <cstdio>
#include <cstdlib>

#include "core/error.h"
#include "core/file.h"
#include "tests/training/rank_threads.h"
#include "train/config/make_plan.h"
#include "train/config/resolve.h"
#include "train/data/batch_loader.h"
#include "train/engine/engine.h"
#include "train/engine/state_digest.h"
#include "train/engine/weights.h"
#include "train/models/hf_config.h"
#include "train/run/corpus.h"

namespace strata::tests {
namespace {

struct Job {
  train::ModelConfig model;
  train::TrainOptions options;
};

Job read_job(int argc, char** argv, int world) {
  const train::ParsedCommandLine command_line = train::parse_train_command_line(argc, argv);
  Job job;
  job.model = train::read_model_config(train::requested_model(command_line));
  job.options = train::resolve(command_line, world, job.model).options;
  return job;
}

void train_rank(const Job& job, comm::Communicator& communicator) {
  const train::TrainOptions& options = job.options;
  const int threads = static_cast<int>(options.threads);
  train::EngineParts parts;
  parts.programs = train::build_programs({job.model, options, false}, communicator.seat(),
                                         machine::cpu_machine(threads));
  parts.site = std::make_unique<train::CpuSite>(communicator, threads);
  parts.seed = options.seed;
  parts.initial_loss_scale = train::initial_loss_scale(options);
  train::Engine engine(std::move(parts));
  train::initialize_weights(engine, options.seed);

  const train::Corpus corpus = train::open_corpus(options, job.model.vocabulary, communicator,
                                                  [](const train::EncodingProgress&) {});
  const std::shared_ptr<const train::TokenSource>& source = corpus.training;
  const train::BatchLoader batches(
      source, train::SampleOrder(source->size(), source->name(),
                                 {.sequence = options.sequence_length,
                                  .shuffle = options.shuffle,
                                  .seed = static_cast<std::uint64_t>(options.seed)}));
  const auto fill = [&](std::int64_t step, int micro_step, const train::MicroBatch& batch) {
    batches.fill(
        {step * options.global_batch, micro_step, communicator.rank(), communicator.size()},
        batch.tokens, batch.targets, batch.samples);
  };
  for (std::int64_t step = 0; step < options.steps; ++step) engine.train_step(step, fill);
  const std::string state = train::describe_state(engine);
  if (communicator.rank() == 0) write_file_atomically(options.dump_state, state);
  communicator.close();
}

}  // namespace
}  // namespace strata::tests

int main(int argc, char** argv) {
  if (argc < 2) return static_cast<int>(strata::ExitCode::usage);
  try {
    const int world = std::atoi(argv[1]);
    const strata::tests::Job job = strata::tests::read_job(argc - 1, argv + 1, world);
    strata::tests::on_rank_threads(world, [&](strata::comm::Communicator& communicator) {
      strata::tests::train_rank(job, communicator);
    });
    return 0;
  } catch (const strata::Error& error) {
    std::fprintf(stderr, "train_on_threads: %s\n", error.what());
    return static_cast<int>(error.exit_code());
  }
}
