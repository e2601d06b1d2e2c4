#include "tests/training/ranks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "comm/device_factory.h"
#include "core/error.h"
#include "runtime/program/arena_alignment.h"
#include "runtime/program/verifier.h"
#include "tests/training/rank_threads.h"
#include "train/config/make_plan.h"
#include "train/engine/memory_report.h"
#include "train/engine/state_digest.h"
#include "train/engine/weights.h"

namespace strata::tests {
namespace {

/// Token `position` of a sample: a hash, skewed so that there is something to learn.
std::int32_t token(std::int64_t sample, std::int64_t position, std::int64_t vocabulary) {
  std::uint64_t h = static_cast<std::uint64_t>(sample * 1000003 + position) * 0x9E3779B97F4A7C15ull;
  h ^= h >> 29;
  const std::uint64_t limit = h % 3 == 0 ? 4 : static_cast<std::uint64_t>(vocabulary);
  return static_cast<std::int32_t>((h >> 8) % limit);
}

void fill_batch(const TrainingCase& training, int rank, std::int64_t step, int micro_step,
                const train::MicroBatch& batch) {
  const auto rows = static_cast<std::int64_t>(batch.samples.size());
  const auto sequence = static_cast<std::int64_t>(batch.tokens.size()) / rows;
  for (std::int64_t j = 0; j < rows; ++j) {
    const std::int64_t sample =
        step * training.options.global_batch + (micro_step * training.world + rank) * rows + j;
    batch.samples[static_cast<std::size_t>(j)] = sample;
    const std::vector<int>& valid = training.valid_targets;
    const std::int64_t counting =
        valid.empty() ? sequence : valid[static_cast<std::size_t>(sample) % valid.size()];
    for (std::int64_t t = 0; t < sequence; ++t) {
      const auto at = static_cast<std::size_t>(j * sequence + t);
      batch.tokens[at] = token(sample, t, training.model.vocabulary);
      batch.targets[at] = t < counting ? token(sample, t + 1, training.model.vocabulary) : -100;
    }
  }
}

/// Computes from the Programs what the disk's queues move in a call of `run_rank`.
runtime::DiskCounters promised_transfers(const compile::StepPrograms& programs,
                                         const train::TrainOptions& options) {
  const bool late = programs.settings.plan.updates == runtime::Updates::next_step;
  runtime::DiskCounters promised;
  const auto add = [&](const runtime::Program& program, std::int64_t runs) {
    for (const runtime::Instruction& in : program.instructions) {
      const std::int64_t bytes =
          in.outputs.empty() ? 0 : runtime::room_of(in.outputs[0].bytes, runtime::Tier::disk);
      // Late updates do nothing in the first step.
      const bool idle_once = in.predicate && late && program.name != "drain";
      if (in.queue == runtime::Queue::disk_read) promised.read_bytes += runs * bytes;
      if (in.queue == runtime::Queue::disk_write)
        promised.written_bytes += (idle_once ? runs - 1 : runs) * bytes;
    }
  };
  using compile::ProgramKind;
  for (const auto& [key, program] : programs.programs) {
    if (key.kind == ProgramKind::train)
      add(program, options.steps * zero::runs_per_step(programs.settings.plan, key.micro_step));
    if (key.kind == ProgramKind::drain || key.kind == ProgramKind::read_ahead) add(program, 1);
    if (key.kind == ProgramKind::evaluate) add(program, programs.settings.plan.leaves_per_rank());
  }
  return promised;
}

compile::StepPrograms programs_of(const TrainingCase& training, const comm::Seat& seat,
                                  const machine::Machine& machine) {
  const train::ProgramRequest request{.model = training.model,
                                      .options = training.options,
                                      .evaluate = true,
                                      .saving = training.saving,
                                      .shorter_sequences = training.shorter_sequences};
  if (!training.change_plan) return train::build_programs(request, seat, machine);
  const compile::TrainingModel model = train::training_model(request);
  runtime::Plan plan = train::requested_plan(request, model, machine, seat.ranks);
  training.change_plan(plan);
  compile::Compiled compiled = compile::compile(model, plan, machine, comm::MeshSeat::of(seat));
  train::require_fit(compiled.fit, request);
  return std::move(compiled.programs);
}

TrainingResult run_rank(const TrainingCase& training, comm::Communicator& communicator) {
  RankDevice device;
  train::EngineParts parts = engine_parts(training, communicator, device);
  TrainingResult result;
  result.memory = train::count_memory(parts.programs);
  const runtime::DiskCounters promised = promised_transfers(parts.programs, training.options);
  train::Engine engine(std::move(parts));
  if (training.weights.empty())
    train::initialize_weights(engine, training.options.seed);
  else
    train::load_weights(engine, train::ModelFiles(training.weights), *training.model.family);
  const auto fill = [&](std::int64_t step, int micro_step, const train::MicroBatch& batch) {
    fill_batch(training, communicator.rank(), step, micro_step, batch);
  };
  for (std::int64_t step = 0; step < training.options.steps; ++step)
    if (const auto before = engine.start_step(step, fill)) result.metrics.push_back(*before);
  if (const auto last = engine.drain()) result.metrics.push_back(*last);
  // Evaluate one micro-batch per virtual rank, whatever the world.
  const int batches = engine.programs().settings.plan.leaves_per_rank();
  result.evaluation =
      engine.evaluate(batches, [&](std::int64_t batch, int, const train::MicroBatch& rows) {
        fill(0, static_cast<int>(batch), rows);
      });
  const bool skipped = !result.metrics.empty() && result.metrics.back().skipped > 0;
  if (device.disk != nullptr && !skipped) {
    // A skipped step writes nothing that is predicated on its update.
    EXPECT_EQ(device.disk->counters().read_bytes, promised.read_bytes);
    EXPECT_EQ(device.disk->counters().written_bytes, promised.written_bytes);
  }
  result.state = train::describe_state(engine);
  return result;
}

}  // namespace

void put_gradients_on_disk(runtime::Plan& plan) {
  for (runtime::UnitPlan& unit : plan.units) unit.gradient_tier = runtime::Tier::disk;
}

train::ModelConfig tiny_gpt2() {
  train::ModelConfig model;
  model.family = train::find_family("gpt2");
  model.vocabulary = 100;
  model.layers = 3;
  model.hidden = 32;
  model.heads = model.kv_heads = 4;
  model.head_size = 8;
  model.intermediate = 128;
  model.context = 32;
  model.tied_embeddings = true;
  return model;
}

train::ModelConfig tiny_llama() {
  train::ModelConfig model = tiny_gpt2();
  model.family = train::find_family("llama");
  model.kv_heads = 2;
  model.intermediate = 48;
  model.tied_embeddings = false;
  return model;
}

train::ModelConfig gpt2_124m() {
  train::ModelConfig model = tiny_gpt2();
  model.vocabulary = 50257;
  model.layers = 12;
  model.hidden = 768;
  model.heads = model.kv_heads = 12;
  model.head_size = 64;
  model.intermediate = 3072;
  model.context = 1024;
  return model;
}

train::TrainOptions tiny_options(int world, int global_batch, int steps) {
  train::TrainOptions options;
  options.sequence_length = 16;
  options.global_batch = global_batch;
  options.micro_batch = global_batch / world / static_cast<int>(options.accumulation);
  options.steps = steps;
  options.optimizer.learning_rate = 1e-2;
  options.optimizer.weight_decay = 0.1;
  options.zero.param_persistence_threshold_elements = 0;
  return options;
}

void expect_same(const TrainingResult& a, const TrainingResult& b, const std::string& what) {
  ASSERT_EQ(a.metrics.size(), b.metrics.size());
  for (std::size_t i = 0; i < a.metrics.size(); ++i) {
    EXPECT_EQ(a.metrics[i].loss, b.metrics[i].loss) << what << ", step " << i;
    EXPECT_EQ(a.metrics[i].learning_rate, b.metrics[i].learning_rate) << what << ", step " << i;
    // The norm of a skipped step may be NaN.
    EXPECT_TRUE(a.metrics[i].gradient_norm == b.metrics[i].gradient_norm ||
                (std::isnan(a.metrics[i].gradient_norm) && std::isnan(b.metrics[i].gradient_norm)))
        << what << ", step " << i << ": " << a.metrics[i].gradient_norm << " and "
        << b.metrics[i].gradient_norm;
  }
  EXPECT_EQ(a.evaluation, b.evaluation) << what;
  EXPECT_EQ(a.state, b.state) << what;
}

std::string without(const std::vector<std::string>& kinds, const std::string& state) {
  std::istringstream text(state);
  std::string rest;
  for (std::string line; std::getline(text, line);) {
    bool named = false;
    for (const std::string& kind : kinds) named |= line.find(" " + kind + " ") != std::string::npos;
    if (!named) rest += line + "\n";
  }
  return rest;
}

void skip_first_steps(train::TrainOptions& options) {
  options.dtype = options.communication_dtype = DType::f16;
  options.loss_scale.initial_scale_power = 24;
  options.loss_scale.hysteresis = 1;
  options.steps = 12;
}

void verify_all(const compile::StepPrograms& programs) {
  const auto check = [](const runtime::Program& program) {
    const auto problems = runtime::verify(program);
    if (!problems.empty()) throw InternalError(program.name + ": " + problems.front());
  };
  for (const auto& [key, program] : programs.programs) check(program);
}

train::EngineParts engine_parts(const TrainingCase& training, comm::Communicator& communicator,
                                RankDevice& device) {
  train::EngineParts parts;
  machine::Machine machine = machine::cpu_machine(training.threads);
  if (!training.make_device) {
    parts.site = std::make_unique<train::CpuSite>(communicator, training.threads);
  } else {
    device.device = training.make_device();
    device.communicator =
        training.connect_device
            ? training.connect_device(communicator, *device.device)
            : comm::make_device_communicator(communicator, *device.device).communicator;
    machine = machine::typical_machine(device.device->capabilities());
    parts.site = std::make_unique<train::DeviceSite>(
        communicator, *device.device, *device.communicator,
        train::DeviceSiteOptions{training.threads, training.recordings, training.lockstep});
  }
  parts.programs = programs_of(training, parts.site->program_communicator().seat(), machine);
  verify_all(parts.programs);
  if (const std::int64_t bytes = parts.programs.disk_bytes(); bytes > 0) {
    device.disk = std::make_unique<MemoryDisk>(bytes);
    parts.disk = device.disk.get();
  }
  parts.seed = training.options.seed;
  parts.initial_loss_scale = train::initial_loss_scale(training.options);
  return parts;
}

void on_engines(const TrainingCase& training, const std::function<void(train::Engine&)>& body) {
  on_rank_threads(training.world, [&](comm::Communicator& communicator) {
    RankDevice device;
    train::Engine engine(engine_parts(training, communicator, device));
    body(engine);
    communicator.close();
  });
}

compile::StepPrograms build_rank(const TrainingCase& training,
                                 const comm::Communicator& communicator) {
  return programs_of(training, communicator.seat(),
                     training.make_device
                         ? machine::typical_machine(training.make_device()->capabilities())
                         : machine::cpu_machine(training.threads));
}

TrainingResult run_training(const TrainingCase& training) {
  std::vector<TrainingResult> results(static_cast<std::size_t>(training.world));
  const auto train_rank = [&](comm::Communicator& communicator) {
    results[static_cast<std::size_t>(communicator.rank())] = run_rank(training, communicator);
  };
  if (training.first_ranks.empty())
    on_rank_threads(training.world, train_rank);
  else
    on_rank_threads(comm::HostLayout{training.first_ranks, training.world}, train_rank);
  return results[0];
}

}  // namespace strata::tests
