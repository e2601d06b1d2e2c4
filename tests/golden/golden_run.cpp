#include "tests/golden/golden_run.h"

#include <algorithm>
#include <mutex>
#include <vector>

#include "comm/factory.h"
#include "core/check.h"
#include "core/file.h"
#include "runtime/graph/state_names.h"
#include "tests/training/rank_threads.h"
#include "train/checkpoint/checkpoint_commit.h"
#include "train/engine/save_checkpoint.h"
#include "train/engine/state_digest.h"
#include "train/engine/weights.h"
#include "train/models/hf_config.h"
#include "zero/partition.h"

namespace strata::tests {
namespace {

std::int64_t sequence_of(const GoldenRun& run) {
  return static_cast<std::int64_t>(run.batches.at(0).size()) / run.rows - 1;
}

TrainingCase training_case(const GoldenRun& run) {
  TrainingCase training;
  training.model = train::read_model_config(run.model);
  training.world = run.world;
  training.make_device = run.make_device;
  train::TrainOptions& options = training.options;
  options.dtype = options.communication_dtype = run.dtype;
  options.sequence_length = sequence_of(run);
  options.accumulation = run.accumulation;
  options.global_batch = run.rows;
  options.micro_batch = run.rows / run.world / run.accumulation;
  options.optimizer = run.optimizer;
  options.no_decay = train::NoDecay::none;
  options.gradient_clipping = 0;
  options.activation_checkpointing = run.recompute;
  options.zero.stage = run.stage;
  options.zero.param_persistence_threshold_elements = 0;
  return training;
}

/// Fills rows of the batch in the order of design 2.19: micro-step, rank, row.
void fill_rows(const GoldenRun& run, int rank, std::int64_t step, int micro_step,
               const train::MicroBatch& batch) {
  const std::vector<std::int32_t>& tokens = run.batches.at(static_cast<std::size_t>(step));
  const std::int64_t sequence = sequence_of(run);
  const auto rows = static_cast<std::int64_t>(batch.samples.size());
  for (std::int64_t j = 0; j < rows; ++j) {
    const std::int64_t row = (micro_step * run.world + rank) * rows + j;
    const auto from = tokens.begin() + row * (sequence + 1);
    batch.samples[static_cast<std::size_t>(j)] = step * run.rows + row;
    std::copy(from, from + sequence, batch.tokens.begin() + j * sequence);
    const auto targets =
        run.targets.empty()
            ? from + 1
            : run.targets.at(static_cast<std::size_t>(step)).begin() + row * sequence;
    std::copy(targets, targets + sequence, batch.targets.begin() + j * sequence);
  }
}

/// Copies fp32 elements [first, ...) into their places of a tensor of `elements`.
void put(Tensors& tensors, const std::string& name, std::int64_t elements, std::int64_t first,
         std::span<const std::byte> bytes) {
  std::vector<double>& tensor = tensors[name];
  tensor.resize(static_cast<std::size_t>(elements));
  const std::span values(reinterpret_cast<const float*>(bytes.data()),
                         bytes.size() / sizeof(float));
  std::ranges::copy(values, tensor.begin() + first);
}

/// Puts the part of every gradient that this rank owns; all ranks together put each element once.
void put_gradients(const train::Engine& engine, Tensors& gradients) {
  const step::StepSettings& settings = engine.programs().settings;
  for (std::size_t u = 0; u < engine.programs().units.size(); ++u) {
    const runtime::ParameterUnit& unit = engine.programs().units[u];
    const runtime::UnitPlan& plan = settings.plan.units[u];
    const zero::OwnedUnit owned = zero::owned_unit(unit, plan, settings);
    const std::int64_t storage_begin = plan.shard_gradient ? owned.owned_begin : 0;
    std::vector<std::byte> buffer;
    const std::span<const std::byte> storage =
        engine.read(runtime::accumulator_name(unit.name), buffer);
    for (const runtime::Segment& segment : unit.segments) {
      const std::int64_t offset = segment.offset_elements;
      const zero::ElementRange part = zero::intersect({offset, offset + segment.elements},
                                                      {owned.owned_begin, owned.owned_end});
      put(gradients, segment.name, segment.elements, part.elements() == 0 ? 0 : part.begin - offset,
          part.elements() == 0
              ? std::span<const std::byte>()
              : storage.subspan(
                    static_cast<std::size_t>(part.begin - storage_begin) * sizeof(float),
                    static_cast<std::size_t>(part.elements()) * sizeof(float)));
    }
  }
}

void put_parameters(const train::Engine& engine, DType dtype, Tensors& parameters) {
  for (const step::StateEntry& entry :
       step::list_state(engine.programs().units, engine.programs().settings,
                        step::StateScope::saved, train::step_state(engine).updates)) {
    if (entry.kind != (dtype == DType::f32 ? "parameter" : "master")) continue;
    STRATA_CHECK(entry.dtype == DType::f32, entry.name, name_of(entry.dtype));
    std::vector<std::byte> buffer;
    put(parameters, entry.name, entry.shape.elements(), entry.window.first,
        engine.read(entry, 0, entry.window.elements, buffer));
  }
}

}  // namespace

train::OptimizerOptions golden_adamw() {
  train::OptimizerOptions optimizer;
  optimizer.learning_rate = 1e-3;
  optimizer.beta1 = 0.9;
  optimizer.beta2 = 0.95;
  optimizer.epsilon = 1e-8;
  optimizer.weight_decay = 0.1;
  return optimizer;
}

std::string saved_checkpoint(const GoldenRun& run) {
  return run.save + "/" + train::checkpoint_name(0);
}

GoldenResult run_golden(const GoldenRun& run) {
  const TrainingCase training = training_case(run);
  GoldenResult result;
  std::mutex mutex;
  PosixFileSystem files;
  if (!run.save.empty()) train::prepare_output_folder(files, run.save);
  const auto run_rank = [&](comm::Communicator& communicator) {
    RankDevice device;
    train::Engine engine(engine_parts(training, communicator, device));
    train::load_weights(engine, train::ModelFiles(run.model), *training.model.family);
    const auto fill = [&](std::int64_t step, int micro_step, const train::MicroBatch& batch) {
      fill_rows(run, communicator.rank(), step, micro_step, batch);
    };
    const double evaluation = engine.evaluate(
        run.accumulation,
        [&](auto i, auto, const auto& batch) { fill(0, static_cast<int>(i), batch); });
    std::vector<double> losses, norms;
    for (int step = 0; step < run.steps; ++step) {
      const kernels::StepMetrics metrics = engine.train_step(step, fill);
      losses.push_back(metrics.loss);
      norms.push_back(metrics.gradient_norm);
    }
    {
      const std::lock_guard lock(mutex);
      put_gradients(engine, result.gradients);
      put_parameters(engine, run.dtype, result.parameters);
      result.evaluation = evaluation;
      result.losses = std::move(losses);
      result.gradient_norms = std::move(norms);
    }
    if (run.save.empty()) return;
    const std::string original = read_whole_file(run.model + "/config.json", 1 << 20);
    train::save_checkpoint(
        engine, files,
        {.output = run.save,
         .attempt = {.run_id = "golden"},
         .whole_files = {
             {"config.json", train::to_hf_config_json(training.model, original, DType::f32)}}});
  };
  if (run.world == 1)
    run_rank(*comm::make_communicator({}, "single"));
  else
    on_rank_threads(run.world, run_rank);
  return result;
}

}  // namespace strata::tests
